"""Ranges of letters: pinned by plain uses, inferred, bounded, tightened to what tests leave."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plusequals.base.diagnostic import NOWHERE, CdShapeError
from plusequals.dsl.elaborate.index.range_inference import (
    bounded,
    conjuncts,
    inferred,
    no_range,
    pinned,
    tighten,
    undecided,
)
from plusequals.dsl.values.builder import Use, compare
from plusequals.dsl.values.range_analysis import Assumptions
from plusequals.dsl.values.types import TRUE, both
from plusequals.lowering.ir.expressions import Expr, Position
from plusequals.lowering.ir.indexing import Affine, Range, Symbol, const, evaluate, var

from ..points import I, J, K, box, conjunction, holds, nested_ranges, points

N = Symbol("n", 9)


def _use(index: Affine, size: int | Affine, name: str = "x") -> Use:
    return Use(index, const(size) if isinstance(size, int) else size, 0, name, NOWHERE)


def test_a_plain_use_pins_and_shifted_ones_do_not() -> None:
    uses = [_use(var(I) + 1, 9), _use(var(J), 4), _use(var(I), 7)]
    assert pinned(I, uses, Assumptions()) == const(7)
    assert pinned(K, uses, Assumptions()) is None


def test_two_plain_uses_agree_or_are_both_named() -> None:
    assert pinned(I, [_use(var(I), var(N)), _use(var(I), var(N))], Assumptions()) == var(N)
    with pytest.raises(CdShapeError) as caught:
        pinned(I, [_use(var(I), 3, "x"), _use(var(I), 4, "y")], Assumptions())
    assert [label.text for label in caught.value.diagnostics[0].labels] == [
        "axis 0 of `y` has size 4", "axis 0 of `x` has size 3",
    ]  # fmt: skip


@given(st.integers(0, 12), st.integers(1, 3), st.integers(-3, 3), st.integers(1, 4))
def test_an_inferred_letter_runs_as_far_as_every_read_stays_inside(
    size: int, step: int, shift: int, window: int
) -> None:
    uses = [_use(var(I) * step + var(J) + shift, size), _use(var(I) + 1, 9)]
    found = inferred(I, uses, {J: const(window)}, Assumptions())
    assert found is not None and found.constant is not None
    fits = [
        i for i in range(20)
        if i + 1 < 9 and all(step * i + j + shift < size for j in range(window))
    ]  # fmt: skip
    assert found.constant == len(fits)


def test_sizes_that_only_the_run_can_compare_are_left_to_it() -> None:
    uses = [_use(var(I), 3), _use(var(I) + 1, 9), _use(var(I), var(N)), _use(var(I), 3)]
    assert pinned(I, uses, Assumptions()) == const(3)
    assert undecided(I, uses, Assumptions()) == [(uses[0], uses[2])]


def test_a_letter_that_runs_backwards_is_not_inferred() -> None:
    assert inferred(I, [_use(const(5) - var(I), 9)], {}, Assumptions()) is None


@given(st.lists(conjunction((I, J)), min_size=1, max_size=2), st.integers(1, 5))
def test_a_bounded_letter_leaves_out_no_point(tests: list[Expr], width: int) -> None:
    extent = bounded(I, tests, {J: const(width)}, Assumptions())
    if extent is None:
        return
    assert extent.constant is not None
    for i in range(extent.constant, extent.constant + 30):
        for j in range(width):
            assert not all(holds(test, {I: i, J: j}) for test in tests)


@given(nested_ranges(), st.data())
def test_tightened_ranges_hold_the_points_where_the_tests_hold(
    ranges: tuple[Range, ...], data: st.DataObject
) -> None:
    symbols = [r.symbol for r in ranges]
    tests = data.draw(st.lists(conjunction(symbols), max_size=3))
    narrow, left = tighten(ranges, tests, Assumptions())
    expected = [p for p in points(ranges) if all(holds(test, p) for test in tests)]
    assert [p for p in points(narrow) if all(holds(test, p) for test in left)] == expected
    assert [r.symbol for r in narrow] == symbols


def test_a_triangle_needs_no_test() -> None:
    below = compare("le", var(J), var(I))
    narrow, left = tighten(box(I, J, sizes=(4, 4)), [below], Assumptions())
    assert not left
    assert [evaluate(narrow[1].hi, {I: i}) for i in range(4)] == [1, 2, 3, 4]


def test_conjunctions_fall_apart_in_order() -> None:
    first, second = compare("lt", var(I), var(J)), compare("ne", var(J), const(2))
    joined = both(first, second)
    assert joined is not None and conjuncts(joined) == [first, second]
    assert conjuncts(TRUE) == []


def test_a_letter_without_a_range_is_told_how_to_get_one() -> None:
    shifted = no_range(K, NOWHERE, [_use(var(I) + var(K), 5)])
    nowhere = no_range(K, NOWHERE, [])
    assert "only inside `i + k`" in str(shifted) and "sum[k in range(3)]" in str(shifted)
    assert "subscripts no axis" in str(nowhere)


def test_positions_of_other_kinds_are_left_to_the_run() -> None:
    use = Use(Position(var(I)), const(4), 0, "x", NOWHERE)
    assert pinned(I, [use], Assumptions()) is None
    assert inferred(I, [use], {}, Assumptions()) is None
