"""Foreign code on arrays of a device: streams, orders, exports, on a device that does all late."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.cuda.backend import CompiledCuda
from plusequals.backends.device_arrays import dlpack
from plusequals.backends.device_arrays.lent_array import LentArray
from plusequals.backends.gpu.driver_protocol import DriverError
from plusequals.backends.runtime.state import RUNTIME
from plusequals.base.diagnostic import CdBackendError

from ..cuda.late import LateContext, LateDriver
from ..cuda.on_cpu import backend, installed, needs_gxx

pytestmark = needs_gxx
STEP = "def step(p):\n    p[i] = p[i] * 2 + 1\n"
INTO = "def into(q, p):\n    q[i] = p[i] + 1\n"
BOTH = pytest.mark.parametrize("threaded", [True, False])


@pytest.fixture
def made() -> Iterator[CompiledCuda]:
    with installed(backend(LateDriver())) as made:
        yield made
        assert RUNTIME.holds == []
        for device in [one for key, one in RUNTIME.devices.items() if key[0] == "cuda"]:
            device.synchronize()


def linked(threaded: bool, n: int = 3) -> tuple[Any, Any]:
    p = pe.tensor("p", n, "float64", init=1.0)
    return p, pe.cd_from_source(STEP).compile(p).link(pe.device("cuda").stream(threaded).context())


def queue(late: Any, number: int, address: int, values: Any) -> None:
    """Queue a write of values, as the code of another package does on a stream of that number."""
    late.upload(address, np.asarray(values, "f8"), late.called(number))


def read(late: Any, number: int, address: int, n: int) -> Any:
    out = np.empty(n)
    late.download(out, address, late.called(number))
    return out.tolist()


@BOTH
def test_code_on_our_stream_is_in_order_with_routines(made: CompiledCuda, threaded: bool) -> None:
    p, routine = linked(threaded)
    late = made.opened(0).context
    routine()
    with routine.context.device_pointer(p, "rw") as a:
        assert isinstance(a, LentArray) and a.shape == (3,) and a.device == "cuda:0"
        assert read(late, a.stream, a.address, 3) == [3, 3, 3]
        queue(late, a.stream, a.address, [4, 5, 6])
    routine()
    assert routine.context.numpy(p).tolist() == [9, 11, 13] and p.numpy().tolist() == [9, 11, 13]
    with routine.context.device_pointer(p, "w") as a:
        queue(late, a.stream, a.address, [1, 2, 3])
    assert p.numpy().tolist() == [1, 2, 3], "the host waits for it"
    p[...] = 7
    with routine.context.device_pointer(p) as a:
        assert read(late, a.stream, a.address, 3) == [7, 7, 7]
        assert a.numpy().tolist() == [7, 7, 7]


@BOTH
@pytest.mark.parametrize("way", ["interface", "dlpack", "legacy"])
def test_code_on_a_stream_that_it_was_exported_for_is_followed(
    made: CompiledCuda, threaded: bool, way: str
) -> None:
    p, routine = linked(threaded)
    late = made.opened(0).context
    with routine.context.device_pointer(p, "w") as a:
        if way == "interface":
            number, address = 1, a.__cuda_array_interface__["data"][0]
        else:
            number = 77 if way == "dlpack" else 1
            given = {"stream": number} if way == "dlpack" else {}
            taken = dlpack.import_array(Export(a, given), None)
            address = taken.address
        queue(late, number, address, [4, 5, 6])
    routine()
    assert p.numpy().tolist() == [9, 11, 13]


class Export:
    """What a consumer asks an array for."""

    def __init__(self, array: Any, given: dict[str, Any]) -> None:
        self.array, self.given = array, given

    def __dlpack__(self, **_: Any) -> Any:
        return self.array.__dlpack__(**self.given)


@BOTH
def test_other_streams_wait_for_what_was_queued(made: CompiledCuda, threaded: bool) -> None:
    p, routine = linked(threaded)
    q = pe.tensor("q", 3, "float64")
    late = made.opened(0).context
    device = routine.context.device
    other = pe.cd_from_source(STEP).compile(p).link(device.stream(threaded).context())
    away = pe.cd_from_source(STEP).compile(p).link(pe.device("cuda:1").stream(threaded).context())
    with routine.context.device_pointer(p, "w") as a:
        queue(late, a.stream, a.address, [4, 5, 6])
    for context in (other.context, away.context):
        context.copy_from(routine.context, p)
        assert context.numpy(p).tolist() == [4, 5, 6]
    reader = pe.cd_from_source(INTO).compile(q, p).link(routine.context)
    reader()
    assert q.numpy().tolist() == [5, 6, 7]


@BOTH
def test_a_write_waits_for_what_reads_on_a_stream(made: CompiledCuda, threaded: bool) -> None:
    p, routine = linked(threaded)
    late = made.opened(0).context
    assert isinstance(late, LateContext)
    seen = np.zeros(3)
    with routine.context.device_pointer(p) as a:
        stream, address = late.called(a.stream), a.address
        late._later(stream, lambda: seen.__setitem__(slice(None), peek(late, address)))
    p[...] = 50
    routine()
    routine.context.stream.synchronize()
    assert p.numpy().tolist() == [101] * 3 and seen.tolist() == [1, 1, 1]


def peek(late: Any, address: int) -> Any:
    return np.array(late._memory(address, 24).view("f8"))


def test_leaving_does_not_wait_for_the_device(made: CompiledCuda) -> None:
    p, routine = linked(True)
    routine.context.stream.synchronize()
    late, done = made.opened(0).context, []
    assert isinstance(late, LateContext)
    with routine.context.device_pointer(p, "w") as a:
        late._later(late.called(a.stream), lambda: done.append(1))
    assert done == []
    p.numpy()
    assert done == [1]


def test_an_array_that_is_only_read_says_so_and_nothing_may_be_written_later(
    made: CompiledCuda,
) -> None:
    p, routine = linked(True)
    with routine.context.device_pointer(p) as a:
        assert a.__cuda_array_interface__["data"] == (a.address, True)
        with pytest.raises(BufferError, match="read-only"):
            a.__dlpack__()
        taken = dlpack.import_array(a, None)
        assert not taken.writable and taken.address == a.address
    with routine.context.device_pointer(p, "rw") as a:
        assert a.__cuda_array_interface__["data"] == (a.address, False)
    assert a.__cuda_array_interface__["data"] == (a.address, True)


def test_the_thread_itself_is_refused_and_a_failure_of_the_device_is_told(
    made: CompiledCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    p, routine = linked(True)
    late = made.opened(0).context
    with routine.context.device_pointer(p, "rw"):
        for use in (p.numpy, lambda: routine.context.numpy(p)):
            with pytest.raises(CdBackendError, match="CD0877"):
                use()
        routine()
        with pytest.raises(CdBackendError, match="CD0877"):
            routine.context.stream.synchronize()
    routine.context.stream.synchronize()
    with routine.context.device_pointer(p, "rw"):
        pass

    def fail(event: Any) -> None:
        raise DriverError("an illegal address")

    with monkeypatch.context() as patch:
        patch.setattr(late, "synchronize", fail)
        with pytest.raises(CdBackendError, match="CD0884.*an illegal address"):
            p.numpy()
