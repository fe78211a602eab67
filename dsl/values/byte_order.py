"""Byte order of arguments: a conversion that NumPy makes by copying is no view here either.

Compiled code runs on native copies of arguments in another byte order, and writes them back; a view
of such an argument has its byte order in NumPy. Every array that a function creates is native.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ...base.diagnostic import Span
from ...lowering.ir.dtypes import DType
from .builder import Context
from .memory_order import held
from .values import Array, Static, Value


def numpy_dtype(ctx: Context, array: Array, dtype: DType) -> np.dtype[Any]:
    """Return the NumPy dtype of an array with elements of `dtype`.

    A view of an argument has the argument's byte order.
    """
    given = None if array.aliased is None else ctx.swapped.get(array.aliased.node)
    if given is None:
        return dtype.numpy
    return given if given.kind == dtype.kind else dtype.numpy.newbyteorder("S")


def is_swapped_dtype(value: Value) -> bool:
    """Whether a value is a dtype of another byte order: that of such an argument."""
    return (
        isinstance(value, Static) and isinstance(value.value, np.dtype) and not value.value.isnative
    )


def in_byte_order(ctx: Context, array: Array, swapped: bool, span: Span) -> Array:
    """Return what NumPy gives where an array is asked for in its own element type.

    The array itself where its byte order is the one that is asked for, else a new array. That of
    an array that is no view of an argument may be either in NumPy: the copy is rejected where a
    view would be observable.
    """
    aliased = array.aliased
    if not ctx.swapped or aliased is None:
        return array
    if any(aliased.node is parameter.node for parameter in ctx.parameters.values()):
        if (aliased.node in ctx.swapped) == swapped:
            return array
        return replace(array, copied=True, given=None)
    return held(ctx, array, "native", span)
