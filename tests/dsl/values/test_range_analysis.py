"""What is proven of index expressions is true at every point, and is found where it is affine."""

from __future__ import annotations

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from plusequals.dsl.values.range_analysis import (
    Assumptions,
    corner,
    extreme,
    factors,
    facts_of,
    largest,
    says_of_indices,
    smallest,
)
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.expressions import Apply, Const, Expr, Position, Read
from plusequals.lowering.ir.indexing import (
    Affine,
    Range,
    const,
    evaluate,
    floordiv,
    multiply,
    substitute,
    var,
)
from plusequals.lowering.ir.node import Node
from plusequals.lowering.ir.ops import OPS

from ..elaborate.points import (
    LETTERS,
    I,
    J,
    affine,
    comparison,
    conjunction,
    holds,
    nested_ranges,
    points,
    quasi_affine,
)

Drawn = tuple[tuple[Range, ...], Affine, Affine]
unhurried = settings(suppress_health_check=[HealthCheck.too_slow])
"""On a busy machine drawing nested ranges takes its time."""


@st.composite
def _over_ranges(draw: st.DrawFn) -> Drawn:
    """Draw ranges and two expressions of their letters."""
    ranges = draw(nested_ranges())
    symbols = [r.symbol for r in ranges]
    return ranges, draw(quasi_affine(symbols)), draw(quasi_affine(symbols))


@unhurried
@given(_over_ranges(), st.data())
def test_nothing_false_is_proven(drawn: Drawn, data: st.DataObject) -> None:
    ranges, e, other = drawn
    test = data.draw(conjunction([r.symbol for r in ranges]))
    assumptions = Assumptions().with_ranges(ranges).assuming(test)
    inside = [point for point in points(ranges) if holds(test, point)]
    values = [(evaluate(e, point), evaluate(other, point)) for point in inside]
    if assumptions.nonnegative(e):
        assert all(a >= 0 for a, _ in values)
    if assumptions.less(e, other):
        assert all(a < b for a, b in values)
    if assumptions.equal(e, other):
        assert all(a == b for a, b in values)
    if assumptions.differ(e, other):
        assert all(a != b for a, b in values)


@unhurried
@given(_over_ranges())
def test_bounds_hold_at_every_point(drawn: Drawn) -> None:
    ranges, e, other = drawn
    assumptions = Assumptions().with_ranges(ranges)
    low, high = smallest(e, assumptions), largest(e, assumptions)
    least, most = assumptions.minimum(e, other), assumptions.maximum(e, other)
    for point in points(ranges):
        a, b = evaluate(e, point), evaluate(other, point)
        assert (low is None or low <= a) and (high is None or a <= high)
        assert evaluate(least, point) == min(a, b)
        assert evaluate(most, point) == max(a, b)


@unhurried
@given(nested_ranges(filled=True), st.data())
def test_affine_extremes_of_filled_ranges_are_exact(
    ranges: tuple[Range, ...], data: st.DataObject
) -> None:
    e = data.draw(affine([r.symbol for r in ranges]))
    values = [evaluate(e, point) for point in points(ranges)]
    assumptions = Assumptions().with_ranges(ranges)
    assert (smallest(e, assumptions), largest(e, assumptions)) == (min(values), max(values))
    assert extreme(e, ranges, upwards=False) == const(min(values))
    assert extreme(e, ranges, upwards=True) == const(max(values))
    for upwards, wanted in ((False, min(values)), (True, max(values))):
        point = corner(e, ranges, upwards)
        assert substitute(e, point) == const(wanted)
        place = {symbol: at.constant for symbol, at in point.items()}
        assert place in list(points(ranges))


@unhurried
@given(nested_ranges(), st.data())
def test_an_extreme_of_any_ranges_is_passed_by_no_point(
    ranges: tuple[Range, ...], data: st.DataObject
) -> None:
    e = data.draw(affine([r.symbol for r in ranges]))
    low, high = (extreme(e, ranges, upwards).constant for upwards in (False, True))
    assert low is not None and high is not None
    assert all(low <= evaluate(e, point) <= high for point in points(ranges))


@unhurried
@given(st.data())
def test_facts_say_what_the_test_says(data: st.DataObject) -> None:
    test = data.draw(conjunction(LETTERS))
    point = {symbol: data.draw(st.integers(-6, 6)) for symbol in LETTERS}
    facts = [evaluate(fact, point) >= 0 for fact in facts_of(test)]
    if holds(test, point):
        assert all(facts)
    elif not _has_unequal(test):
        assert not all(facts)


def _has_unequal(test: Expr) -> bool:
    return "ne" in repr(test)


@given(comparison((I,)))
def test_what_is_assumed_is_known(test: Expr) -> None:
    assume("ne" not in repr(test))
    assumptions = Assumptions().assuming(test)
    assert all(assumptions.nonnegative(fact) for fact in facts_of(test))


def test_an_unequal_end_makes_the_bound_strict() -> None:
    assumptions = Assumptions().with_bounds(I, const(0), const(9))
    unequal = Apply(OPS["ne"], (Position(var(I)), Position(const(0))), dtypes.bool_)
    assert not assumptions.nonnegative(var(I) - 1)
    assert assumptions.assuming(unequal).nonnegative(var(I) - 1)


def test_two_facts_are_added() -> None:
    assumptions = Assumptions().with_facts(var(I) - var(J), var(J) - 3)
    assert assumptions.nonnegative(var(I) - 3)
    assert not assumptions.nonnegative(var(I) - 4)


def test_factors_are_those_of_products_of_unknowns() -> None:
    product = multiply(var(I) + 1, var(J))
    assert set(factors(product * 2 + var(I))) == {var(I) + 1, var(J)}
    assert list(factors(var(I) * 3)) == []


def test_open_symbols_prove_nothing() -> None:
    assumptions = Assumptions()
    assert not assumptions.nonnegative(var(I)) and not assumptions.nonnegative(-var(I))
    assert assumptions.equal(var(I), var(I)) and not assumptions.equal(var(I), var(J))
    assert not assumptions.differ(var(I), var(J)) and assumptions.differ(var(I), var(I) + 1)


def test_only_tests_on_indices_exclude_points() -> None:
    x = Read(Node(1, "x", (), dtypes.float64), ())
    zero = Const(0.0, dtypes.float64)
    of_values = Apply(OPS["lt"], (x, zero), dtypes.bool_)
    of_indices = Apply(OPS["lt"], (Position(var(I)), Position(var(J))), dtypes.bool_)
    assert not says_of_indices(of_values)
    assert says_of_indices(Apply(OPS["and"], (of_values, of_indices), dtypes.bool_))


@unhurried
@given(_over_ranges())
def test_an_extreme_is_never_passed(drawn: Drawn) -> None:
    ranges, e, _ = drawn
    low, high = evaluate(extreme(e, ranges, False), {}), evaluate(extreme(e, ranges, True), {})
    assert all(low <= evaluate(e, point) <= high for point in points(ranges))


@given(st.integers(1, 5), st.integers(-3, 3), st.integers(0, 60), st.integers(-2, 2))
def test_parts_of_a_whole_are_no_more_than_it(
    least: int, more: int, whole: int, spare: int
) -> None:
    """With `j` up to `(whole - d) // d + more`, `d * j` is at most `whole - d + more * d`."""
    d, j = var(I), var(J)
    most = floordiv(const(whole) - d, d) + more
    assumptions = Assumptions().with_bounds(I, const(least), const(9)).with_bounds(J, None, most)
    gap = const(whole) - d + d * more - multiply(d, j)
    assert assumptions.nonnegative(gap)
    if assumptions.nonnegative(gap - spare):
        assert all(
            evaluate(gap - spare, {I: n, J: evaluate(most, {I: n})}) >= 0 for n in range(least, 10)
        )


def test_nothing_is_said_of_parts_by_what_may_be_zero() -> None:
    d, j = var(I), var(J)
    assumptions = (
        Assumptions()
        .with_bounds(I, const(0), const(9))
        .with_bounds(J, const(0), floordiv(d + 9, d))
    )
    assert not assumptions.nonnegative(d + 9 - multiply(d, j))


def test_products_of_what_is_not_below_zero_are_not_either() -> None:
    assumptions = Assumptions().with_bounds(I, const(2), None).with_bounds(J, const(3), None)
    product = multiply(var(I), var(J))
    assert smallest(product * 2 + 1, assumptions) == 13
    assert smallest(product * -1, assumptions) is None
    assert smallest(product, assumptions.with_bounds(J, const(-1), None)) is None
