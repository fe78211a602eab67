"""Small domains and index expressions drawn by hypothesis, and their points one by one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from hypothesis import strategies as st

from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.expressions import Apply, Const, Expr, Position, Select
from plusequals.lowering.ir.indexing import (
    QUASI_BUILDERS,
    Affine,
    Range,
    Symbol,
    const,
    evaluate,
    floordiv,
    mod,
    var,
)
from plusequals.lowering.ir.ops import OPS

I, J, K = Symbol("i", 1), Symbol("j", 2), Symbol("k", 3)
LETTERS = (I, J, K)
Point = dict[Symbol, int]
_COMPARED = {
    "lt": int.__lt__, "le": int.__le__, "gt": int.__gt__, "ge": int.__ge__, "eq": int.__eq__,
    "ne": int.__ne__,
}  # fmt: skip


def affine(symbols: Sequence[Symbol], most: int = 3) -> st.SearchStrategy[Affine]:
    """Draw an affine expression of the symbols with small coefficients."""
    factors = st.tuples(*[st.integers(-most, most) for _ in symbols])

    def built(drawn: tuple[tuple[int, ...], int]) -> Affine:
        total = const(drawn[1])
        for symbol, factor in zip(symbols, drawn[0], strict=True):
            total = total + var(symbol) * factor
        return total

    return st.tuples(factors, st.integers(-8, 8)).map(built)


@st.composite
def quasi_affine(draw: st.DrawFn, symbols: Sequence[Symbol]) -> Affine:
    """Draw an expression that may hold a min, max, product, quotient or remainder."""
    rest = draw(affine(symbols))
    op = draw(st.sampled_from(["", "min", "max", "mul", "floordiv", "mod"]))
    if not op:
        return rest
    left, factor = draw(affine(symbols, 2)), draw(st.sampled_from([-2, -1, 1, 2]))
    if op in ("floordiv", "mod"):
        by = const(draw(st.integers(1, 4)))
        return rest + (floordiv if op == "floordiv" else mod)(left, by) * factor
    return rest + QUASI_BUILDERS[op](left, draw(affine(symbols, 2))) * factor


@st.composite
def nested_ranges(draw: st.DrawFn, filled: bool = False) -> tuple[Range, ...]:
    """Draw up to three nested ranges whose bounds use the letters further out.

    With `filled` no range is empty for any value of the letters outside it.
    """
    out: list[Range] = []
    for symbol in LETTERS[: draw(st.integers(1, 3))]:
        outer = [r.symbol for r in out]
        lo = draw(affine(outer, 1))
        hi = lo + draw(st.integers(1 if filled else 0, 4)) if filled else draw(affine(outer, 1))
        out.append(Range(symbol, lo, hi))
    return tuple(out)


@st.composite
def comparison(draw: st.DrawFn, symbols: Sequence[Symbol]) -> Expr:
    """Draw a comparison of two index expressions."""
    op = OPS[draw(st.sampled_from(sorted(_COMPARED)))]
    sides = Position(draw(affine(symbols, 2))), Position(draw(affine(symbols, 2)))
    return Apply(op, sides, dtypes.bool_)


@st.composite
def conjunction(draw: st.DrawFn, symbols: Sequence[Symbol]) -> Expr:
    """Draw one comparison, or two joined by `and` in one of the two ways that elaboration uses."""
    first = draw(comparison(symbols))
    if draw(st.booleans()):
        return first
    second = draw(comparison(symbols))
    if draw(st.booleans()):
        return Select(first, second, Const(False, dtypes.bool_))
    return Apply(OPS["and"], (first, second), dtypes.bool_)


def points(ranges: Sequence[Range], given: Point | None = None) -> Iterator[Point]:
    """Yield every point of nested ranges, in order."""
    known = given or {}
    if not ranges:
        yield dict(known)
        return
    first = ranges[0]
    for n in range(evaluate(first.lo, known), evaluate(first.hi, known)):
        yield from points(ranges[1:], {**known, first.symbol: n})


def holds(test: Expr, point: Point) -> bool:
    """Whether a conjunction of comparisons holds at a point."""
    match test:
        case Const(value, _):
            return bool(value)
        case Select(left, right, Const(False, _)):
            return holds(left, point) and holds(right, point)
        case Apply(op, (Position(left), Position(right)), _):
            return _COMPARED[op.name](evaluate(left, point), evaluate(right, point))
        case Apply(op, (left, right), _) if op.name == "and":
            return holds(left, point) and holds(right, point)
        case _:
            raise AssertionError(f"no comparison: {test}")


def box(*symbols: Symbol, sizes: Sequence[int]) -> tuple[Range, ...]:
    """Return ranges from 0 for some symbols."""
    return tuple(Range(s, const(0), const(n)) for s, n in zip(symbols, sizes, strict=True))


def grid(sizes: Sequence[int]) -> list[tuple[int, ...]]:
    """Return every index of a box."""
    return list(itertools.product(*map(range, sizes)))
