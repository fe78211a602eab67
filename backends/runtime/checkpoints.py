"""Checkpoints: bit-identical storage of tensors in a file, by the label of each tensor.

    file := npz of `label.field` -> array      element types that NumPy lacks, as integers of their
                                               size, under `label.field:bfloat16`

A file is written under a temporary name and renamed, so that the update is atomic.
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
from .argument_checks import wrong_argument
from .field import Field
from .memory import memory_guard
from .tensor import Tensor

Filename = str | os.PathLike[str]


def save(path: Filename, *tensors: Tensor) -> Path:
    """Write the newest version of every field of tensors to a file; return its path.

    Waits until they are computed. Raises CdValueError CD0853 for two tensors of one label, and
    CdTypeError CD0575 for a transient tensor.
    """
    fields = _fields(tensors)
    arrays = {_key(name, field): _to_storage(field.numpy()) for name, field in fields.items()}
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
    try:
        with temporary.open("xb") as file:  # with the permissions of any new file
            with memory_guard(f"the file {target.name!r}", sum(a.nbytes for a in arrays.values())):
                np.savez(file, allow_pickle=False, **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return target


def load(path: Filename, *tensors: Tensor) -> None:
    """Read every field of tensors from a file that `save` wrote, as host writes.

    Other entries of the file are ignored. Raises CdValueError CD0854 where it is no such file, or a
    field is missing or has another shape or type, and CdTypeError CD0804 for a constant tensor of
    another value; then nothing is written.
    """
    fields = _fields(tensors)
    arrays = {n: _from_storage(array, fields[n]) for n, array in _read(path, fields).items()}
    for name, field in fields.items():
        if field.constant and arrays[name].tobytes() != field.numpy().tobytes():
            field.require_writable()
    for name, field in fields.items():
        if not field.constant:
            field[...] = arrays[name]


def _fields(tensors: Sequence[Tensor]) -> dict[str, Field]:
    """Return all fields by their names in a file."""
    fields: dict[str, Field] = {}
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise wrong_argument("tensor", tensor, "give tensors: `pe.save(path, w, b)`")
        for name in tensor.fields:
            full = f"{tensor.label}.{name}"
            if full in fields:
                raise CdValueError(
                    Diagnostic(
                        "CD0853", f"two tensors are called `{tensor.label}`, and a file knows "
                        "them by that",
                        helps=('give them labels of their own: `pe.tensor("w1", ...)`',),
                    )
                )  # fmt: skip
            fields[full] = tensor.field(name)
    return fields


def _key(name: str, field: Field) -> str:
    """Return the name of an entry; it has the element type where the format lacks it."""
    return f"{name}:{field.dtype.name}" if _is_foreign(field) else name


def _is_foreign(field: Field) -> bool:
    return field.dtype.numpy.isbuiltin != 1


def _to_storage(array: Array) -> Array:
    """Return an array of an element type that the format has."""
    is_builtin = array.dtype.isbuiltin == 1
    return array if is_builtin else array.view(f"u{array.itemsize}")


def _from_storage(array: Array, field: Field) -> Array:
    return array.view(field.dtype.numpy) if _is_foreign(field) else array


def _read(path: Filename, fields: Mapping[str, Field]) -> dict[str, Array]:
    """Return the arrays of fields in a file, by their names; no other entries are read.

    Raises CdValueError CD0854 where it is no such file, or does not match a field, OSError where it
    cannot be opened, CdMemoryError CD0705.
    """
    name = Path(path).name
    with open(path, "rb") as file, memory_guard(f"what is in {name!r}", _total_bytes(fields)):
        try:
            if file.peek(6)[:6] == np.lib.format.MAGIC_PREFIX:
                raise ValueError("it is one array")
            archive: Any = np.load(file, allow_pickle=False)
            mismatches = [
                why for n, field in fields.items() if (why := _mismatch(n, field, archive))
            ]
            if not mismatches:
                return {n: archive[_key(n, field)] for n, field in fields.items()}
        except (MemoryError, RecursionError):
            raise
        except Exception as problem:  # a damaged file: any error of the reader
            raise CdValueError(
                Diagnostic(
                    "CD0854", f"the file {name!r} holds no tensors: {problem}",
                    helps=("give a file that `pe.save` wrote",),
                )
            ) from None  # fmt: skip
    raise CdValueError(
        Diagnostic(
            "CD0854", f"the file {name!r} does not hold what is to be loaded",
            notes=tuple(mismatches),
            helps=("load the tensors that were saved, made with the same shapes and types",),
        )
    )  # fmt: skip


def _total_bytes(fields: Mapping[str, Field]) -> int:
    return sum(field.dtype.itemsize * math.prod(field.shape) for field in fields.values())


_HEADERS: Mapping[tuple[int, int], Callable[..., Any]] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


class _Header(NamedTuple):
    """The shape and element type of an entry, from its header."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


def _read_header(archive: Any, entry: str) -> _Header | None:
    """Return the header of an entry of an archive, None where it is no array."""
    member = entry if entry in archive.zip.namelist() else f"{entry}.npy"  # as `found[entry]` does
    with archive.zip.open(member) as file:
        try:
            reader = _HEADERS.get(np.lib.format.read_magic(file))
        except ValueError:
            return None
        if reader is None:
            return None
        shape, _, dtype = reader(file)
        return _Header(shape, dtype)


def _mismatch(name: str, field: Field, archive: Any) -> str:
    """Return how an entry of an archive differs from its field, "" where it matches.

    Only the header of the entry is read.
    """
    if _key(name, field) not in archive.files:
        entries = ", ".join(sorted(archive.files)) or "nothing"
        return f"`{name}` is not in it as {field.dtype.name}; it has {entries}"
    header, expected = (
        _read_header(archive, _key(name, field)),
        f"{field.dtype.name}{list(field.shape)}",
    )
    if header is None:
        return f"`{name}` is {expected}, and there it is no array"
    dtype = np.dtype(f"u{header.dtype.itemsize}") if _is_foreign(field) else field.dtype.numpy
    if header.shape != field.shape or header.dtype != dtype:
        return f"`{name}` is {expected}, and there it is {header.dtype}{list(header.shape)}"
    return ""
