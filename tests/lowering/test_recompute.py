"""What decides a temporary is found, and does the same in front of another procedure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from plusequals import cd_from_source
from plusequals.lowering.ir.assignments import Assign, Block, Check, For, Print, Procedure, While
from plusequals.lowering.ir.interpret import run_procedure
from plusequals.lowering.ir.node import Node
from plusequals.lowering.ir.verify import verify_procedure
from plusequals.lowering.ir.walk import direct_writes, statements
from plusequals.lowering.recompute import Slice, backward_slice, prepend_slice

A = np.arange(1.0, 6.0)
HEAD = "def f(y, a, b, k):\n    t = np.zeros(5)\n"


def procedure_of(body: str) -> Procedure:
    text = HEAD + "".join(f"    {line}\n" for line in body.splitlines()) + "    y[i] = t[i]\n"
    function: Any = cd_from_source(text, {"np": np})
    found: Procedure = function.procedure(A * 0, A, A + 10, np.array([0, 2, 1, 4, 3]))
    return found


def temporary(procedure: Procedure, label: str = "t") -> Node:
    return next(node for node in procedure.locals if node.label == label)


def taken(body: str) -> tuple[Procedure, Slice]:
    procedure = procedure_of(body)
    return procedure, backward_slice(procedure, [temporary(procedure)])


BODIES = {
    "plain": ("t[i] = a[i] * 2.0", {"a"}),
    "other": ("y[i] = b[i]\nt[i] = a[i]", {"a"}),
    "chain": ("u = b + 1.0\nt[i] = u[i] * a[i]\nv = y + 1.0\ny[:] = v", {"a", "b"}),
    "behind": ("u = a + 1.0\nt[i] = u[i]\nu[:] = b", {"a"}),
    "sum": ("t[i] = a[i] / np.sum(a)", {"a"}),
    "loop": ("for n in range(4):\n    t[n + 1] = t[n] + a[n]\n    y[n] = b[n]", {"a"}),
    "test": ("if b[0] > 3.0:\n    t[i] = a[i]\nelse:\n    y[i] = a[i]", {"a", "b"}),
    "way out": (
        "for n in range(5):\n    if b[n] > 12.0:\n        break\n    t[n] = a[n]", {"a", "b"}
    ),
    "while": ("n = 0\nwhile a[n] < 3.0:\n    t[n] = b[n]\n    n += 1", {"a", "b"}),
    "gather": ("t[i] = a[k[i]]", {"a", "k"}),
    "own": ("t[i] = a[i]\nt[i] += t[4 - i]", {"a"}),
    "swap": ("u = a * 1.0\nt[i] = b[i]\nfor n in range(3):\n    t, u = u, t", {"a", "b"}),
    "printed": ("print(b[0])\nt[i] = a[i]", {"a"}),
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_it_takes_what_is_needed_and_computes_the_same(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    procedure, what = taken(BODIES[name][0])
    assert {one.node.label for one in what.parameters} == BODIES[name][1]
    assert not any(isinstance(one, Print) for one in statements(what.body))
    empty = procedure_of("pass")
    empty = replace(empty, body=empty.body[-1:])  # without the zeros
    here = {one.node.label: one.node for one in empty.parameters}
    same = {temporary(procedure).id: temporary(empty)}
    same |= {one.node.id: here[one.node.label] for one in what.parameters}
    both, added = prepend_slice(what, "t again", empty, same)
    verify_procedure(both)
    assert not added and isinstance(both.body[0], Block) and both.body[0].comment == "t again"
    arrays = [[A * 0, A, A + 10, np.array([0, 2, 1, 4, 3])] for _ in range(2)]
    for one, given in zip((procedure, both), arrays, strict=True):
        run_procedure(one, given, lambda _: None)
    capsys.readouterr()
    assert np.array_equal(arrays[0][0], arrays[1][0])


def test_what_is_new_becomes_parameters_and_names_stay_apart() -> None:
    procedure, what = taken("u = b + 1.0\nfor n in range(5):\n    t[n] = u[n] * a[n]")
    target = procedure_of("for n in range(4):\n    y[n] = a[n]")
    once, added = prepend_slice(what, "why", target, {temporary(procedure).id: temporary(target)})
    assert [one.node.label for one in added] == ["a", "b"] == [
        one.node.label for one in once.parameters[4:]
    ]  # fmt: skip
    verify_procedure(once)
    twice, _ = prepend_slice(what, "why", once, {})
    verify_procedure(twice)
    nodes = [one.node for one in twice.parameters] + list(twice.locals)
    assert len({node.id for node in nodes}) == len(nodes)


def test_checks_are_made_again_where_they_need_nothing_more() -> None:
    _, what = taken("t[i] = a[k[i]]\ny[i] = b[k[i] - 1]")
    found = [one for one in statements(what.body) if isinstance(one, Check)]
    assert found and {one.node.label for one in what.parameters} == {"a", "k"}
    _, what = taken("y[i] = b[k[i]]\nt[i] = a[i]")
    assert {type(one) for one in statements(what.body)} == {Assign}


def test_loops_and_blocks_keep_only_what_decides() -> None:
    _, what = taken("for n in range(4):\n    y[n] = b[n]\n    t[n] = a[n]")
    loop = what.body[-1]
    assert isinstance(loop, For) and len(loop.body) == 1
    _, what = taken("n = 0\nwhile n < 3:\n    t[n] = a[n]\n    y[n] = b[n]\n    n += 1")
    loops = [one for one in statements(what.body) if isinstance(one, While)]
    written = {node.label for one in statements(what.body) for node in direct_writes(one)}
    assert loops and "y" not in written


def test_nothing_decides_what_nobody_writes() -> None:
    procedure = procedure_of("y[i] = a[i]")
    what = backward_slice(procedure, [temporary(procedure)])
    assert len(what.body) == 1 and not what.parameters
    what = backward_slice(replace(procedure, body=procedure.body[1:]), [temporary(procedure)])
    assert not what.body
