"""Copies between physical arrays, and the merge buffer of a queue: one, grown on need.

A merge buffer holds a copy in memory of its own, or is another name for the array it came from,
which is read in place and never copied into.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...base.dataclass import dataclass
from ...base.finalizers import when_gone
from ..gpu.residency import copy, first_part
from ..interface import Array
from . import hazards
from .field import Field
from .memory import Account, Buffer, room
from .queue import Queue
from .state import RUNTIME


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Merge:
    """What a merge buffer holds: a version of a field, copied or where it came from."""

    field: Field
    array: Array
    buffer: Buffer
    """Whose memory that is: the merge buffer's, or that of the source."""
    once: bool
    """Whether it is for one call."""


class Merging(Queue):
    """A queue with a merge buffer in a device's memory."""

    def __init__(self, name: str, threaded: bool, memory: Any, account: Account) -> None:
        super().__init__(name, threaded)
        self.memory, self.account = memory, account
        self.lane = memory.lane()
        """The device's own stream, where it has such."""
        self._lane = None if self.lane is None else when_gone(memory.spare, self.lane)
        """Goes when nobody can queue anything any more: another queue may have the stream then."""
        self.merge: Merge | None = None
        """What the merge buffer holds now, for the next routine that merges."""
        self.merge_room: Buffer | None = None
        """Its memory."""

    def empty(self, shape: tuple[int, ...], dtype: Any, what: str) -> Array:
        """Return a new array of any elements on the device; raises MemoryError or CD0880."""
        found: Array = self.memory.empty(shape, dtype, what, self.lane)
        return found

    def like(self, label: str, array: Array) -> Array:
        """Return a new array like another one, of any elements, for the field of a label."""
        return self.empty(array.shape, array.dtype, label)


@contextmanager
def scheduling(*queues: Queue) -> Iterator[None]:
    """Decide what waits for what; afterwards inline queues do what was queued, without the lock."""
    for queue in queues:
        queue.worker.make_room()
    with RUNTIME.scheduling:
        yield
        events = [queue.record() for queue in queues]
    for queue, event in zip(queues, events, strict=True):
        queue.flush(event)


def merge_copy(queue: Merging, field: Field, source: Buffer, once: bool) -> None:
    """Queue a copy into the merge buffer of a queue, grown where it is too small."""
    held, model = queue.merge_room, field.host.array
    if held is None or held.array.nbytes < model.nbytes:
        with room(f"the merge buffer of {queue.name}", model.nbytes):
            memory = queue.empty((model.nbytes,), np.uint8, f"merge buffer of {queue.name}")
        held = queue.merge_room = Buffer("merge buffer", memory, queue.account)
    array: Any = first_part(held.array, model)
    one = source.array
    name = f"merge {field.label}"
    run = RUNTIME.timed(name, "merge", queue.name, lambda: copy(array, one, name))
    hazards.enqueue(queue, run, (source,), (held,))
    queue.merge = Merge(field, array, held, once)


def merge_in_place(queue: Merging, field: Field, source: Buffer) -> None:
    """Let the merge buffer of a queue be the source, until it is read once or is to be written."""
    merge = queue.merge = Merge(field, source.array, source, once=True)
    of, made = weakref.ref(queue), weakref.ref(merge)  # the source may outlive all of these

    def keep() -> None:
        queue, merge = of(), made()
        if queue is not None and merge is not None and queue.merge is merge:
            merge_copy(queue, merge.field, merge.buffer, once=True)

    source.lent[queue.worker] = keep


def load(queue: Queue, source: Buffer, target: Buffer) -> None:
    """Queue a copy of the version in one array to another; nothing where they are one."""
    one, other = source.array, target.array
    if one is not other:
        name = f"copy {source.label}"
        run = RUNTIME.timed(name, "copy", queue.name, lambda: copy(other, one, name))
        hazards.enqueue(queue, run, (source,), (target,))
        target.tick = source.tick
