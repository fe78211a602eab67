"""Copies between memories of every kind, and views of a part of one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from plusequals.backends.cuda.backend import CompiledCuda
from plusequals.backends.device_arrays.copies import copy, snapshot, view_at

from ..cuda.late import LateDriver
from ..cuda.on_cpu import backend, installed, needs_gxx

pytestmark = needs_gxx


@pytest.fixture
def made() -> Iterator[CompiledCuda]:
    with installed(backend(LateDriver())) as made:
        yield made


def test_copies_of_every_kind(made: CompiledCuda) -> None:
    memories = [made.memory(k) for k in (0, 1)]
    lanes = [memory.lane() for memory in memories]
    for n in (0, 1, 30_000):
        data = np.arange(float(n))
        places = [np.zeros((n, 2))[:, 1]]
        for memory, lane in zip(memories, lanes, strict=True):
            places += [memory.empty((n,), data.dtype, "x", lane) for _ in (0, 1)]
        for one in places:
            copy(one, data)
            for other in places:
                copy(other, one)
                assert np.array_equal(snapshot(other), data)


def test_a_part_of_memory(made: CompiledCuda) -> None:
    memory = made.memory(0)
    lane = memory.lane()
    room = memory.empty((100,), np.uint8, "room", lane)
    part = view_at(room, np.zeros((2, 3), np.float32))
    assert part.shape == (2, 3) and part.dtype == np.float32
    copy(part, np.ones((2, 3), np.float32))
    assert np.array_equal(snapshot(part), np.ones((2, 3)))
