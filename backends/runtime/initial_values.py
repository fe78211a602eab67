"""Initial values of tensors: checks of shape, element type and `init`."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from ...base.diagnostic import (
    CdError,
    CdMemoryError,
    CdTypeError,
    CdValueError,
    Diagnostic,
    nearest,
)
from ...lowering.ir import dtypes
from ...lowering.ir.dtypes import DType
from ..interface import Array
from .host_writes import conversion_problem


def first_value(label: str, shape: Any, dtype: Any, init: Any) -> Array:
    """Return the initial value of a tensor: `init` broadcast to its shape, or zeros.

    Raises CdTypeError or CdValueError CD0860 for invalid arguments, CdMemoryError CD0705.
    """
    sizes, element = _sizes(label, shape), _element_type(label, dtype)
    value = _zeros(label, sizes, element)
    if init is not None:
        _fill(label, value, init(sizes) if callable(init) else init)
    return value


def _sizes(label: str, shape: Any) -> tuple[int, ...]:
    """Return a shape as a tuple; an integer is a shape of one axis."""
    try:
        sizes = tuple(map(index, (shape,) if hasattr(shape, "__index__") else shape))
    except TypeError:
        why = f"its shape {shape!r} is not made of whole numbers"
        raise _invalid_tensor(CdTypeError, label, why, "write its sizes: `(2, 3)`") from None
    if any(size < 0 for size in sizes):
        why = f"its shape {sizes} has a negative size"
        raise _invalid_tensor(CdValueError, label, why, "no size is below 0")
    return sizes


def _element_type(label: str, dtype: Any) -> np.dtype[Any]:
    """Return the requested element type in native byte order."""
    named = dtype if isinstance(dtype, DType) else getattr(dtype, "dtype", None)  # of `pe.f32`
    if isinstance(named, DType):
        return named.numpy
    try:
        requested = np.dtype(np.float32 if dtype is None else dtype)
    except (TypeError, ValueError):
        suggestion = nearest(dtype, dtypes.BY_NAME) if isinstance(dtype, str) else None
        fix = f"did you mean `{suggestion}`?" if suggestion else "write one as in NumPy: `float32`"
        why = f"there is no element type {dtype!r}"
        raise _invalid_tensor(CdTypeError, label, why, fix) from None
    supported = dtypes.from_numpy(requested)
    return requested if supported is None else supported.numpy


def _zeros(label: str, sizes: tuple[int, ...], element: np.dtype[Any]) -> Array:
    try:
        return np.zeros(sizes, element)
    except ValueError:
        why = f"its shape {sizes} has more elements than any memory"
        raise _invalid_tensor(CdValueError, label, why, "make it smaller") from None
    except MemoryError as why_not:
        helps = ("use a smaller shape, or a smaller element type",)
        message = f"there is not enough memory for tensor `{label}`: {why_not}"
        raise CdMemoryError(Diagnostic("CD0705", message, helps=helps)) from None


def _fill(label: str, value: Array, init: Any) -> None:
    """Store `init`, broadcast by NumPy's rules."""
    try:
        if why := conversion_problem(init, dtypes.from_numpy(value.dtype)):
            raise TypeError(why)
        value[...] = init
    except (ValueError, TypeError, OverflowError) as problem:
        kind = CdTypeError if isinstance(problem, TypeError) else CdValueError
        why = f"its `init` does not fill {value.dtype} elements of shape {value.shape}: {problem}"
        fix = "give a number, an array that broadcasts to the shape, or a function of the shape"
        raise _invalid_tensor(kind, label, why, fix) from None


def _invalid_tensor(kind: type[CdError], label: str, why: str, fix: str) -> CdError:
    return kind(Diagnostic("CD0860", f"tensor `{label}` cannot be made: {why}", helps=(fix,)))
