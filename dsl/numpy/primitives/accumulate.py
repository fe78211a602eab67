"""Accumulations: over letters, and by `ufunc.at` where data says, each contribution counted."""

from __future__ import annotations

import numpy as np

from ....base.diagnostic import CdError, CdTypeError, Span
from ....lowering.ir.assignments import Access, Assign
from ....lowering.ir.expressions import Apply, Domain, Dynamic, Read
from ....lowering.ir.indexing import var
from ....lowering.ir.ops import OPS, Op
from ...values.arrays import describe
from ...values.broadcasting import broadcast_to
from ...values.builder import Context, error
from ...values.call_site import NONE, Body, Site, array_of
from ...values.stores import assign, logical, operated, writable
from ...values.types import Kind, cast
from ...values.values import Array, Masked, Scalar, Value
from .powers import require_nonnegative
from .views import spread_out, subscript

UPDATES: dict[np.ufunc, str] = {
    np.add: "add", np.subtract: "sub", np.multiply: "mul", np.divide: "div",
    np.floor_divide: "floordiv", np.remainder: "mod", np.power: "pow",
    np.maximum: "max", np.minimum: "min", np.fmax: "fmax", np.fmin: "fmin",
    np.bitwise_and: "bitand", np.bitwise_or: "bitor", np.bitwise_xor: "bitxor",
    np.left_shift: "shl", np.right_shift: "shr",
}  # fmt: skip
"""The ufuncs that have `at`, and the operation that each contribution is taken in by."""


def accumulate(
    ctx: Context,
    access: Access,
    kind: Kind,
    op: Op,
    value: Scalar,
    free: Domain,
    reduced: Domain,
    span: Span,
) -> None:
    """Emit `access op= value`, in the joined type: through a temporary where that is wider."""
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


def ufunc_at(ufunc: np.ufunc) -> Body:
    """Return `ufunc.at`: `a[indices] op= b` in which positions that come twice count twice."""
    op = OPS[UPDATES[ufunc]]

    def body(site: Site, a: Value, indices: Value, b: Value) -> Value:
        ctx, span = site.ctx, site.span
        if not isinstance(a, Array) or not a.rank:
            text = f"`{ufunc.__name__}.at` writes an array, and is given {describe(a)}"
            raise error("CD0452", CdTypeError, text, span)
        writable(a, span)
        place = subscript(ctx, a, spread_out([indices]), span, "a")
        if isinstance(place, Masked):  # selects no element twice
            assign(ctx, place, b, span, op)
            return NONE
        assert isinstance(place, Array), "a subscript of an array is a place or a selection"
        if place.part is not None:
            raise part_accumulated(span, "a")
        read = place.base
        assert read is not None, "elements of what can be written can be written"
        if ufunc is np.power and place.kind.dtype.kind in "iu":
            require_nonnegative(site, a, b)
        value = broadcast_to(ctx, array_of(site, b), place.shape, span)
        element = Scalar(value.at(tuple(map(var, place.axes))), value.kind)
        access, free = Access(read.node, read.index), Domain(place.ranges)
        accumulate(ctx, access, place.kind, op, element, free, Domain(), span)
        return NONE

    return body


def part_accumulated(span: Span, name: str) -> CdError:
    """Return CdTypeError CD0451: real or imaginary parts are not accumulated into by position."""
    return error(
        "CD0451", CdTypeError, f"`{name}` is one part of complex numbers, into which nothing is "
        "accumulated by position", span,
        helps=(f"accumulate into an array of its own, and add that: `{name} += total`",),
    )  # fmt: skip
