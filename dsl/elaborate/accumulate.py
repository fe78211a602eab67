"""Accumulations over letters: `target op= value` in the type that both are computed in."""

from __future__ import annotations

from ...lowering.diagnostic import (
    Span,
)
from ...lowering.ir.assignments import Access, Assign
from ...lowering.ir.expressions import Apply, Domain, Dynamic, Read
from ...lowering.ir.indexing import var
from ...lowering.ir.ops import Op
from .frame import Frame
from .stores import logical, operated
from .types import Kind, cast
from .values import Scalar


def accumulate(
    frame: Frame,
    access: Access,
    kind: Kind,
    op: Op,
    value: Scalar,
    free: Domain,
    reduced: Domain,
    span: Span,
) -> None:
    """Emit `access op= value`, in the joined type: through a temporary where that is wider."""
    ctx = frame.ctx
    joined = operated(op, kind, value.kind, span)
    row = logical(op, kind.dtype.kind)
    dtype = joined.dtype.compute
    if dtype is kind.dtype:
        ctx.emit(Assign(access, row, False, cast(value.expr, dtype), free, reduced, span=span))
        return
    if not reduced.ranges and not any(isinstance(i, Dynamic) for i in access.index):
        old = cast(Read(access.node, access.index, span), dtype)
        new = Apply(row, (old, cast(value.expr, dtype)), dtype)
        ctx.emit(Assign(access, None, False, cast(new, kind.dtype), free, span=span))
        return
    node = access.node
    wide = ctx.node(node.label + "_wide", node.shape, dtype)
    copy = ctx.whole(wide, span)
    index = tuple(var(axis) for axis in copy.axes)
    ctx.store(copy, cast(Read(node, index, span), dtype), span)
    total = cast(value.expr, dtype)
    ctx.emit(Assign(Access(wide, access.index), row, False, total, free, reduced, span=span))
    whole = ctx.whole(node, span)
    back = Read(wide, tuple(var(axis) for axis in whole.axes), span)
    ctx.store(whole, cast(back, node.dtype), span)
