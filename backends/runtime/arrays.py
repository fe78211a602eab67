"""Array arguments: conversion of user values to arrays that compiled code accepts.

    as_array(value)            a NumPy view, a copy only where there is no array yet
    conversion(value)          the NumPy function that converts all values of a class
    prepare(array, written)    the array or a packed copy, and the write-back after the call
    describe(array)            its layout, which is part of the specialization
    overlaps(arrays)           the pairs that share memory

Unsupported values are rejected here, before anything runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from ...base.dataclass import dataclass
from ...base.diagnostic import CdTypeError, CdValueError, Diagnostic
from ...lowering.ir import dtypes
from ...lowering.ir.dtypes import DType
from ..device_arrays.protocols import may_be_device_array
from ..overrides import overridden_in_array, overridden_in_foreign

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[Any]
MAX_OVERLAP_WORK = 100_000
"""The work limit of the exact overlap test of a pair; beyond, it is assumed to overlap."""
_FEW = 1 << 20
"""Arrays of more elements than this are assumed to overlap themselves, without a search."""
_LABELLED = ("__dask_graph__", "to_numpy", "coords", "chunks")
"""Attributes of classes whose values `_require_plain` may reject."""
_CASTS = {"g": "float64", "G": "complex128"}


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of an array, without its address. Equal layouts run the same specialization."""

    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    """In elements; None for contiguous C order."""
    aligned: bool = True
    native: bool = True
    writable: bool = True


@dataclass(frozen=True, slots=True)
class Overlap:
    """Two arrays, by position, that share memory; `identical`: the same elements in order."""

    first: int
    second: int
    identical: bool


def as_array(value: object, name: str = "the argument") -> Array:
    """Return a value as a NumPy array that shares its memory where it has any.

    Raises CdTypeError: CD0701 for an unsupported element type and for memory outside the host,
    CD0702 for ragged lists.
    """
    if type(value) is np.ndarray:
        return value
    if isinstance(value, np.ma.MaskedArray):
        raise _unsupported("CD0701", f"`{name}` is a masked array, and its mask would be lost",
                       "pass `x.filled(fill)`, or the data and the mask as two arrays")  # fmt: skip
    if isinstance(value, np.matrix):
        raise _unsupported("CD0701", f"`{name}` is a matrix: its `*` is not that of arrays",
                       "pass `np.asarray(x)`, and write `@` for products")  # fmt: skip
    if isinstance(value, np.ndarray):
        _require_numpys_operators(overridden_in_array(type(value)), value, name)
        return np.ndarray.view(value, np.ndarray)
    if hasattr(value, "__cuda_array_interface__") and not hasattr(value, "__array__"):
        raise _unsupported("CD0701", f"`{name}` lies in the memory of a GPU",
                       "copy it to the host first")  # fmt: skip
    _require_plain(value, name)
    if not isinstance(value, list | tuple):
        _require_numpys_operators(overridden_in_foreign(type(value)), value, name)
    try:
        return _converter(value)(value)
    except (ValueError, TypeError, BufferError, RuntimeError) as why:
        if isinstance(value, list | tuple):
            message = f"the rows of `{name}` are of different lengths"
            fix = "make them equal, or pass the rows as separate arrays"
            raise _unsupported("CD0702", message, fix) from None
        message = f"`{name}` ({type(value).__name__}) makes no array: {why}"
        raise _unsupported("CD0701", message, f"pass a NumPy array as `{name}`") from None


def _require_numpys_operators(overridden: str | None, value: object, name: str) -> None:
    """Reject (CdTypeError CD0701) an array of a class that overrides what arrays do."""
    if overridden is not None:
        raise _unsupported(
            "CD0701", f"`{name}` is of class {type(value).__name__}, whose `{overridden}` is not "
            "that of arrays", "pass the array: `np.asarray(x)`",
        )  # fmt: skip


def _require_plain(value: object, name: str) -> None:
    """Reject (CdTypeError CD0701) labelled, lazy and chunked arrays, which would lose their labels
    or be loaded as a whole.

    Classes are recognized by attributes: pandas and xarray by labels, dask by its graph, arrays in
    files by their chunks.
    """
    kind = type(value)
    graph = getattr(kind, "__dask_graph__", None)
    if graph is not None and graph(value) is not None:
        raise _unsupported(
            "CD0701", f"`{name}` is lazy ({kind.__name__}), and would be computed as a whole",
            "pass `x.compute()`, or run the function on each block, as with "
            "`dask.array.map_blocks`",
        )  # fmt: skip
    has_numbers = hasattr(kind, "to_numpy")
    if hasattr(kind, "coords") or (has_numbers and hasattr(value, "index")):
        numbers = "`x.to_numpy()`" if has_numbers else "array by array"
        raise _unsupported("CD0701", f"the labels of `{name}` ({kind.__name__}) would be lost",
                       f"pass its numbers, {numbers}, and label what comes back")  # fmt: skip
    if hasattr(kind, "chunks"):
        raise _unsupported(
            "CD0701", f"`{name}` ({kind.__name__}) is stored in chunks, and would be loaded as a "
            "whole", "pass `x[...]`, or a part of it",
        )  # fmt: skip


def converter_of(value: object) -> Callable[[Any], Array] | None:
    """Return the NumPy function that is equivalent to `as_array` for all values of a class.

    None where `as_array` has to inspect the value: it may be rejected, or be on a device.
    """
    if any(hasattr(type(value), name) for name in _LABELLED):
        return None
    if may_be_device_array(value):  # `from_dlpack` rejects memory outside the host
        return np.from_dlpack if hasattr(value, "__dlpack__") else None
    return _converter(value)


def describe(value: object, name: str = "the argument") -> Layout:
    """Return the layout of an array or array-like; raises as `as_array` does, and CD0701."""
    array = as_array(value, name)
    dtype, flags = element_type(array, name), array.flags
    return Layout(
        dtype,
        array.shape,
        element_strides(array),
        flags.aligned and _has_whole_strides(array),
        array.dtype.isnative,
        flags.writeable,
    )


def needs_packing(array: Array) -> bool:
    """Whether compiled code gets a packed copy of an array: it is byte-swapped or misaligned, or
    has strides that are no multiples of the item size."""
    is_whole = array.flags.c_contiguous or _has_whole_strides(array)
    return not (is_whole and array.flags.aligned and array.dtype.isnative)


def _has_whole_strides(array: Array) -> bool:
    return all(step % array.itemsize == 0 for step in array.strides)


def element_strides(array: Array) -> tuple[int, ...] | None:
    """Return the strides in elements of an array as compiled code gets it, None for C order.

    Those of a packed copy say of each axis what the array's say: whether it is contiguous, and
    whether it can be merged with another one. So `ravel` and `reshape` are views of the copy where
    NumPy's are views of the array. Where axes cannot be merged, the copy has gaps, no wider than
    `byte_offset` needs.

    >>> records = np.zeros((5, 2), [("id", "u1"), ("v", "f8", 3)])
    >>> records["v"].strides, element_strides(records["v"])
    ((50, 25, 8), (12, 6, 1))
    """
    if array.flags.c_contiguous:
        return None
    if not needs_packing(array):
        return tuple(step // array.itemsize for step in array.strides)
    strides = [0] * array.ndim
    step, extent, packed_extent = array.itemsize, 1, 1
    for axis in sorted(_moving_axes(array), key=lambda axis: abs(array.strides[axis])):
        given, length = abs(array.strides[axis]), array.shape[axis]
        step = packed_extent if given == extent * step else 2 * packed_extent
        strides[axis] = step if array.strides[axis] > 0 else -step
        step, extent, packed_extent = given, length, step * length
    return tuple(strides)


def byte_offset(array: Array, number: int) -> int:
    """Return the bytes between two elements of an array that are `number` elements apart in its
    packed copy, see `element_strides`.

    Merged axes have many steps for one distance, all of the same bytes; other axes have so wide
    gaps that the nearest multiple of the largest stride is the step along its axis.
    """
    strides, total = element_strides(array) or (), 0
    for axis in sorted(_moving_axes(array), key=lambda axis: -abs(strides[axis])):
        step = strides[axis]
        count = (2 * number + abs(step)) // (2 * abs(step)) * (1 if step > 0 else -1)
        number -= count * step
        total += count * array.strides[axis]
    return total


def _moving_axes(array: Array) -> list[int]:
    """Return the axes along which elements differ in their addresses."""
    return [axis for axis, n in enumerate(array.shape) if n > 1 and array.strides[axis]]


def element_type(array: Array, name: str = "the argument") -> DType:
    """Return the element type of an array. Raises CdTypeError CD0701 for an unsupported one."""
    dtype = dtypes.from_numpy(array.dtype)
    if dtype is None:
        suggestion = _CASTS.get(array.dtype.char)
        raise _unsupported(
            "CD0701",
            f"`{name}` has elements of type {array.dtype}, which is none of "
            + ", ".join(dtype.name for dtype in dtypes.ALL),
            f'convert it: `{name}.astype("{suggestion or "float64"}")`'
            if array.dtype.kind in "OgGfc"
            else "encode its elements as numbers, for example with `np.unique(..., "
            "return_inverse=True)`",
        )
    return dtype


def prepare(
    array: Array, written: bool, name: str = "the argument"
) -> tuple[Array, Callable[[], None] | None]:
    """Return an array that compiled code can use, and the write-back to call after a write.

    It is the array itself unless it `needs_packing`: then a copy with `element_strides`, and the
    second value copies back. Raises CdValueError where it is written: CD0703 if it is read-only,
    CD0704 if its elements overlap.
    """
    if written:
        _require_writable(array, name)
    if not needs_packing(array):
        return array, None
    packed = copy_with_strides(array, element_strides(array))
    return packed, (lambda: np.copyto(array, packed)) if written else None


def overlaps(arrays: Sequence[Array]) -> tuple[Overlap, ...]:
    """Return all pairs that share memory, by position: exactly, up to the work limit
    `MAX_OVERLAP_WORK`.

    >>> x = np.zeros(8)
    >>> overlaps([x[::2], x[1::2], x[::2]])
    (Overlap(first=0, second=2, identical=True),)
    """
    spans = [byte_bounds(array) if array.size else (0, 0) for array in arrays]
    return tuple(
        Overlap(first, second, _identical(arrays[first], arrays[second]))
        for second in range(len(arrays))
        for first in range(second)
        if spans[first][0] < spans[second][1]
        and spans[second][0] < spans[first][1]
        and _share_memory(arrays[first], arrays[second])
    )


def copy_with_strides(array: Array, strides: tuple[int, ...] | None) -> Array:
    """Return a copy of an array, in native byte order, with given strides in elements; None for C
    order."""
    dtype = array.dtype.newbyteorder("=")
    if strides is None or not array.size:
        return np.array(array, dtype, order="C", copy=True)
    low = sum(min(0, (n - 1) * step) for n, step in zip(array.shape, strides, strict=True))
    high = sum(max(0, (n - 1) * step) for n, step in zip(array.shape, strides, strict=True))
    storage = np.empty(high - low + 1, dtype)
    steps = tuple(step * array.itemsize for step in strides)
    view = np.lib.stride_tricks.as_strided(storage[-low:], array.shape, steps)
    view[...] = array
    return view


def overlaps_itself(array: Array) -> bool:
    """Whether two elements of an array share memory, or it is too large to decide.

    >>> overlaps_itself(np.broadcast_to(1.0, (3,))), overlaps_itself(np.zeros((2, 3)).T)
    (True, False)
    """
    if array.size < 2:
        return False
    axes = [(abs(s), n) for s, n in zip(array.strides, array.shape, strict=True) if n > 1]
    extent_bytes = array.itemsize
    for step, extent in sorted(axes):
        if step < extent_bytes:
            break
        extent_bytes += step * (extent - 1)
    else:
        return False  # each stride exceeds the extent of the finer axes
    if array.size > _FEW or any(step == 0 for step, _ in axes):
        return True
    offsets = np.zeros(1, np.int64)
    for step, extent in axes:
        offsets = np.add.outer(offsets, step * np.arange(extent)).ravel()
    offsets.sort()
    return bool((np.diff(offsets) < array.itemsize).any())


def _converter(value: object) -> Callable[[Any], Array]:
    """Return the converter of a foreign value: by NumPy's protocols, else by DLPack."""
    has_numpy_protocol = hasattr(value, "__array__") or hasattr(value, "__array_interface__")
    return np.from_dlpack if hasattr(value, "__dlpack__") and not has_numpy_protocol else np.asarray


def _require_writable(array: Array, name: str) -> None:
    if not array.flags.writeable:
        message = f"`{name}` is read-only, and the function writes it"
        helps = [f"copy it before the call, `{name} = {name}.copy()`: the result is in the copy"]
        if _may_be_writable(array):
            helps.append(f"or allow it: `{name}.flags.writeable = True`")
        raise CdValueError(Diagnostic("CD0703", message, helps=tuple(helps)))
    if not array.flags.c_contiguous:
        require_disjoint_elements(array, name)


def _may_be_writable(array: Array) -> bool:
    """Whether a read-only array can be made writable, and then has no overlapping elements."""
    if not array.flags.owndata:
        try:
            array.view().flags.writeable = True
        except ValueError:  # the memory has a read-only owner
            return False
    return not overlaps_itself(array)


def require_disjoint_elements(array: Array, name: str) -> None:
    """Raise CdValueError CD0704 where elements of a written array share memory."""
    if overlaps_itself(array):
        raise CdValueError(
            Diagnostic(
                "CD0704",
                f"elements of `{name}` share memory (shape {array.shape}, strides in bytes "
                f"{array.strides}), and the function writes it",
                helps=(f"pass a copy, `{name}.copy()`",),
            )
        )


def _share_memory(first: Array, second: Array) -> bool:
    try:
        return np.shares_memory(first, second, max_work=MAX_OVERLAP_WORK)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


def _identical(first: Array, second: Array) -> bool:
    first_address, second_address = (
        array.__array_interface__["data"][0] for array in (first, second)
    )
    return (first_address, first.shape, first.strides, first.dtype) == (
        second_address, second.shape, second.strides, second.dtype,
    )  # fmt: skip


def _unsupported(code: str, message: str, fix: str) -> CdTypeError:
    return CdTypeError(Diagnostic(code, message, helps=(fix,)))
