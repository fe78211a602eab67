"""Attributes of arrays and numbers: shape, type, transpose, real and imaginary part."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ....base.diagnostic import CdError, CdNameError, CdTypeError, Span, nearest
from ....lowering.ir.indexing import const, multiply
from ...source.fingerprint import is_library
from ...values.builder import error
from ...values.call_site import NOT_CONSTANT, Site, array_of, constant, dtype_object
from ...values.types import Kind, join, kind_of_number
from ...values.values import Array, Bound, Group, Masked, Scalar, Static, Value
from .averages import number_of_elements
from .elementwise import imag, real
from .python_reductions import as_number
from .reductions import operand
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
    """Return an attribute of a number or array, None where the name is not one.

    CdTypeError CD0555 for attributes that the language refuses.
    """
    if name in _REFUSED:
        message, way_out = _REFUSED[name]
        raise error("CD0555", CdTypeError, message, site.span, helps=(way_out,))
    if isinstance(value, Masked):
        return _of_selection(site, value, name)
    if isinstance(value, Static) and kind_of_number(value.value) is None:
        return None
    if not isinstance(value, Array | Scalar | Static | Group):
        return None
    return _of_array(site, value, array_of(site, value), name)


def missing(owner: str, name: str, pool: Sequence[str], span: Span) -> CdError:
    """Return CdNameError CD0414: an attribute that nothing has, with the nearest that there is."""
    close = nearest(name, pool)
    helps = (f"did you mean `{close}`?",) if close else ()
    return error("CD0414", CdNameError, f"{owner} has no attribute `{name}`", span, helps=helps)


def of_group(group: Group, name: str, span: Span) -> Value:
    """Return a field of a named tuple, or a method of a tuple or list, to be called.

    CdNameError CD0414 for what a named tuple has not, and for methods of its own.
    """
    fields = group.fields
    if name in fields:
        return group.items[fields.index(name)]
    home = str(getattr(getattr(group.made, name, None), "__module__", ""))
    replaces = name == "_replace" and is_library(home)
    if fields and not replaces and not hasattr(tuple, name):
        close = nearest(name, fields)
        raise error(
            "CD0414", CdNameError,
            f"the tuple with the fields {', '.join(fields)} has no `{name}` here", span,
            helps=(f"did you mean `{close}`?",) if close else
            ("read its fields, and write here what its methods do",),
        )  # fmt: skip
    if not fields and not hasattr(list if group.kind == "list" else tuple, name):
        what, array = f"a {group.kind}", hasattr(np.ndarray, name)
        helps = (f"make an array of it first: `np.array(...).{name}`",) if array else ()
        text = f"{what} has no attribute `{name}`"
        raise error("CD0414", CdNameError, text, span, helps=helps)
    return Bound(group, name)


def _of_array(site: Site, value: Value, array: Array, name: str) -> Value | None:
    dtype = strong_of(array.kind)
    match name:
        case "shape":
            return Group(tuple(as_number(extent) for extent in array.shape))
        case "ndim":
            return Static(array.rank)
        case "dtype":
            return Static(dtype.numpy)
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


def _of_selection(site: Site, value: Masked, name: str) -> Value | None:
    match name:
        case "size":
            array, where = operand(site, value)
            return number_of_elements(site, array, tuple(range(array.rank)), where)
        case "shape":
            size = _of_selection(site, value, "size")
            assert size is not None
            return Group((size,))
        case "dtype":
            return Static(value.array.kind.dtype.numpy)
        case "ndim":
            return Static(1)
        case _:
            return None


def attribute_function(name: str) -> Callable[..., Value]:
    """Return `np.shape`, `np.ndim` or `np.size`."""

    def body(site: Site, a: Value) -> Value:
        found = attribute(site, array_of(site, a), name)
        assert found is not None, "every array has a shape"
        return found

    return body


def is_of_kind(kinds: str) -> Callable[..., Value]:
    """Return `np.iscomplexobj` or `np.isrealobj`: what is known of an element type."""

    def body(site: Site, x: Value) -> Value:
        return Static(array_of(site, x).kind.dtype.kind in kinds)

    return body


def is_scalar(site: Site, element: Value) -> Value:
    """Return `np.isscalar`."""
    return Static(isinstance(element, Scalar) or constant(element) is not NOT_CONSTANT)


def result_type(site: Site, *arrays_and_dtypes: Value) -> Value:
    """Return `np.result_type`: the type that values have together."""
    kind: Kind | None = None
    for value in arrays_and_dtypes:
        named = dtype_object(value.value) if isinstance(value, Static) else None
        own = Kind(named) if named is not None else array_of(site, value).kind
        kind = own if kind is None else join(kind, own)
    if kind is None:
        raise error("CD0440", CdTypeError, "`np.result_type` takes at least one value", site.span)
    return Static(strong_of(kind).numpy)
