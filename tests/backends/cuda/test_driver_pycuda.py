"""PyCUDA as a driver: what is called while the context is current, and what errors become."""

from __future__ import annotations

import ctypes
import gc
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from plusequals.backends.cuda.driver_pycuda import NodeParams, PyCuda, PyCudaContext
from plusequals.backends.gpu.driver_protocol import DriverError, NotSupported, OutOfMemory


class Error(Exception):
    pass


class NoMemory(Error):
    pass


class Held(int):
    """An allocation."""

    freed: list[int] = []

    def free(self) -> None:
        self.freed.append(int(self))


class Api:
    """Keeps every call, with whether a context was current."""

    Error, MemoryError = Error, NoMemory

    def __init__(self, **raising: Exception) -> None:
        self.raising = raising
        self.calls: list[tuple[Any, ...]] = []
        self.depth = 0
        self.Context = self

    def push(self) -> None:
        self.depth += 1

    def pop(self) -> None:
        self.depth -= 1

    def __getattr__(self, verb: str) -> Any:
        def call(*given: Any) -> Any:
            self.calls.append((self.depth, verb, *given))
            if verb in self.raising:
                raise self.raising[verb]
            return Held(64) if verb == "mem_alloc" else None

        return call


def context_of(api: Api) -> PyCudaContext:
    return PyCudaContext(api, api)


def test_verbs_run_while_the_context_is_current() -> None:
    api = Api()
    context = context_of(api)
    Held.freed.clear()
    address = context.allocate(100, "stream")
    context.clear(address, 100, "stream")
    context.copy(1, 2, 3, "stream")
    context.free(address, "stream")
    assert api.calls == [
        (1, "mem_alloc", 100),
        (1, "memset_d8_async", 64, 0, 100, "stream"),
        (1, "memcpy_dtod_async", 1, 2, 3, "stream"),
    ]
    assert Held.freed == [64]
    assert api.depth == 0


def test_memory_is_held_until_it_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    context = context_of(Api())
    address = context.allocate(8, "stream")
    assert address in context._memory

    def fails(held: Held) -> None:
        raise Error("illegal address")

    with monkeypatch.context() as patched:
        patched.setattr(Held, "free", fails)
        with pytest.raises(DriverError, match="illegal address"):
            context.free(address, "stream")
    context.free(address, "stream")
    assert not context._memory


def test_errors_are_those_of_the_verbs_and_leave_the_context() -> None:
    api = Api(mem_alloc=NoMemory("out of memory"), memset_d8_async=Error("illegal address"))
    with pytest.raises(OutOfMemory, match="out of memory"):
        context_of(api).allocate(8, "stream")
    with pytest.raises(DriverError, match="illegal address"):
        context_of(api).clear(1, 2, None)
    assert api.depth == 0


def test_what_the_driver_refuses_before_there_is_a_context_is_an_error_of_it() -> None:
    class Device:
        def __init__(self, number: int) -> None:
            raise NoMemory("no room") if number else Error("the device is taken")

        @staticmethod
        def count() -> int:
            raise Error("not initialized")

    api = Api(get_driver_version=Error("no driver"))
    api.Device = Device
    driver = PyCuda.__new__(PyCuda)
    driver.api = api
    with pytest.raises(DriverError, match="not initialized"):
        driver.count()
    with pytest.raises(DriverError, match="no driver"):
        driver.version()
    for ask in (driver.properties, driver.open):
        with pytest.raises(DriverError, match="the device is taken"):
            ask(0)
        with pytest.raises(OutOfMemory, match="no room"):
            ask(1)


@pytest.mark.parametrize("verb", ["push", "pop"])
def test_a_context_that_is_gone_is_an_error_of_the_driver(
    verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(api: Api) -> None:
        raise Error("the context is destroyed")

    monkeypatch.setattr(Api, verb, gone)
    with pytest.raises(DriverError, match="the context is destroyed"):
        context_of(Api()).clear(1, 2, None)


def test_copies_between_devices_are_queued_by_the_library_itself() -> None:
    """In the order of the stream: memory of it may still be in use by what is queued there."""
    raw, api, there = Raw(), Api(), Api()
    for number, one in enumerate((api, there)):
        one.handle = 1000 + number
    context = PyCudaContext(api, api, lambda: raw)
    context.copy_from(context_of(there), 1, 2, 16, Ours)
    assert raw.calls == [("cuMemcpyPeerAsync", 1, 1000, 2, 1001, 16, 64)]
    assert not api.calls and not there.calls, "neither waits"
    assert api.depth == 0
    raw.answers["cuMemcpyPeerAsync"] = 700
    with pytest.raises(DriverError, match="cuMemcpyPeerAsync failed with status 700"):
        context.copy_from(context_of(there), 1, 2, 16, Ours)


def test_arrays_are_given_as_bytes() -> None:
    api = Api()
    context_of(api).upload(5, np.arange(3.0), "stream")
    _, verb, address, data, stream = api.calls[0]
    assert (verb, address, stream) == ("memcpy_htod_async", 5, "stream")
    assert data.dtype == np.uint8
    assert data.nbytes == 24


class Raw:
    """The driver's library."""

    def __init__(self, **answers: int) -> None:
        self.answers = answers
        self.calls: list[tuple[Any, ...]] = []

    def __getattr__(self, verb: str) -> Any:
        def call(*given: Any) -> int:
            self.calls.append((verb, *(getattr(one, "value", None) for one in given)))
            return self.answers.get(verb, 0)

        return call


class Ours:
    handle = 64


def test_streams_of_others_wait_through_the_library_itself() -> None:
    for verb, first, then in (("follow", 5, 64), ("lead", 64, 5)):
        raw, api = Raw(), Api()
        context = PyCudaContext(api, api, lambda raw=raw: raw)  # type: ignore[misc]
        assert context.number(Ours) == 64
        context.follow(Ours, 5) if verb == "follow" else context.lead(5, Ours)
        names = [call[0] for call in raw.calls]
        assert names == ["cuEventCreate", "cuEventRecord", "cuStreamWaitEvent", "cuEventDestroy_v2"]
        assert (raw.calls[1][2], raw.calls[2][1]) == (first, then)
        assert api.depth == 0


def test_what_the_library_refuses_is_an_error_and_its_event_goes() -> None:
    raw, api = Raw(cuStreamWaitEvent=400), Api()
    with pytest.raises(DriverError, match="cuStreamWaitEvent failed with status 400"):
        PyCudaContext(api, api, lambda: raw).follow(Ours, 5)
    assert raw.calls[-1][0] == "cuEventDestroy_v2"
    with pytest.raises(DriverError, match="cuPointerGetAttribute"):
        PyCudaContext(api, api, lambda: Raw(cuPointerGetAttribute=1)).where(4096)


def test_what_is_prepared_is_given_again_each_time() -> None:
    given: list[tuple[Any, ...]] = []
    function = SimpleNamespace(prepared_async_call=lambda *one, shared_size: given.append(one))
    api = Api()
    start = context_of(api).prepared(function, (1, 2, 3), (4, 5, 6), [8, -1], "stream")
    start(), start()
    assert given == [((1, 2, 3), (4, 5, 6), "stream", 8, -1)] * 2
    assert api.depth == 0


def test_a_launch_sets_no_shape_of_blocks_where_it_need_not() -> None:
    given: list[tuple[Any, ...]] = []
    function = SimpleNamespace(_launch_kernel=lambda *one: given.append(one))
    context_of(Api()).launch(function, (1, 2, 3), (4, 5, 6), [8, -1], "stream", 60_000)
    packed = np.array([8, -1], np.int64).tobytes()
    assert given == [((1, 2, 3), (4, 5, 6), packed, 60_000, "stream")]


def test_a_context_is_there_until_the_process_ends() -> None:
    class Primary:
        def __del__(self) -> None:
            gone.append(self)

    gone: list[Primary] = []
    driver, api = PyCuda.__new__(PyCuda), Api()
    api.Device = lambda number: SimpleNamespace(retain_primary_context=Primary)
    driver.api = api
    driver.open(0)
    gc.collect()
    assert not gone


def test_what_is_prepared_is_packed_once_where_that_can_be_given() -> None:
    given: list[tuple[Any, ...]] = []
    api = Api()
    function = SimpleNamespace(_launch_kernel=lambda *one: given.append((api.depth, *one)))
    start = context_of(api).prepared(function, (1, 2, 3), (4, 5, 6), [8, -1], "stream", 60_000)
    start(), start()
    packed = np.array([8, -1], np.int64).tobytes()
    assert given == [(1, (1, 2, 3), (4, 5, 6), packed, 60_000, "stream")] * 2

    def failing(*given: Any) -> None:
        raise Error("it is lost")

    start = context_of(api).prepared(
        SimpleNamespace(_launch_kernel=failing), (1,) * 3, (1,) * 3, [], "stream"
    )
    with pytest.raises(DriverError, match="it is lost"):
        start()
    assert api.depth == 0


@pytest.mark.parametrize("verb", ["push", "pop"])
def test_what_is_prepared_fails_as_the_driver_where_the_context_is_gone(
    verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(api: Api) -> None:
        raise Error("the context is destroyed")

    monkeypatch.setattr(Api, verb, gone)
    function = SimpleNamespace(_launch_kernel=lambda *one: None)
    with pytest.raises(DriverError, match="the context is destroyed"):
        context_of(Api()).prepared(function, (1,) * 3, (1,) * 3, [], "stream")()


def test_a_kernel_asks_once_for_the_memory_that_its_launches_give() -> None:
    asked: list[tuple[Any, ...]] = []
    given: list[tuple[Any, ...]] = []
    kernel = SimpleNamespace(
        prepare=lambda format: asked.append((format,)),
        set_attribute=lambda *one: asked.append(one),
        prepared_async_call=lambda *one, shared_size: given.append((one[-1], shared_size)),
    )
    code, api = SimpleNamespace(get_function=lambda name: kernel), Api()
    api.function_attribute = SimpleNamespace(MAX_DYNAMIC_SHARED_SIZE_BYTES="most")
    context = context_of(api)
    assert context.function(code, "f", 2) is context.function(code, "f", 2, 60_000)
    assert asked == [("qq",), ("qq",), ("most", 60_000)]
    context.launch(kernel, (1, 1, 1), (32, 1, 1), [8], "stream", 60_000)
    context.prepared(kernel, (1, 1, 1), (32, 1, 1), [9], "stream", 60_000)()
    assert given == [(8, 60_000), (9, 60_000)]


def test_graphs_are_those_of_the_library_itself() -> None:
    raw, api = Raw(), Api()
    context = PyCudaContext(api, api, lambda: raw)
    context.begin_capture(Ours)
    graph = context.end_capture(Ours)
    context.launch_graph(graph, Ours)
    context.destroy_graph(graph)
    assert [(call[0], *call[1:2]) for call in raw.calls] == [
        ("cuStreamBeginCapture_v2", 64), ("cuStreamEndCapture", 64),
        ("cuGraphInstantiateWithFlags", None), ("cuGraphDestroy", None), ("cuGraphLaunch", None),
        ("cuGraphExecDestroy", None),
    ]  # fmt: skip
    assert raw.calls[4][2] == 64
    assert api.depth == 0
    raw.answers["cuGraphInstantiateWithFlags"] = 700
    with pytest.raises(DriverError, match="cuGraphInstantiateWithFlags failed with status 700"):
        context.end_capture(Ours)
    assert raw.calls[-1][0] == "cuGraphDestroy"


class Newer(Raw):
    """A library that answers what is asked for conditional nodes."""

    def __init__(self, version: int = 12040) -> None:
        super().__init__()
        self.nodes: list[NodeParams] = []
        self.body = ctypes.c_void_p(99)
        self.version = version

    def cuDriverGetVersion(self, version: Any) -> int:
        version._obj.value = self.version
        return 0

    def cuCtxGetCurrent(self, context: Any) -> int:
        context._obj.value = 11
        return 0

    def cuStreamGetCaptureInfo_v2(self, stream: Any, *found: Any) -> int:
        for at, each in enumerate(found):
            each._obj.value = 20 + at
        return 0

    def cuGraphConditionalHandleCreate(self, made: Any, graph: Any, *given: Any) -> int:
        self.calls.append((graph.value, given[0].value, *given[1:]))
        made._obj.value = 2**40
        return 0

    def cuGraphAddNode(self, node: Any, graph: Any, edges: Any, count: Any, params: Any) -> int:
        self.calls.append((graph.value, edges.value, count.value))
        node._obj.value, params._obj.bodies = 77, ctypes.pointer(self.body)
        self.nodes.append(params._obj)
        return 0

    def cuStreamUpdateCaptureDependencies(self, *given: Any) -> int:
        stream, node, count, flags = given
        self.calls.append((stream.value, node._obj.value, count.value, flags))
        return 0


def test_conditional_nodes_are_those_of_the_library_itself() -> None:
    assert ctypes.sizeof(NodeParams) == 256
    assert [getattr(NodeParams, name).offset for name in ("handle", "kind", "bodies")] == [
        16,
        24,
        32,
    ]
    raw, api = Newer(), Api()
    context = PyCudaContext(api, api, lambda: raw)
    condition = context.condition(Ours)
    assert condition == 2**40
    for repeats in (False, True):
        body = context.conditional(Ours, condition, repeats)
        assert body.value == 99
    assert raw.calls == [(22, 11, 0, 0), *[(22, 23, 24), (64, 77, 1, 1)] * 2]
    for repeats, node in enumerate(raw.nodes):
        assert (node.type, node.handle, node.kind, node.size) == (13, 2**40, repeats, 1)
        assert node.context == 11
    raw.calls.clear()
    context.begin_body(Ours, body)
    context.end_body(Ours)
    assert [call[:3] for call in raw.calls] == [
        ("cuStreamBeginCaptureToGraph", 64, 99), ("cuStreamEndCapture", 64, None),
    ]  # fmt: skip
    assert api.depth == 0
    with pytest.raises(NotSupported, match="no conditional nodes: it is older than CUDA 12.4"):
        PyCudaContext(api, api, lambda: Newer(12020)).condition(Ours)


def test_a_driver_without_graphs_says_so() -> None:
    context = PyCudaContext(Api(), Api(), lambda: SimpleNamespace())
    with pytest.raises(NotSupported, match="the driver has no graphs: it is older than CUDA 11.4"):
        context.begin_capture(Ours)
