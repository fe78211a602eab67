"""Instructions of devices, as statements of IR 2: vectors at once, products of tiles.

Only mappings to devices make them. They do not name all elements that they access: to analyses
these are whole arrays.
"""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from ...base.dataclass import dataclass
from ...base.diagnostic import NOWHERE, Span
from .assignments import Access
from .expressions import Expr, Read
from .indexing import Affine, Range
from .memo import Memoized
from .node import Node

VECTOR_BYTES = 16
"""Bytes of a vector that is copied by one instruction."""

MatrixUnit = Literal["warp", "warpgroup"]
"""What multiplies tiles: the threads of a warp, or those of four warps, whose sums are there only
after an `AwaitProducts`."""


@dataclass(frozen=True, slots=True)
class CopyVector(Memoized):
    """The `count` elements from `target` on become those from `source` on, by one instruction that
    may complete later: see `Barrier`."""

    target: Access
    source: Read
    count: int
    axes: tuple[int, int]
    """The axes along which both are contiguous in memory, from the last one: that is -1."""
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class StoreVector(Memoized):
    """The elements from `access` on become the values, by one instruction. No value reads an
    element that another one goes into."""

    access: Access
    axis: int
    """The axis along which they are contiguous in memory, from the last one: that is -1."""
    values: tuple[Expr, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class MatMul(Memoized):
    """`accumulator += first * second` at all points of `over`, the rows, columns and terms that a
    thread has of the product of two tiles, which the threads of a unit compute together. The order
    of the sums of an element, and their rounding, is the device's."""

    accumulator: Access
    first: Expr
    """A read of a tile, by row and term, maybe converted to the accumulator's type."""
    second: Expr
    """The same, by term and column."""
    over: tuple[Range, Range, Range]
    unit: MatrixUnit


@dataclass(frozen=True, slots=True)
class AwaitProducts(Memoized):
    """Wait for the products that warpgroups add to the node, their accumulators: its elements are
    there only then. It counts as a read and a write of all of them."""

    node: Node


def vector_element(access: Access, axis: int, at: int) -> Access:
    """Return the access of an element of a vector, given that of the first one and the axis."""
    index = [*access.index]
    subscript = index[axis]
    assert isinstance(subscript, Affine)
    index[axis] = subscript + at
    return Access(access.node, tuple(index))


Instruction = CopyVector | StoreVector | MatMul | AwaitProducts
