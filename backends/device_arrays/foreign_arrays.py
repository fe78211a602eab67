"""Foreign arrays: device arrays of other packages as arguments of calls.

found(value)            the device array of another package, if the value is one
usable(array, ...)      a check that a kernel may use it in place
place(value)            its representative in overlap tests
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...base.diagnostic import CdTypeError, CdValueError, Diagnostic
from ...base.lazy_import import LazyModule
from ...lowering.ir import dtypes
from .device_array import CUDA, LEGACY, MANAGED, DeviceArray, PlacedArray, StreamOrder, c_strides
from .protocols import may_be_device_array

if TYPE_CHECKING:
    from . import dlpack
else:
    dlpack = LazyModule(".dlpack", __package__)

IMMUTABLE_PACKAGES = ("jax", "jaxlib")
"""Packages with immutable arrays."""


def as_placed(value: Any, name: str = "the argument") -> PlacedArray | None:
    """Return a value as a device array, None where it is none.

    Raises CdTypeError CD0701 where the package does not share it, or for an unsupported element
    type.
    """
    if isinstance(value, PlacedArray):
        return value
    if isinstance(value, DeviceArray):
        return value.on_device
    if not may_be_device_array(value):
        return None
    try:
        interface = getattr(value, "__cuda_array_interface__", None)
        device = value.__dlpack_device__() if hasattr(value, "__dlpack_device__") else (0, 0)
        if isinstance(interface, dict):
            if missing := [key for key in ("typestr", "shape", "data") if key not in interface]:
                raise KeyError(f"its interface lacks {', '.join(map(repr, missing))}")
            dtype = _dtype(str(interface["typestr"]))
            if dtype is None or "stream" not in interface:  # prefer DLPack
                interface = None if device[0] in (CUDA, MANAGED) else interface
        if isinstance(interface, dict):
            return _by_interface(value, interface, name)
        return _by_dlpack(value) if device[0] in (CUDA, MANAGED) else None
    except CdTypeError:
        raise
    except Exception as why:  # packages raise various errors where they do not share an array
        helps = (f"pass what the package says, or a copy on the host as `{name}`",)
        reason = why.args[0] if isinstance(why, KeyError) and why.args else why
        message = f"`{name}` ({type(value).__name__}) is not shared: {reason}"
        raise CdTypeError(Diagnostic("CD0701", message, helps=helps)) from None


def _by_interface(value: Any, interface: dict[str, Any], name: str) -> PlacedArray:
    dtype = _dtype(str(interface["typestr"]))
    if dtype is None:
        type_name = interface["typestr"]
        helps = (f'convert it: `{name}.astype("float32")`',)
        message = f"`{name}` has elements of type {type_name}, which is none of ours"
        raise CdTypeError(Diagnostic("CD0701", message, helps=helps))
    address, read_only = interface["data"]
    shape, steps = tuple(map(int, interface["shape"])), interface.get("strides")
    order: StreamOrder = "unknown"
    if "stream" in interface:
        order = "done" if interface["stream"] is None else int(interface["stream"])
    strides = None if steps is None else _in_elements(tuple(steps), shape, dtype.itemsize)
    has_whole_strides = strides is None or all(step % dtype.itemsize == 0 for step in steps or ())
    return PlacedArray(
        int(address or 0), shape, dtype, _ordinal(value), strides,
        not read_only and _may_change(value),
        order, value, (value, interface), has_whole_strides,
    )  # fmt: skip


def _by_dlpack(value: Any) -> PlacedArray:
    imported = dlpack.import_array(value, LEGACY)
    dtype, strides = np.dtype(imported.dtype), imported.strides
    if strides is not None:
        strides = _in_elements(strides, imported.shape, 1)
    return PlacedArray(
        imported.address, imported.shape, dtype, imported.device[1], strides,
        imported.writable and _may_change(value), "legacy", value, (value, imported.holder),
    )  # fmt: skip


def _may_change(value: Any) -> bool:
    """Whether the arrays of a value's package are mutable: some export immutable arrays, on whose
    values they rely, as writable."""
    return type(value).__module__.partition(".")[0] not in IMMUTABLE_PACKAGES


def _in_elements(
    steps: tuple[int, ...], shape: tuple[int, ...], size: int
) -> tuple[int, ...] | None:
    """Return strides in elements, None where the array is contiguous in C order."""
    pairs = zip(steps, c_strides(shape), shape, strict=True)
    if 0 in shape or all(step == c * size for step, c, n in pairs if n > 1):
        return None
    return tuple(step // size for step in steps)


def _dtype(typestr: str) -> np.dtype[Any] | None:
    dtype = np.dtype(typestr)
    return None if dtypes.from_numpy(dtype) is None or not dtype.isnative else dtype


def _ordinal(value: Any) -> int | None:
    """Return the ordinal of an array's device, None where its package does not tell."""
    device = value.__dlpack_device__() if hasattr(value, "__dlpack_device__") else None
    return int(device[1]) if device is not None and device[0] == CUDA else None


def overlap_proxy_of(value: Any) -> Any:
    """Return the representative of an array in overlap tests."""
    return value.overlap_proxy if isinstance(value, PlacedArray) else value


def require_usable(array: PlacedArray, written: bool, name: str, backend: str) -> PlacedArray:
    """Return an array that code of a backend can use in place.

    Raises CdTypeError CD0886 where the code runs elsewhere, CdValueError CD0887 where it is
    misaligned, and CD0703 where it is read-only and written.
    """
    base, _, number = backend.partition(":")
    if base != array.backend:
        message = f"`{name}` lies in the memory of a GPU, and the function runs on `{backend}`"
        there = f'run it there: `f.on("{array.backend}:0")(...)`'
        helps = (there, "or copy it to the host first")
        raise CdTypeError(Diagnostic("CD0886", message, helps=helps))
    ordinal = int(number or 0)
    if array.ordinal not in (None, ordinal):
        home = f"{base}:{array.ordinal}"
        message = f"`{name}` lies on {home}, and the function runs on {base}:{ordinal}"
        helps = (f'run it there: `f.on("{home}")(...)`', "or copy the array")
        raise CdTypeError(Diagnostic("CD0886", message, helps=helps))
    if not array.whole or array.address % array.dtype.alignment:
        problem = "is not aligned" if array.whole else "steps over parts of elements"
        message = f"`{name}` {problem}: arrays of a device are used in place"
        contiguous = "`cupy.ascontiguousarray(x)`, `x.contiguous()` in PyTorch"
        raise CdValueError(Diagnostic("CD0887", message, helps=(f"pass a copy: {contiguous}",)))
    if written and not array.writable:
        message = f"`{name}` is read-only, and the function writes it"
        raise CdValueError(
            Diagnostic(
                "CD0703", message, helps=(f"copy it before the call: `{name} = {name}.copy()`",)
            )
        )
    return array
