"""Two loops turned by a skew: each point comes once, whatever their bounds are."""

from __future__ import annotations

import random

import pytest

from plusequals.lowering.analysis.parallel_band import perfect_nest
from plusequals.lowering.ir.indexing import (
    Affine,
    Symbol,
    const,
    evaluate,
    maximum,
    minimum,
    mod,
    var,
)
from plusequals.lowering.ir.loops import Comment, For
from plusequals.lowering.transform.skew import is_linear, skew_loops


@pytest.mark.parametrize("seed", range(200))
def test_every_point_is_of_one_front(seed: int) -> None:
    rng = random.Random(seed)
    i, j, front = Symbol("i", 0), Symbol("j", 1), Symbol("front", 2)

    def end() -> Affine:
        return var(i) * rng.choice((0, 0, 1, -1, 2)) + rng.randint(-4, 4)

    lo = maximum(end(), end()) if rng.random() < 0.3 else end()
    hi = minimum(end() + 5, end() + 4) if rng.random() < 0.3 else end() + 5
    here = (Comment("here"),)
    columns = For(j, lo, hi, 1, here)
    rows = For(i, const(rng.randint(-3, 1)), const(rng.randint(-1, 5)), 1, (columns,))
    for skew in range(4):
        made = skew_loops(rows, columns, skew, front)
        found = [(a, f - skew * a) for f, a in points(made)]
        assert sorted(found) == points(rows)


def points(loop: For) -> list[tuple[int, int]]:
    """Return the numbers that two loops, one in the other, go through, in their order."""
    (_, inner), _ = perfect_nest(loop)
    out = []
    for one in range(evaluate(loop.lo, {}), evaluate(loop.hi, {})):
        known = {loop.symbol: one}
        out += [(one, k) for k in range(evaluate(inner.lo, known), evaluate(inner.hi, known))]
    return out


def test_bounds_have_to_be_linear_in_the_row() -> None:
    i, j = Symbol("i", 0), Symbol("j", 1)
    rows = For(i, const(0), const(9), 1, ())
    assert is_linear(rows, For(j, maximum(var(i) * 2, const(3)), const(9), 1, ()))
    assert not is_linear(rows, For(j, mod(var(i), const(2)), const(9), 1, ()))
