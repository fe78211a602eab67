"""Range checks of run-time Python ints that adapt to a narrower integer type.

A run-time Python int takes the type of the other operand, and has to fit it, as a literal does:

    x * n,  x int8:    check -128 <= n and n <= 127, else CdOverflowError CD0464

Where a literal would be refused, the run-time int raises, before the statement that uses it.
Index variables, loop variables and what is computed from them alone wrap.

Where paths meet, a name has one type, and a Python int of one path has to fit the type of another:

    best = -1, in a loop best = x[k],  x uint8:    CdOverflowError CD0464 where `best` is set to -1
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...base.diagnostic import CdError, CdValueError, Span
from ...lowering.ir import dtypes
from ...lowering.ir.assignments import Fault
from ...lowering.ir.dtypes import DType
from ...lowering.ir.expressions import Apply, Domain, Expr, Position, Read, Select, walk
from ...lowering.ir.indexing import Affine, Range, const
from ...lowering.ir.ops import OPS
from ...lowering.ir.walk import free_symbols
from .builder import Context, compare, error
from .fix_hints import WAYS_OUT
from .types import TRUE, WEAK_INT, Kind, TooLarge, Unfit, both, fits, number, whole_constant
from .values import Array, Scalar

Combine = Callable[..., tuple[Expr, Kind]]

_LITERALS = (2**63 - 1, -1)
"""The largest run-time Python int, and one that no unsigned type holds."""


def require_fits(ctx: Context, combine: Combine, operands: Sequence[Array], span: Span) -> None:
    """Emit the checks that run-time Python ints fit the integer type that an operation casts to.

    A check that fails raises CdOverflowError CD0464 with the number and the type.
    """
    if ctx.uses is not None or not any(_is_narrow(array.kind) for array in operands):
        return
    for position, array in enumerate(operands):
        if array.kind == WEAK_INT and _is_run_time(ctx, array.body):
            dtype = _find_narrow_type(combine, operands, position)
            if dtype is not None:
                _check_fits(ctx, array.body, dtype, span)


def require_held(ctx: Context, array: Array, dtype: DType, span: Span) -> None:
    """Emit the check that run-time Python ints fit an element type: CdOverflowError CD0464."""
    narrow = ctx.uses is None and array.kind == WEAK_INT and _is_narrow(Kind(dtype))
    if narrow and _is_run_time(ctx, array.body):
        _check_fits(ctx, array.body, dtype, span, array.ranges)


def require_joined(ctx: Context, value: Scalar, kind: Kind, what: str, span: Span) -> None:
    """Emit the check that a Python int keeps its value in the type in which it meets other paths.

    It is for constants and loop variables, too, but not for index variables, which wrap: a path
    that is not taken must not refuse the others. A check that fails raises CdOverflowError CD0464
    with `what` the int is of.
    """
    if ctx.uses is not None or value.kind != WEAK_INT or not _is_narrow(kind):
        return
    constant = whole_constant(value.expr)
    if constant is None and ctx.pointwise and not _is_run_time(ctx, value.expr):
        return
    if constant is not None and (fits(constant, kind.dtype) or not fits(constant, dtypes.int64)):
        return  # what no int64 holds is refused by the cast
    expr = value.expr if constant is None else Position(const(constant))
    shown = "n" if constant is None else constant
    text = (
        f"{what} is the Python integer {{0}}, which does not fit in {kind.dtype}, the type of its"
    )
    helps = ["make those Python's, too: `int(...)`"]
    if kind.dtype is not dtypes.uint64:
        helps.append(f"or this one NumPy's, of a type that holds all of them: `np.int64({shown})`")
    _check_fits(ctx, expr, kind.dtype, span, (), (f"{text} other values", tuple(helps)))


def _is_narrow(kind: Kind) -> bool:
    """Whether an integer type does not hold all int64 values."""
    return not kind.weak and kind.dtype.kind in "iu" and kind.dtype is not dtypes.int64


def _is_run_time(ctx: Context, expr: Expr) -> bool:
    """Whether an int is neither a constant nor a function of index and loop variables alone."""
    if any(isinstance(part, Read) for part in walk(expr)):
        return True
    index_vars = {r.symbol for r in ctx.domain} | ctx.loop_symbols
    used = free_symbols(expr)
    return bool(used) and not used & index_vars


def _find_narrow_type(combine: Combine, operands: Sequence[Array], at: int) -> DType | None:
    """Return the type to which an operand adapts and that does not hold every int, else None.

    >>> from .types import Kind, apply
    >>> x = Array((), (), TRUE, Kind(dtypes.int8))
    >>> n = Array((), (), number(1, WEAK_INT), WEAK_INT)
    >>> _find_narrow_type(lambda *pairs: apply("mul", *pairs), (x, n), 1)
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


def _check_fits(
    ctx: Context, expr: Expr, dtype: DType, span: Span, over: tuple[Range, ...] = (),
    message: tuple[str, tuple[str, ...]] | None = None,
) -> None:  # fmt: skip
    """Emit the unproven part of `lo <= expr <= hi`, the bounds of an integer type, as a check.

    It is of all points of the ranges `over`, the axes of an array; `message` has its text and help
    texts.
    """
    signed = dtype.kind == "i"
    lo = -(1 << (dtype.bits - 1)) if signed else 0
    hi = lo + (1 << dtype.bits) - 1
    index = expr.index if isinstance(expr, Position) else None
    test = both(_lower_test(ctx, expr, index, lo), _upper_test(ctx, expr, index, hi))
    if test is None:
        return
    domain = Domain((*ctx.domain, *over))
    if not over and not _varies_by_point(ctx, test):
        test, domain = _unless_empty(ctx, test), Domain()
    text, helps = message or (
        f"the Python integer {{0}} does not fit in {dtype}, the type that it meets",
        ("convert the array first: `x.astype(np.int64)`",
         f"or the number, which wraps then: `np.{dtype}(n)`"),
    )  # fmt: skip
    ctx.check(test, Fault("CD0464", "CdOverflowError", text, helps), (expr,), span, domain)


def _varies_by_point(ctx: Context, test: Expr) -> bool:
    """Whether a check, or the emptiness of the domain, depends on index variables."""
    index_vars = {r.symbol for r in ctx.domain}
    bounds = (symbol for r in ctx.domain for symbol in r.lo.symbols() | r.hi.symbols())
    return not index_vars.isdisjoint(free_symbols(ctx.under_conditions(test)) | set(bounds))


def _unless_empty(ctx: Context, test: Expr) -> Expr:
    """Return the test, true where the domain of the index variables is empty."""
    for r in ctx.domain:
        if not ctx.assumptions.less(r.lo, r.hi):
            test = Select(compare("lt", r.lo, r.hi), test, TRUE)
    return test


def _lower_test(ctx: Context, expr: Expr, index: Affine | None, lo: int) -> Expr | None:
    if index is not None and ctx.assumptions.nonnegative(index - lo):
        return None
    return Apply(OPS["le"], (Position(const(lo)), expr), dtypes.bool_)


def _upper_test(ctx: Context, expr: Expr, index: Affine | None, hi: int) -> Expr | None:
    if hi >= 2**63 or index is not None and ctx.assumptions.less(index, const(hi + 1)):
        return None
    return Apply(OPS["le"], (expr, Position(const(hi))), dtypes.bool_)


def too_large(problem: OverflowError, span: Span) -> CdError:
    """Return CdValueError CD0461 for a number that is too large for the code."""
    helps = WAYS_OUT["CD0461"]
    if isinstance(problem, TooLarge) and fits(problem.value, dtypes.uint64):
        helps = (f"make it one of NumPy's: `np.uint64({problem.value})`", *helps)
    text = f"a number here is too large: {problem}"
    return error("CD0461", CdValueError, text, span, helps=helps)
