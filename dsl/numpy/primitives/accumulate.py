"""Accumulating assignments: updates over index variables, and the scatter updates of `ufunc.at`.

Iterations that update one element all count.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ....base.diagnostic import CdError, CdTypeError, Span
from ....lowering.ir import dtypes
from ....lowering.ir.assignments import Access, Assign
from ....lowering.ir.expressions import Apply, Domain, Dynamic, Read
from ....lowering.ir.indexing import var
from ....lowering.ir.ops import OPS, Op
from ...values.arrays import describe
from ...values.broadcasting import broadcast_to
from ...values.builder import Context, error
from ...values.call_site import NONE, Body, Site, array_of, constant
from ...values.stores import assign, logical, operated, writable
from ...values.types import Kind, cast
from ...values.values import Array, Masked, Scalar, Value
from .joining import fitting
from .powers import require_nonnegative
from .ufuncs import strong_of
from .views import spread_out, subscript

UPDATES: dict[np.ufunc, str] = {
    np.add: "add", np.subtract: "sub", np.multiply: "mul", np.divide: "div",
    np.floor_divide: "floordiv", np.remainder: "mod", np.power: "pow",
    np.maximum: "max", np.minimum: "min", np.fmax: "fmax", np.fmin: "fmin",
    np.bitwise_and: "bitand", np.bitwise_or: "bitor", np.bitwise_xor: "bitxor",
    np.left_shift: "shl", np.right_shift: "shr",
}  # fmt: skip
"""The ufuncs that have `at`, and the operation of the update of each."""
_OF_INTEGERS: dict[np.ufunc, str] = {np.fmax: "max", np.fmin: "min"}
"""The operation of an update where the array is of integers, which are no NaN."""
_CONGRUENT: frozenset[np.ufunc] = frozenset(
    (np.add, np.subtract, np.multiply, np.divide, np.bitwise_and, np.bitwise_or, np.bitwise_xor)
)
"""The ufuncs of which a wrapped operand gives the wrapped result, and a rounded one the result but
for its rounding."""
_MONOTONIC: frozenset[np.ufunc] = frozenset((np.maximum, np.minimum, np.fmax, np.fmin))
"""The ufuncs of which a rounded operand gives the rounded result."""


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
    """Emit `access op= value`, computed in the promoted type of both.

    Where that is wider than the accumulator's and several iterations update an element, a wide
    temporary is the accumulator: copied in before, converted back after.
    """
    promoted = operated(op, kind, value.kind, span)
    update_op = logical(op, kind.dtype.kind)
    dtype = promoted.dtype.compute
    if dtype is kind.dtype:
        ctx.emit(
            Assign(access, update_op, False, cast(value.expr, dtype), free, reduced, span=span)
        )
        return
    if not reduced.ranges and not any(isinstance(i, Dynamic) for i in access.index):
        old = cast(Read(access.node, access.index, span), dtype)
        new = Apply(update_op, (old, cast(value.expr, dtype)), dtype)
        ctx.emit(Assign(access, None, False, cast(new, kind.dtype), free, span=span))
        return
    node = access.node
    wide = ctx.node(node.label + "_wide", node.shape, dtype)
    copy = ctx.whole(wide, span)
    index = tuple(var(axis) for axis in copy.axes)
    ctx.store(copy, cast(Read(node, index, span), dtype), span)
    update = cast(value.expr, dtype)
    ctx.emit(Assign(Access(wide, access.index), update_op, False, update, free, reduced, span=span))
    target = ctx.whole(node, span)
    converted_back = Read(wide, tuple(var(axis) for axis in target.axes), span)
    ctx.store(target, cast(converted_back, node.dtype), span)


def ufunc_at(ufunc: np.ufunc) -> Body:
    """Return `ufunc.at`: `a[indices] op= b`, unbuffered: a repeated index is updated repeatedly.

    CdTypeError CD0452 where `a` is no array with an axis, CD0451 for a part of complex numbers.
    """

    def body(site: Site, a: Value, indices: Value, b: Value) -> Value:
        ctx, span = site.ctx, site.span
        if not isinstance(a, Array) or not a.rank:
            text = f"`{ufunc.__name__}.at` writes an array, and is given {describe(a)}"
            raise error("CD0452", CdTypeError, text, span)
        writable(a, span)
        op, b = _operation(ufunc, a.kind), _operand(site, ufunc, a.kind, b)
        target = subscript(ctx, a, spread_out([indices]), span, "a")
        if isinstance(target, Masked):  # a mask selects no element twice
            assign(ctx, target, b, span, op)
            return NONE
        assert isinstance(target, Array), "a subscript of an array is a place or a selection"
        if target.part is not None:
            raise part_accumulated(span, "a")
        read = target.base
        assert read is not None, "elements of what can be written can be written"
        if ufunc is np.power and target.kind.dtype.kind in "iu":
            require_nonnegative(site, a, b)
        value = broadcast_to(ctx, array_of(site, b), target.shape, span)
        element = Scalar(value.at(tuple(map(var, target.axes))), value.kind)
        access, free = Access(read.node, read.index), Domain(target.ranges)
        accumulate(ctx, access, target.kind, op, element, free, Domain(), span)
        return NONE

    return body


def _operation(ufunc: np.ufunc, kind: Kind) -> Op:
    name = UPDATES[ufunc]
    return OPS[_OF_INTEGERS.get(ufunc, name) if kind.dtype.kind in "biu" else name]


def _operand(site: Site, ufunc: np.ufunc, kind: Kind, b: Value) -> Value:
    """Return the operand of an update of elements of a kind: a number of Python is one of 64 bits,
    as NumPy makes an array of it, unless it gives the same in the type of the elements.

    There is no type of uint64 and int64 but float64: CdOverflowError CD0464 at run time for a
    negative integer.
    """
    value = array_of(site, b)
    is_monotonic = ufunc in _MONOTONIC and kind.dtype.kind not in "biu"
    if not value.kind.weak or ufunc in _CONGRUENT or is_monotonic or _holds(kind, constant(b)):
        return b
    if kind.dtype is dtypes.uint64 and value.kind.dtype.kind in "bi":
        return fitting(site, value, kind.dtype)
    return replace(value, kind=Kind(strong_of(value.kind)))


def _holds(kind: Kind, number: object) -> bool:
    """Whether a number is one that elements of a kind can be."""
    if not isinstance(number, int | float):
        return False
    try:
        return bool(kind.dtype.numpy.type(number) == number)
    except OverflowError:
        return False


def part_accumulated(span: Span, name: str) -> CdError:
    """Return CdTypeError CD0451: no scatter updates of the real or imaginary part of an array."""
    return error(
        "CD0451", CdTypeError, f"`{name}` is one part of complex numbers, into which nothing is "
        "accumulated by position", span,
        helps=(f"accumulate into an array of its own, and add that: `{name} += total`",),
    )  # fmt: skip
