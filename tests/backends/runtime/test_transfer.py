"""Copies between arrays and the merge buffer of a queue."""

from __future__ import annotations

import gc
import weakref
from functools import partial

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.runtime import hazards
from plusequals.backends.runtime.memory import Buffer, HostMemory, MemoryAccount
from plusequals.backends.runtime.transfer import (
    MergeQueue,
    decide,
    merge_copy,
    merge_in_place,
    queue_copy,
)


def made(size: int) -> tuple[MergeQueue, pe.Field, Buffer]:
    field = pe.tensor("p", size, dtype="float64", init=1.0).field()
    queue = MergeQueue("q", False, HostMemory("cc:1", True), MemoryAccount())
    return queue, field, Buffer("p", np.arange(float(size)), queue.account, tick=3)


def test_a_load_brings_elements_and_their_version() -> None:
    queue, field, source = made(3)
    decide(lambda: queue_copy(queue, source, field.host), queue)
    decide(lambda: queue_copy(queue, field.host, field.host), queue)
    assert field.host.array.tolist() == [0, 1, 2] and field.host.tick == 3


def test_the_merge_buffer_grows_and_is_used_again() -> None:
    queue, small, few = made(2)
    large, many = pe.tensor("q", (2, 3), dtype="int16").field(), None
    decide(lambda: merge_copy(queue, small, few, once=False), queue)
    room = queue.merge_storage
    assert queue.merge and queue.merge.array.tolist() == [0, 1]
    many = Buffer("q", np.ones((2, 3), "int16"), None)
    decide(lambda: merge_copy(queue, large, many, once=False), queue)
    assert queue.merge_storage is room and queue.merge.array.shape == (2, 3)
    empty = pe.tensor("e", (0, 4)).field()
    decide(lambda: merge_copy(queue, empty, empty.host, once=False), queue)
    assert queue.merge.array.shape == (0, 4)
    wide = pe.tensor("w", 100, dtype="float64").field()
    decide(lambda: merge_copy(queue, wide, wide.host, once=False), queue)
    assert queue.merge_storage is not room and queue.account.used == 16 + 16 + 800


def test_what_was_read_in_place_holds_nobody_and_does_not_pile_up() -> None:
    queue, field, source = made(3)
    for _ in range(50):
        decide(lambda: merge_in_place(queue, field, source), queue)
    assert len(source.lent) == 1
    gone = weakref.ref(field), weakref.ref(queue)
    del field, queue
    gc.collect()
    assert [one() for one in gone] == [None, None]
    hazards.detach_readers((source,))
    assert not source.lent


def test_trap_a_copy_after_streaming_never_touches_the_source() -> None:
    queue, field, source = made(3)
    decide(lambda: merge_in_place(queue, field, source), queue)
    assert queue.merge and queue.merge.array is source.array
    for size in (1, 50):  # smaller and larger than what was streamed
        other = pe.tensor("q", size, dtype="float64", init=7.0).field()
        decide(partial(merge_copy, queue, other, other.host, once=False), queue)
    assert source.array.tolist() == [0, 1, 2]


def test_what_was_streamed_is_copied_before_the_source_is_written() -> None:
    queue, field, source = made(3)

    def decision() -> None:
        merge_in_place(queue, field, source)
        queue_copy(queue, field.host, source)

    decide(decision, queue)
    assert queue.merge and queue.merge.array.tolist() == [0, 1, 2]
    assert source.array.tolist() == [1, 1, 1]


def test_a_merge_buffer_is_filled_from_the_host() -> None:
    p = pe.tensor("p", 2, dtype="float64", init=1.0)
    merge = pe.cd_from_source("def merge(p):\n    p += p.merge\n").compile(p)
    routine = merge.link(pe.device("numpy").stream().context())
    p[...] = 5.0
    routine.merge_from_host(p)
    p[...] = 7.0  # the buffer holds what was there before
    routine()
    routine()
    assert p.numpy().tolist() == [17.0, 17.0]
    with pytest.raises(ValueError, match=r"CD0844.*merges `p`, and is given `p\.grad`"):
        routine.merge_from_host(p.grad)
