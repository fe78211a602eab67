"""Signatures of calls: specifications of inputs, and cheap keys that imply equal specifications."""

from __future__ import annotations

import types
from functools import partial
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from ...backends.call_entry import FLAGS
from ...backends.device_arrays.device_array import DeviceArray, PlacedArray
from ...backends.device_arrays.foreign_arrays import as_placed
from ...backends.runtime.arrays import as_array, describe
from ...backends.runtime.host_writes import NoInPlaceOperators
from ...base.lazy_import import LazyModule
from ...lowering.ir import dtypes
from ..elaborate.captures.inputs import DEEPEST, ArraySpec, Spec, spec_of
from ..elaborate.captures.instances import c_method_of
from ..source.function_source import MISSING
from ..values.array_types import ArrayType
from ..values.types import kind_of_number

if TYPE_CHECKING:
    from ...backends.runtime import field as fields
    from ...backends.runtime import tensor as tensors
else:  # what few programs need
    fields = LazyModule("...backends.runtime.field", __package__)
    tensors = LazyModule("...backends.runtime.tensor", __package__)

_NUMBER_TYPES = frozenset(
    [float, complex, *(np.dtype(t.name).type for t in dtypes.ALL if t.name != "bfloat16")]
) - {np.bool_}  # fmt: skip
_LIST_ELEMENT_TYPES = frozenset([float, int])
_ITEMS = ("__getitem__", "__iter__", "__len__")
"""The methods by which a tuple yields its items."""
_KEYED_BY_IDENTITY = (
    types.FunctionType, types.BuiltinFunctionType, types.CodeType, types.ModuleType, type, np.ufunc,
    ArrayType, type(MISSING),
)  # fmt: skip


def describe_input(value: object, static: bool, name: str = "the argument") -> Spec:
    """Return the specification of a value, on which code depends; `static` numbers are constants.

    Raises CdTypeError CD0701 or CD0702 for values that are no array of the language.
    """
    return spec_of(value, partial(_array_spec, name=name), static, _is_tensor)


def is_like_tuple(kind: type) -> bool:
    """Whether a class is a tuple type, also a named one, that does not override item access.

    >>> is_like_tuple(tuple), is_like_tuple(list), is_like_tuple(type(np.linalg.slogdet([[1.0]])))
    (True, False, True)
    """
    if not issubclass(kind, tuple):
        return False
    return all(getattr(kind, name) is getattr(tuple, name) for name in _ITEMS)


def cheap_key(value: Any, static: bool, depth: int = DEEPEST) -> object:
    """Return a cheap key such that values with equal keys have equal specifications.

    >>> cheap_key(2.5, False) == cheap_key(3.5, False), cheap_key(2, True) == cheap_key(3, True)
    (True, False)
    """
    kind = type(value)
    if kind is np.ndarray:
        return value.dtype, value.shape, value.strides, value.flags.num & FLAGS
    if kind is int:
        return (int, value) if static or not -(2**63) <= value < 2**63 else (int,)
    if kind in _NUMBER_TYPES and not static:
        return (kind,)
    if kind is bool or kind is str:
        return kind, value
    if kind in _KEYED_BY_IDENTITY and c_method_of(value) is None:
        return value
    if kind is PlacedArray:
        aligned = value.address % value.dtype.alignment == 0
        device_layout = value.ordinal, value.strides, value.writable, value.whole and aligned
        return PlacedArray, value.dtype, value.shape, device_layout
    if issubclass(kind, NoInPlaceOperators) and kind is tensors.Tensor:
        return tensors.Tensor, value.layout, value.constant, value.memory
    if is_field(value):
        host = value.host.array  # whose layout every version has
        return kind, host.dtype, host.shape, host.strides, host.flags.num & FLAGS
    if kind is tuple or is_like_tuple(kind):
        return (kind, *[cheap_key(item, True, depth - 1) for item in value])
    if kind is list:
        if not static and (layout := _list_layout(value)) is not None:
            return ("list", *layout)
        if (static or is_group(value)) and depth > 0:
            return (list, *[cheap_key(item, True, depth - 1) for item in value])
    spec = None if issubclass(kind, np.ndarray) else describe_input(value, static)
    if spec is not None and not (isinstance(spec, ArraySpec) and is_foreign(value)):
        return spec
    array = as_array(value)
    return kind, array.dtype, array.shape, array.strides, array.flags.num & FLAGS


def is_foreign(value: object) -> bool:
    """Whether an array is in host memory and not of class `np.ndarray`."""
    supported_types = list, NoInPlaceOperators, np.generic, DeviceArray, PlacedArray
    return (
        type(value) is not np.ndarray
        and not isinstance(value, supported_types)
        and as_placed(value) is None
    )


def is_field(value: object) -> TypeGuard[fields.Field]:
    """Whether a value is the field of a tensor, of which a function is given a snapshot."""
    return isinstance(value, NoInPlaceOperators) and isinstance(value, fields.Field)


def _list_layout(value: list[Any], depth: int = DEEPEST) -> tuple[Any, ...] | None:
    """Return the element type and shape of the array of nested lists of Python numbers.

    None for other contents, where only the conversion decides, or for too deep nesting.
    """
    kinds = set(map(type, value))
    if kinds and kinds <= _LIST_ELEMENT_TYPES:
        integers = value if kinds == {int} else [item for item in value if type(item) is int]
        if integers and not (min(integers) >= -(2**63) and max(integers) < 2**63):
            return None
        return float if float in kinds else int, len(value)
    if kinds != {list} or depth <= 1:
        return None
    rows = {_list_layout(row, depth - 1) for row in value}
    row = rows.pop()
    return None if rows or row is None else (*row, len(value))


def has_arrays(value: object) -> TypeGuard[list[Any]]:
    """Whether a value is a list that contains arrays, which is no array itself."""
    return type(value) is list and any(isinstance(item, np.ndarray) for item in value)


def is_group(value: object) -> TypeGuard[list[Any]]:
    """Whether a list holds more than numbers and lists, so that it is surely no array itself.

    >>> is_group([1, [2.0]]), is_group([1, "a"]), is_group([(1, 2)])
    (False, True, True)
    """
    return type(value) is list and any(
        type(item) is not list and kind_of_number(item) is None for item in value
    )


def _is_tensor(value: object) -> TypeGuard[tensors.Tensor]:
    return isinstance(value, NoInPlaceOperators) and isinstance(value, tensors.Tensor)


def _array_spec(value: object, name: str) -> ArraySpec | None:
    """Return the array specification that code is compiled for, None for other values."""
    device_array = as_placed(value, name)
    if device_array is not None:
        dtype, strides = (
            dtypes.from_numpy(device_array.dtype) or dtypes.float64,
            device_array.strides,
        )
        return ArraySpec(dtype, device_array.shape, strides, placed=strides is not None)
    if not looks_like_array(value):
        return None
    layout = describe(value, name)
    return ArraySpec(layout.dtype, layout.shape, layout.strides, swapped=not layout.native)


def looks_like_array(value: object) -> bool:
    """Whether a value is an array or is converted to one: a list, or what NumPy converts.

    Buffers are arrays too, such as `array.array`; `bytes` are constants.
    """
    if isinstance(value, np.ndarray | list):
        return True
    names = ("__array_interface__", "__array_struct__", "__dlpack__", "__array__")
    if any(hasattr(value, name) for name in names):
        return True
    return not isinstance(value, bytes) and _is_buffer(value)


def _is_buffer(value: Any) -> bool:
    """Whether a value supports the buffer protocol."""
    try:
        memoryview(value).release()
    except (TypeError, BufferError):
        return False
    return True
