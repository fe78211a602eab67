"""Tensor nodes: the arrays of a program, with what the user requested of their memory.

A node may end without an array (inlined), or with a different array in each context. It has only
what is true everywhere; where it lives is the routine's `Placement`.
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
"""What a schedule created a small array for, which one nest uses only, and writes before it reads;
or marks, which iterations set and do not read."""


@dataclass(frozen=True, slots=True)
class Node:
    """Identity, label, shape and element type of an array.

    `shape` may use run-time symbols; then an `Alloc` allocates the node. `strides` is in elements,
    None for C order; only parameters have others.
    """

    id: int
    label: str
    shape: tuple[Affine, ...]
    dtype: DType
    strides: tuple[int, ...] | None = field(default=None)
    request: Decision | None = field(default=None, compare=False, repr=False)
    """The memory mode that the user requested, None where there is no request."""
    purpose: Purpose = ""
    """What a schedule created it for."""
    placed: bool = False
    """Whether it is on a device already, with the layout of `strides`; else a packed copy is
    transferred."""
    nearest: int | None = None
    """Of a copy in C order, the contiguous axis of the array that was given: it decides the order
    of sums."""

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
        """The shape as numbers, None where an extent is a run-time value."""
        sizes = [extent.constant for extent in self.shape]
        return None if None in sizes else tuple(size for size in sizes if size is not None)

    @property
    def bytes(self) -> int:
        """The memory of the elements in bytes; a run-time shape counts as one element."""
        return self.dtype.itemsize * math.prod(self.static_shape or ())

    @property
    def element_strides(self) -> tuple[Affine, ...]:
        """Elements between neighbours along each axis (row-major unless strides were given)."""
        if self.strides is not None:
            return tuple(const(stride) for stride in self.strides)
        out = [const(1)] if self.shape else []
        for extent in self.shape[:0:-1]:
            out.append(multiply(out[-1], extent))
        return tuple(reversed(out))
