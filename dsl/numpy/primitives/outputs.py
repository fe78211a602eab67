"""`out=` of reductions, scans and products: it decides the type in which they accumulate, and has
the shape of their result.

NumPy chooses the loop of a reduction for the types of `out` and of the operand, and broadcasts no
result into it, unlike that of a ufunc.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial, wraps
from inspect import signature
from typing import Any

import numpy as np

from ....base.diagnostic import CdShapeError, CdTypeError, CdValueError
from ....lowering.ir import dtypes
from ....lowering.ir.dtypes import DType
from ...values.arrays import describe
from ...values.broadcasting import shape_text
from ...values.builder import error
from ...values.call_site import (
    NONE,
    Body,
    Handler,
    Into,
    Site,
    array_of,
    is_none,
    items_of,
    stored,
    takes,
)
from ...values.memory_order import is_dense
from ...values.types import Kind
from ...values.values import Array, Scalar, Static, Value
from .averages import (
    mean_into,
    mean_skipping_nan_into,
    peak_to_peak_into,
    variance_into,
    variance_skipping_nan_into,
)
from .casts import rounded_into
from .contraction import einsum_into
from .elementwise import converted
from .powers import kind_of
from .ufuncs import loop_dtype, strong_of

_FIT_HINTS = ("give an array of the shape of the result: `out=np.empty(...)`",)


def stored_whole(site: Site, out: Array, result: Value, core: int | None = None) -> Value:
    """Store a result in `out`, of which the last `core` axes, or all, have to be those of it.

    CdShapeError CD0302, or CD0301 at run time, where they are not.
    """
    shape = result.shape if isinstance(result, Array) else ()
    number = len(shape) if core is None else core
    is_fit = out.rank == len(shape) if core is None else out.rank >= number
    pairs = [(out.shape[-n], shape[-n]) for n in range(1, number + 1)] if is_fit else []
    if not is_fit or any(site.ctx.assumptions.differ(*pair) for pair in pairs):
        text = f"`out` has shape {shape_text(out.shape)}, and the result {shape_text(shape)}"
        raise error("CD0302", CdShapeError, text, site.span, helps=_FIT_HINTS)
    for size, wanted in pairs:
        site.ctx.equal_extents(size, wanted, "`out` and the result", site.span)
    return stored(site, out, result)


Make = Callable[[Body, DType], Body]
"""The body of a function and the element type of `out` -> the body that accumulates for it."""
Destination = Callable[[str, Body, Handler], Into]
"""The name, body and handler of a function -> how it writes `out`."""


def _by_type(make: Make) -> Destination:
    """Return the destination of a function that accumulates as the type of `out` says."""

    def of(name: str, body: Body, handler: Handler) -> Into:
        @cache
        def typed(dtype: DType) -> Handler:
            return takes(name, make(body, dtype))

        def into(
            site: Site, out: Array, args: tuple[Value, ...], keywords: dict[str, Value]
        ) -> Value:
            return stored_whole(site, out, typed(out.kind.dtype)(site, args, keywords))

        return into

    return of


def accumulated(ufunc: np.ufunc, body: Body, out: DType) -> Body:
    """Return the body of a reduction or scan by a ufunc with a parameter `dtype`, which is by
    default the type of the loop that NumPy chooses for `out` and the operand."""

    @wraps(body)
    def typed(*args: Value, **keywords: Value) -> Value:
        bound = signature(body).bind(*args, **keywords)
        arguments: dict[str, Any] = bound.arguments
        site, name = arguments["site"], list(bound.signature.parameters)[1]
        if is_none(arguments.get("dtype", NONE)):
            arguments[name] = _array_of_list(site, arguments[name])
            element = strong_of(kind_of(site, arguments[name]))
            dtype = loop_dtype(site, ufunc, element, out)
            if dtype is not loop_dtype(site, ufunc, element):
                arguments["dtype"] = Static(dtype)
        return body(*bound.args, **bound.kwargs)

    return typed


def _array_of_list(site: Site, value: Value) -> Value:
    return value if items_of(value) is None else array_of(site, value)


def _extreme(ufunc: np.ufunc, body: Body, out: DType) -> Body:
    """Return the body of `np.max` or `np.min`, whose result is one of its loop, as `initial` is."""

    @wraps(body)
    def typed(*args: Value, **keywords: Value) -> Value:
        bound = signature(body).bind(*args, **keywords)
        arguments: dict[str, Any] = bound.arguments
        site, name = arguments["site"], list(bound.signature.parameters)[1]
        arguments[name] = _array_of_list(site, arguments[name])
        element = strong_of(kind_of(site, arguments[name]))
        dtype = loop_dtype(site, ufunc, element, out)
        starts = not is_none(arguments.get("initial", NONE))
        if starts and dtype is not element:
            arguments[name] = converted(site, arguments[name], dtype)
        result = body(*bound.args, **bound.kwargs)
        return result if starts or dtype is element else converted(site, result, dtype)

    return typed


def _position(body: Body, out: DType) -> Body:
    """Return the body of `np.argmax` or `np.argmin`. CdTypeError CD0405 for an `out` of a type that
    is not safely cast to int64."""

    @wraps(body)
    def typed(site: Site, *args: Value, **keywords: Value) -> Value:
        if out is dtypes.bfloat16 or not np.can_cast(out.numpy, np.int64):
            text = f"positions are int64, and are not stored in an `out` of {out}"
            helps = ("give one of int64: `np.empty(..., np.int64)`",)
            raise error("CD0405", CdTypeError, text, site.span, helps=helps)
        return body(site, *args, **keywords)

    return typed


def _whole(name: str, body: Body, handler: Handler) -> Into:
    """Return the destination of a function whose result has the shape of `out`."""
    return lambda site, out, args, keywords: stored_whole(site, out, handler(site, args, keywords))


def _dot(name: str, body: Body, handler: Handler) -> Into:
    """Return the destination of `np.dot`, which has the type of the product and is contiguous.

    CdValueError CD0405 where it has not. The result is a scalar where `out` has no axes.
    """

    def into(site: Site, out: Array, args: tuple[Value, ...], keywords: dict[str, Value]) -> Value:
        result = handler(site, args, keywords)
        element = strong_of(kind_of(site, result))
        in_memory = out.aliased is not None
        is_strided = in_memory and is_dense(site.ctx, out, range(out.rank)) is False
        if out.kind.dtype is not element or is_strided:
            text = f"`dot` stores {element} in a contiguous `out` of that type only"
            helps = (f"give one: `np.empty(..., np.{element})`",)
            label = f"this is {describe(out)}"
            raise error("CD0405", CdValueError, text, site.span, label=label, helps=helps)
        written = stored_whole(site, out, result)
        return written if out.rank else Scalar(out.body, Kind(element))

    return into


def _product(name: str, body: Body, handler: Handler) -> Into:
    """Return the destination of `np.matmul` or `np.vecdot`, over whose other axes than those of one
    product the result is broadcast."""

    def into(site: Site, out: Array, args: tuple[Value, ...], keywords: dict[str, Value]) -> Value:
        args = tuple(_array_of_list(site, arg) for arg in args)
        ranks = [arg.rank for arg in args if isinstance(arg, Array)]
        core = 0 if name == "vecdot" else sum(rank > 1 for rank in ranks)
        return stored_whole(site, out, handler(site, args, keywords), core)

    return into


_KINDS: dict[object, Destination] = {
    np.sum: _by_type(partial(accumulated, np.add)),
    np.prod: _by_type(partial(accumulated, np.multiply)),
    np.cumsum: _by_type(partial(accumulated, np.add)),
    np.cumprod: _by_type(partial(accumulated, np.multiply)),
    np.trace: _by_type(partial(accumulated, np.add)),
    np.max: _by_type(partial(_extreme, np.maximum)),
    np.min: _by_type(partial(_extreme, np.minimum)),
    np.amax: _by_type(partial(_extreme, np.maximum)),
    np.amin: _by_type(partial(_extreme, np.minimum)),
    np.ptp: _by_type(peak_to_peak_into), np.mean: _by_type(mean_into),
    np.var: _by_type(partial(variance_into, root=False)),
    np.std: _by_type(partial(variance_into, root=True)),
    np.nansum: _by_type(partial(accumulated, np.add)),
    np.nanprod: _by_type(partial(accumulated, np.multiply)),
    np.nanmax: _by_type(partial(_extreme, np.maximum)),
    np.nanmin: _by_type(partial(_extreme, np.minimum)),
    np.nanmean: _by_type(mean_skipping_nan_into),
    np.nanvar: _by_type(partial(variance_skipping_nan_into, root=False)),
    np.nanstd: _by_type(partial(variance_skipping_nan_into, root=True)),
    np.argmax: _by_type(_position), np.argmin: _by_type(_position),
    np.any: _whole, np.all: _whole,
    np.round: _by_type(rounded_into), np.around: _by_type(rounded_into),
    np.einsum: _by_type(einsum_into),
    np.dot: _dot, np.matmul: _product, np.vecdot: _product,
}  # fmt: skip


def destination(function: object, name: str, body: Body, handler: Handler) -> Into | None:
    """Return how a function of NumPy writes `out`, None for one that broadcasts its result."""
    kind = _KINDS.get(function)
    return None if kind is None else kind(name, body, handler)


def of_ufunc(ufunc: np.ufunc, name: str, body: Body, handler: Handler) -> Into:
    """Return how `ufunc.reduce` or `ufunc.accumulate` writes `out`."""
    return _by_type(partial(accumulated, ufunc))(name, body, handler)
