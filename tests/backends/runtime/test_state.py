"""The runtime: one instance of each backend, what it counts, and what it says of a missing one."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import pytest

from plusequals.backends.runtime.state import Runtime
from plusequals.backends.runtime.timeline import Timeline
from plusequals.base import settings
from plusequals.base.diagnostic import CdBackendError, CdInternalError, Diagnostic

from .. import procedures


@pytest.fixture
def runtime() -> Runtime:
    return Runtime()


def test_settings_choose_the_backend(runtime: Runtime) -> None:
    with settings.override("numpy"):
        assert runtime.compile(procedures.scale()).origin == "interpreted"
    assert runtime.counts() == {"interpreted": 1}


def test_a_backend_that_cannot_run_says_why_and_is_tried_again(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    with settings.override(compiler="/no/such/cc"):
        with pytest.raises(CdBackendError, match="was not found") as caught:
            runtime.backend("cc")
    assert caught.value.code == "CD0811" and "plusequals[zig]" in str(caught.value)
    with pytest.raises(CdBackendError, match='did you mean "numpy"?'):
        runtime.backend("nunpy")


@pytest.mark.parametrize(
    ("problem", "found", "text"),
    [
        (
            KeyError("lane"),
            CdInternalError,
            r"error\[CD0904\]: plusequals failed while compiling `scale`: KeyError: 'lane' "
            r"\(\w+\.py, line \d+\)",
        ),
        (MemoryError("no room"), MemoryError, "no room"),
        (CdBackendError(Diagnostic("CD0811", "none")), CdBackendError, "CD0811"),
    ],
)
def test_what_a_backend_raises_unexpectedly_is_told_as_such(
    runtime: Runtime,
    monkeypatch: pytest.MonkeyPatch,
    problem: Exception,
    found: type[Exception],
    text: str,
) -> None:
    monkeypatch.setattr(runtime.backend("numpy"), "compile", Mock(side_effect=problem))
    with pytest.raises(found, match=text):
        runtime.compile(procedures.scale(), "numpy")


def test_what_a_signal_handler_of_the_user_raises_is_raised(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a function compiles: it is no fault of the backend."""
    late = TimeoutError("too late")

    def handler(*given: object) -> None:
        raise late

    monkeypatch.setattr(runtime.backend("numpy"), "compile", handler)
    with pytest.raises(TimeoutError) as caught:
        runtime.compile(procedures.scale(), "numpy")
    assert caught.value is late


def test_threads_get_one_backend_and_all_is_counted(runtime: Runtime) -> None:
    barrier = threading.Barrier(8)

    def work(number: int) -> int:
        barrier.wait()
        runtime.compile(procedures.scale(float(number)), "numpy")
        return id(runtime.backend("numpy"))

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(work, range(8)))) == 1
    assert runtime.counts() == {"interpreted": 8}


def test_what_sees_every_call_is_listed_while_it_does() -> None:
    runtime, timeline, recorder = Runtime(), Timeline(), Mock()
    watching = runtime.watching
    assert watching == []
    runtime.note(timeline)
    runtime.record(recorder)
    assert runtime.watching is watching and watching == [recorder, timeline]
    runtime.note(None)
    assert watching == [recorder] and runtime.timeline is None
    runtime.stop_recording(recorder)
    assert watching == []
