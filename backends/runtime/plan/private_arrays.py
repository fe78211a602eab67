"""The arrays that only a plan sees: its tensors and merge buffers, in memory that they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ....base.dataclass import dataclass
from ....base.diagnostic import CdValueError, Diagnostic
from ...device_arrays.copies import view_at
from ..memory import Buffer, memory_guard
from ..routine import Routine
from .arena import ALIGNMENT, Arena, Overlaps, arena_of, lifetimes, uninitialized
from .graph import Resource
from .steps import Body, Maker


@dataclass(frozen=True, slots=True)
class PrivateMemory:
    """The memory of the arrays that only a plan sees."""

    arenas: tuple[Buffer, ...] = ()
    """The memory, one array of bytes for each place: the host, a stream of a device."""
    places: tuple[Mapping[Resource, range], ...] = ()
    """The bytes of each array in it."""
    size: int = 0
    """Its bytes."""
    unshared: int = 0
    """The bytes that the arrays would take one by one."""


def require_written(name: str, body: Body, private: Mapping[Buffer, Maker]) -> None:
    """Raise CdValueError CD0876 where a plan may read an array of its own that it has not written
    before: between runs it holds nothing."""
    for resource, node in uninitialized(body, private):
        raise CdValueError(
            Diagnostic(
                "CD0876", f"`{node.name}` may read `{resource.label}`, which `{name}` has not "
                "written in whole before",
                notes=(f"it was recorded at {node.line}",
                       "what only a plan sees holds nothing between its runs"),
                helps=("write all of it first, or make it with `pe.tensor`",),
            )
        )  # fmt: skip


def is_in_order(body: Body, private: Mapping[Buffer, Maker], memory: PrivateMemory) -> bool:
    """Whether arrays that share memory are not needed at once by a body, a part of their plan."""
    lives, overlaps = lifetimes(body, private), Overlaps()
    for places in memory.places:
        used = [(bytes_, lives[each]) for each, bytes_ in places.items() if each in lives]
        used.sort(key=lambda pair: pair[0].start)
        for at, (bytes_, life) in enumerate(used):
            for others, other in used[at + 1 :]:
                if others.start >= bytes_.stop:
                    break
                if overlaps(life, other):
                    return False
    return True


def share_memory(
    name: str, body: Body, private: Mapping[Buffer, Maker], routines: Sequence[Routine]
) -> PrivateMemory:
    """Move arrays into memory that they share, by their lifetimes; return that memory.

    Routines take over the moved arrays. Raises CdValueError CD0876 for what is read too early,
    CdMemoryError CD0705.
    """
    require_written(name, body, private)
    lives = lifetimes(body, private)
    places: dict[tuple[int, int], dict[Resource, int]] = {}
    for buffer in private:
        if buffer in lives:
            lane = getattr(buffer.array, "home", (None, None))[1]
            place = places.setdefault((id(buffer.account), id(lane)), {})
            place[buffer] = buffer.array.nbytes
    arenas, spans = [], []
    for sizes in places.values():
        arena = arena_of(sizes, lives)
        spans.append({each: range(at, at + sizes[each]) for each, at in arena.offsets.items()})
        some = next(buffer for buffer in private if buffer in sizes)
        arenas.append(_moved(name, arena, some.account, private[some]))
    for routine in routines:
        routine.rebind()
    return PrivateMemory(
        tuple(arenas),
        tuple(spans),
        sum(arena.array.nbytes for arena in arenas),
        sum(sum(sizes.values()) for sizes in places.values()),
    )


def _moved(name: str, arena: Arena, account: Any, make: Maker) -> Buffer:
    """Return new memory, after moving arrays there."""
    what = f"the arena of `{name}`"
    with memory_guard(what, arena.size):
        memory: Any = make(what, np.empty(arena.size + ALIGNMENT, np.uint8))
    if isinstance(memory, np.ndarray):
        memory = memory[-memory.ctypes.data % ALIGNMENT :]
    memory = view_at(memory, np.empty(arena.size, np.uint8))
    for buffer, offset in arena.offsets.items():
        assert isinstance(buffer, Buffer), "what is private is an array"
        moved: Any = view_at(memory, buffer.array, offset)
        buffer.move(moved)
    return Buffer(what, memory, account)
