"""The played driver with captures refuses what drivers refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from plusequals.backends.gpu.driver_protocol import DriverError

from .captures import CapturingContext, CapturingDriver


@pytest.fixture
def on() -> CapturingContext:
    return CapturingDriver().open(0)


def _begun(on: CapturingContext) -> tuple[str, Any, int]:
    stream, event, address = on.stream(), on.event(), on.allocate(8, "stream 0")
    on.begin_capture(stream)
    on.record(event, stream)
    return stream, event, address


@pytest.mark.parametrize(
    ("what", "ask"),
    [
        ("an event is queried", lambda on, s, e, a: on.query(e)),
        ("an event is waited for", lambda on, s, e, a: on.synchronize(e)),
        ("the device is waited for", lambda on, s, e, a: on.finish()),
        ("memory is allocated", lambda on, s, e, a: on.allocate(8, s)),
        ("memory is freed", lambda on, s, e, a: on.free(a, s)),
        ("memory is pinned", lambda on, s, e, a: on.pinned(8)),
        ("the host is copied", lambda on, s, e, a: on.upload(a, np.zeros(8, np.uint8), s)),
        ("the host is copied", lambda on, s, e, a: on.download(np.zeros(8, np.uint8), a, s)),
        ("of another package", lambda on, s, e, a: on.follow(s, 4097)),
    ],
)
def test_what_drivers_refuse_breaks_the_capture(
    on: CapturingContext, what: str, ask: Callable[..., object]
) -> None:
    begun = stream, *_ = _begun(on)
    with pytest.raises(DriverError, match=what):
        ask(on, *begun)
    with pytest.raises(DriverError, match="the capture is invalid"):
        on.end_capture(stream)
    on.begin_capture(stream)
    assert not on.end_capture(stream).nodes, "the stream can be captured again"


def test_a_stream_that_has_not_joined_is_an_error(on: CapturingContext) -> None:
    stream, event, address = _begun(on)
    other = on.stream()
    on.wait(other, event)
    on.clear(address, 8, other)
    with pytest.raises(DriverError, match="has not joined"):
        on.end_capture(stream)
    assert not on.captures


def test_no_dependence_crosses_the_capture(on: CapturingContext) -> None:
    outside = on.event()
    on.record(outside, on.stream())
    stream, event, _ = _begun(on)
    with pytest.raises(DriverError, match="not captured is waited for"):
        on.wait(stream, outside)
    with pytest.raises(DriverError, match="invalid"):
        on.end_capture(stream)
    with pytest.raises(DriverError, match="nothing has been recorded since"):
        on.wait(stream, event)
    with pytest.raises(DriverError, match="no capture began"):
        on.end_capture(stream)


def test_captured_work_runs_when_the_graph_is_launched(on: CapturingContext) -> None:
    stream, _, address = _begun(on)
    on.clear(address, 8, stream)
    graph = on.end_capture(stream)
    assert on._memory(address, 1)[0] != 0
    on.launch_graph(graph, stream)
    assert on._memory(address, 1)[0] != 0, "it is done late"
    on.finish()
    assert on._memory(address, 1)[0] == 0
    on.destroy_graph(graph)
