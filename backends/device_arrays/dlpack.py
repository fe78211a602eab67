"""DLPack: import and export of arrays by capsules.

    taken(value, stream)     the description of an imported array, with its owner
    capsule(array, ...)      an exported capsule, which keeps the array alive until its deletion

A capsule is consumed once; its consumer calls the deleter in the end.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base.dataclass import dataclass
from ...base.finalizers import call_when_unreachable
from ...lowering.ir import dtypes

_KINDS = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
_BFLOAT = 4
_READ_ONLY = 1


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)), ("offset", ctypes.c_uint64),
    ]  # fmt: skip


_Deleter: Any = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _Deleter)]


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
        ("deleter", _Deleter), ("flags", ctypes.c_uint64), ("tensor", _Tensor),
    ]  # fmt: skip


def _python_function(name: str, result: Any, *kinds: Any) -> Any:
    return ctypes.PYFUNCTYPE(result, *kinds)((name, ctypes.pythonapi))


_object, _address, _text = ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p
_pointer = _python_function("PyCapsule_GetPointer", _address, _object, _text)
_pointer_at = _python_function("PyCapsule_GetPointer", _address, _address, _text)
_is_valid = _python_function("PyCapsule_IsValid", ctypes.c_int, _object, _text)
_is_valid_at = _python_function("PyCapsule_IsValid", ctypes.c_int, _address, _text)
_rename = _python_function("PyCapsule_SetName", ctypes.c_int, _object, _text)
_new_capsule = _python_function("PyCapsule_New", _object, _address, _text, _address)
_retain = _python_function("Py_IncRef", None, _object)
_release = _python_function("Py_DecRef", None, _address)
_UNVERSIONED, _VERSIONED = b"dltensor", b"dltensor_versioned"
_CONSUMED = {_UNVERSIONED: b"used_dltensor", _VERSIONED: b"used_dltensor_versioned"}


@dataclass(frozen=True, slots=True)
class ImportedArray:
    """The description of an imported array. `strides` are in elements, None for C order."""

    address: int
    device: tuple[int, int]
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    dtype: Any
    writable: bool
    holder: object
    """The owner that keeps the array alive."""


def _call_deleter(imported: Any, managed: Any) -> None:
    """Call the deleter of an imported array."""
    if managed.deleter:
        managed.deleter(ctypes.addressof(managed))


def import_array(value: Any, stream: int | None) -> ImportedArray:
    """Import an array, synchronized with later work on a stream.

    The stream is a handle, None for an array of the host. Raises BufferError for an invalid
    capsule, and the errors of the package.
    """
    arguments = {} if stream is None else {"stream": stream}
    try:
        imported = value.__dlpack__(max_version=(1, 1), **arguments)
    except TypeError:  # a package from before versioned DLPack
        imported = value.__dlpack__(**arguments)
    name = next(
        (candidate for candidate in (_VERSIONED, _UNVERSIONED) if _is_valid(imported, candidate)),
        None,
    )
    if name is None:
        raise BufferError("what `__dlpack__` gives is no capsule")
    structure: Any = _Versioned if name == _VERSIONED else _Managed
    managed = structure.from_address(_pointer(imported, name))
    _rename(imported, _CONSUMED[name])
    holder = call_when_unreachable(_call_deleter, imported, managed)
    if name == _VERSIONED and managed.major != 1:
        raise BufferError(f"it is made for version {managed.major} of DLPack")
    tensor = managed.tensor
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = tuple(tensor.strides[: tensor.ndim]) if tensor.strides else None
    flags = managed.flags if name == _VERSIONED else 0
    return ImportedArray(
        (tensor.data or 0) + tensor.offset, (tensor.device_type, tensor.device), shape, strides,
        _element_type(tensor.code, tensor.bits, tensor.lanes), not flags & _READ_ONLY, holder,
    )  # fmt: skip


def _element_type(code: int, bits: int, lanes: int) -> Any:
    for dtype in dtypes.ALL:
        kind_code = _BFLOAT if dtype.name == "bfloat16" else _KINDS[dtype.kind]
        if (code, bits, lanes) == (kind_code, 8 * dtype.itemsize, 1):
            return dtype.numpy
    raise BufferError(f"it has elements of {bits} bits and kind {code}, which is none of ours")


def _release_owner(address: int) -> None:
    _release(_Managed.from_address(address).context)


def _release_versioned_owner(address: int) -> None:
    _release(_Versioned.from_address(address).context)


def _release_unconsumed(capsule_address: int) -> None:
    """Release an array whose capsule was never consumed; a consumed one has another name.

    The capsule is being freed, so no Python reference to it may be created.
    """
    if _is_valid_at(capsule_address, _UNVERSIONED):
        _release_owner(_pointer_at(capsule_address, _UNVERSIONED))
    if _is_valid_at(capsule_address, _VERSIONED):
        _release_versioned_owner(_pointer_at(capsule_address, _VERSIONED))


_DELETER, _CAPSULE_DESTRUCTOR = _Deleter(_release_owner), _Deleter(_release_unconsumed)
_VERSIONED_DELETER = _Deleter(_release_versioned_owner)
"""The C callbacks of all, referenced for the lifetime of the process."""


def export_array(
    owner: object, address: int, device: tuple[int, int], shape: Sequence[int],
    strides: Sequence[int], dtype: Any, read_only: bool = False,
) -> Any:  # fmt: skip
    """Export an array as a capsule, which keeps its owner alive until the consumer deletes it.

    One that is read-only is of DLPack 1.0, which can say so.
    """
    element_type = dtypes.from_numpy(np.dtype(dtype))
    assert element_type is not None, "our arrays have types of ours"
    code = _BFLOAT if element_type.name == "bfloat16" else _KINDS[element_type.kind]
    array_type = ctypes.c_int64 * max(1, len(shape))
    size_array, step_array = array_type(*shape), array_type(*strides)
    managed: Any = _Versioned(1, 0, flags=_READ_ONLY) if read_only else _Managed()
    managed.tensor = _Tensor(
        address, *device, len(shape), code, 8 * element_type.itemsize, 1,
        ctypes.cast(size_array, ctypes.POINTER(ctypes.c_int64)),
        ctypes.cast(step_array, ctypes.POINTER(ctypes.c_int64)), 0,
    )  # fmt: skip
    managed.deleter = _VERSIONED_DELETER if read_only else _DELETER
    references = owner, managed, size_array, step_array
    _retain(references)  # released by `_release_owner`
    managed.context = id(references)
    return _new_capsule(
        ctypes.addressof(managed),
        _VERSIONED if read_only else _UNVERSIONED,
        ctypes.cast(_CAPSULE_DESTRUCTOR, ctypes.c_void_p),
    )
