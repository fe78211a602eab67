"""Arrays on devices as arguments and results: in place, on their streams, or refused."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.device_arrays.device_array import CUDA, DeviceArray, PlacedArray
from plusequals.backends.device_arrays.foreign_arrays import as_placed, require_usable
from plusequals.backends.gpu.device import OpenedDevice
from plusequals.backends.gpu.driver_protocol import DriverError
from plusequals.base.diagnostic import CdBackendError, CdError, CdTypeError, CdValueError

from ..cuda.foreign import NEVER, Capsules, Theirs
from ..cuda.on_cpu import CpuDriver, Nothing, backend, installed, needs_gxx

AXPY = "def f(y, x, a):\n    y[i] += a * x[i]\n"


@pytest.fixture
def driver() -> CpuDriver:
    return CpuDriver()


@pytest.fixture
def device(driver: CpuDriver) -> Iterator[OpenedDevice]:
    with installed(backend(driver)) as made:
        yield made.opened(0)


@pytest.fixture
def untouched(driver: CpuDriver) -> Iterator[OpenedDevice]:
    """A device on which kernels do nothing."""
    with installed(backend(driver, Nothing)) as made:
        yield made.opened(0)


def on(text: str, where: str = "cuda") -> Any:
    return pe.cd_from_source(text, {"np": np}, backend=where)


def verbs(driver: CpuDriver) -> list[str]:
    return [what[1] for what in driver.log]


# ---------------------------------------------------------------- in place


@needs_gxx
@pytest.mark.parametrize("n", [0, 1, 7, 300])
def test_arrays_of_others_are_written_in_place(
    device: OpenedDevice, driver: CpuDriver, n: int
) -> None:
    x, y = Theirs(device, np.arange(n, dtype=float)), Theirs(device, np.ones(n))
    f = on(AXPY)
    driver.log.clear()
    f(y, x, 2.0)
    assert np.array_equal(y.get(), 1 + 2 * np.arange(n))
    asked = verbs(driver)
    assert asked.count("upload") == 1, "the number"
    assert asked.count("download") == (1 if n else 0), "by `get`"


def test_their_stream_waits_for_ours_and_the_host_does_not(
    untouched: OpenedDevice, driver: CpuDriver
) -> None:
    x, y = Theirs(untouched, np.ones(5)), Theirs(untouched, np.ones(5), stream=2)
    f = on("def f(y, x):\n    y[i] += x[i]\n")
    f(y, x)
    driver.log.clear()
    f(y, x)
    asked = verbs(driver)
    assert asked.count("follow") == asked.count("lead") == 2
    assert asked.index("launch") > max(n for n, verb in enumerate(asked) if verb == "follow")
    assert asked.index("launch") < asked.index("lead")
    assert not {"synchronize", "finish", "upload", "download"} & {*asked}


@pytest.mark.parametrize(
    ("stream", "first"), [(None, []), (NEVER, ["finish"])], ids=["none needed", "not said"]
)
def test_without_a_stream_the_host_waits(
    untouched: OpenedDevice, driver: CpuDriver, stream: Any, first: list[str]
) -> None:
    x = Theirs(untouched, np.ones(5), stream=stream)
    f = on("def f(x):\n    x[i] += 1\n")
    f(x)
    driver.log.clear()
    f(x)
    asked = verbs(driver)
    assert asked[: len(first)] == first
    assert asked[-2:] == ["record", "synchronize"]


@needs_gxx
def test_dlpack_is_asked_for_the_stream_that_we_then_follow(
    device: OpenedDevice, driver: CpuDriver
) -> None:
    x, y = Capsules(device, np.arange(5.0)), Capsules(device, np.ones(5))
    f = on(AXPY)
    f(y, x, 3.0)
    assert np.array_equal(y.get(), 1 + 3 * np.arange(5))
    assert x.asked == y.asked == [1]
    driver.log.clear()
    f(y, x, 3.0)
    asked = verbs(driver)
    assert asked.index("follow") < asked.index("launch") < asked.index("synchronize")


@needs_gxx
def test_the_host_and_the_device_in_one_call(device: OpenedDevice) -> None:
    f = on("def f(y, z, x, k):\n    y[i] = x[i] + k[i]\n    z[i] = x[i] - k[i]\n")
    x, y = Theirs(device, np.arange(6.0)), Theirs(device, np.zeros(6))
    z, k = np.zeros((6, 2))[:, 1], np.ones(6)
    f(y, z, x, k)
    assert np.array_equal(y.get(), np.arange(6.0) + 1)
    assert np.array_equal(z, np.arange(6.0) - 1)


@needs_gxx
def test_captured_arrays_and_those_in_tuples(device: OpenedDevice) -> None:
    names = {"w": Theirs(device, np.arange(4.0)), "o": SimpleNamespace(v=Theirs(device, [2.0] * 4))}
    f = pe.cd_from_source("def f(y, p):\n    y[i] += w[i] * o.v[i] + p[0][i]\n", names,
                          backend="cuda")  # fmt: skip
    y, p = Theirs(device, np.zeros(4)), Theirs(device, np.ones(4))
    for _ in range(2):
        f(y, (p, 1))
    assert np.array_equal(y.get(), 4 * np.arange(4.0) + 2)
    names["w"] = Theirs(device, np.ones(4))
    f(y, (p, 1))
    assert np.array_equal(y.get(), 4 * np.arange(4.0) + 5)


@needs_gxx
def test_one_array_given_twice_is_one(device: OpenedDevice) -> None:
    y, f = Theirs(device, np.arange(5.0)), on("def f(y, x):\n    y[i] = y[i] + x[i] * x[4 - i]\n")
    f(y, Theirs(device, np.ones(5)))
    f(y, y)
    want = np.arange(5.0) + 1
    assert np.array_equal(y.get(), want + want * want[::-1])


def test_arrays_that_overlap_are_refused(untouched: OpenedDevice) -> None:
    y, x = Theirs(untouched, np.arange(8.0)), Theirs(untouched, np.arange(8.0))
    x.address = y.address + 8
    with pytest.raises(CdValueError) as caught:
        on("def f(y, x):\n    y[i] = x[i]\n")(y, x)
    assert caught.value.code == "CD0708"


@needs_gxx
def test_a_failed_check_is_told_at_once(device: OpenedDevice) -> None:
    f = on("def f(y, x, k):\n    y[i] = x[k[i]]\n")
    y, x = Theirs(device, np.zeros(5)), Theirs(device, np.arange(5.0))
    with pytest.raises(CdError, match="index 9"):
        f(y, x, Theirs(device, np.array([0, 1, 9, 2, 8])))
    f(y, x, Theirs(device, np.array([4, 3, 2, 1, 0])))
    assert np.array_equal(y.get(), np.arange(5.0)[::-1])


# ---------------------------------------------------------------- refused


def test_what_cannot_be_used_in_place_is_refused(
    untouched: OpenedDevice, driver: CpuDriver
) -> None:
    f = on("def f(y, x):\n    y[i] += x[i]\n")
    y = Theirs(untouched, np.ones(4))
    rows: list[tuple[Any, Any, str]] = [
        (y, Theirs(untouched, np.ones(4), strides=(4,)), "CD0887"),
        (y, Theirs(untouched, np.ones(4), strides=(-12,)), "CD0887"),
        (Theirs(untouched, np.ones(4), strides=(0,)), y, "CD0704"),
        (Theirs(untouched, np.ones(4), read_only=True), y, "CD0703"),
        (y, Theirs(untouched, np.ones(4, ">f8")), "CD0701"),
        (y, Theirs(untouched, np.zeros(4, "M8[s]")), "CD0701"),
        (y, Capsules(driver.opened(1), np.ones(4)), "CD0886"),
    ]
    for target, source, code in rows:
        with pytest.raises(CdError) as caught:
            f(target, source)
        assert caught.value.code == code, str(caught.value)
    shifted = Theirs(untouched, np.ones(4))
    shifted.address += 2
    with pytest.raises(CdValueError, match="is not aligned"):
        f(y, shifted)
    f(y, Theirs(untouched, np.ones(4), strides=(8,)))
    f(Theirs(untouched, np.ones(0)), Theirs(untouched, np.ones(0), strides=(800,)))


def test_a_call_that_was_fine_does_not_let_others_through(untouched: OpenedDevice) -> None:
    f = on("def f(y, x):\n    y[i] += x[i]\n")
    y, x = Theirs(untouched, np.ones(4)), Theirs(untouched, np.ones(4))
    for _ in range(3):
        f(y, x)
    y.read_only = True
    with pytest.raises(CdValueError):
        f(y, x)


@pytest.mark.parametrize("where", ["cc", "numpy"])
def test_other_backends_say_where_it_lies(untouched: OpenedDevice, where: str) -> None:
    with pytest.raises(CdTypeError) as caught:
        on(AXPY, where)(Theirs(untouched, np.ones(3)), np.ones(3), 1.0)
    assert str(caught.value).startswith(
        f"error[CD0886]: `y` lies in the memory of a GPU, and the function runs on `{where}`"
    )


def test_what_a_package_does_not_share_is_told_in_its_words() -> None:
    class Tracked:
        @property
        def __cuda_array_interface__(self) -> Any:
            raise RuntimeError("use var.detach()")

    with pytest.raises(CdTypeError, match="use var.detach"):
        as_placed(Tracked(), "w")


def test_arrays_of_the_host_are_no_arrays_on_devices() -> None:
    class OnHost:
        @property
        def __cuda_array_interface__(self) -> Any:
            raise AttributeError("it is on the host")

        def __dlpack_device__(self) -> tuple[int, int]:
            return 1, 0

    assert as_placed(OnHost()) is None
    assert as_placed(np.ones(3)) is None
    assert as_placed(2.5) is None


def test_a_device_with_a_number_is_that_device() -> None:
    there = PlacedArray(4096, (2,), np.dtype("f8"), 1, None, True, "done", None)
    assert require_usable(there, True, "x", "cuda:1") is there
    with pytest.raises(CdTypeError, match="lies on cuda:1"):
        require_usable(there, True, "x", "cuda")


# ---------------------------------------------------------------- results


@needs_gxx
def test_results_stay_on_the_device(device: OpenedDevice, driver: CpuDriver) -> None:
    f = on("def f(x):\n    y = x * 2\n    return y, y.sum(), y.T, y[::-1, 1:], x, x[1]\n")
    data = np.arange(6.0).reshape(2, 3)
    x = Theirs(device, data)
    whole, total, turned, part, same, row = f(x)
    assert isinstance(whole, DeviceArray) and whole.device == "cuda:0"
    assert total == 30.0 and isinstance(total, np.float64)
    assert same is x
    for got, want in ((whole, 2 * data), (turned, 2 * data.T), (part, 2 * data[::-1, 1:]),
                      (row, data[1])):  # fmt: skip
        assert got.shape == want.shape
        assert np.array_equal(np.asarray(got), want)
    assert np.array_equal(on("def g(x):\n    return x + 1\n")(whole).numpy(), 2 * data + 1)
    assert len(whole) == 2 and whole.nbytes == 48
    assert "on cuda:0" in repr(whole)


@needs_gxx
def test_results_whose_size_is_data_stay_there_too(device: OpenedDevice) -> None:
    f = on("def f(x, n):\n    z = np.zeros(n[0])\n    z[:] = x.sum()\n    return z\n")
    for n in (0, 1, 5):
        got = f(Theirs(device, np.arange(4.0)), Theirs(device, np.array([n])))
        assert np.array_equal(got.numpy(), np.full(n, 6.0))


@needs_gxx
def test_parts_of_complex_results(device: OpenedDevice) -> None:
    x = Theirs(device, np.arange(3) + 2j)
    real, imag = on("def f(x):\n    return (x * 2).real, x.imag\n")(x)
    assert np.array_equal(np.asarray(real), [0.0, 2.0, 4.0])
    assert np.array_equal(np.asarray(imag), [2.0, 2.0, 2.0])


@needs_gxx
def test_memory_of_results_goes_back_when_nobody_has_them(device: OpenedDevice) -> None:
    f, x = on("def f(x):\n    return x + 1\n"), Theirs(device, np.ones(100))
    first = f(x)
    view = on("def g(x):\n    return x[10:]\n")(first)
    assert device.pool.used == 1024
    del first
    gc.collect()
    assert device.pool.used == 1024, "the view holds it"
    assert np.array_equal(np.asarray(view), np.full(90, 2.0))
    del view
    gc.collect()
    assert device.pool.used == 0


@needs_gxx
@pytest.mark.parametrize("keeps", [False, True])
def test_finalizers_of_what_goes_with_a_result_may_use_it(
    device: OpenedDevice, keeps: bool
) -> None:
    f, x = on("def f(x):\n    return x + 1\n"), Theirs(device, np.arange(100.0))
    said: list[Any] = []
    kept: list[Any] = []

    class Holder:
        """One of a circle that holds an array, and looks at it last thing."""

        def __init__(self) -> None:
            self.array, self.itself = f(x), self

        def __del__(self) -> None:
            said.append((f(self.array), self.array.numpy()))
            if keeps:
                kept.append(self.array)

    Holder()
    gc.collect()
    ((again, array),) = said
    assert np.array_equal(array, np.arange(100.0) + 1)
    assert np.array_equal(again.numpy(), np.arange(100.0) + 2)
    others = [f(again) for _ in range(3)]
    for one in kept:
        assert np.array_equal(one.numpy(), np.arange(100.0) + 1)
    one = None
    del again, array, others
    said.clear(), kept.clear()
    gc.collect()
    assert device.pool.used == 0


def test_what_was_lent_is_waited_for(untouched: OpenedDevice, driver: CpuDriver) -> None:
    f = on("def f(x):\n    return x + 1\n")
    got = f(Theirs(untouched, np.ones(3)))
    driver.log.clear()
    f(got)
    assert not {"finish", "synchronize"} & {*verbs(driver)}
    shown = got.__cuda_array_interface__
    assert shown["stream"] == untouched.context.number(untouched.plain)
    assert (shown["shape"], shown["typestr"], shown["strides"]) == ((3,), "<f8", None)
    f(got)
    assert verbs(driver).count("finish") == verbs(driver).count("synchronize") == 1
    driver.log.clear()
    del got
    gc.collect()
    assert untouched.pool.used == 0
    assert verbs(driver) == ["finish"]


@needs_gxx
def test_what_calls_return_is_given_on(device: OpenedDevice, driver: CpuDriver) -> None:
    got = on("def f(x):\n    return x + 1\n")(Theirs(device, np.arange(4.0)))
    assert got.__dlpack_device__() == (CUDA, 0)
    driver.log.clear()
    for stream, told in ((None, [(1,)]), (5, [(5,)]), (-1, [])):
        driver.log.clear()
        got.__dlpack__(stream=stream)
        assert [what[2:3] for what in driver.log] == told
    assert np.array_equal(np.from_dlpack(got, device="cpu"), np.arange(4.0) + 1)
    with pytest.raises(BufferError):
        got.__dlpack__(copy=True)
    with pytest.raises(CdValueError):
        np.asarray(got, copy=False)


def test_what_cannot_be_given_on_is_told(untouched: OpenedDevice) -> None:
    got = on("def f(x):\n    return x + 1\n")(Theirs(untouched, np.ones(3)))

    def lead(other: int, stream: Any) -> None:
        raise DriverError("the device is lost")

    untouched.context.lead = lead
    with pytest.raises(CdBackendError, match="CD0884.*the device is lost"):
        got.__dlpack__()
    untouched.lost = True
    with pytest.raises(CdBackendError, match="a forked process"):
        got.__dlpack__()


def test_bfloat16_goes_by_dlpack(untouched: OpenedDevice) -> None:
    got = on("def f(x):\n    return x + x\n")(Capsules(untouched, np.ones(3, ml_dtypes.bfloat16)))
    assert got.dtype == ml_dtypes.bfloat16
    assert not hasattr(got, "__cuda_array_interface__")
    assert as_placed(got) is not None
    assert got.__dlpack__() is not None


def test_classes_made_of_numpys_arrays_are_the_hosts() -> None:
    class Own(np.ndarray[Any, Any]):
        pass

    assert as_placed(np.ones(3).view(Own)) is None
    f = pe.cd_from_source("def f(x):\n    return x + 1\n", backend="numpy")
    assert np.array_equal(f(np.ones(3).view(Own)), [2.0, 2.0, 2.0])
