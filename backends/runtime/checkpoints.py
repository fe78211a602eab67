"""Tensors in a file, exactly: every field, bit by bit, by the label of its tensor.

    file := npz of `label.field` -> array      elements that NumPy has no type for, as integers of
                                               their size, under `label.field:bfloat16`

A file is written beside its place and renamed, so that one is there in whole or as it was before.
"""

from __future__ import annotations

import math
import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...base.diagnostic import CdValueError, Diagnostic
from ..interface import Array
from .argument_checks import other
from .field import Field
from .memory import room
from .tensor import Tensor

Place = str | os.PathLike[str]


def save(path: Place, *tensors: Tensor) -> Path:
    """Write the newest version of every field of tensors to a file; return it.

    Waits for what computes them. Raises CdValueError CD0853 for two tensors of one label, and
    CdTypeError CD0575 for one without an array.
    """
    fields = _fields(tensors)
    arrays = {_key(name, field): _plain(field.numpy()) for name, field in fields.items()}
    target = Path(path)
    beside = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
    try:
        with beside.open("xb") as file:  # who may read it is as for any file
            with room(f"the file {target.name!r}", sum(a.nbytes for a in arrays.values())):
                np.savez(file, allow_pickle=False, **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    return target


def load(path: Place, *tensors: Tensor) -> None:
    """Write what `save` wrote to every field of tensors, as the host does; other entries may be.

    Raises CdValueError CD0854 where the file is none or lacks a field, or has it in another shape
    or type, and CdTypeError CD0804 for a constant tensor of another value; then nothing is written.
    """
    fields = _fields(tensors)
    arrays = {n: _typed(array, fields[n]) for n, array in _read(path, fields).items()}
    for name, field in fields.items():
        if field.constant and arrays[name].tobytes() != field.numpy().tobytes():
            field.require_writable()
    for name, field in fields.items():
        if not field.constant:
            field[...] = arrays[name]


def _fields(tensors: Sequence[Tensor]) -> dict[str, Field]:
    """Return every field by its name in a file."""
    found: dict[str, Field] = {}
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise other("tensor", tensor, "give tensors: `pe.save(path, w, b)`")
        for name in tensor.fields:
            full = f"{tensor.label}.{name}"
            if full in found:
                raise CdValueError(
                    Diagnostic(
                        "CD0853", f"two tensors are called `{tensor.label}`, and a file knows "
                        "them by that",
                        helps=('give them labels of their own: `pe.tensor("w1", ...)`',),
                    )
                )  # fmt: skip
            found[full] = tensor.field(name)
    return found


def _key(name: str, field: Field) -> str:
    """Return the name of an entry; it says the element type where the file cannot."""
    return f"{name}:{field.dtype.name}" if _is_foreign(field) else name


def _is_foreign(field: Field) -> bool:
    return field.dtype.numpy.isbuiltin != 1


def _plain(array: Array) -> Array:
    """Return an array of a type that files have."""
    own = array.dtype.isbuiltin == 1
    return array if own else array.view(f"u{array.itemsize}")


def _typed(array: Array, field: Field) -> Array:
    return array.view(field.dtype.numpy) if _is_foreign(field) else array


def _read(path: Place, fields: Mapping[str, Field]) -> dict[str, Array]:
    """Return what a file holds of fields, by their names; nothing else of it is read.

    Raises CdValueError CD0854 where it is none of ours, or lacks a field as it is, OSError where it
    cannot be opened, CdMemoryError CD0705.
    """
    name = Path(path).name
    with open(path, "rb") as opened, room(f"what is in {name!r}", _bytes(fields)):
        try:
            if opened.peek(6)[:6] == np.lib.format.MAGIC_PREFIX:
                raise ValueError("it is one array")
            found: Any = np.load(opened, allow_pickle=False)
            wrong = [why for n, field in fields.items() if (why := _unlike(n, field, found))]
            if not wrong:
                return {n: found[_key(n, field)] for n, field in fields.items()}
        except (MemoryError, RecursionError):
            raise
        except Exception as problem:  # a damaged file: whatever the reader stumbles over
            raise CdValueError(
                Diagnostic(
                    "CD0854", f"the file {name!r} holds no tensors: {problem}",
                    helps=("give a file that `pe.save` wrote",),
                )
            ) from None  # fmt: skip
    raise CdValueError(
        Diagnostic(
            "CD0854", f"the file {name!r} does not hold what is to be loaded",
            notes=tuple(wrong),
            helps=("load the tensors that were saved, made with the same shapes and types",),
        )
    )  # fmt: skip


def _bytes(fields: Mapping[str, Field]) -> int:
    return sum(field.dtype.itemsize * math.prod(field.shape) for field in fields.values())


_HEADERS: Mapping[tuple[int, int], Callable[..., Any]] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


class _Kind(NamedTuple):
    """What the header of an entry says of its array."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


def _kind(found: Any, entry: str) -> _Kind | None:
    """Return what an entry of an archive says that it is, None where that is no array."""
    member = entry if entry in found.zip.namelist() else f"{entry}.npy"  # as `found[entry]` does
    with found.zip.open(member) as file:
        try:
            header = _HEADERS.get(np.lib.format.read_magic(file))
        except ValueError:
            return None
        if header is None:
            return None
        shape, _, dtype = header(file)
        return _Kind(shape, dtype)


def _unlike(name: str, field: Field, held: Any) -> str:
    """Return how an entry of an archive differs from the field it is for; empty where it does not.

    Only the entry's header is read.
    """
    if _key(name, field) not in held.files:
        near = ", ".join(sorted(held.files)) or "nothing"
        return f"`{name}` is not in it as {field.dtype.name}; it has {near}"
    found, ours = _kind(held, _key(name, field)), f"{field.dtype.name}{list(field.shape)}"
    if found is None:
        return f"`{name}` is {ours}, and there it is no array"
    dtype = np.dtype(f"u{found.dtype.itemsize}") if _is_foreign(field) else field.dtype.numpy
    if found.shape != field.shape or found.dtype != dtype:
        return f"`{name}` is {ours}, and there it is {found.dtype}{list(found.shape)}"
    return ""
