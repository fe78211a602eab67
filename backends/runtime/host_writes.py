"""Host writes to tensors: checks of lossless conversion, and errors for in-place operators.

unstorable(value, dtype)         the reason why elements of a type cannot hold a value, if any
storable(value, dtype, label)    the value as an array that NumPy stores without loss, or an error
Snapshot                         the type of `p[1:]`: read-only, its errors say how to write `p`
Refusing                         a base class whose `+=` raises, as it would have no effect
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ...base.diagnostic import CdError, CdTypeError, CdValueError, Diagnostic
from ...lowering.ir import dtypes
from ...lowering.ir.dtypes import DType
from ..device_arrays.device_array import CPU
from .arrays import as_array, element_type

if TYPE_CHECKING:
    from ..interface import Array


_KIND_RANK = {"b": 1, "u": 1, "i": 1, "f": 2, "c": 3}
_UPDATES = {
    "iadd": "+", "isub": "-", "imul": "*", "itruediv": "/", "ifloordiv": "//", "imod": "%",
    "ipow": "**", "imatmul": "@", "iand": "&", "ior": "|", "ixor": "^", "ilshift": "<<",
    "irshift": ">>",
}  # fmt: skip


def conversion_problem(value: Any, dtype: DType | None) -> str:
    """Return why elements of a type cannot hold a value without a cast; "" where they can.

    >>> conversion_problem([1, 2.5], dtypes.int32)
    'float64 values cannot be stored in int32 without a cast'
    """
    value_type = dtypes.from_numpy(np.asarray(value).dtype)
    if value_type is None or dtype is None or _KIND_RANK[value_type.kind] <= _KIND_RANK[dtype.kind]:
        return ""
    return f"{value_type.name} values cannot be stored in {dtype.name} without a cast"


def convert_for_store(value: Any, dtype: DType, label: str) -> Array:
    """Return a value as an array that can be assigned to elements of a type without loss.

    Raises CdTypeError CD0405 where it would lose fractions or imaginary parts, CD0701 or CD0702
    where it is not convertible to an array, and CdValueError CD0405 for numbers out of range.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return _convert_exactly(value, dtype, label)
    array = as_array(value, "v")
    element_type(array, "v")
    if why := conversion_problem(array, dtype):
        name = dtype.name
        raise CdTypeError(
            Diagnostic(
                "CD0405", f"{why}, as `{label}` would have to",
                helps=(f"convert it: `np.asarray(v).astype({name!r})`",),
            )
        )  # fmt: skip
    return _convert_exactly(value, dtype, label) if isinstance(value, list | tuple) else array


def _convert_exactly(value: Any, dtype: DType, label: str) -> Array:
    """Return Python numbers converted directly to the type, without an intermediate one."""
    try:
        return np.array(value, dtype.numpy)
    except OverflowError as problem:
        helps = ("use a wider type, or `np.asarray(v)`, which wraps around",)
        raise CdValueError(Diagnostic("CD0405", f"`{label}`: {problem}", helps=helps)) from None


def read_tensors_in_index(index: Any) -> Any:
    """Return an index with its tensors read as arrays, since a step must not read tensors."""
    if isinstance(index, tuple | list):
        items = map(read_tensors_in_index, index)
        return tuple(items) if isinstance(index, tuple) else list(items)
    is_plain = isinstance(index, np.ndarray | np.generic) or not hasattr(index, "__array__")
    return index if is_plain else np.asarray(index)


def copy_false_error(label: str) -> CdError:
    """Return the error CD0861 of `copy=False`: a tensor's array is always copied."""
    return CdValueError(
        Diagnostic(
            "CD0861", f"an array of `{label}` is a copy of its newest version, and `copy=False` "
            "asks for none",
            helps=(f"write `np.asarray({label})`", f"or, to write it, `with {label}.edit() as a:`"),
        )
    )  # fmt: skip


def require_exportable(
    label: str, dtype: DType, device: tuple[int, int] | None, copy: bool | None
) -> None:
    """Raise BufferError where a tensor's array cannot be exported by DLPack as it is asked for."""
    if device is not None and tuple(device) != (CPU, 0):
        raise BufferError(
            f"`{label}` is exported as host memory, (1, 0), and {tuple(device)} is asked for: "
            "copy it there afterwards, or use `context.device_pointer` for its array on a device"
        )
    if copy is False:
        raise BufferError(
            f"an array of `{label}` is a copy of its newest version, and `copy=False` asks for none"
        )
    if dtype.name == "bfloat16":
        raise BufferError(
            f"`{label}` has elements of type bfloat16, which NumPy does not export by DLPack: "
            f'write `{label}.numpy().astype("float32")`'
        )


class Snapshot(np.ndarray[Any, Any]):
    """A read-only view of a tensor's version; results of operations on it are plain arrays.

    Advanced indexing, which copies, gives a plain array, too.
    """

    def __array_wrap__(self, array: Array, context: Any = None, return_scalar: bool = False) -> Any:
        return array[()] if return_scalar else np.asarray(array)

    def __setitem__(self, index: Any, value: Any) -> None:
        if not self.flags.writeable:
            raise _read_only("=")
        super().__setitem__(index, value)

    def __repr__(self) -> str:
        return repr(self.view(np.ndarray))


class NoInPlaceOperators:
    """A labelled object whose in-place operators raise: they would rebind the name.

    `dir` and completion list `_SHOWN`, the names that users need.
    """

    __slots__ = ()
    _SHOWN: tuple[str, ...] = ()
    _exports_host_memory = True
    """See `may_be_device_array`."""

    def __dir__(self) -> list[str]:
        special = (name for name in object.__dir__(self) if name.startswith("__"))
        return sorted({*special, *self._SHOWN})


def _read_only(sign: str) -> CdError:
    value = "v" if sign == "=" else f"p[...] {sign[:-1]} v"
    return CdValueError(
        Diagnostic(
            "CD0861", "what an index of a tensor gives is a snapshot, read-only, and "
            f"`{sign}` would write it",
            helps=(f"write the tensor itself: `p[...] = {value}`",
                   f"or in place: `with p.edit() as a: a[...] {sign} v`"),
        )
    )  # fmt: skip


def _snapshot_operator(name: str, sign: str) -> Any:
    plain = getattr(np.ndarray, f"__{name}__")

    def update(self: Snapshot, other: Any) -> Any:
        if self.flags.writeable:
            return plain(self, other)
        raise _read_only(f"{sign}=")

    return update


def _rejecting_operator(sign: str) -> Any:
    def update(self: Any, other: object) -> NoReturn:
        label, _, field = self.label.partition(".")
        edit = f"{label}.edit({field!r})" if field else f"{label}.edit()"
        raise CdTypeError(
            Diagnostic(
                "CD0861", f"`{self.label} {sign}= v` does not write a tensor outside of functions",
                helps=(f"write `{self.label}[...] = {self.label}.numpy() {sign} v`",
                       f"or in place: `with {edit} as a: a {sign}= v`"),
            )
        )  # fmt: skip

    return update


for _name, _sign in _UPDATES.items():
    setattr(Snapshot, f"__{_name}__", _snapshot_operator(_name, _sign))
    setattr(NoInPlaceOperators, f"__{_name}__", _rejecting_operator(_sign))
