"""Run-time select: one of two values, by a predicate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...base.diagnostic import CdError, CdShapeError, CdTypeError, Span
from ...lowering.ir.expressions import Expr
from ...lowering.ir.walk import free_symbols
from ..values.adapting import require_joined
from ..values.arrays import as_scalar, describe, elementwise
from ..values.builder import Context, error
from ..values.memory_order import bases_of, held
from ..values.types import cast, join, kind_of_number, negate
from ..values.values import (
    Array,
    Group,
    Handle,
    Masked,
    Scalar,
    Static,
    Value,
    joined_identity,
)
from .bindings import is_number
from .truth import select


def select_value(ctx: Context, test: Expr, yes: Value, no: Value, span: Span) -> Value:
    """Return a select of two values by a run-time test: numbers, arrays of one shape, or tuples of
    those. Where Python aliases one of two arrays this is a copy, which `check_sharing` follows.

    CdTypeError CD0463 or CdShapeError CD0301 for anything else, also where a test of run-time
    sizes selects between arrays of different sizes: those sizes have to be static.
    """
    if isinstance(yes, Group) and isinstance(no, Group):
        alike = (yes.kind, yes.fields, yes.named_tuple) == (no.kind, no.fields, no.named_tuple)
        if len(yes.items) == len(no.items) and alike:
            pairs = zip(yes.items, no.items, strict=True)
            items = tuple(select_value(ctx, test, a, b, span) for a, b in pairs)
            return replace(yes.of(items), identity=joined_identity(yes, no))
        raise _mismatch_error(yes, no, span)
    ranks = [value.rank if isinstance(value, Array) else 0 for value in (yes, no)]
    if isinstance(yes, Array) and isinstance(no, Array) and ranks[0] == ranks[1]:
        for axis, (left_extent, right_extent) in enumerate(zip(yes.shape, no.shape, strict=True)):
            what = f"the choices have different sizes along axis {axis}"
            if free_symbols(test) & ctx.sizes and not ctx.assumptions.equal(
                left_extent, right_extent
            ):
                text = f"{what}, which depends on a size"
                raise error("CD0301", CdShapeError, text, span)
            ctx.equal_extents(left_extent, right_extent, what, span)
    elif any(isinstance(v, Group) for v in (yes, no)) or any(ranks) and not ctx.pointwise:
        raise _mismatch_error(yes, no, span)
    if yes == no and isinstance(yes, Static):
        return yes
    if any(_is_no_number(value) for value in (yes, no)):
        raise _mismatch_error(yes, no, span, _AROUND)
    if is_number(yes) and is_number(no):
        require_both_joined(ctx, test, (as_scalar(yes, span), as_scalar(no, span)), "this", span)
    selected = elementwise(ctx, lambda a, b: select(test, a, b), (yes, no), span)
    if isinstance(selected, Array):
        listed = max(value.listed for value in (yes, no) if isinstance(value, Array))
        selected = replace(selected, listed=listed)
    bases = bases_of(yes) | bases_of(no)
    if not isinstance(selected, Array) or not bases or ctx.pointwise:
        return selected
    return held(ctx, selected, "choice", span, bases=bases)


def require_both_joined(
    ctx: Context, test: Expr, sides: tuple[Scalar, Scalar], what: str, span: Span
) -> None:
    """Emit the checks that a Python int on either side of a select fits the type of the other."""
    kind = join(sides[0].kind, sides[1].kind)
    for side, holds in zip(sides, (test, negate(test)), strict=True):
        with ctx.under(holds):
            require_joined(ctx, side, kind, what, span)


_AROUND = "put the test around what uses it: `if x[0] > 0: ...`, `else: ...`"


def _is_no_number(value: Value) -> bool:
    """Whether a value can be no side of a select: a text, None, an object or a function."""
    if isinstance(value, Static):
        return kind_of_number(value.value) is None
    return not isinstance(value, Scalar | Array | Handle | Masked)


def _mismatch_error(
    yes: Value, no: Value, span: Span, way_out: str = "give both choices one shape and type"
) -> CdError:
    return error(
        "CD0463",
        CdTypeError,
        f"this is {describe(yes)} or {describe(no)}, depending on a test",
        span,
        helps=(way_out,),
    )


def as_if_open(
    ctx: Context, value: Value, evaluate_other: Callable[[], Value], span: Span
) -> Value:
    """Return a number converted to the type that the select with its other side has.

    A test on index variables that is proven must not change the type of the select.
    """
    uses, count = ctx.uses, len(ctx.locals)
    try:
        with ctx.block():
            ctx.uses = []
            alternative = evaluate_other()
    except CdError:
        return value
    finally:
        ctx.uses = uses
        del ctx.locals[count:]
    if not (is_number(value) and is_number(alternative)):
        return value
    number, other_number = as_scalar(value, span), as_scalar(alternative, span)
    kind = join(number.kind, other_number.kind)
    require_joined(ctx, number, kind, "this", span)
    return value if kind == number.kind else Scalar(cast(number.expr, kind.dtype.compute), kind)
