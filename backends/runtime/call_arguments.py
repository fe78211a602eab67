"""Arguments of routine calls: binding by name, and conversion to what the code was compiled for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...base.diagnostic import CdTypeError, CdValueError, Diagnostic, Label, Span
from ...lowering.ir import dtypes
from ...lowering.ir.assignments import Parameter
from ...lowering.ir.dtypes import DType
from ..device_arrays.device_array import DeviceArray, PlacedArray, UsesDeviceArrays
from ..device_arrays.foreign_arrays import as_placed, overlap_proxy_of, require_usable
from ..device_arrays.protocols import may_be_device_array
from ..interface import Array
from .arrays import as_array, copy_with_strides, overlaps, require_disjoint_elements
from .link import layout_mismatch
from .memory import memory_guard
from .state import RUNTIME


def bind_arguments(
    routine: str,
    names: Sequence[str],
    bound: Mapping[str, Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    span: Span,
) -> dict[str, Any]:
    """Return the value of each argument of a routine: positional, by keyword, or from bindings.

    Device arrays of other packages are imported once. Raises CdTypeError CD0436 for missing and
    unexpected arguments.
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
    imported = {
        name: as_placed(value, name) for name, value in values.items() if may_be_device_array(value)
    }
    return values | {name: value for name, value in imported.items() if value is not None}


def own_value(value: Any, name: str) -> Any:
    """Return an argument that is only read as it is now: a copy of an array of the host, other
    values as they are."""
    if not is_by_reference(value) or as_placed(value, name) is not None:
        return value
    return np.array(as_array(value, name))


def is_by_reference(value: Any) -> bool:
    """Whether an argument may have another value later: it is no number of Python or NumPy."""
    return not isinstance(value, bool | int | float | complex | np.generic)


def convert_argument(
    name: str, value: Any, parameter: Parameter, backend: str
) -> Array | PlacedArray:
    """Return an argument as an array that matches its parameter.

    Read-only arguments are copied, as the caller may change them before the routine runs. Device
    arrays are used in place. Raises CdTypeError CD0702 where the code was compiled for other arrays
    or numbers, and what `require_usable` raises.
    """
    node = parameter.node
    if isinstance(value, PlacedArray):
        return _check_device_array(
            name, require_usable(value, parameter.written, name, backend), parameter
        )
    if not node.shape and not parameter.written:
        return _convert_number(name, value, node.dtype)
    array = as_array(value, name)
    is_convertible = array.shape == node.static_shape and np.can_cast(
        array.dtype, node.dtype.numpy, "equiv"
    )
    if is_convertible and not parameter.written:
        with memory_guard(f"a copy of `{name}`", 2 * array.nbytes):
            array = copy_with_strides(array.astype(node.dtype.numpy), node.strides)
    if why := layout_mismatch(parameter, array):
        raise _mismatch(name, why, "such an array")
    return array


def _check_device_array(name: str, array: PlacedArray, parameter: Parameter) -> PlacedArray:
    """Return a device array after checks: CdTypeError CD0702, CdValueError CD0704."""
    if why := layout_mismatch(parameter, array):
        raise _mismatch(name, why, "such an array")
    if parameter.written:
        require_disjoint_elements(array.overlap_proxy, name)
    return array


def as_device_array(array: PlacedArray) -> DeviceArray:
    """Return a device array as a `DeviceArray`, without a copy."""
    if isinstance(array.given, DeviceArray):
        return array.given
    home: Any = RUNTIME.backend(array.backend)
    backend: UsesDeviceArrays = home
    return backend.device_array(array)


def copy_to_host(array: Array | PlacedArray) -> Array:
    """Return a copy on the host; waits for the work queued on a device array."""
    return (
        as_device_array(array).numpy() if isinstance(array, PlacedArray) else array.copy(order="K")
    )


def _convert_number(name: str, value: Any, dtype: DType) -> Array:
    """Return a number converted exactly to the type that the code was compiled for.

    Integers may become floats, and floats wider ones; nothing is rounded, truncated or wrapped.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return _convert_integer(name, value, dtype)
    array = as_array(value, name)
    if array.shape:
        raise _mismatch(name, f"has shape {array.shape}, compiled for a number", "such an array")
    kind = dtypes.from_numpy(array.dtype)
    if kind is None:
        why = f"is a {type(value).__name__}, compiled for {dtype.name}"
        raise CdTypeError(Diagnostic("CD0702", f"`{name}` {why}", helps=("give a number",)))
    if kind is dtype:
        return np.array(array, dtype.numpy)
    if kind.kind in "iu":
        return _convert_integer(name, int(array), dtype)
    if kind.kind == "b" or not np.can_cast(kind.numpy, dtype.numpy, "safe"):
        raise _mismatch(name, f"is of type {kind.name}, compiled for {dtype.name}", "such a number")
    return np.array(array, dtype.numpy)


def _convert_integer(name: str, number: int, dtype: DType) -> Array:
    """Return an integer as an array; raises CdTypeError CD0702 where the type cannot hold it."""
    if dtype.kind == "b":
        raise _mismatch(name, f"is {number}, compiled for {dtype.name}", "such a number")
    try:
        with np.errstate(over="ignore"):  # infinities are refused
            array = np.array(number, dtype.numpy)
        if np.isfinite(array) and int(array.real) == number:
            return array
    except OverflowError:
        pass
    text = number if abs(number) < 2**128 else "a number of many digits"
    raise _mismatch(name, f"is {text}, which {dtype.name} cannot hold", "such a number")


def _mismatch(name: str, why: str, alternative: str) -> CdTypeError:
    fix = f"compile the function for {alternative} as well: `f.compile(...)`"
    return CdTypeError(Diagnostic("CD0702", f"`{name}` {why}", helps=(fix,)))


def require_disjoint(arrays: Sequence[Any], routine: str) -> None:
    """Raise CdValueError CD0708 where array arguments of one call share memory."""
    if overlaps([overlap_proxy_of(array) for array in arrays]):
        raise CdValueError(
            Diagnostic(
                "CD0708",
                f"arrays given to the routine `{routine}` share memory, and one is written",
                helps=("give it copies of what it only reads",),
            )
        )
