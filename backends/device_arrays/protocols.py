"""Detection of device arrays by protocol; used for every argument, so it imports nothing."""

from __future__ import annotations


def may_be_device_array(value: object) -> bool:
    """Whether a value's type exports arrays by a protocol, and is not one of NumPy, nor one of ours
    that exports host memory.

    The type is inspected, as reading attributes of an object may have side effects.
    """
    kind = type(value)
    if getattr(kind, "__module__", None) == "numpy" or hasattr(kind, "_exports_host_memory"):
        return False
    return hasattr(kind, "__cuda_array_interface__") or hasattr(kind, "__dlpack_device__")
