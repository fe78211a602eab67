"""Arrays with given values and a given way to lie in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

WRITABLE = ("C", "C", "C", "F", "sliced", "negative", "offset", "misaligned", "swapped")
READABLE = (*WRITABLE, "zero", "readonly")
_GUARD = 85
"""The byte around an array that nothing may change."""


@dataclass(frozen=True, slots=True)
class Laid:
    """An array and the bytes that hold it, gaps and surroundings included."""

    array: np.ndarray
    room: np.ndarray


def lay(values: np.ndarray, layout: str) -> Laid:
    """Return an array equal to the values (for `zero`: to its first row repeated), laid out so."""
    match layout:
        case "C" | "readonly":
            laid = _in_room(values, range(values.ndim), [1] * values.ndim)
            laid.array.flags.writeable = layout == "C"
            return laid
        case "F":
            return _in_room(values, reversed(range(values.ndim)), [1] * values.ndim)
        case "sliced":
            return _in_room(values, range(values.ndim), [2] * values.ndim)
        case "negative":
            return _in_room(values, range(values.ndim), [-1] * values.ndim)
        case "offset":
            return _in_room(values, range(values.ndim), [1] * values.ndim, before=3)
        case "misaligned":
            return _in_room(values, range(values.ndim), [1] * values.ndim, odd=1)
        case "swapped":
            return _in_room(values.astype(values.dtype.newbyteorder(">")), range(values.ndim),
                            [1] * values.ndim)  # fmt: skip
        case "zero":
            if not values.ndim or not values.size:
                return lay(values, "readonly")
            row = np.array(values[:1])
            return Laid(np.broadcast_to(row, values.shape), row)
    raise ValueError(layout)


def _in_room(
    values: np.ndarray, order: Any, steps: list[int], before: int = 0, odd: int = 0
) -> Laid:
    """Return the values in a room with `before` elements and `odd` bytes before them."""
    size = values.itemsize
    extents = [max(extent, 1) * abs(step) for extent, step in zip(values.shape, steps)]
    strides, reach = [0] * values.ndim, size
    for axis in reversed(list(order)):
        strides[axis] = reach
        reach *= extents[axis]
    room = np.full(reach + (2 * before + 2) * size + odd, _GUARD, np.uint8)
    start = (before + 1) * size + odd
    for axis, step in enumerate(steps):
        if step < 0:
            start += (values.shape[axis] - 1) * strides[axis] if values.shape[axis] else 0
        strides[axis] *= step
    array = np.ndarray(values.shape, values.dtype, room, start, tuple(strides))
    array[...] = values
    return Laid(array, room)
