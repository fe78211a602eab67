"""Python ints of the run that take the type of what they meet: they have to fit, as literals do.

    x * n,  x int8:    check -128 <= n and n <= 127, else CdOverflowError CD0464

Where a literal would be refused, the number of the run raises, before the statement that uses it.
Index letters and loop variables, and what is computed from them alone, wrap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...base.diagnostic import Span
from ...lowering.ir import dtypes
from ...lowering.ir.assignments import Fault
from ...lowering.ir.dtypes import DType
from ...lowering.ir.expressions import Apply, Domain, Expr, Position, Read, Select, walk
from ...lowering.ir.indexing import Affine, const
from ...lowering.ir.ops import OPS
from ...lowering.ir.walk import free_symbols
from .builder import Context, compare
from .types import TRUE, WEAK_INT, Kind, Unfit, both, number
from .values import Array

Combine = Callable[..., tuple[Expr, Kind]]

_LITERALS = (2**63 - 1, -1)
"""The largest Python int of the run, and one that no unsigned type holds."""


def require_fits(ctx: Context, combine: Combine, operands: Sequence[Array], span: Span) -> None:
    """Emit the checks that Python ints of the run fit the integer type an operation makes of them.

    A check that fails raises CdOverflowError CD0464 with the number and the type.
    """
    if ctx.uses is not None or not any(_is_narrow(array.kind) for array in operands):
        return
    for at, array in enumerate(operands):
        if array.kind == WEAK_INT and _is_of_the_run(ctx, array.body):
            dtype = _adopted(combine, operands, at)
            if dtype is not None:
                _check(ctx, array.body, dtype, span)


def require_held(ctx: Context, array: Array, dtype: DType, span: Span) -> None:
    """Emit the check that Python ints of the run fit an element type: CdOverflowError CD0464."""
    narrow = ctx.uses is None and array.kind == WEAK_INT and _is_narrow(Kind(dtype))
    if narrow and _is_of_the_run(ctx, array.body):
        _check(ctx, array.body, dtype, span)


def _is_narrow(kind: Kind) -> bool:
    """Whether there are int64 values that a type of integers does not hold."""
    return not kind.weak and kind.dtype.kind in "iu" and kind.dtype is not dtypes.int64


def _is_of_the_run(ctx: Context, expr: Expr) -> bool:
    """Whether an int is neither a constant nor made of index letters and loop variables."""
    if any(isinstance(part, Read) for part in walk(expr)):
        return True
    counted = {r.symbol for r in ctx.domain} | ctx.loop_symbols
    used = free_symbols(expr)
    return bool(used) and not used & counted


def _adopted(combine: Combine, operands: Sequence[Array], at: int) -> DType | None:
    """Return the type that does not hold every literal in the place of an operand, None for none.

    >>> from .types import Kind, apply
    >>> x = Array((), (), TRUE, Kind(dtypes.int8))
    >>> n = Array((), (), number(1, WEAK_INT), WEAK_INT)
    >>> _adopted(lambda *pairs: apply("mul", *pairs), (x, n), 1)
    int8
    """
    pairs = [(array.body, array.kind) for array in operands]
    for literal in _LITERALS:
        pairs[at] = number(literal, WEAK_INT), WEAK_INT
        try:
            combine(*pairs)
        except Unfit as refusal:
            return refusal.dtype
    return None


def _check(ctx: Context, expr: Expr, dtype: DType, span: Span) -> None:
    """Emit what is not proven of `lo <= expr <= hi`, for the bounds of an integer type."""
    signed = dtype.kind == "i"
    lo = -(1 << (dtype.bits - 1)) if signed else 0
    hi = lo + (1 << dtype.bits) - 1
    index = expr.index if isinstance(expr, Position) else None
    test = both(_least(ctx, expr, index, lo), _most(ctx, expr, index, hi))
    if test is None:
        return
    over = Domain(ctx.domain)
    if not _differs_by_point(ctx, test):
        test, over = _where_points(ctx, test), Domain()
    text = f"the Python integer {{0}} does not fit in {dtype}, the type that it meets"
    helps = (
        "convert the array first: `x.astype(np.int64)`",
        f"or the number, which wraps then: `np.{dtype}(n)`",
    )
    ctx.check(test, Fault("CD0464", "CdOverflowError", text, helps), (expr,), span, over)


def _differs_by_point(ctx: Context, test: Expr) -> bool:
    """Whether a check, or whether there is any point to make it at, depends on index letters."""
    letters = {r.symbol for r in ctx.domain}
    bounds = (symbol for r in ctx.domain for symbol in r.lo.symbols() | r.hi.symbols())
    return not letters.isdisjoint(free_symbols(ctx.under_conditions(test)) | set(bounds))


def _where_points(ctx: Context, test: Expr) -> Expr:
    """Return the test, or true where the ranges of the index letters have no points."""
    for r in ctx.domain:
        if not ctx.known.less(r.lo, r.hi):
            test = Select(compare("lt", r.lo, r.hi), test, TRUE)
    return test


def _least(ctx: Context, expr: Expr, index: Affine | None, lo: int) -> Expr | None:
    if index is not None and ctx.known.nonnegative(index - lo):
        return None
    return Apply(OPS["le"], (Position(const(lo)), expr), dtypes.bool_)


def _most(ctx: Context, expr: Expr, index: Affine | None, hi: int) -> Expr | None:
    if hi >= 2**63 or index is not None and ctx.known.less(index, const(hi + 1)):
        return None
    return Apply(OPS["le"], (expr, Position(const(hi))), dtypes.bool_)
