"""`cuda.bindings` as a driver: what is called, on which context, and what errors become."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from plusequals.backends.cuda.driver_bindings import BindingsContext
from plusequals.backends.gpu.driver_protocol import DriverError, NotSupported, OutOfMemory

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
    assert context.allocate(100, "stream") == 7
    context.clear(7, 100, "stream")
    context.clear(7, 0, "stream")
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


def test_with_several_devices_the_context_of_the_caller_stays_current() -> None:
    api = Api(cuEventRecord=(700,))
    context = BindingsContext(api, "context", has_others=True)
    context.copy(1, 2, 3, "stream")
    context.prepared("f", (1, 1, 1), (1, 1, 1), [4], "stream")()
    assert context.query("event")
    with pytest.raises(DriverError):
        context.record("event", "stream")
    verbs = [call[0] for call in api.calls]
    assert verbs[1::3] == ["cuMemcpyDtoDAsync", "cuLaunchKernel", "cuEventQuery", "cuEventRecord"]
    assert api.calls[::3] == [("cuCtxPushCurrent", "context")] * 4
    assert api.calls[2::3] == [("cuCtxPopCurrent",)] * 4


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


def test_what_is_prepared_is_given_again_each_time() -> None:
    api = Api()
    start = BindingsContext(api, "context").prepared("f", (1, 2, 3), (4, 5, 6), [8, -1], "stream")
    assert not api.calls
    for _ in range(2):
        start()
        assert api.calls[-2] == ("cuCtxSetCurrent", "context")
        verb, function, *shape, shared, stream, at, extra = api.calls[-1]
        assert (verb, function, shape) == ("cuLaunchKernel", "f", [1, 2, 3, 4, 5, 6])
        assert (shared, stream, extra) == (0, "stream", 0)
        places = (ctypes.c_void_p * 2).from_address(at)
        assert [ctypes.c_int64.from_address(one or 0).value for one in places] == [8, -1]
    with pytest.raises(DriverError, match="words of 5"):
        BindingsContext(Api(cuLaunchKernel=(5,)), None).prepared("f", (1,) * 3, (1,) * 3, [], "s")()


def test_a_kernel_asks_once_for_the_memory_that_its_launches_give() -> None:
    api = Api()
    api.CUfunction_attribute = SimpleNamespace(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES=8)
    context = BindingsContext(api, None)
    assert context.function("code", "f", 2) == 7
    assert api.calls[-1] == ("cuModuleGetFunction", "code", b"f")
    assert context.function("code", "f", 2, 60_000) == 7
    assert api.calls[-1] == ("cuFuncSetAttribute", 7, 8, 60_000)
    context.launch("f", (1, 1, 1), (32, 1, 1), [8], "stream", 60_000)
    context.prepared("f", (1, 1, 1), (32, 1, 1), [8], "stream", 60_000)()
    assert [call[8] for call in api.calls if call[0] == "cuLaunchKernel"] == [60_000] * 2


def test_what_the_driver_says_is_the_error() -> None:
    with pytest.raises(OutOfMemory, match="cuMemAlloc: words of 2"):
        BindingsContext(Api(cuMemAlloc=(2,)), None).allocate(5, None)
    with pytest.raises(DriverError, match="cuEventSynchronize: words of 700"):
        BindingsContext(Api(cuEventSynchronize=(700,)), None).synchronize("event")


def test_an_event_is_reached_or_not() -> None:
    assert BindingsContext(Api(cuEventQuery=(0,)), None).query("event") is True
    assert BindingsContext(Api(cuEventQuery=(600,)), None).query("event") is False
    with pytest.raises(DriverError):
        BindingsContext(Api(cuEventQuery=(700,)), None).query("event")


def test_memory_is_taken_in_the_order_of_a_stream_where_there_are_pools() -> None:
    for pools, taken, given in (
        (True, ("cuMemAllocAsync", 100, "stream"), ("cuMemFreeAsync", 7, "stream")),
        (False, ("cuMemAlloc", 100), ("cuMemFree", 7)),
    ):
        api = Api()
        context = BindingsContext(api, None, pools)
        context.free(context.allocate(100, "stream"), "stream")
        assert [call for call in api.calls if call[0] != "cuCtxSetCurrent"] == [taken, given]


def test_streams_of_others_wait_by_an_event_that_goes_again() -> None:
    for verb, ends in (("follow", (("of", 5), "mine")), ("lead", ("mine", ("of", 5)))):
        api = Api()
        api.CUstream = lambda number: ("of", number)  # type: ignore[attr-defined]
        context = BindingsContext(api, None)
        context.follow("mine", 5) if verb == "follow" else context.lead(5, "mine")
        assert [call for call in api.calls if call[0] != "cuCtxSetCurrent"] == [
            ("cuEventCreate", 2), ("cuEventRecord", 7, ends[0]),
            ("cuStreamWaitEvent", ends[1], 7, 0), ("cuEventDestroy", 7),
        ]  # fmt: skip


def test_an_event_goes_also_where_waiting_fails() -> None:
    api = Api(cuStreamWaitEvent=(700,))
    api.CUstream = int  # type: ignore[attr-defined]
    with pytest.raises(DriverError):
        BindingsContext(api, None).follow("mine", 5)
    assert api.calls[-1] == ("cuEventDestroy", 7)


def test_the_device_of_an_address_is_asked_for() -> None:
    api = Api(cuPointerGetAttribute=(0, 1))
    api.CUpointer_attribute = SimpleNamespace(  # type: ignore[attr-defined]
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL=9
    )
    assert BindingsContext(api, None).where(4096) == 1
    assert api.calls[-1] == ("cuPointerGetAttribute", 9, 4096)


def test_all_that_is_queued_is_waited_for() -> None:
    api = Api(cuCtxSynchronize=(0,))
    BindingsContext(api, None).finish()
    assert api.calls[-1] == ("cuCtxSynchronize",)


@pytest.mark.parametrize("verb", ["cuGraphInstantiate", "cuGraphInstantiateWithFlags"])
def test_a_capture_becomes_an_executable_graph(verb: str) -> None:
    class Older(Api):
        CUstreamCaptureMode = SimpleNamespace(CU_STREAM_CAPTURE_MODE_RELAXED="relaxed")

        def __getattr__(self, name: str) -> Any:
            if name == "cuGraphInstantiateWithFlags" != verb:
                raise AttributeError(name)
            return super().__getattr__(name)

    api = Older(cuStreamEndCapture=(0, "graph"))
    context = BindingsContext(api, None)
    context.begin_capture("stream")
    assert context.end_capture("stream") == 7
    context.launch_graph(7, "other")
    context.destroy_graph(7)
    assert [call for call in api.calls if call[0] != "cuCtxSetCurrent"] == [
        ("cuStreamBeginCapture", "stream", "relaxed"), ("cuStreamEndCapture", "stream"),
        (verb, "graph", 0), ("cuGraphDestroy", "graph"), ("cuGraphLaunch", 7, "other"),
        ("cuGraphExecDestroy", 7),
    ]  # fmt: skip
    api.answers[verb] = (700,)
    with pytest.raises(DriverError):
        context.end_capture("stream")
    assert api.calls[-1] == ("cuGraphDestroy", "graph"), "it goes also where that fails"


def test_a_version_without_captures_says_so() -> None:
    api = SimpleNamespace(cuCtxSetCurrent=lambda context: (0,), CUresult=Result)
    with pytest.raises(NotSupported, match="this version of cuda.bindings has no capture"):
        BindingsContext(api, None).begin_capture("stream")


@pytest.mark.parametrize("major", [12, 13])
def test_a_conditional_node_is_added_after_what_was_captured(major: int) -> None:
    class Newer(Api):
        CUstreamCaptureMode = SimpleNamespace(CU_STREAM_CAPTURE_MODE_RELAXED="relaxed")
        CUgraphNodeType = SimpleNamespace(CU_GRAPH_NODE_TYPE_CONDITIONAL="conditional")
        CUgraphConditionalNodeType = SimpleNamespace(
            CU_GRAPH_COND_TYPE_WHILE="while", CU_GRAPH_COND_TYPE_IF="if"
        )
        CUstreamUpdateCaptureDependencies_flags = SimpleNamespace(
            CU_STREAM_SET_CAPTURE_DEPENDENCIES="set"
        )

        def CUgraphNodeParams(self) -> Any:
            return SimpleNamespace(conditional=SimpleNamespace(phGraph_out=["body"]))

    edges = (["before"],) if major == 12 else (["before"], ["data"])
    api = Newer(
        cuStreamGetCaptureInfo=(0, "active", 5, "graph", *edges, 1),
        cuGraphConditionalHandleCreate=(0, 2**40), cuDriverGetVersion=(0, 12040),
        cuGraphAddNode=(0, "node"), cuStreamUpdateCaptureDependencies=(0,),
    )  # fmt: skip
    context = BindingsContext(api, "context")
    condition = context.condition("stream")
    assert condition == 2**40
    assert context.conditional("stream", condition, True) == "body"
    context.begin_body("inner", "body")
    context.end_body("inner")
    called = {call[0]: call[1:] for call in api.calls}
    assert called["cuGraphConditionalHandleCreate"] == ("graph", "context", 0, 0)
    *given, params = called["cuGraphAddNode"]
    assert given == ["graph", *edges, 1]
    node = params.conditional
    assert (params.type, node.handle, node.type) == ("conditional", condition, "while")
    assert (node.size, node.ctx) == (1, "context")
    last = (["node"],) if major == 12 else (["node"], None)
    assert called["cuStreamUpdateCaptureDependencies"] == ("stream", *last, 1, "set")
    assert called["cuStreamBeginCaptureToGraph"] == ("inner", "body", None, None, 0, "relaxed")
    assert called["cuStreamEndCapture"] == ("inner",)


def test_an_older_driver_or_package_has_no_conditional_nodes() -> None:
    api = Api(cuDriverGetVersion=(0, 12030))
    with pytest.raises(NotSupported, match="the driver has no conditional nodes: it is older"):
        BindingsContext(api, None).condition("stream")
    with pytest.raises(NotSupported, match="this version of cuda.bindings has no conditional"):
        BindingsContext(SimpleNamespace(), None).condition("stream")
