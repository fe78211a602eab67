"""Which results may start as anything, and which whoever calls can make."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from plusequals.lowering.ir.interpret import run_program
from plusequals.lowering.ir.loops import Program, Stmt, Store
from plusequals.lowering.ir.rewrite import map_kernels, map_statements
from plusequals.lowering.lower import lower
from plusequals.lowering.passes.dead_stores import eliminate_zero_fills
from plusequals.lowering.passes.result_values import annotate_results

from ..scheduled import function, of_any_size
from ..shown import lowered

ARRAYS = {"x": "f32[8]", "p": "i64[8]", "a": "f32[3, 4]"}
WHOLE = [
    "return x * 2",
    "return a.T + 1",
    "r = np.zeros(8)\nr[:] = x\nr[2] += 1\nreturn r",
    "r = np.ones(8)\nr[p[i]] = x[i]\nreturn r",
    "r = np.zeros(8)\nfor k in range(8):\n    r[k] = x[k]\nreturn r",
    "r = np.zeros(8)\nfor k in range(8):\n    if x[k] > 0:\n        r[k] = x[k]\n    else:\n"
    "        r[k] = 1\nreturn r",
]
PARTS = [
    "r = np.zeros(8)\nr[1:] = x[1:]\nreturn r",
    "r = np.zeros(8)\nr[p[i]] += x[i]\nreturn r",
    "r = np.zeros(8)\nr += x\nreturn r",
    "r = np.zeros(8)\nfor k in range(8):\n    if x[k] > 0:\n        r[k] = x[k]\nreturn r",
    "r = np.zeros(8)\nfor k in range(8):\n    if x[k] > 0:\n        break\n    r[k] = 1\nreturn r",
    "r = np.zeros(8)\nk = 0\nwhile k < 8 and x[k] > 0:\n    r[k] = 1\n    k += 1\nreturn r",
]


@pytest.mark.parametrize("body", WHOLE)
def test_a_result_that_is_written_everywhere_may_start_as_anything(body: str) -> None:
    program = annotate_results(eliminate_zero_fills(lowered(body, **ARRAYS)))
    assert program.whole == {node.id for node in program.results} != set()
    assert program.sized == frozenset()


@pytest.mark.parametrize("body", PARTS)
def test_a_result_of_which_some_is_read_or_left_has_to_be_zeros(body: str) -> None:
    program = annotate_results(eliminate_zero_fills(lowered(body, **ARRAYS)))
    assert program.whole == frozenset() and program.results


def test_numbers_are_zeros() -> None:
    program = annotate_results(lowered("return x.sum()", **ARRAYS))
    assert program.whole == program.sized == frozenset()


def opened(body: str) -> Program:
    """Return the loops of a function of arrays whose sizes only calls know."""
    made = function("def f(x, a):\n" + "".join(f"    {line}\n" for line in body.splitlines()))
    return annotate_results(
        eliminate_zero_fills(lower(of_any_size(made, np.ones(7), np.ones((3, 4)))))
    )


@pytest.mark.parametrize(
    ("body", "sized", "whole"),
    [
        ("return x * 2", True, True),
        ("return np.concatenate([x, x[1:]])", True, True),
        ("return a.T + 1", True, True),
        ("return np.outer(x, x)[1:]", True, True),
        ("r = np.zeros(len(x))\nr[1:] = x[1:]\nreturn r", True, True),  # its zeros are stored
        ("r = np.zeros(int(x[0]) + 2)\nr[:] = 1\nreturn r", False, False),
    ],
)
def test_sizes_of_arguments_tell_shapes_of_results(body: str, sized: bool, whole: bool) -> None:
    program = opened(body)
    (result,) = program.results
    assert result.static_shape is None
    assert (program.sized, program.whole) == (
        {result.id} if sized else set(),
        {result.id} if whole else set(),
    )


def test_an_array_that_moves_is_made_by_the_run() -> None:
    program = opened(
        "t, u = x * 1, x * 2\nfor s in range(len(a)):\n    t[:] = u + 1\n    t, u = u, t\nreturn t"
    )
    assert program.results and program.sized == program.whole == frozenset()


def test_marks_that_are_wrong_would_be_seen() -> None:
    """What is whole has every element written, whatever it started as."""
    program = annotate_results(eliminate_zero_fills(lowered(WHOLE[-1], **ARRAYS)))

    def without_else(stmt: Stmt) -> tuple[Stmt, ...]:
        return () if isinstance(stmt, Store) and "1.0" in repr(stmt.value) else (stmt,)

    less = map_kernels(program, lambda body: map_statements(body, without_else))
    assert annotate_results(replace(less, whole=frozenset())).whole == frozenset()
    x = np.array([1, -1] * 4, "f4")
    arrays = [x, np.zeros(8, int), np.zeros((3, 4), "f4"), None]
    (full,), (left,) = (run_program(one, arrays, lambda text: None) for one in (program, less))
    assert full.tolist() == [1, 1] * 4 and left.tolist() == [1, 0] * 4
