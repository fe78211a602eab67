"""The tensor node: an array that figures in computations, and what the user asked of its memory.

A node may end with no array at all (inlined), or with a different array in each context. It says
only what is true of it everywhere; where it lives is the routine's `Placement`.
"""

from __future__ import annotations

import math
from dataclasses import field
from typing import Literal

from ...base.dataclass import dataclass
from .dtypes import DType
from .indexing import Affine, const, multiply
from .memory_mode import Decision

Purpose = Literal["", "lanes", "tile", "panel", "kept", "stage", "marks"]
"""Small arrays that nothing but one nest uses, which writes each element before it reads it; or
marks, that rounds set and do not look at."""


@dataclass(frozen=True, slots=True)
class Node:
    """Identity, label, shape and element type of an array.

    `shape` may use run-time symbols; then the node gets its storage where an `Alloc` stands.
    `strides` is in elements, None for C order; only parameters have anything else.
    """

    id: int
    label: str
    shape: tuple[Affine, ...]
    dtype: DType
    strides: tuple[int, ...] | None = field(default=None)
    request: Decision | None = field(default=None, compare=False, repr=False)
    """The memory mode that the user asked for, None where everything is left open."""
    purpose: Purpose = ""
    """What a schedule made it for."""
    placed: bool = False
    """Whether a device has it already, and uses it as `strides` say; else it gets a packed copy."""
    nearest: int | None = None
    """Of a copy in C order, the axis along which neighbours lay in the array that was given: it
    decides the order of sums."""

    def __hash__(self) -> int:
        return self.id

    def __repr__(self) -> str:
        return f"{self.label}#{self.id}"

    @property
    def rank(self) -> int:
        """Number of axes; a scalar has none."""
        return len(self.shape)

    @property
    def static_shape(self) -> tuple[int, ...] | None:
        """The shape as numbers, None where an extent is only known at run time."""
        sizes = [extent.constant for extent in self.shape]
        return None if None in sizes else tuple(size for size in sizes if size is not None)

    @property
    def bytes(self) -> int:
        """How much memory the elements take; a shape that the run decides counts as one."""
        return self.dtype.itemsize * math.prod(self.static_shape or ())

    @property
    def element_strides(self) -> tuple[Affine, ...]:
        """Elements between neighbours along each axis (row-major unless a layout was given)."""
        if self.strides is not None:
            return tuple(const(stride) for stride in self.strides)
        out = [const(1)] if self.shape else []
        for extent in self.shape[:0:-1]:
            out.append(multiply(out[-1], extent))
        return tuple(reversed(out))
