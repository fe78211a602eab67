"""What a call of a routine gives: arrays and numbers by name, as the code was compiled for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...base.diagnostic import CdTypeError, CdValueError, Diagnostic, Label, Span
from ...lowering.ir import dtypes
from ...lowering.ir.assignments import Parameter
from ...lowering.ir.dtypes import DType
from ..gpu.device_array import DeviceArray, Placed
from ..gpu.foreign_arrays import found, place, usable
from ..gpu.protocols import may_be_there
from ..interface import Array
from .arrays import as_array, overlaps, refuse_shared, relaid
from .link import unfit
from .memory import room
from .state import RUNTIME


def by_name(
    routine: str,
    names: Sequence[str],
    bound: Mapping[str, Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    span: Span,
) -> dict[str, Any]:
    """Return a value for each name that a routine takes: given by place, by name, or bound.

    Arrays of other packages on devices are asked for once. Raises CdTypeError CD0436 where one is
    missing or nobody takes it.
    """
    values = {**bound, **dict(zip(names, args, strict=False)), **kwargs}
    unknown = [name for name in kwargs if name not in names]
    missing = [name for name in names if name not in values]
    if unknown or missing or len(args) > len(names):
        raise CdTypeError(
            Diagnostic(
                "CD0436", f"the routine `{routine}` is called with the wrong arguments",
                (Label(span),), (f"it takes {', '.join(names) or 'nothing'}",),
                (f"give it what it lacks: {', '.join(missing)}",) if missing else (),
            )
        )  # fmt: skip
    there = {name: found(one, name) for name, one in values.items() if may_be_there(one)}
    return values | {name: one for name, one in there.items() if one is not None}


def fitting(name: str, value: Any, parameter: Parameter, backend: str) -> Array | Placed:
    """Return what a call gives for a parameter as the array that the code was compiled for.

    What is only read is copied: the caller may change it before the routine runs. Arrays of a
    device are used where they are. Raises CdTypeError CD0702 where the code is for other arrays, or
    another kind of number, and what `usable` raises.
    """
    node = parameter.node
    if isinstance(value, Placed):
        return _there(name, usable(value, parameter.written, name, backend), parameter)
    if not node.shape and not parameter.written:
        return _number(name, value, node.dtype)
    array = as_array(value, name)
    same = array.shape == node.static_shape and np.can_cast(array.dtype, node.dtype.numpy, "equiv")
    if same and not parameter.written:
        with room(f"a copy of `{name}`", 2 * array.nbytes):
            array = relaid(array.astype(node.dtype.numpy), node.strides)
    if why := unfit(parameter, array):
        raise _other(name, why, "such an array")
    return array


def _there(name: str, array: Placed, parameter: Parameter) -> Placed:
    """Return an array of a device as it is; CdTypeError CD0702, CdValueError CD0704."""
    if why := unfit(parameter, array):
        raise _other(name, why, "such an array")
    if parameter.written:
        refuse_shared(array.shadow, name)
    return array


def ours(array: Placed) -> DeviceArray:
    """Return an array on a device as one of ours, which it may be."""
    if isinstance(array.given, DeviceArray):
        return array.given
    backend: Any = RUNTIME.backend("cuda")
    ordinal = array.ordinal
    if ordinal is None:
        ordinal = backend.opened().context.where(array.address) if array.size else 0
    opened = backend.opened(ordinal)
    return DeviceArray(
        opened, array.address, array.shape, array.dtype, opened.plain, array.holder,
        array.strides, array.writable,
    )  # fmt: skip


def copied(array: Array | Placed) -> Array:
    """Return a copy on the host, when all is done that was queued on an array of a device."""
    return ours(array).numpy() if isinstance(array, Placed) else array.copy(order="K")


def _number(name: str, value: Any, dtype: DType) -> Array:
    """Return a number as an array of the type that the code was compiled for, exactly itself.

    Whole numbers become floats, and floats wider ones; nothing is rounded, cut off or wrapped.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return _whole(name, value, dtype)
    array = as_array(value, name)
    if array.shape:
        raise _other(name, f"has shape {array.shape}, compiled for a number", "such an array")
    kind = dtypes.from_numpy(array.dtype)
    if kind is None:
        why = f"is a {type(value).__name__}, compiled for {dtype.name}"
        raise CdTypeError(Diagnostic("CD0702", f"`{name}` {why}", helps=("give a number",)))
    if kind is dtype:
        return np.array(array, dtype.numpy)
    if kind.kind in "iu":
        return _whole(name, int(array), dtype)
    if kind.kind == "b" or not np.can_cast(kind.numpy, dtype.numpy, "safe"):
        raise _other(name, f"is of type {kind.name}, compiled for {dtype.name}", "such a number")
    return np.array(array, dtype.numpy)


def _whole(name: str, number: int, dtype: DType) -> Array:
    """Return a whole number as an array; refused where the type cannot hold it."""
    if dtype.kind == "b":
        raise _other(name, f"is {number}, compiled for {dtype.name}", "such a number")
    try:
        with np.errstate(over="ignore"):  # infinities are refused
            made = np.array(number, dtype.numpy)
        if np.isfinite(made) and int(made.real) == number:
            return made
    except OverflowError:
        pass
    shown = number if abs(number) < 2**128 else "a number of many digits"
    raise _other(name, f"is {shown}, which {dtype.name} cannot hold", "such a number")


def _other(name: str, why: str, what: str) -> CdTypeError:
    fix = f"compile the function for {what} as well: `f.compile(...)`"
    return CdTypeError(Diagnostic("CD0702", f"`{name}` {why}", helps=(fix,)))


def require_apart(arrays: Sequence[Any], routine: str) -> None:
    """Raise CdValueError CD0708 where arrays that one call gives share memory."""
    if overlaps([place(array) for array in arrays]):
        raise CdValueError(
            Diagnostic(
                "CD0708",
                f"arrays given to the routine `{routine}` share memory, and one is written",
                helps=("give it copies of what it only reads",),
            )
        )
