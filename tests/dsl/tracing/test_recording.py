"""Buffers of a run: large enough, refused where there is no memory, and let go of afterwards."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest

import plusequals as pe
from plusequals.dsl.tracing import recording


def fill(x: np.ndarray) -> pe.Trace:
    f = pe.cd_from_source("def f(x):\n    for t in range(50):\n        x[i] += t\n")
    with pe.trace() as trace:
        f(x)
    return trace


def test_what_has_no_room_is_counted() -> None:
    with mock.patch.object(recording, "_ROOM", (1 << 13, 100, 1 << 13)):
        trace = fill(np.zeros(10))
    assert (len(trace), trace.dropped) == (50, 450)
    assert "450 records were dropped" in str(trace)
    with mock.patch.object(recording, "_ROOM", (7, 1 << 13, 1 << 13)):
        trace = fill(np.zeros(10))
    assert (len(trace), trace.dropped) == (70, 430)


def test_less_is_asked_for_where_there_is_less() -> None:
    zeros, refused = np.zeros, []

    def scarce(shape: object, *rest: object) -> np.ndarray:
        if int(np.prod(shape)) > 1 << 20:
            refused.append(shape)
            raise MemoryError
        return zeros(shape, *rest)

    with mock.patch.object(recording.np, "zeros", scarce):
        trace = fill(zeros(10))
    assert refused and len(trace) == 500 and trace.dropped == 0
    with mock.patch.object(recording.np, "zeros", mock.Mock(side_effect=MemoryError)):
        with pytest.raises(MemoryError):
            recording._buffers(trace.runs[0].layout, 1)


def test_arguments_are_kept_as_they_were() -> None:
    x = np.zeros(3)
    (run,) = fill(x).runs
    assert x.tolist() == [1225.0] * 3
    assert [array.tolist() for array in run.given.values()] == [[0.0] * 3]
    with mock.patch.object(recording, "_KEPT", 8):
        assert fill(x).runs[0].given == {}
