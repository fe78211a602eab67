"""The arrays that only a plan sees, its tensors and merge buffers, and temporaries of its steps, in
memory that they share.

Code that takes an arena for its temporaries is lent a place there while it runs; what else it needs
it allocates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field as item
from dataclasses import replace
from typing import Any

import numpy as np

from ....base.dataclass import dataclass
from ....base.diagnostic import CdValueError, Diagnostic
from ...device_arrays.copies import view_at
from ..memory import Buffer, memory_guard
from ..routine import Routine
from .arena import (
    ALIGNMENT,
    Arena,
    Lifetime,
    Overlaps,
    arena_of,
    can_share_temporaries,
    lifetimes,
    uninitialized,
)
from .graph import Resource
from .steps import Body, Lent, Maker, Scratch


@dataclass(frozen=True, slots=True)
class PrivateMemory:
    """The memory of the arrays that only a plan sees, and of temporaries."""

    arenas: tuple[Buffer, ...] = ()
    """The memory, one array of bytes for each place: the host, a stream of a device."""
    places: tuple[Mapping[Resource, range], ...] = ()
    """The bytes of each array in it."""
    size: int = 0
    """Its bytes."""
    unshared: int = 0
    """The bytes that they would take one by one."""
    lent: Mapping[Scratch, Lent] = item(default_factory=dict)
    """The memory of the temporaries of steps."""

    @property
    def without_temporaries(self) -> PrivateMemory:
        """The same for steps that allocate their temporaries."""
        places = tuple(
            {each: at for each, at in spans.items() if not isinstance(each, Scratch)}
            for spans in self.places
        )
        return replace(self, places=places, lent={})


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
    """Move arrays into memory that they share with temporaries, by their lifetimes; return it.

    Routines take over the moved arrays. Raises CdValueError CD0876 for what is read too early,
    CdMemoryError CD0705.
    """
    require_written(name, body, private)
    lives = lifetimes(body, private)
    arenas, spans = list[Buffer](), list[Mapping[Resource, range]]()
    regions = _regions(body, private, lives)
    for region in regions:
        arena = arena_of(region.sizes, lives)
        spans.append(
            {each: range(at, at + region.sizes[each]) for each, at in arena.offsets.items()}
        )
        arenas.append(_moved(name, arena, region))
    for routine in routines:
        routine.rebind()
    return PrivateMemory(
        tuple(arenas),
        tuple(spans),
        sum(arena.array.nbytes for arena in arenas),
        sum(sum(region.sizes.values()) for region in regions),
        _lent(body, arenas, spans),
    )


@dataclass(frozen=True, slots=True)
class _Region:
    """What shares one piece of memory: of the host, or of a stream of a device."""

    account: Any
    make: Maker
    sizes: dict[Resource, int]


def _regions(
    body: Body, private: Mapping[Buffer, Maker], lives: Mapping[Resource, Lifetime]
) -> list[_Region]:
    """Return the arrays by the memory that they are in, temporaries with those of the host."""
    regions: dict[tuple[int, int], _Region] = {}
    host = id(None)
    for buffer, make in private.items():
        if buffer in lives:
            lane = getattr(buffer.array, "home", (None, None))[1]
            key = id(buffer.account), id(lane)
            region = regions.setdefault(key, _Region(buffer.account, make, {}))
            region.sizes[buffer] = buffer.array.nbytes
    are_lent = can_share_temporaries(lives)
    for step in body.steps:
        if step.scratch is not None and are_lent:
            key = id(step.stream.account), host
            if key not in regions:
                key = next((each for each in regions if each[1] == host), key)
            region = regions.setdefault(key, _Region(step.stream.account, step.stream.like, {}))
            region.sizes[step.scratch] = step.scratch.size
    return list(regions.values())


def _lent(
    body: Body, arenas: Sequence[Buffer], spans: Sequence[Mapping[Resource, range]]
) -> dict[Scratch, Lent]:
    """Return the memory of temporaries: one for all calls of a routine that have the same place."""
    found: dict[Resource, tuple[int, int]] = {
        each: (number, bytes_.start)
        for number, places in enumerate(spans)
        for each, bytes_ in places.items() if isinstance(each, Scratch)
    }  # fmt: skip
    made: dict[tuple[Routine, int, int], Lent] = {}
    lent: dict[Scratch, Lent] = {}
    for step in body.steps:
        scratch = step.scratch
        if scratch is not None and scratch in found:
            number, start = found[scratch]
            key = step.routine, number, start
            if key not in made:
                memory = arenas[number].array[start : start + scratch.size]
                made[key] = Lent(memory, step.routine)
            lent[scratch] = made[key]
    return lent


def _moved(name: str, arena: Arena, region: _Region) -> Buffer:
    """Return new memory, after moving arrays there."""
    what = f"the arena of `{name}`"
    with memory_guard(what, arena.size):
        memory: Any = region.make(what, np.empty(arena.size + ALIGNMENT, np.uint8))
    if isinstance(memory, np.ndarray):
        memory = memory[-memory.ctypes.data % ALIGNMENT :]
    memory = view_at(memory, np.empty(arena.size, np.uint8))
    for each, offset in arena.offsets.items():
        if isinstance(each, Buffer):
            moved: Any = view_at(memory, each.array, offset)
            each.move(moved)
    return Buffer(what, memory, region.account)
