"""What the host writes to tensors: values that lose nothing, and no `+=` that would write nothing.

unstorable(value, dtype)         why elements of a type cannot hold a value, as in the language
storable(value, dtype, label)    the value as NumPy stores it, or an error
Snapshot                         what `p[1:]` gives: an array that says how `p` is written
Refusing                         what has no `+=`, because it would write nothing
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ...base.diagnostic import CdError, CdTypeError, CdValueError, Diagnostic
from ...lowering.ir import dtypes
from ...lowering.ir.dtypes import DType
from .arrays import as_array, element_type

if TYPE_CHECKING:
    from ..interface import Array


_ORDER = {"b": 1, "u": 1, "i": 1, "f": 2, "c": 3}
_UPDATES = {
    "iadd": "+", "isub": "-", "imul": "*", "itruediv": "/", "ifloordiv": "//", "imod": "%",
    "ipow": "**", "imatmul": "@", "iand": "&", "ior": "|", "ixor": "^", "ilshift": "<<",
    "irshift": ">>",
}  # fmt: skip


def unstorable(value: Any, dtype: DType | None) -> str:
    """Return why elements of a type cannot hold a value without a cast; empty where they can.

    >>> unstorable([1, 2.5], dtypes.int32)
    'float64 values cannot be stored in int32 without a cast'
    """
    found = dtypes.from_numpy(np.asarray(value).dtype)
    if found is None or dtype is None or _ORDER[found.kind] <= _ORDER[dtype.kind]:
        return ""
    return f"{found.name} values cannot be stored in {dtype.name} without a cast"


def storable(value: Any, dtype: DType, label: str) -> Array:
    """Return a value as an array of which an assignment to elements of a type loses nothing.

    Raises CdTypeError CD0405 where it would lose fractions or imaginary parts, CD0701 or CD0702 for
    what makes no array, and CdValueError CD0405 for numbers that the type cannot hold.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return _fitting(value, dtype, label)
    array = as_array(value, "v")
    element_type(array, "v")
    if why := unstorable(array, dtype):
        name = dtype.name
        raise CdTypeError(
            Diagnostic(
                "CD0405", f"{why}, as `{label}` would have to",
                helps=(f"convert it: `np.asarray(v).astype({name!r})`",),
            )
        )  # fmt: skip
    return _fitting(value, dtype, label) if isinstance(value, list | tuple) else array


def _fitting(value: Any, dtype: DType, label: str) -> Array:
    """Return numbers of Python as the type, and by no other one on the way."""
    try:
        return np.array(value, dtype.numpy)
    except OverflowError as problem:
        helps = ("use a wider type, or `np.asarray(v)`, which wraps around",)
        raise CdValueError(Diagnostic("CD0405", f"`{label}`: {problem}", helps=helps)) from None


def owned(index: Any) -> Any:
    """Return an index, tensors in it as arrays: no step may look for one."""
    if isinstance(index, tuple | list):
        found = map(owned, index)
        return tuple(found) if isinstance(index, tuple) else list(found)
    plain = isinstance(index, np.ndarray | np.generic) or not hasattr(index, "__array__")
    return index if plain else np.asarray(index)


def always_copied(label: str) -> CdError:
    """Return the error CD0861 of asking for the array of a tensor itself."""
    return CdValueError(
        Diagnostic(
            "CD0861", f"an array of `{label}` is a copy of its newest version, and `copy=False` "
            "asks for none",
            helps=(f"write `np.asarray({label})`", f"or, to write it, `with {label}.edit() as a:`"),
        )
    )  # fmt: skip


class Snapshot(np.ndarray[Any, Any]):
    """An array that holds what a tensor held, and is not written; what is computed of it is plain.

    An array of its own, which indices that are arrays give, is one of NumPy's.
    """

    def __array_wrap__(self, array: Array, context: Any = None, return_scalar: bool = False) -> Any:
        return array[()] if return_scalar else np.asarray(array)

    def __setitem__(self, index: Any, value: Any) -> None:
        if not self.flags.writeable:
            raise _read_only("=")
        super().__setitem__(index, value)

    def __repr__(self) -> str:
        return repr(self.view(np.ndarray))


class Refusing:
    """What has a label, and no operators that write in place: they would make a new object.

    Completion shows `_SHOWN` of it: what users need of its names.
    """

    __slots__ = ()
    _SHOWN: tuple[str, ...] = ()

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


def _in_snapshots(name: str, sign: str) -> Any:
    plain = getattr(np.ndarray, f"__{name}__")

    def update(self: Snapshot, other: Any) -> Any:
        if self.flags.writeable:
            return plain(self, other)
        raise _read_only(f"{sign}=")

    return update


def _in_others(sign: str) -> Any:
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
    setattr(Snapshot, f"__{_name}__", _in_snapshots(_name, _sign))
    setattr(Refusing, f"__{_name}__", _in_others(_sign))
