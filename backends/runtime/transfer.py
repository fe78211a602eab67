"""Transfers between physical arrays, and the merge buffer of a queue, which grows on demand.

A merge buffer holds a copy in its own memory, or aliases the source array, which is then read in
place and never written.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ...base.dataclass import dataclass
from ...base.finalizers import call_when_unreachable
from ..device_arrays.copies import copy, view_at
from ..interface import Array
from . import hazards
from .field import Field
from .memory import Buffer, MemoryAccount, memory_guard
from .queue import Queue
from .state import RUNTIME

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, weakref_slot=True)
class MergeContent:
    """The content of a merge buffer: a version of a field, copied or in place."""

    field: Field
    array: Array
    buffer: Buffer
    """The buffer that holds it: the merge buffer's, or the source."""
    once: bool
    """Whether it is valid for one call only."""


class MergeQueue(Queue):
    """A queue with a merge buffer in a device's memory."""

    def __init__(self, name: str, threaded: bool, memory: Any, account: MemoryAccount) -> None:
        super().__init__(name, threaded)
        self.memory, self.account = memory, account
        self.lane = memory.lane()
        """The stream of the device, if it has any."""
        self._lane_finalizer = (
            None if self.lane is None else call_when_unreachable(memory.spare, self.lane)
        )
        """The finalizer that returns the stream for reuse when the queue is collected."""
        self.merge: MergeContent | None = None
        """The content of the merge buffer, for the next routine that merges."""
        self.merge_storage: Buffer | None = None
        """Its memory."""

    def empty(self, shape: tuple[int, ...], dtype: Any, what: str) -> Array:
        """Return a new uninitialized array on the device; raises MemoryError or CD0880."""
        array: Array = self.memory.empty(shape, dtype, what, self.lane)
        return array

    def like(self, label: str, array: Array) -> Array:
        """Return a new uninitialized array like another one, for the field of a label."""
        return self.empty(array.shape, array.dtype, label)


def decide(decision: Callable[[], _T], *queues: Queue) -> _T:
    """Return what a scheduling decision returns, which is made under the scheduling lock.

    Afterwards inline queues among those given run what it queued.
    """
    for queue in queues:
        queue.worker.wait_for_slot()
    with RUNTIME.scheduling.lock:
        RUNTIME.scheduling.decisions += 1
        made = decision()
        events = [queue.record() for queue in queues]
    for queue, event in zip(queues, events, strict=True):
        queue.flush(event)
    return made


def merge_copy(queue: MergeQueue, field: Field, source: Buffer, once: bool) -> None:
    """Queue a copy into the merge buffer of a queue, which is enlarged where it is too small."""
    buffer, model = queue.merge_storage, field.host.array
    if buffer is None or buffer.array.nbytes < model.nbytes:
        with memory_guard(f"the merge buffer of {queue.name}", model.nbytes):
            memory = queue.empty((model.nbytes,), np.uint8, f"merge buffer of {queue.name}")
        buffer = queue.merge_storage = Buffer("merge buffer", memory, queue.account)
    array: Any = view_at(buffer.array, model)
    source_array = source.array
    name = f"merge {field.label}"
    run = RUNTIME.timed(name, "merge", queue.name, lambda: copy(array, source_array, name))
    hazards.enqueue(queue, run, (source,), (buffer,))
    queue.merge = MergeContent(field, array, buffer, once)


def merge_in_place(queue: MergeQueue, field: Field, source: Buffer) -> None:
    """Alias the merge buffer of a queue to the source, for one read or until a write of it."""
    merge = queue.merge = MergeContent(field, source.array, source, once=True)
    queue_ref, merge_ref = weakref.ref(queue), weakref.ref(merge)  # the source may outlive both

    def take_copy() -> None:
        queue, merge = queue_ref(), merge_ref()
        if queue is not None and merge is not None and queue.merge is merge:
            merge_copy(queue, merge.field, merge.buffer, once=True)

    source.lent[queue.worker] = take_copy


def queue_copy(queue: Queue, source: Buffer, target: Buffer) -> None:
    """Queue a copy of a version between arrays; no-op where they are the same."""
    source_array, target_array = source.array, target.array
    if source_array is not target_array:
        name = f"copy {source.label}"
        run = RUNTIME.timed(
            name, "copy", queue.name, lambda: copy(target_array, source_array, name)
        )
        hazards.enqueue(queue, run, (source,), (target,))
        target.tick = source.tick
