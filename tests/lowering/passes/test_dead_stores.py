"""Stores that nobody sees, and those that somebody may."""

from __future__ import annotations

import pytest

from plusequals.lowering.ir.assignments import Alloc
from plusequals.lowering.ir.indexing import const
from plusequals.lowering.ir.loops import Comment, Fill, For, If, Store, Update
from plusequals.lowering.ir.ops import OPS
from plusequals.lowering.passes.dead_stores import eliminate_dead_stores, eliminate_zero_fills

from ..ir.build import ap, at, node, num, program, read, symbols
from ..shown import lowered, text_of

ARRAYS = {"y": "f32[8]", "x": "f32[8]", "p": "i64[8]"}

GONE = [
    "y[i] = 0\ny[i] = x[i]",
    "y[i] = x[i] * 2\ny[i] = x[i]",
    "y[...] = 0\nfor i in range(8):\n    y[i] = x[i]\n    y[i] += 1",
    "t = np.zeros(8)\nfor s in range(2):\n    t[...] = 0\n    t[:] = x * s\n    y += t",
    "t = np.ones(8)\nfor s in range(2):\n    t[0] = x[s]\n    for i in range(1, 4):\n"
    "        t[i] = t[i - 1] * 2\n    for i in range(3, -1, -1):\n        y[i] += t[i]",
]


@pytest.mark.parametrize("body", GONE)
def test_an_array_that_is_overwritten_is_not_filled(body: str) -> None:
    program = lowered(body, **ARRAYS)
    new = eliminate_dead_stores(program)
    assert len(text_of(new).splitlines()) < len(text_of(program).splitlines())
    assert eliminate_dead_stores(new) == new


KEPT = [
    "t = np.ones(8)\nif x[0] > 0:\n    t[:] = x * 2\nx[0] = -x[0]\nif x[0] > 0:\n    y[:] = t",
    "t = np.ones(8)\nfor s in range(2):\n    t[1] = x[s]\n    y[s] = t[s]",
    "for q in range(2):\n    t = np.ones(8)\n    for s in range(2):\n        t[s] = x[s]\n"
    "        y[s] = t[0] + t[1]",
    "y[i] = 0\ny[1:] = x[1:]",
    "y[i] = 0\nx[i] = y[i]\ny[i] = x[i]",
    "y[:] = 1\nfor s in range(8):\n    y[s] = y[7 - s] + x[s]",
    "y[i] = 0\nif x[0] > 0:\n    raise ValueError('positive')\ny[i] = x[i]",
    "y[i] = 0\ny[p[i]] = x[i]",
    "y[:] = 0\nfor s in range(8):\n    if x[s] > 0:\n        y[s] = x[s]",
    "for s in range(3):\n    y[i] = s\n    if x[s] > 0:\n        break\n    y[i] = x[i]",
]


@pytest.mark.parametrize("body", KEPT)
def test_what_may_be_seen_stays(body: str) -> None:
    program = lowered(body, **ARRAYS)
    assert eliminate_dead_stores(program) == program


def test_results_start_as_zeros() -> None:
    program = lowered("r = np.zeros(8)\nr[1:] = x[1:]\nreturn r", **ARRAYS)
    assert text_of(program).startswith("for i in 0..8:\n    r[i] = 0.0")
    assert "0.0" not in text_of(eliminate_zero_fills(program))
    for body in ("r = np.ones(8)\nr[1:] = x[1:]\nreturn r", "r = -0.0 * np.zeros(8)\nreturn r",
                 "r = np.zeros(8)\nr += x\nr[0] = 0\nreturn r"):  # fmt: skip
        again = eliminate_zero_fills(lowered(body, **ARRAYS))
        assert "r[" in text_of(again).splitlines()[1] or "r[0] = 0.0" in text_of(again)


def test_results_that_are_filled_start_as_zeros() -> None:
    result = node(0, "r", 8)
    for value, stays in ((0.0, False), (1.0, True), (-0.0, True)):
        made = program((), (), Fill(result, num(value)), results=(result,))
        assert (eliminate_zero_fills(made) == made) is stays


def test_results_of_a_size_of_the_run_keep_their_zeros() -> None:
    result = node(0, "r", *symbols("n"))
    made = program((), (), Alloc(result), Fill(result, num(0.0)), results=(result,))
    assert eliminate_zero_fills(made) == made


def test_a_number_keeps_its_zero() -> None:
    number, result = node(0, "s"), node(1, "r", 8)
    body = Store(at(number), num(0.0)), Fill(result, num(0.0))
    made = eliminate_zero_fills(program((), (), *body, results=(number, result)))
    assert text_of(made) == "s = 0.0"


def test_a_nest_of_all_kinds_that_is_overwritten_goes() -> None:
    (k,) = symbols("k")
    y, x = node(0, "y", 8), node(1, "x", 8)
    test, store = ap("gt", read(x, k), num(0.0)), Store(at(y, k), read(x, k))
    update = Update(at(y, 0), OPS["add"], num(2.0))
    body = Comment("all kinds"), Fill(y, num(1.0)), If(test, (store,)), update
    nest = For(k, const(0), const(8), 1, body)
    made = eliminate_dead_stores(program((y,), (x,), nest, Fill(y, num(3.0))))
    assert made.kernels[0].body == (Fill(y, num(3.0)),)
