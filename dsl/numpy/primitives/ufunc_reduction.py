"""Reductions by a binary ufunc that is no sum, product or extreme: a sequential loop over the axis.

total = op(total, x[n]), from the identity of the ufunc, or from the first element.
"""

from __future__ import annotations

import numpy as np

from ....base.diagnostic import CdTypeError, CdValueError
from ....lowering.ir import dtypes
from ....lowering.ir.assignments import For
from ....lowering.ir.dtypes import DType
from ....lowering.ir.expressions import Const, Expr, Read
from ....lowering.ir.indexing import const, var
from ...values.arrays import elementwise, with_sums_stored
from ...values.builder import error
from ...values.call_site import NO, NONE, ZERO, Body, Site, array_of, axes_of, dtype_of, static_bool
from ...values.types import Kind, cast
from ...values.values import Array, Group, Scalar, Static, Value
from . import powers
from .elementwise import converted
from .reductions import require_elements
from .shaping import expand_dims
from .sorting import along_all
from .ufuncs import combine_of, resolved


def ufunc_fold(ufunc: np.ufunc) -> Body:
    """Return the handler of `ufunc.reduce`, which reduces the first axis by default.

    CdValueError CD0446 for several axes where their order matters.
    """

    def body(
        site: Site, array: Value, axis: Value = ZERO, dtype: Value = NONE, *, keepdims: Value = NO
    ) -> Value:
        values = array_of(site, array)
        element = folded_dtype(site, ufunc, values.kind.dtype, dtype_of(site, dtype))
        axes = axes_of(site, axis, values.rank)
        values = array_of(site, converted(site, values, element))
        if len(axes) > 1 and ufunc.identity is None and ufunc not in (np.fmax, np.fmin):
            text = f"`{ufunc.__name__}.reduce` depends on the order, and takes one axis: {axes}"
            helps = ("reduce one axis after the other",)
            raise error("CD0446", CdValueError, text, site.span, helps=helps)
        if not axes and ufunc.identity is None:
            return values
        if not axes:  # each element alone: |x| of `hypot`
            identity = Scalar(_identity(ufunc, element), Kind(element))
            return elementwise(site.ctx, combine_of(ufunc), [identity, values], site.span)
        total = _fold(site, ufunc, along_all(site, values, axes))
        if static_bool(site, keepdims, "keepdims"):
            return expand_dims(site, total, Group(tuple(map(Static, axes))))
        return total if total.rank else Scalar(total.body, total.kind)

    return body


def folded_dtype(site: Site, ufunc: np.ufunc, dtype: DType, wanted: DType | None) -> DType:
    """Return the type in which a ufunc reduces or accumulates elements of a type.

    CdTypeError CD0404 where NumPy has no such loop.
    """
    if dtypes.bfloat16 in (dtype, wanted):
        return wanted or resolved(ufunc, (Kind(dtype), Kind(dtype)))[-1]
    signature = (None if wanted is None else wanted.numpy, None, None)
    try:
        types = ufunc.resolve_dtypes(
            (None, dtype.numpy, None), signature=signature, casting="unsafe", reduction=True
        )
    except TypeError:
        asked = "" if wanted is None else f" in {wanted}"
        text = f"`{ufunc.__name__}` does not combine {dtype} values{asked} to one of their type"
        helps = ("convert them: `x.astype(...)`, or write a loop",)
        raise error("CD0404", CdTypeError, text, site.span, helps=helps) from None
    element = dtypes.from_numpy(types[-1])
    assert element is not None, "results of ufuncs of known types are of known types"
    return element


def combined(site: Site, ufunc: np.ufunc, target: Array, left: Expr, right: Expr) -> Expr:
    """Return the expression of one application of the ufunc to elements over the target's axes.

    The operands are arrays over these axes, so that run-time checks are of all their elements.
    """
    kind = target.kind
    first, second = (
        Array(target.axes, target.shape, cast(side, kind.dtype.compute), kind, copied=True)
        for side in (left, right)
    )
    if ufunc in (np.power, np.float_power):
        result = powers.power(site, first, second, ufunc, False)
    else:
        result = elementwise(site.ctx, combine_of(ufunc), [first, second], site.span)
    return array_of(site, result).at(tuple(map(var, target.axes)))


def _identity(ufunc: np.ufunc, dtype: DType) -> Expr:
    """Return the identity of a ufunc that has one, in a type."""
    if dtype.kind == "b":
        return Const(bool(ufunc.identity), dtypes.bool_)
    return cast(Const(ufunc.identity, dtypes.float64), dtype.compute)


def _fold(site: Site, ufunc: np.ufunc, lines: Array) -> Array:
    """Return the reduction of the last axis, in the order of its elements."""
    ctx, dtype, size = site.ctx, lines.kind.dtype, lines.shape[-1]
    lines = with_sums_stored(ctx, lines, "values", site.span)
    if ufunc.identity is None:
        require_elements(site, lines, (lines.rank - 1,), f"{ufunc.__name__}.reduce")
    node = ctx.node("folded", lines.shape[:-1], dtype)
    total = ctx.whole(node, site.span)
    at = tuple(map(var, total.axes))
    first = lines.at((*at, const(0))) if ufunc.identity is None else _identity(ufunc, dtype)
    ctx.store(total, cast(first, dtype), site.span)
    step = ctx.symbol("k")
    target = ctx.whole(node, site.span)
    at = tuple(map(var, target.axes))
    sides = (Read(node, at, site.span), lines.at((*at, var(step))))
    with ctx.block() as out:
        ctx.store(target, cast(combined(site, ufunc, target, *sides), dtype), site.span)
    start = const(1 if ufunc.identity is None else 0)
    ctx.emit(For(step, start, size, 1, tuple(out), site.span))
    return ctx.whole(node, site.span)
