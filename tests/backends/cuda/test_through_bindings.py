"""`cuda.bindings` as a driver: what is called, on which context, and what errors become."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from plusequals.backends.cuda.through_bindings import BindingsContext
from plusequals.backends.cuda.verbs import DriverError, OutOfMemory

Result = SimpleNamespace(CUDA_SUCCESS=0, CUDA_ERROR_OUT_OF_MEMORY=2, CUDA_ERROR_NOT_READY=600)


class Api:
    """Answers every call of the driver, and keeps it."""

    CUresult = Result
    CUstream_flags = SimpleNamespace(CU_STREAM_NON_BLOCKING=SimpleNamespace(value=1))
    CUevent_flags = SimpleNamespace(CU_EVENT_DISABLE_TIMING=SimpleNamespace(value=2))

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.calls: list[tuple[Any, ...]] = []

    def __getattr__(self, verb: str) -> Any:
        def call(*given: Any) -> tuple[Any, ...]:
            self.calls.append((verb, *given))
            return self.answers.get(verb, (0, 7))

        return call

    def cuGetErrorString(self, status: int) -> tuple[int, bytes]:
        return 0, f"words of {status}".encode()


def test_every_verb_sets_the_context_first() -> None:
    api = Api()
    context = BindingsContext(api, "context")
    assert context.allocate(100) == 7
    context.clear(7, 100, "stream")
    context.copy(1, 2, 3, "stream")
    context.wait("stream", "event")
    others = [call for call in api.calls if call[0] != "cuCtxSetCurrent"]
    assert api.calls[::2] == [("cuCtxSetCurrent", "context")] * len(others)
    assert others == [
        ("cuMemAlloc", 100),
        ("cuMemsetD8Async", 7, 0, 100, "stream"),
        ("cuMemcpyDtoDAsync", 1, 2, 3, "stream"),
        ("cuStreamWaitEvent", "stream", "event", 0),
    ]


def test_copies_give_addresses_and_sizes() -> None:
    api = Api()
    array = np.arange(6.0)
    BindingsContext(api, None).upload(9, array, "stream")
    assert api.calls[-1] == ("cuMemcpyHtoDAsync", 9, array.ctypes.data, 48, "stream")


def test_arguments_are_64_bits_each() -> None:
    api = Api()
    BindingsContext(api, None).launch("f", (1, 2, 3), (4, 5, 6), [8, -1], "stream")
    verb, function, *shape, shared, stream, packed, extra = api.calls[-1]
    assert (verb, function, shape) == ("cuLaunchKernel", "f", [1, 2, 3, 4, 5, 6])
    assert (shared, stream, extra) == (0, "stream", 0)
    assert packed[0] == (8, -1)
    assert [kind(-1).value for kind in packed[1]] == [-1, -1]


def test_what_the_driver_says_is_the_error() -> None:
    with pytest.raises(OutOfMemory, match="cuMemAlloc: words of 2"):
        BindingsContext(Api(cuMemAlloc=(2,)), None).allocate(5)
    with pytest.raises(DriverError, match="cuEventSynchronize: words of 700"):
        BindingsContext(Api(cuEventSynchronize=(700,)), None).synchronize("event")


def test_an_event_is_reached_or_not() -> None:
    assert BindingsContext(Api(cuEventQuery=(0,)), None).query("event") is True
    assert BindingsContext(Api(cuEventQuery=(600,)), None).query("event") is False
    with pytest.raises(DriverError):
        BindingsContext(Api(cuEventQuery=(700,)), None).query("event")
