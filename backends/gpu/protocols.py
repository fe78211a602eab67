"""Whether a value may be an array on a device: asked of every argument, so it imports nothing."""

from __future__ import annotations


def may_be_there(value: object) -> bool:
    """Whether a value's type shares arrays, and is none of NumPy's, which are the host's.

    Its type is asked: of an object's own attributes anything may be made when they are read.
    """
    kind = type(value)
    if getattr(kind, "__module__", None) == "numpy":
        return False
    return hasattr(kind, "__cuda_array_interface__") or hasattr(kind, "__dlpack_device__")
