"""Tensors by DLPack: the newest version as host memory, read-only or a copy; what is refused."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.device_arrays import dlpack
from plusequals.backends.device_arrays.protocols import may_be_device_array
from tests.backends.runtime.test_queue import BOTH

CPU, CUDA = (1, 0), (2, 0)
TWICE = pe.cd_from_source("def twice(p):\n    p[i] = p[i] * 2\n")


def tensor(**more: Any) -> Any:
    return pe.tensor("p", 2, dtype="float64", init=[1, 2], **more)


class Old:
    """What an exporter gives to a consumer from before DLPack 1.0."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __dlpack_device__(self) -> Any:
        return self.value.__dlpack_device__()

    def __dlpack__(self, **_: Any) -> Any:
        return self.value.__dlpack__()


@BOTH
@pytest.mark.parametrize("device", ["numpy", "numpy:1", "cc"])
def test_a_consumer_gets_the_newest_version(threaded: bool, device: str) -> None:
    p = tensor()
    routine = TWICE.compile(p).link(pe.device(device).stream(threaded).context())
    for expected in ([2, 4], [4, 8]):
        routine()
        assert np.from_dlpack(p).tolist() == np.from_dlpack(p.value).tolist() == expected
    p.grad[...] = 7
    assert np.from_dlpack(p.grad).tolist() == [7, 7] and np.from_dlpack(p).dtype == np.float64


def test_a_consumer_waits_until_it_is_computed() -> None:
    p, gate, got = tensor(), threading.Event(), []
    routine = TWICE.compile(p).link(pe.device("numpy").stream().context())
    routine.context.stream.submit(gate.wait)
    routine()
    thread = threading.Thread(target=lambda: got.append(np.from_dlpack(p).tolist()))
    thread.start()
    thread.join(0.05)
    assert thread.is_alive() and not got
    gate.set()
    thread.join()
    assert got == [[2, 4]]


def test_what_is_exported_is_a_read_only_snapshot() -> None:
    p = tensor()
    array = np.from_dlpack(p)
    assert not array.flags.writeable
    assert not dlpack.import_array(p, None).writable
    p[...] = 9
    assert array.tolist() == [1, 2]


def test_those_who_know_no_read_only_arrays_or_ask_for_a_copy_may_write_theirs() -> None:
    p = tensor()
    array = np.from_dlpack(p, copy=True)
    array[0] = 5
    taken = dlpack.import_array(Old(p), None)
    assert taken.writable and np.from_dlpack(Old(p)).tolist() == [1, 2]
    (ctypes.c_double * 2).from_address(taken.address)[0] = 5
    assert p.numpy().tolist() == [1, 2]


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "complex64"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3)])
def test_types_and_shapes(dtype: str, shape: tuple[int, ...]) -> None:
    p = pe.tensor("p", shape, dtype=dtype, init=1)
    array = np.from_dlpack(p)
    assert array.dtype == dtype and array.shape == shape and (array == 1).all()


def test_another_device_is_refused() -> None:
    p = tensor()
    assert p.__dlpack_device__() == p.grad.__dlpack_device__() == CPU
    assert np.from_dlpack(p, device="cpu").tolist() == [1, 2]
    with pytest.raises(BufferError, match=r"`p.grad` is exported as host memory.*\(2, 0\)"):
        p.grad.__dlpack__(dl_device=CUDA, max_version=(1, 0))


@pytest.mark.parametrize("max_version", [None, (0, 8), (1, 0), (1, 1)])
def test_no_copy_at_all_is_refused_as_that_of_numpy_is(max_version: Any) -> None:
    p = tensor()
    with pytest.raises(BufferError, match="`p` is a copy of its newest version"):
        p.__dlpack__(copy=False, max_version=max_version)
    with pytest.raises(ValueError, match="`p` is a copy of its newest version"):
        np.asarray(p, copy=False)


def test_a_stream_of_the_host_is_refused_as_numpy_does() -> None:
    kinds = []
    for value in (tensor(), np.ones(2)):
        with pytest.raises(RuntimeError) as caught:
            value.__dlpack__(stream=1)
        kinds.append(str(caught.value))
    assert kinds[0] == kinds[1]


def test_16_bits_without_a_type_of_dlpack_in_numpy() -> None:
    pytest.importorskip("ml_dtypes")
    with pytest.raises(BufferError, match="`p` has elements of type bfloat16.*astype"):
        np.from_dlpack(pe.tensor("p", 2, dtype=pe.bf16))


def test_what_has_no_array_exports_none() -> None:
    with pytest.raises(pe.CdError, match="CD0575"):
        np.from_dlpack(pe.tensor("p", 2, memory="virtual"))


def test_nothing_is_exported_while_a_plan_is_recorded() -> None:
    p = tensor()
    with pe.plan(), pytest.raises(pe.CdError, match="CD0862.*`p`"):
        np.from_dlpack(p)


def test_tensors_are_read_as_before_where_arrays_are_expected() -> None:
    pytest.importorskip("ml_dtypes")
    p = pe.tensor("p", 2, dtype=pe.bf16, init=1.5)
    assert not may_be_device_array(p) and not may_be_device_array(p.grad)
    q = pe.tensor("q", 2, init=0)
    q[...] = p
    for _ in range(3):
        assert pe.cd_from_source("def f(x):\n    return x + 1\n")(p.value).tolist() == [2.5, 2.5]
    assert q.numpy().tolist() == [1.5, 1.5]
