"""Which scalars reach another iteration, or what comes after a loop."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plusequals.base.diagnostic import CdInternalError
from plusequals.lowering.analysis.carried_scalars import (
    carried_scalars,
    stores_carried,
    verify_scalars,
)
from plusequals.lowering.ir.loops import For, Program, Stmt
from plusequals.lowering.ir.rewrite import map_kernels, map_statements
from plusequals.lowering.ir.walk import statements, writes

from ..shown import lowered


@pytest.mark.parametrize(
    ("body", "carried"),
    [
        ("d = x[t] * 2\n    y[t] = d * d", ""),
        ("y[t] = d\n    d = x[t]", "d"),
        ("d = d * 0.5 + x[t]\n    y[t] = d", "d"),
        ("d = x[t]\n    e = d + 1\n    y[t] = e", ""),
        ("if x[t] > 0:\n        d = x[t]\n    y[t] = d", "d"),
        ("d = 0.0\n    if x[t] > 0:\n        d = x[t]\n    y[t] = d", ""),
        ("d = x[t]\n    for u in range(3):\n        d = d * x[u]\n    y[t] = d", "d"),
    ],
)
def test_what_an_iteration_assigns_first_is_not_carried(body: str, carried: str) -> None:
    text = f"d = 1.0\nfor t in range(9):\n    {body}\n"
    program = lowered(text, y="f64[9]", x="f64[9]")
    found = carried_scalars(program)
    names = {node.label for node in program.locals if node.id in found and not node.rank}
    assert "".join(sorted(names)) == carried


def test_what_is_read_after_a_loop_is_carried() -> None:
    program = lowered("d = 1.0\nfor t in range(9):\n    d = x[t]\ny[0] = d", y="f64[9]", x="f64[9]")
    found = carried_scalars(program)
    (loop,) = [s for s in statements(program.kernels[0].body) if isinstance(s, For)]
    assert stores_carried(loop.body, found)
    assert not stores_carried(loop.body, frozenset())


def test_what_is_only_accumulated_is_for_a_reduction() -> None:
    program = lowered("d = x.max()\ny[0] = d", y="i64[9]", x="i64[9]")
    (loop,) = [s for s in statements(program.kernels[0].body) if isinstance(s, For)]
    carried = carried_scalars(program)
    assert {node.id for node in writes(loop.body)} <= carried
    assert not stores_carried(loop.body, carried)


def test_an_update_in_the_list_may_be_that_of_another_iteration() -> None:
    text = "for t in range(9):\n    d = sum[k in range(2)](x[k] * t)\n    y[t] = d"
    program = lowered(text, y="f64[9]", x="f64[9]")

    def change(stmt: Stmt) -> tuple[Stmt, ...]:
        is_inner = isinstance(stmt, For) and stmt.symbol.name == "k"
        return stmt.body if isinstance(stmt, For) and is_inner else (stmt,)

    flat = map_kernels(program, lambda body: map_statements(body, change))
    assert sum(isinstance(s, For) for s in statements(flat.kernels[0].body)) == 1
    assert {n.label for n in flat.locals if n.id in carried_scalars(flat)} == {"d"}


def vectors(program: Program) -> Program:
    """Return the program with its innermost loops over lanes."""

    def change(stmt: Stmt) -> tuple[Stmt, ...]:
        innermost = isinstance(stmt, For) and not any(isinstance(s, For) for s in stmt.body)
        return (replace(stmt, kind="vector") if isinstance(stmt, For) and innermost else stmt,)

    return map_kernels(program, lambda body: map_statements(body, change))


LANES = {
    "a name": ("d = x[t] * 2; y[t] = d", "y[0] = 1.0", True),
    "read after": ("d = x[t]", "y[0] = d", False),
    "read before": ("y[t] = d; d = x[t]", "y[0] = 1.0", False),
    "read after another value": ("d = x[t]; y[t] = d", "d = 2.0; y[0] = d", True),
    "read after a value on one side": (
        "d = x[t]; y[t] = d", "if x[0] > 0:\n    d = 2.0\ny[0] = d", False,
    ),
    "read after a value on both sides": (
        "d = x[t]; y[t] = d", "if x[0] > 0:\n    d = 2.0\nelse:\n    d = 3.0\ny[0] = d", True,
    ),
    "read by a later loop": (
        "d = x[t]", "for u in range(3):\n    for w in range(2):\n        y[w] = d", False,
    ),
    "a value of each iteration of a later loop": (
        "d = x[t]; y[t] = d", "for u in range(3):\n    d = x[u]\n    y[u] = d", True,
    ),
    "read after a loop that gives another value": (
        "d = x[t]; y[t] = d", "for u in range(3):\n    d = x[u]\ny[0] = d", True,
    ),
    "read after a loop that may have no iteration": (
        "d = x[t]; y[t] = d", "for u in range(k[0]):\n    d = x[u % 9]\ny[0] = d", False,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LANES)
def test_lanes_share_no_scalar(name: str) -> None:
    inside, after, is_fine = LANES[name]
    body = inside.replace("; ", "\n    ")
    later = after.replace("; ", "\n")
    text = f"d = 1.0\nfor t in range(9):\n    {body}\n{later}"
    program = lowered(text, y="f64[9]", x="f64[9]", **({"k": "i64[1]"} if "k[" in text else {}))
    verify_scalars(program)
    changed = replace(
        program, kernels=tuple(replace(k, body=_first_vector(k.body)) for k in program.kernels)
    )
    if is_fine:
        verify_scalars(changed)
    else:
        with pytest.raises(CdInternalError, match="lanes of the loop over t share `d`"):
            verify_scalars(changed)


def _first_vector(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    first = next(s for s in body if isinstance(s, For))
    return tuple(replace(first, kind="vector") if s is first else s for s in body)


def test_what_a_loop_around_reads_in_its_next_iteration_is_shared() -> None:
    text = """d = 1.0
for u in range(3):
    y[u] = d
    for t in range(9):
        d = x[t]
        y[t] = d
    if x[u] > 0:
        {}
    d = 2.0"""
    types = {"y": "f64[9]", "x": "f64[9]"}
    verify_scalars(vectors(lowered(text.format("y[u] = 2.0"), **types)))
    for made in (text.format("continue"), text.format("break") + "\ny[0] = d"):
        with pytest.raises(CdInternalError, match="lanes of the loop over t share `d`"):
            verify_scalars(vectors(lowered(made, **types)))
