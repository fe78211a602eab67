"""Attributes of arrays and scalars: shape, dtype, size, transpose, real and imaginary part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce

import numpy as np

from ....base.diagnostic import CdAttributeError, CdError, CdTypeError, Span, nearest
from ....lowering.ir.indexing import const, multiply
from ...source.fingerprint import is_library
from ...values.builder import error
from ...values.byte_order import numpy_dtype
from ...values.call_site import Site, array_of, named_dtype
from ...values.types import Kind, join_all, kind_of_number
from ...values.values import Array, Bound, Group, Masked, Scalar, Static, Value
from .elementwise import arithmetic, imag, real
from .python_reductions import as_number, shape_of
from .shaping import matrix_transpose, total_size, transpose
from .ufuncs import strong_of

_REFUSED = {
    "flat": ("`.flat` is not supported", "use `.ravel()` or `.reshape(-1)`"),
    "base": ("`.base` is not supported", "the language decides where arrays live"),
    "data": ("the memory of an array cannot be asked for", "pass the array itself"),
    "strides": ("the strides of an array are chosen by the compiler", "use `.shape`"),
    "flags": ("the flags of an array are chosen by the compiler", "leave the test out"),
    "ctypes": ("the memory of an array cannot be asked for", "pass the array itself"),
}


def attribute(site: Site, value: Value, name: str) -> Value | None:
    """Return an attribute of an array, scalar or masked selection; None for other names and values.

    CdTypeError CD0555 for attributes that the language does not support.
    """
    if name in _REFUSED:
        message, way_out = _REFUSED[name]
        raise error("CD0555", CdTypeError, message, site.span, helps=(way_out,))
    if isinstance(value, Masked):
        return _selection_attribute(site, value, name)
    if isinstance(value, Static) and kind_of_number(value.value) is None:
        return None
    if not isinstance(value, Array | Scalar | Static | Group):
        return None
    return _array_attribute(site, value, array_of(site, value), name)


def missing(owner: str, name: str, pool: Sequence[str], span: Span) -> CdError:
    """Return CdAttributeError CD0414 for an unknown attribute, with the nearest name of `pool`."""
    close = nearest(name, pool)
    helps = (f"did you mean `{close}`?",) if close else ()
    text = f"{owner} has no attribute `{name}`"
    return error("CD0414", CdAttributeError, text, span, helps=helps)


def of_group(group: Group, name: str, span: Span) -> Value:
    """Return a field of a named tuple, or a bound method of a tuple or list.

    CdAttributeError CD0414 for unknown ones, and for methods that a named tuple's class defines.
    """
    fields = group.fields
    if name in fields:
        return group.items[fields.index(name)]
    module = str(getattr(getattr(group.named_tuple, name, None), "__module__", ""))
    is_replace = name == "_replace" and is_library(module)
    if fields and not is_replace and not hasattr(tuple, name):
        close = nearest(name, fields)
        raise error(
            "CD0414", CdAttributeError,
            f"the tuple with the fields {', '.join(fields)} has no `{name}` here", span,
            helps=(f"did you mean `{close}`?",) if close else
            ("read its fields, and write here what its methods do",),
        )  # fmt: skip
    if not fields and not hasattr(list if group.kind == "list" else tuple, name):
        what, is_array_method = f"a {group.kind}", hasattr(np.ndarray, name)
        helps = (
            f"make an array of it first: `np.array(...).{name}`"
            if is_array_method
            else "read its items: `t[0]`",
        )
        text = f"{what} has no attribute `{name}`"
        raise error("CD0414", CdAttributeError, text, span, helps=helps)
    return Bound(group, name)


def _array_attribute(site: Site, value: Value, array: Array, name: str) -> Value | None:
    dtype = strong_of(array.kind)
    match name:
        case "shape":
            return Group(tuple(as_number(extent) for extent in array.shape))
        case "ndim":
            return Static(array.rank)
        case "dtype":
            return Static(numpy_dtype(site.ctx, array, dtype))
        case "size":
            return as_number(total_size(array.shape))
        case "itemsize":
            return Static(dtype.itemsize)
        case "nbytes":
            return as_number(multiply(total_size(array.shape), const(dtype.itemsize)))
        case "T":
            return transpose(site, array) if array.rank else value
        case "mT":
            return matrix_transpose(site, array)
        case "real":
            return real(site, value)
        case "imag":
            return imag(site, value)
        case _:
            return None


def _selection_attribute(site: Site, value: Masked, name: str) -> Value | None:
    match name:
        case "shape":
            return Group(shape_of(site, value))
        case "ndim":
            return Static(value.rank)
        case "size":
            return reduce(partial(arithmetic, site, "*"), shape_of(site, value))
        case "dtype":
            return Static(value.array.kind.dtype.numpy)
        case "itemsize":
            return Static(value.array.kind.dtype.itemsize)
        case _:
            return None


def attribute_function(name: str) -> Callable[..., Value]:
    """Return the body of `np.shape`, `np.ndim` or `np.size`."""

    def body(site: Site, a: Value) -> Value:
        result = attribute(site, a if isinstance(a, Masked) else array_of(site, a), name)
        assert result is not None, "every array has a shape"
        return result

    return body


def is_of_kind(kinds: str) -> Callable[..., Value]:
    """Return the body of `np.iscomplexobj` or `np.isrealobj`: a static test of the dtype's kind."""

    def body(site: Site, x: Value) -> Value:
        return Static(array_of(site, x).kind.dtype.kind in kinds)

    return body


def is_scalar(site: Site, element: Value) -> Value:
    """Return `np.isscalar`."""
    if isinstance(element, Static):
        return Static(np.isscalar(element.value))
    return Static(isinstance(element, Scalar))


def result_type(site: Site, *arrays_and_dtypes: Value) -> Value:
    """Return `np.result_type`: the promoted dtype of values and dtypes, static.

    CdTypeError CD0440 without arguments.
    """
    kinds = []
    for value in arrays_and_dtypes:
        dtype = named_dtype(site, value)
        kinds.append(Kind(dtype) if dtype is not None else array_of(site, value).kind)
    if not kinds:
        raise error("CD0440", CdTypeError, "`np.result_type` takes at least one value", site.span)
    return Static(strong_of(join_all(kinds)).numpy)
