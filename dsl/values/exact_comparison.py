"""Comparisons of a Python int with a Python float: by value, as in Python, not in double."""

from __future__ import annotations

from math import inf, isfinite, nextafter

from ...lowering.ir import dtypes
from ...lowering.ir.expressions import Apply, Const, Expr, Position, Select
from ...lowering.ir.indexing import Affine, Quasi, Symbol, const
from ...lowering.ir.ops import OPS, Op
from .builder import Context
from .types import FALSE, TRUE, WEAK_FLOAT, WEAK_INT, Kind, cast, fits, whole_constant

_EXACT = 2**53
"""Up to it all integers are doubles."""
_PRACTICAL = 2**44
"""More than any loop counts within days, and than the elements of any array."""
_REVERSED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}


def of_int_and_float(
    ctx: Context, row: Op, left: tuple[Expr, Kind], right: tuple[Expr, Kind]
) -> Expr | None:
    """Return the comparison of a Python int with a Python float, where that in double is another.

    None for other kinds, and where the float or the int is known to be below 2**53.
    """
    if left[1] == WEAK_FLOAT and right[1] == WEAK_INT:
        return of_int_and_float(ctx, OPS[_REVERSED[row.name]], right, left)
    if left[1] != WEAK_INT or right[1] != WEAK_FLOAT:
        return None
    number, value = left[0], right[0]
    if isinstance(number, Position) and _is_small(ctx, number.index):
        return None
    if (constant := whole_constant(number)) is not None:
        return _of_constant(row, constant, value)
    if isinstance(value, Const) and isinstance(value.value, float):
        return _with_constant(row, number, value.value)
    rounded = cast(number, dtypes.float64)
    # where they round to one double, that is a whole number, from -2**63 up to 2**63 inclusive
    whole = Apply(row, (number, cast(value, dtypes.int64)), dtypes.bool_)
    above = TRUE if row.name in ("lt", "le", "ne") else FALSE
    fits_int = Apply(OPS["lt"], (value, Const(2.0**63, dtypes.float64)), dtypes.bool_)
    equal = Apply(OPS["eq"], (rounded, value), dtypes.bool_)
    in_double = Apply(row, (rounded, value), dtypes.bool_)
    return Select(equal, Select(fits_int, whole, above), in_double)


def _of_constant(row: Op, number: int, value: Expr) -> Expr | None:
    """Return the comparison of a constant with a float: with a neighbour that is a double."""
    if abs(number) <= _EXACT:
        return None
    try:
        nearest = float(number)
    except OverflowError:
        nearest = inf if number > 0 else -inf
    if isfinite(nearest) and int(nearest) == number:
        return None
    if row.name in ("eq", "ne"):
        return TRUE if row.name == "ne" else FALSE
    above = nearest if nearest == inf or isfinite(nearest) and nearest > number else None
    if above is None:
        above = nextafter(nearest, inf)
    below = nextafter(above, -inf)
    is_less = row.name in ("lt", "le")
    sides = (Const(above if is_less else below, dtypes.float64), value)
    return Apply(OPS["le" if is_less else "ge"], sides, dtypes.bool_)


def _with_constant(row: Op, number: Expr, value: float) -> Expr | None:
    """Return the comparison of an int64 with a constant float, None where it is right in double."""
    if not isfinite(value) or abs(value) < _EXACT:
        return None
    if fits(int(value), dtypes.int64):
        return Apply(row, (number, Position(const(int(value)))), dtypes.bool_)
    is_less = value > 0  # whether the int is the smaller one
    return TRUE if row.name in (("lt", "le", "ne") if is_less else ("gt", "ge", "ne")) else FALSE


def _is_small(ctx: Context, index: Affine) -> bool:
    """Whether an index is below 2**53: of sizes, and of loop variables and letters between them."""
    weight = sum(abs(factor) for _, factor in index.terms)
    if weight > 256 or abs(index.offset) > _PRACTICAL:
        return False
    return all(_is_small_atom(ctx, atom) for atom, _ in index.terms)


def _is_small_atom(ctx: Context, atom: Symbol | Quasi) -> bool:
    if isinstance(atom, Quasi):
        return atom.op != "mul" and _is_small(ctx, atom.left) and _is_small(ctx, atom.right)
    bounds = ctx.assumptions.bounds.get(atom, (None, None))
    return atom in ctx.sizes or all(end is not None and _is_small(ctx, end) for end in bounds)
