"""One of two values, as a test of the run decides."""

from __future__ import annotations

from dataclasses import replace

from ...lowering.diagnostic import CdTypeError, Span
from ...lowering.ir.expressions import Expr
from ...lowering.ir.node import Node
from .arrays import describe, elementwise
from .context import Context, error
from .truth import select
from .values import Array, Value


def one_of(ctx: Context, test: Expr, yes: Value, no: Value, span: Span) -> Value:
    """Return one of two values as a test of the run says: numbers, or arrays of one shape.

    CdTypeError CD0425 or CdShapeError CD0301 for anything else.
    """
    ranks = [value.rank if isinstance(value, Array) else 0 for value in (yes, no)]
    if isinstance(yes, Array) and isinstance(no, Array) and ranks[0] == ranks[1]:
        for axis, (one, other) in enumerate(zip(yes.shape, no.shape, strict=True)):
            what = f"the choices have different sizes along axis {axis}"
            ctx.equal_extents(one, other, what, span)
    elif any(ranks) and not ctx.pointwise:
        raise error(
            "CD0425",
            CdTypeError,
            f"this is {describe(yes)} or {describe(no)}, depending on a test",
            span,
            helps=("give both choices one shape and type",),
        )
    made = elementwise(ctx, lambda a, b: select(test, a, b), (yes, no), span)
    if not isinstance(made, Array):
        return made
    shared = (value.sharing for value in (yes, no) if isinstance(value, Array))
    return replace(made, chosen=frozenset[Node]().union(*shared))
