"""Arrays from and for other packages by DLPack: capsules read and made.

    taken(value, stream)     what a package says of an array, and what keeps it alive
    capsule(array, ...)      a capsule for a package, which keeps ours alive until it lets go

A capsule is read once; whoever has read it calls its deleter when done.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base.dataclass import dataclass
from ...base.finalizers import when_gone
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


def _of_python(name: str, result: Any, *kinds: Any) -> Any:
    return ctypes.PYFUNCTYPE(result, *kinds)((name, ctypes.pythonapi))


_object, _address, _text = ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p
_pointer = _of_python("PyCapsule_GetPointer", _address, _object, _text)
_pointer_at = _of_python("PyCapsule_GetPointer", _address, _address, _text)
_is_valid = _of_python("PyCapsule_IsValid", ctypes.c_int, _object, _text)
_is_valid_at = _of_python("PyCapsule_IsValid", ctypes.c_int, _address, _text)
_rename = _of_python("PyCapsule_SetName", ctypes.c_int, _object, _text)
_made = _of_python("PyCapsule_New", _object, _address, _text, _address)
_retain = _of_python("Py_IncRef", None, _object)
_release = _of_python("Py_DecRef", None, _address)
_PLAIN, _NEW = b"dltensor", b"dltensor_versioned"
_USED = {_PLAIN: b"used_dltensor", _NEW: b"used_dltensor_versioned"}


@dataclass(frozen=True, slots=True)
class Taken:
    """What a package says of an array. `strides` are in elements, None for C order."""

    address: int
    device: tuple[int, int]
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    dtype: Any
    writable: bool
    holder: object
    """Keeps the array alive for as long as anybody has this."""


def _done(capsule: Any, managed: Any) -> None:
    """Let the package know that nobody uses what was taken."""
    if managed.deleter:
        managed.deleter(ctypes.addressof(managed))


def taken(value: Any, stream: int | None) -> Taken:
    """Return what a package says of an array that is ready for work queued on a stream.

    The stream is a number, None for an array of the host. Raises BufferError for what is no such
    capsule, and whatever the package raises.
    """
    given = {} if stream is None else {"stream": stream}
    try:
        capsule = value.__dlpack__(max_version=(1, 1), **given)
    except TypeError:  # of the time before versions
        capsule = value.__dlpack__(**given)
    name = next((one for one in (_NEW, _PLAIN) if _is_valid(capsule, one)), None)
    if name is None:
        raise BufferError("what `__dlpack__` gives is no capsule")
    kind: Any = _Versioned if name == _NEW else _Managed
    managed = kind.from_address(_pointer(capsule, name))
    _rename(capsule, _USED[name])
    holder = when_gone(_done, capsule, managed)
    if name == _NEW and managed.major != 1:
        raise BufferError(f"it is made for version {managed.major} of DLPack")
    one = managed.tensor
    shape = tuple(one.shape[: one.ndim])
    strides = tuple(one.strides[: one.ndim]) if one.strides else None
    flags = managed.flags if name == _NEW else 0
    return Taken(
        (one.data or 0) + one.offset, (one.device_type, one.device), shape, strides,
        _dtype(one.code, one.bits, one.lanes), not flags & _READ_ONLY, holder,
    )  # fmt: skip


def _dtype(code: int, bits: int, lanes: int) -> Any:
    for dtype in dtypes.ALL:
        wanted = _BFLOAT if dtype.name == "bfloat16" else _KINDS[dtype.kind]
        if (code, bits, lanes) == (wanted, 8 * dtype.itemsize, 1):
            return dtype.numpy
    raise BufferError(f"it has elements of {bits} bits and kind {code}, which is none of ours")


def _let_go(address: int) -> None:
    _release(_Managed.from_address(address).context)


def _unread(capsule: int) -> None:
    """Let go of what nobody has read; a capsule that was read has another name.

    It is about to be freed, so no Python object may be made of it.
    """
    if _is_valid_at(capsule, _PLAIN):
        _let_go(_pointer_at(capsule, _PLAIN))


_LET_GO, _UNREAD = _Deleter(_let_go), _Deleter(_unread)
"""The same for who calls them from C, for as long as the process lives."""


def capsule(
    owner: object, address: int, device: tuple[int, int], shape: Sequence[int],
    strides: Sequence[int], dtype: Any,
) -> Any:  # fmt: skip
    """Return a capsule of an array, which keeps its owner alive until the reader lets go."""
    found = dtypes.from_numpy(np.dtype(dtype))
    assert found is not None, "our arrays have types of ours"
    code = _BFLOAT if found.name == "bfloat16" else _KINDS[found.kind]
    numbers = ctypes.c_int64 * max(1, len(shape))
    sizes, steps = numbers(*shape), numbers(*strides)
    managed = _Managed()
    managed.tensor = _Tensor(
        address, *device, len(shape), code, 8 * found.itemsize, 1,
        ctypes.cast(sizes, ctypes.POINTER(ctypes.c_int64)),
        ctypes.cast(steps, ctypes.POINTER(ctypes.c_int64)), 0,
    )  # fmt: skip
    managed.deleter = _LET_GO
    held = owner, managed, sizes, steps
    _retain(held)  # given up by `_let_go`
    managed.context = id(held)
    return _made(ctypes.addressof(managed), _PLAIN, ctypes.cast(_UNREAD, ctypes.c_void_p))
