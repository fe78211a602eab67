"""Equal nests run once: what goes, and everything that keeps two apart."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plusequals.lowering.ir import loops
from plusequals.lowering.ir.assignments import Fault
from plusequals.lowering.ir.indexing import const
from plusequals.lowering.ir.node import Node
from plusequals.lowering.ir.ops import OPS
from plusequals.lowering.passes.reuse import eliminate_repeated_nests

from ..ir.build import ap, at, in_kernels, node, num, program, read, symbols
from ..shown import lowered, text_of

ARRAYS = {"y": "f32[8]", "x": "f32[8, 9]", "p": "i64[8]"}
SUMS = "t[i] = sum(x[i, j])\n"

GONE = [
    SUMS + "u[i] = sum(x[i, k])\ny[i] = t[i] - u[i]",
    SUMS + "u[i] = sum(x[i, k])\nv[i] = t[i] * 2\nw[i] = u[i] * 2\ny[i] = v[i] + w[i]",
    "y[i] = 0\n" + SUMS + "for s in range(2):\n    u[i] = sum(x[i, j])\n    v[i] = sum(x[i, k])\n"
    "    y[i] += u[i] * v[i] + t[i]",
]


@pytest.mark.parametrize("body", GONE)
def test_the_second_goes(body: str) -> None:
    program = lowered(body, **ARRAYS)
    new = eliminate_repeated_nests(program)
    assert len(new.locals) < len(program.locals)
    assert text_of(new).count("x[i, ") < text_of(program).count("x[i, ")
    assert eliminate_repeated_nests(new) == new


KEPT = [
    SUMS + "x[0, 0] = 1\nu[i] = sum(x[i, k])\ny[i] = t[i] - u[i]",
    SUMS + "u[i] = max(x[i, k])\ny[i] = t[i] - u[i]",
    SUMS + "u[i] = sum(x[i, k])\nu[0] = 1\ny[i] = t[i] - u[i]",
    SUMS + "u[i] = sum(x[i, k])\nt[0] = 1\ny[i] = t[i] - u[i]",
    SUMS + "u[i] = sum[k in range(8)](x[i, k])\ny[i] = t[i] - u[i]",
    "for s in range(2):\n    t[i] = x[i, s]\n    if s == 1:\n        break\n    u[i] = x[i, s]\n"
    "    y[i] += t[i] * u[i]",
]


@pytest.mark.parametrize("body", KEPT)
def test_what_differs_stays(body: str) -> None:
    program = lowered(body, **ARRAYS)
    assert eliminate_repeated_nests(program) == program


def test_a_check_that_has_passed_is_not_made_again() -> None:
    program = lowered("y[i] = x[i, p[i]]\ny[i] += x[i, p[i]] * 2", **ARRAYS)
    assert text_of(program).count("check ") == 2
    assert text_of(eliminate_repeated_nests(program)).count("check ") == 1
    other = lowered("y[i] = x[i, p[i]]\np[0] = 1\ny[i] += x[i, p[i]] * 2", **ARRAYS)
    assert text_of(eliminate_repeated_nests(other)).count("check ") == 2


def test_what_other_kernels_touch_stays() -> None:
    both = lowered(SUMS + "u[i] = sum(x[i, k])\ny[i] = t[i] - u[i]", **ARRAYS)
    assert (
        eliminate_repeated_nests(in_kernels(both))
        == in_kernels(both)
        != eliminate_repeated_nests(both)
    )
    for first in (True, False):
        name = "t" if first else "u"
        other = in_kernels(lowered(f"{name}[i] = x[i, 1]\ny[i] = {name}[i]", **ARRAYS)).kernels[0]
        (seen,) = (one for one in both.locals if one.label == name)
        store = loops.Store(at(seen, 0), num(1.0))
        whole = replace(both, kernels=(*both.kernels, replace(other, body=(store,))))
        assert eliminate_repeated_nests(whole) == whole


def test_a_nest_of_all_kinds_is_run_once() -> None:
    (k,) = symbols("k")
    y, x, t, u = node(0, "y", 8), node(1, "x", 8), node(2, "t", 8), node(3, "u", 8)
    fault = Fault("CD0601", "CdIndexError", "out of range")

    def nest(target: Node) -> loops.Stmt:
        test = ap("gt", read(x, k), num(0.0))
        store = loops.Store(at(target, k), read(x, k))
        body = (
            loops.Comment("all kinds"), loops.Fill(target, num(1.0)), loops.If(test, (store,)),
            loops.Check(test, fault), loops.Update(at(target, 0), OPS["add"], num(2.0)),
        )  # fmt: skip
        return loops.For(k, const(0), const(8), 1, body)

    use = loops.Store(at(y, 0), ap("add", read(t, 0), read(u, 0)))
    made = eliminate_repeated_nests(program((y,), (x,), nest(t), nest(u), use, local=(t, u)))
    assert made.locals == (t,)
    assert text_of(made).endswith("y[0] = t[0] + t[0]")


def test_two_nests_alone_are_one() -> None:
    i, j, x, t, u = *symbols("i j"), node(1, "x", 8), node(2, "t", 8), node(3, "u", 8)
    one, two = (
        loops.For(s, const(0), const(8), 1, (loops.Store(at(made, s), read(x, s)),))
        for s, made in ((i, t), (j, u))
    )
    made = eliminate_repeated_nests(program((), (x,), one, two, local=(t, u)))
    assert (made.locals, made.kernels[0].body) == ((t,), (one,))
