"""What affine indices can reach: exact for shifts, strides, triangles and fixed positions."""

from __future__ import annotations

import pytest

from plusequals.lowering.analysis.subscripts import (
    are_different,
    are_disjoint,
    is_implied,
    is_in_loops,
    is_in_range,
    is_nonnegative,
    ranges,
    solve_subscripts,
)
from plusequals.lowering.ir.expressions import Dynamic, Expr
from plusequals.lowering.ir.indexing import Affine, Range, Symbol, const, mod, substitute, var
from plusequals.lowering.ir.loops import For

from ..ir.build import aff, ap, i64, node, num, pos, read, rng, symbols

i, j, k, n = symbols("i j k n")
TRIANGLE = (rng(i, 0, 9), rng(j, 0, var(i)))


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (var(i), var(i) + 1, True),
        (var(i), var(j), True),  # j < i
        (var(i) - 1, var(j), False),
        (var(i) * 2, var(j) * 2 + 1, True),  # even and odd
        (var(n) * 4 + 2, var(j) * 2 - 3, True),
        (mod(var(i), const(3)), const(1), False),
        (const(3), const(3), False),
        (var(i) + 9, var(j), True),
    ],
)
def test_indices_differ_for_a_reason(left: Affine, right: Affine, expected: bool) -> None:
    assert are_different(left, right, TRIANGLE) is expected
    assert are_different(right, left, TRIANGLE) is expected


def test_places_are_apart_by_one_axis() -> None:
    one, other = (aff(i), aff(0)), (aff(i), aff(j) + 1)
    assert are_disjoint(one, other, TRIANGLE)
    assert not are_disjoint(one, (aff(i), aff(j)), TRIANGLE)
    assert not are_disjoint(None, other, TRIANGLE), "a whole array is everywhere"


def test_tests_that_hold_are_used() -> None:
    square = (rng(i, 0, 9), rng(j, 0, 9))
    below: Expr = ap("le", pos(j), pos(i))
    assert not is_nonnegative(var(i) - var(j), square)
    assert is_nonnegative(var(i) - var(j), square, (below,))
    assert is_nonnegative(var(j) - var(i) - 1, square, (ap("logical_not", below),))
    assert is_implied(ap("lt", pos(var(j) - 1), pos(i)), square, (below,))
    assert not is_implied(ap("lt", pos(j), pos(i)), square, (below,))
    same = ap("eq", pos(i), pos(j))
    assert is_nonnegative(var(i) - var(j), square, (same,))
    assert not is_nonnegative(var(j) - var(i) - 1, square, (ap("logical_not", same),))


def test_the_point_that_wrote_a_cell_is_found() -> None:
    own = (For(i, const(0), const(8), 1, ()), For(j, const(0), const(8), 1, ()))
    assert solve_subscripts((var(i) + 1, -var(j)), (aff(5), aff(k)), own) == {
        i: const(4),
        j: -var(k),
    }
    diagonal = solve_subscripts((aff(i), aff(i)), (aff(k), aff(k)), own[:1])
    assert diagonal == {i: var(k)}
    assert solve_subscripts((aff(i), aff(i)), (aff(k), aff(n)), own[:1]) is None, "off the diagonal"
    assert solve_subscripts((var(i) * 2,), (aff(k),), own[:1]) is None, "not every cell was written"
    assert solve_subscripts((aff(0),), (aff(0),), own[:1]) is None, "the last round wins"
    assert solve_subscripts((aff(0),), (aff(1),), ()) is None
    swapped = solve_subscripts((aff(i), aff(j)), (aff(j), aff(i)), own)
    assert swapped == {i: var(j), j: var(i)}, "symbols of the reader that have the same name"


def test_a_point_is_inside_of_loops_or_not() -> None:
    own = (For(i, const(0), const(8), 1, ()),)
    known = (rng(k, 0, 7),)
    assert is_in_loops({i: var(k) + 1}, own, known, ())
    assert not is_in_loops({i: var(k) + 2}, own, known, ())
    backwards = (For(i, const(7), const(-1), -1, ()),)
    assert is_in_loops({i: var(k) + 1}, backwards, known, ())
    skipping = (For(i, const(0), const(8), 2, ()),)
    assert not is_in_loops({i: var(k)}, skipping, known, ())
    assert ranges(backwards) == (rng(i, 0, 8),)


def test_a_difference_is_found_both_ways() -> None:
    square = (rng(i, 0, 9), rng(j, 0, 9))
    assert not are_different(var(i), var(j), square)
    assert not are_different(Dynamic(pos(i)), aff(3), square), "it depends on data"
    assert are_different(var(i) + 9, var(j), square)
    assert not are_different(var(i) + 8, var(j), square), "8 and 0 + 8"


def test_an_access_is_in_range_of_its_array() -> None:
    x, known = node(0, "x", 9), (rng(i, 0, 9), rng(j, 0, 10))
    assert is_in_range(x, (aff(i),), known)
    assert not is_in_range(x, (aff(j),), known), "one too far"
    assert not is_in_range(x, (var(i) - 1,), known), "one too low"
    assert not is_in_range(x, (Dynamic(pos(i)),), known)
    assert is_in_range(x, None, known), "all of it"
    assert not is_in_range(node(1, "a", 9, 9), (aff(i), aff(j)), known)


def test_what_comparisons_say() -> None:
    square = (rng(i, 0, 9), rng(j, 0, 9))
    for op, sure, unsure in (
        ("lt", var(j) - var(i) - 1, var(j) - var(i) - 2),
        ("le", var(j) - var(i), var(j) - var(i) - 1),
        ("gt", var(i) - var(j) - 1, var(i) - var(j) - 2),
        ("ge", var(i) - var(j), var(i) - var(j) - 1),
        ("eq", var(j) - var(i), var(j) - var(i) - 1),
    ):
        test = ap(op, pos(i), pos(j))
        assert is_nonnegative(sure, square, (test,)), op
        assert not is_nonnegative(unsure, square, (test,)), op
    assert not is_nonnegative(var(j) - var(i), square, (ap("ne", pos(i), pos(j)),))
    number: Expr = ap("gt", pos(i), num(3, i64))
    assert is_nonnegative(var(i) - 4, square, (number,))
    assert not is_nonnegative(var(i) - 5, square, (number,))
    assert is_implied(number, square, (ap("ge", pos(i), num(4, i64)),))
    assert not is_implied(ap("eq", pos(i), pos(j)), square, (ap("le", pos(i), pos(j)),))


def test_a_point_is_not_found_where_two_symbols_share_an_axis() -> None:
    own = (For(i, const(0), const(8), 1, ()), For(j, const(0), const(8), 1, ()))
    assert solve_subscripts((var(i) + var(j), aff(j)), (aff(k), aff(n)), own) == {
        i: var(k) - var(n), j: var(n),
    }  # fmt: skip
    assert solve_subscripts((var(i) + var(j), aff(0)), (aff(k), aff(0)), own) is None
    assert solve_subscripts((aff(i), aff(5)), (aff(k), aff(6)), own[:1]) is None
    where = Dynamic(pos(k))
    assert solve_subscripts((aff(i), where), (aff(n), where), own[:1]) == {i: var(n)}
    assert solve_subscripts((aff(i), where), (aff(n), aff(k)), own[:1]) is None
    assert solve_subscripts((aff(i), where), (where, where), own[:1]) is None
    twice = solve_subscripts((var(i) + 1, var(j) * -1 + 3), (aff(i), aff(j)), own)
    assert twice == {i: var(i) - 1, j: var(j) * -1 + 3}, "the reader has loops of the same names"


def test_a_point_in_a_triangle_is_inside_for_what_is_known() -> None:
    own = (For(i, const(0), const(8), 1, ()), For(j, const(0), var(i), 1, ()))
    known = (rng(k, 0, 8), rng(n, 0, var(k)))
    assert is_in_loops({i: var(k), j: var(n)}, own, known, ())
    assert not is_in_loops({i: var(n), j: var(k)}, own, known, ())
    square = (rng(k, 0, 8), rng(n, 0, 8))
    assert not is_in_loops({i: var(k), j: var(n)}, own, square, ())
    assert is_in_loops({i: var(k), j: var(n)}, own, square, (ap("lt", pos(n), pos(k)),))
    assert not is_in_loops({i: var(k) - 1, j: aff(0)}, own[:1], square, ()), "before the first"
    down = For(i, const(7), const(2), -1, ())
    assert ranges((down,)) == (rng(i, 3, 8),)


def test_comparisons_with_data_say_nothing_of_indices() -> None:
    data = read(node(0, "p", 9, dtype=i64), i)
    assert not is_implied(
        ap("lt", pos(var(i)), num(5, i64)), TRIANGLE, (ap("lt", data, num(5, i64)),)
    )
    assert not is_implied(ap("lt", data, num(5, i64)), TRIANGLE, ())


def test_loops_that_count_through_an_axis_have_one_point_for_each_cell() -> None:
    i, j, k = (Symbol(name, number) for number, name in enumerate("ijk"))
    loops = (For(i, const(-1), const(2), 1, ()), For(j, const(2), const(6), 1, ()))
    place = var(i) * 4 + var(j) + 2
    values = solve_subscripts((place,), (var(k),), loops)
    assert values is not None
    known = (Range(k, const(0), const(12)),)
    assert is_in_loops(values, loops, known, ())
    assert not is_in_loops(values, loops, (Range(k, const(0), const(13)),), ())
    for cell in range(12):
        at = {s: substitute(value, {k: const(cell)}) for s, value in values.items()}
        assert substitute(place, at) == const(cell)
    assert solve_subscripts((var(i) * 3 + var(j),), (var(k),), loops) is None
