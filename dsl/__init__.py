"""The front door: source to assignments, the callable, and what people read of it."""

from ..backends.registry import backends
from ..backends.runtime.tensor import Tensor, tensor
from .cd import CdFunction, cd, cd_from_source
from .words import clamp, comment, pad, wrap

__all__ = [
    "CdFunction", "Tensor", "backends", "cd", "cd_from_source", "clamp", "comment", "pad", "tensor",
    "wrap",
]  # fmt: skip
