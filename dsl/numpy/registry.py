"""Registry of NumPy's functions and array methods: the handler that lowers a call of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from ...lowering.ir import dtypes
from ..values.arrays import describe, elementwise
from ..values.call_site import (
    ONE,
    ZERO,
    Body,
    Handler,
    Site,
    array_of,
    folds,
    items_of,
    takes,
    with_out,
)
from ..values.memory_order import as_new
from ..values.types import WEAK_BOOL, WEAK_COMPLEX, WEAK_FLOAT, Kind, kind_of_number
from ..values.values import Array, Group, Scalar, Static, Value
from . import composed as o
from .primitives import (
    accumulate,
    attributes,
    casts,
    convolution,
    differences,
    grids,
    linalg,
    outputs,
    partition,
    quantiles,
    sorting,
    ufunc_reduction,
)
from .primitives import averages as a
from .primitives import contraction as l
from .primitives import creation as c
from .primitives import cumulative as run
from .primitives import elementwise as e
from .primitives import joining as j
from .primitives import reductions as r
from .primitives import shaping as s
from .primitives.ufuncs import OP_OF, combine_of, strong_of


def handlers() -> Iterator[tuple[object, Handler]]:
    """Yield each function of NumPy that the language supports, with its handler."""
    for ufunc in OP_OF:
        yield ufunc, e.ufunc_handler(ufunc)
        yield ufunc.outer, takes(f"{ufunc.__name__}.outer", partial(l.ufunc_outer, ufunc))
    for scalar in (
        np.bool_,
        np.int8,
        np.int16,
        np.int32,
        np.int64,
        np.uint8,
        np.uint16,
        np.uint32,
        np.uint64,
        np.float16,
        np.float32,
        np.float64,
        np.complex64,
        np.complex128,
    ):
        dtype = dtypes.from_numpy(scalar)
        assert dtype is not None
        yield scalar, casts.cast_handler(dtype, scalar)
    for ufunc, name in run.REDUCERS.items():
        yield ufunc.reduce, _writing(ufunc, "reduce", run.ufunc_reduce(ufunc, name))
        yield ufunc.accumulate, _writing(ufunc, "accumulate", run.ufunc_accumulate(ufunc))
    for ufunc in OP_OF:
        if ufunc.nin == 2 and ufunc not in run.REDUCERS:
            yield ufunc.reduce, _writing(ufunc, "reduce", ufunc_reduction.ufunc_fold(ufunc))
            yield ufunc.accumulate, _writing(ufunc, "accumulate", run.ufunc_accumulate(ufunc))
    for ufunc in accumulate.UPDATES:
        yield ufunc.at, takes(f"{ufunc.__name__}.at", accumulate.ufunc_at(ufunc))
    for function, body, out in (
        *_ELEMENTWISE,
        *_REDUCTIONS,
        *_SHAPES,
        *_CREATION,
        *_LINEAR,
        *_COMPOSITE,
    ):
        handler = takes(function.__name__, body)
        if function in _OF_ARRAYS:
            handler = _with_arrays(handler)
        if function in _FOLDED:
            handler = folds(function, handler)
        if function not in _OF_PYTHON:
            handler = _with_numpy_numbers(handler)
        if function not in _VIEWS:
            handler = _with_numpy_layout(handler)
        yield function, _with_place(function, handler, body, out)


def _writing(ufunc: np.ufunc, method: str, body: Body) -> Handler:
    """Return the handler of `ufunc.reduce` or `ufunc.accumulate`, with `out=`."""
    name = f"{ufunc.__name__}.{method}"
    handler = takes(name, body)
    return with_out(handler, 3, outputs.of_ufunc(ufunc, name, body, handler))


def _with_place(
    function: Callable[..., object] | None, handler: Handler, body: Body, out: int | None
) -> Handler:
    """Return the handler of a function, or of a method like it, with `out=` at a position."""
    if out is None:
        return handler
    name = getattr(function, "__name__", "")
    into = outputs.destination(function, name, body, handler)
    return with_out(handler, None if out < 0 else out, into)


def _with_arrays(handler: Handler) -> Handler:
    """Wrap a handler: lists and tuples among its arguments become arrays, as NumPy's functions
    convert theirs. Python's operators on them would concatenate and repeat."""

    def convert(site: Site, value: Value) -> Value:
        return value if items_of(value) is None else array_of(site, value)

    def handle(site: Site, args: tuple[Value, ...], keywords: dict[str, Value]) -> Value:
        converted = {name: convert(site, value) for name, value in keywords.items()}
        return handler(site, tuple(convert(site, value) for value in args), converted)

    return handle


def _with_numpy_numbers(handler: Handler) -> Handler:
    """Wrap a handler of a function that makes arrays of its arguments: what it returns of Python's
    numbers are NumPy's, which do not adapt to other operands."""

    def handle(site: Site, args: tuple[Value, ...], keywords: dict[str, Value]) -> Value:
        return _as_numpy(handler(site, args, keywords))

    return handle


def _as_numpy(value: Value) -> Value:
    """Return a value, numbers of Python in it as the 64-bit ones of NumPy."""
    match value:
        case Static(number) if kind_of_number(number) in (WEAK_BOOL, WEAK_FLOAT, WEAK_COMPLEX):
            return Static(np.asarray(number)[()])
        case Static(int() as number) if -(2**63) <= number < 2**63:
            return Static(np.int64(number))
        case Scalar(_, kind) | Array(_, _, _, kind) if kind.weak:
            return replace(value, kind=Kind(strong_of(kind)))
        case Group(items):
            return value.of(map(_as_numpy, items))
        case _:
            return value


def _with_numpy_layout(handler: Handler) -> Handler:
    """Wrap a handler of a function that allocates: its result gets the memory layout of NumPy's,
    whatever the layout in which it was computed."""

    def handle(site: Site, args: tuple[Value, ...], keywords: dict[str, Value]) -> Value:
        result = handler(site, args, keywords)
        return as_new(site.ctx, result, (*args, *keywords.values())) if site.ctx.orders else result

    return handle


Row = tuple[Callable[..., object], Body, int | None]
"""A function, its body, and the position of `out` (-1: keyword-only, None: no such parameter)."""

_ELEMENTWISE: tuple[Row, ...] = (
    (np.where, e.numpy_where, None), (np.clip, e.numpy_clip, 3), (np.select, e.select_list, None),
    (np.isposinf, e.infinite("+"), 1), (np.isneginf, e.infinite("-"), 1),
    (np.round, casts.rounded, 2), (np.around, casts.rounded, 2), (np.fix, e.fix, 1),
    (np.real, e.real, None), (np.imag, e.imag, None), (np.angle, e.angle, None),
    (np.divmod, e.numpy_division_pair, None), (np.modf, e.parts_of, None),
    (np.isclose, e.isclose, None), (np.nan_to_num, e.nan_to_num, None), (np.sinc, e.sinc, None),
)  # fmt: skip

_REDUCTIONS: tuple[Row, ...] = (
    (np.sum, r.reducer("sum"), 3), (np.prod, r.reducer("prod"), 3),
    (np.max, r.reducer("max"), 2), (np.min, r.reducer("min"), 2),
    (np.amax, r.reducer("max"), 2), (np.amin, r.reducer("min"), 2),
    (np.any, r.truth_reducer("any"), 2), (np.all, r.truth_reducer("all"), 2),
    (np.argmax, r.position_reducer("argmax"), 2), (np.argmin, r.position_reducer("argmin"), 2),
    (np.mean, a.mean, 3), (np.var, a.variance(False), 3), (np.std, a.variance(True), 3),
    (np.ptp, a.peak_to_peak, 2), (np.average, a.average, None),
    (np.count_nonzero, r.count_nonzero, None),
    (np.nansum, a.total_skipping_nan("sum"), 3), (np.nanprod, a.total_skipping_nan("prod"), 3),
    (np.nanmax, a.extreme_skipping_nan("max"), 2), (np.nanmin, a.extreme_skipping_nan("min"), 2),
    (np.nanmean, a.mean_skipping_nan(), 3), (np.nanvar, a.variance_skipping_nan(False), 3),
    (np.nanstd, a.variance_skipping_nan(True), 3),
    (np.allclose, r.allclose, None), (np.array_equal, r.array_equal, None),
    (np.cumsum, run.cumulative("sum"), 3), (np.cumprod, run.cumulative("prod"), 3),
    (np.diff, differences.diff, None), (np.cov, run.cov, None), (np.corrcoef, run.corrcoef, None),
    (np.gradient, differences.gradient, None), (np.convolve, convolution.convolve, None),
    (np.correlate, convolution.correlate, None), (np.polyval, run.polyval, None),
    (np.cumulative_sum, run.cumulative("sum", one_axis=True), None),
    (np.trapezoid, run.trapezoid, None),
)  # fmt: skip

_SHAPES: tuple[Row, ...] = (
    (np.transpose, s.transpose, None), (np.matrix_transpose, s.matrix_transpose, None),
    (np.swapaxes, s.swapaxes, None), (np.moveaxis, s.moveaxis, None),
    (np.reshape, s.reshape, None), (np.ravel, s.ravel, None),
    (np.expand_dims, s.expand_dims, None), (np.squeeze, s.squeeze, None),
    (np.atleast_1d, lambda site, *arys: s.atleast(site, 1, arys), None),
    (np.atleast_2d, lambda site, *arys: s.atleast(site, 2, arys), None),
    (np.atleast_3d, lambda site, *arys: s.atleast(site, 3, arys), None),
    (np.broadcast_to, s.broadcast, None),
    (np.lib.stride_tricks.sliding_window_view, s.windows, None), (np.flip, s.flip, None),
    (np.fliplr, lambda site, m: s.flip(site, m, ONE), None),
    (np.flipud, lambda site, m: s.flip(site, m, ZERO), None),
    (np.rot90, s.rot90, None), (np.diagonal, s.diagonal, None), (np.split, s.splitter(False), None),
    (np.array_split, s.splitter(True), None),
    (np.hsplit, s.split_columns, None), (np.vsplit, s.split_rows, None),
    (np.roll, j.roll, None), (np.repeat, j.repeat, None), (np.tile, j.tile, None),
    (np.stack, j.stacked, None), (np.concatenate, j.concatenate, None),
    (np.hstack, j.hstack, None), (np.vstack, j.vstack, None), (np.dstack, j.dstack, None),
    (np.column_stack, j.column_stack, None), (np.append, j.append, None),
    (np.triu, j.triangle(False), None), (np.tril, j.triangle(True), None),
    (np.diag, j.diag, None), (np.fill_diagonal, j.fill_diagonal, None), (np.pad, j.pad, None),
    (np.take, j.take, None), (np.take_along_axis, j.take_along_axis, None),
    (np.copyto, j.copyto, None),
)  # fmt: skip

_CREATION: tuple[Row, ...] = (
    (np.zeros, c.filler(0), None), (np.ones, c.filler(1), None), (np.empty, c.filler(0), None),
    (np.zeros_like, c.filler_like(0), None), (np.ones_like, c.filler_like(1), None),
    (np.empty_like, c.filler_like(0), None), (np.full, c.full, None),
    (np.full_like, c.full_like, None), (np.array, c.array, None), (np.asarray, c.asarray, None),
    (np.ascontiguousarray, c.contiguous, None), (np.copy, c.copy, None),
    (np.ndarray, c.new_array, None), (np.arange, c.arange, None),
    (np.linspace, grids.linspace, None), (np.eye, c.eye, None), (np.identity, c.identity, None),
    (np.tri, c.tri, None), (np.indices, grids.indices, None), (np.meshgrid, grids.meshgrid, None),
    (np.dtype, c.make_dtype, None), (np.logspace, grids.logspace, None),
    (np.shape, attributes.attribute_function("shape"), None),
    (np.ndim, attributes.attribute_function("ndim"), None),
    (np.size, attributes.attribute_function("size"), None),
    (np.iscomplexobj, attributes.is_of_kind("c"), None),
    (np.isrealobj, attributes.is_of_kind("biuf"), None),
    (np.isscalar, attributes.is_scalar, None), (np.result_type, attributes.result_type, None),
)  # fmt: skip

_LINEAR: tuple[Row, ...] = (
    (np.matmul, l.matmul, 2), (np.dot, l.dot, 2), (np.inner, l.inner, None),
    (np.outer, l.outer, 2), (np.vdot, l.vdot, None), (np.vecdot, l.vecdot, 2),
    (np.tensordot, l.tensordot, None), (np.einsum, l.einsum, -1), (np.kron, l.kron, None),
    (np.trace, l.trace, 5), (np.cross, l.cross, None),
    (np.linalg.matrix_power, linalg.matrix_power, None), (np.linalg.multi_dot, l.multi_dot, None),
    (np.linalg.norm, run.norm, None), (np.linalg.trace, l.matrix_trace, None),
    (np.linalg.diagonal, s.matrix_diagonal, None), (np.linalg.cross, l.cross, None),
    (np.linalg.vector_norm, run.vector_norm, None), (np.linalg.matrix_norm, run.matrix_norm, None),
    (np.matvec, l.matvec, None), (np.linalg.outer, l.vector_outer, None),
    (np.linalg.matmul, l.matmul, None), (np.linalg.tensordot, l.tensordot, None),
)  # fmt: skip

_COMPOSITE: tuple[Row, ...] = (
    (np.linalg.solve, linalg.solve, None), (np.linalg.inv, linalg.inverse, None),
    (np.linalg.det, linalg.determinant, None), (np.linalg.cholesky, linalg.cholesky, None),
    (np.linalg.slogdet, linalg.sign_and_logarithm, None),
    (np.sort, sorting.sort, None), (np.argsort, sorting.argsort, None),
    (np.searchsorted, sorting.searchsorted, None), (np.digitize, sorting.digitize, None),
    (np.median, quantiles.median, None), (np.quantile, quantiles.quantile, None),
    (np.percentile, quantiles.percentile, None), (np.histogram, sorting.histogram, None),
    (np.bincount, sorting.bincount, None), (np.interp, sorting.interp, None),
    (np.partition, partition.partition, None), (np.argpartition, partition.argpartition, None),
    (np.lexsort, o.lexsort, None), (np.isin, o.isin, None),
    (np.unravel_index, o.unravel_index, None),
    (np.ediff1d, o.ediff, None), (np.unwrap, o.unwrap, None),
    (np.nancumsum, o.Composed(o.NAN_SUMS), None),
    (np.nancumprod, o.Composed(o.NAN_PRODUCTS), None),
    (np.vander, o.vander, None), (np.block, o.block, None),
    (np.ix_, o.open_mesh, None), (np.diag_indices, o.Composed(o.DIAGONAL), None),
    (np.triu_indices, o.Composed(o.TRIANGLES["triu_indices"]), None),
    (np.tril_indices, o.Composed(o.TRIANGLES["tril_indices"]), None),
    *((getattr(np, name), o.Composed(text), None) for name, text in o.WINDOWS.items()),
)  # fmt: skip

_FOLDED: frozenset[Callable[..., object]] = frozenset(
    (np.clip, np.round, np.around, np.real, np.imag, np.angle, np.sum, np.prod, np.max, np.min,
     np.mean, np.std, np.var, np.argmax, np.argmin, np.any, np.all)
)  # fmt: skip


_OF_ARRAYS: frozenset[Callable[..., object]] = frozenset(
    (*(function for function, _, _ in _ELEMENTWISE if function is not np.select), np.vecdot)
)
"""Functions that convert each of their arguments to an array."""

_VIEWS: frozenset[Callable[..., object]] = frozenset(
    (np.transpose, np.matrix_transpose, np.swapaxes, np.moveaxis, np.reshape, np.ravel,
     np.expand_dims, np.squeeze, np.atleast_1d, np.atleast_2d, np.atleast_3d, np.broadcast_to,
     np.lib.stride_tricks.sliding_window_view, np.flip, np.fliplr, np.flipud, np.rot90, np.diagonal,
     np.linalg.diagonal, np.diag, np.split, np.array_split, np.hsplit, np.vsplit, np.einsum,
     np.real, np.imag, np.nan_to_num, np.array, np.asarray, np.ascontiguousarray,
     np.nancumsum, np.nancumprod, np.unwrap, np.block, np.unravel_index)
)  # fmt: skip
"""Functions whose results may be views of their arguments, or are composed in NumPy's layout."""

_OF_PYTHON: frozenset[Callable[..., object]] = frozenset(
    (np.real, np.imag, np.shape, np.ndim, np.size, np.isscalar, np.iscomplexobj, np.isrealobj,
     np.allclose, np.array_equal, np.linspace)
)  # fmt: skip
"""Functions that return objects of Python, as `linspace` does of a step that there is not, or the
parts that a number of Python has itself."""

_VIEW_METHODS = frozenset(
    ("reshape", "ravel", "transpose", "swapaxes", "squeeze", "diagonal", "conj", "conjugate",
     "astype")
)  # fmt: skip


def methods() -> Iterator[tuple[str, Handler]]:
    """Yield each array method, with its handler; the array is the first argument."""
    for name, body, out in _METHODS:
        handler = takes(name, body)
        if name not in _VIEW_METHODS:
            handler = _with_numpy_layout(handler)
        handler = _with_place(getattr(np, name, None), handler, body, out)
        yield name, handler if hasattr(np.generic, name) else _of_arrays(name, handler)


def _of_arrays(name: str, handler: Handler) -> Handler:
    """Wrap the handler of a method that NumPy's numbers do not have (CdAttributeError CD0414)."""

    def handle(site: Site, args: tuple[Value, ...], keywords: dict[str, Value]) -> Value:
        if isinstance(args[0], Scalar | Static):
            raise attributes.missing(describe(args[0]), name, (), site.span)
        return handler(site, args, keywords)

    return handle


def _conjugate(site: Site, x: Value) -> Value:
    """Return `x.conj()`: the array itself if it is real; a Python number for a Python number."""
    if isinstance(x, Array) and x.kind.dtype.kind != "c":
        return x
    if isinstance(x, Static) and isinstance(x.value, int | float | complex | np.generic):
        return Static(x.value.conjugate())
    if isinstance(x, Scalar) and x.kind.dtype.kind in ("iuf" if x.kind.weak else "biuf"):
        return x
    result = elementwise(site.ctx, combine_of(np.conjugate), [x], site.span)
    if isinstance(x, Scalar) and x.kind == WEAK_COMPLEX and isinstance(result, Scalar):
        return Scalar(result.expr, WEAK_COMPLEX)
    return result


_METHODS: tuple[tuple[str, Body, int | None], ...] = (
    ("sum", r.reducer("sum"), 3), ("prod", r.reducer("prod"), 3), ("max", r.reducer("max"), 2),
    ("min", r.reducer("min"), 2), ("mean", a.mean, 3), ("std", a.variance_method(True), 3),
    ("var", a.variance_method(False), 3), ("any", r.truth_reducer("any"), 2),
    ("all", r.truth_reducer("all"), 2), ("argmin", r.position_reducer("argmin"), 2),
    ("argmax", r.position_reducer("argmax"), 2), ("cumsum", run.cumulative("sum"), 3),
    ("cumprod", run.cumulative("prod"), 3),
    ("copy", c.copy_method, None), ("astype", c.astype, None), ("reshape", s.reshape_method, None),
    ("ravel", s.ravel, None), ("flatten", s.flatten, None),
    ("transpose", s.transpose_method, None), ("swapaxes", s.swapaxes, None),
    ("squeeze", s.squeeze, None), ("dot", l.dot, 2), ("fill", c.fill, None),
    ("item", c.item, None), ("clip", e.clip, 3), ("round", casts.rounded, 2),
    ("conj", _conjugate, None), ("conjugate", _conjugate, None),
    ("repeat", j.repeat, None), ("trace", l.trace, 5), ("diagonal", s.diagonal, None),
    ("take", j.take, None), ("sort", sorting.sort_in_place, None),
    ("partition", partition.partition_in_place, None),
    ("argpartition", partition.argpartition, None),
    ("argsort", sorting.argsort, None), ("searchsorted", sorting.searchsorted, None),
)  # fmt: skip
