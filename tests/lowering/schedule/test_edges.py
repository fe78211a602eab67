"""Loops cut at their edges: the same bits, and no questions in the middle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from plusequals.lowering import settings
from plusequals.lowering.ir.expressions import Position, Read, Select, walk
from plusequals.lowering.ir.indexing import Affine, Quasi
from plusequals.lowering.ir.loops import For, If, Program, Stmt
from plusequals.lowering.ir.walk import bodies, expressions_of, statements
from plusequals.lowering.lower import lower
from plusequals.lowering.pipeline import optimize
from plusequals.lowering.schedule.edges import LEAST, edges
from plusequals.lowering.target import Target

from ...compare import run_on
from ..passes.shown import lowered
from .scheduled import MODEST, function, interpreted, of_any_size

SIZES = (0, 1, 2, 3, 4, LEAST + 1, LEAST + 2, 40, 97)
PADDED = "def f(y, x):\n    y[i] = x[pad(i - 1)] + x[i] + 2 * x[pad(i + 2)]\n"
CLAMPED = "def f(y, x):\n    y[i] = x[clamp(i - 1)] - x[clamp(i + 1)] * x[i]\n"
WRAPPED = "def f(y, x):\n    y[i] = x[wrap(i - 1)] - x[wrap(i + 1)]\n"
GUARDED = """
def f(y, x):
    for i in range(len(x)):
        if i > 1:
            y[i] = y[i - 1] + x[i - 2]
        else:
            y[i] = -x[i]
"""
WINDOWS = """
def f(y, x):
    w = np.array([0.5, 2.0, -1.0, 0.25, 3.0])
    y[i] = sum(x[pad(i + k - 2)] * w[k])
"""
MIDDLE = "def f(y, x):\n    y[i] = x[i] if i < 20 else -x[i]\n"
PLANES = """
def f(y, x):
    y[i, j] = x[pad(i - 1), j] + x[pad(i + 1), j] + x[i, pad(j - 1)] + x[i, pad(j + 1)]
"""
TEXTS = [PADDED, CLAMPED, WRAPPED, GUARDED, WINDOWS]


def asks(stmt: Stmt) -> bool:
    """Whether a statement, or one inside, decides something."""
    inside = [stmt, *(one for body in bodies(stmt) for one in statements(body))]
    parts = [part for one in inside for e in expressions_of(one) for part in walk(e)]
    places = [at for part in parts if isinstance(part, Read) for at in part.index]
    places += [part.index for part in parts if isinstance(part, Position)]
    atoms = [atom for at in places if isinstance(at, Affine) for atom, _ in at.terms]
    if any(isinstance(atom, Quasi) for atom in atoms):
        return True
    return any(isinstance(one, Select | If) for one in (*parts, *inside))


def quiet(program: Program) -> bool:
    """Whether some loop has many rounds and no questions in it."""
    found = [stmt for kernel in program.kernels for stmt in statements(kernel.body)]
    return any(
        isinstance(s, For) and ((s.hi - s.lo).constant or 99) >= LEAST and not asks(s)
        for s in found if not isinstance(s, For) or s.kind == "serial"
    )  # fmt: skip


def numbers(*shape: int) -> Any:
    made = np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)
    if made.size > 4:
        made.flat[0], made.flat[4] = -0.0, np.nan
    return made


def arguments(*shape: int) -> tuple[Any, Any]:
    return np.zeros(shape, np.float32), numbers(*shape)


def same_bits(procedure: Any, *given: Any) -> bool:
    """Whether results have the same bits before and after; the cut loops are returned as well."""
    before, _ = optimize(lower(procedure), MODEST, None, None, "dead again")
    after, _ = optimize(lower(procedure), MODEST, None, None, "simplify edges")
    for got, want in zip(interpreted(after, *given), interpreted(before, *given), strict=True):
        np.testing.assert_array_equal(got.view(np.uint32), want.view(np.uint32))
    return quiet(after)


@pytest.mark.parametrize("text", TEXTS)
def test_not_a_bit_changes(text: str) -> None:
    for size in SIZES:
        if text in (WRAPPED, CLAMPED) and not size:
            continue  # there is nothing to take
        given = arguments(size)
        assert same_bits(function(text).procedure(*given), *given) or size < LEAST + 4


@pytest.mark.parametrize("text", [PADDED, CLAMPED])
def test_sizes_of_the_run_are_cut_too(text: str) -> None:
    made = function(text.replace("f(y, x)", "f(x)") + "    return y\n")
    procedure = of_any_size(made, numbers(5))
    for size in SIZES[1:]:
        assert same_bits(procedure, numbers(size))


def test_the_middle_may_be_anywhere() -> None:
    for size in (20, 21, 40, 97):
        given = arguments(size)
        assert same_bits(function(MIDDLE).procedure(*given), *given) or size < LEAST + 20


def test_planes_are_cut_along_both_axes() -> None:
    for shape in ((0, 30), (1, 30), (30, 1), (30, 40), (2, 40)):
        given = arguments(*shape)
        assert same_bits(function(PLANES).procedure(*given), *given) or min(shape) < 30


@pytest.mark.parametrize("text", [*TEXTS, MIDDLE])
def test_code_gives_the_bits_of_the_interpreter(text: str) -> None:
    for size in (3, 97):
        results = []
        for way in ({"threads": 1}, {"threads": 3, "parallel_from": 0}, None):
            y, x = arguments(size)
            with settings.override(profile="strict", schedule=way is not None, **(way or {})):
                run_on("cc" if way else "numpy", function(text), y, x)
            results.append(y)
        for got in results[:2]:
            np.testing.assert_array_equal(got, results[2])


@pytest.mark.parametrize(
    "body",
    [
        "y[0] = sum[i](x[i] if i > 0 else 1.0)",  # its terms are for `lanes`
        """
for i in range(90):
    if x[i] > 3:
        break
    y[i] = x[i - 1] if i > 0 else 0.0
""",
        "y[i] = x[i] if x[i] > 0 else 0.0",
    ],
)
def test_other_loops_stay(body: str) -> None:
    program = lowered(body, y="f32[90]", x="f32[90]")
    assert edges(program, Target(schedule=True, reorders=True)) == program
