"""Lent arrays: which streams are followed, what their end waits for, and what is left of a loan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from plusequals.backends.device_arrays.device_array import LEGACY, DeviceArray
from plusequals.backends.device_arrays.lent_array import LentArray
from plusequals.backends.gpu.device import OpenedDevice
from plusequals.backends.gpu.driver_protocol import DriverError
from plusequals.backends.gpu.residency import DeviceMemory
from plusequals.base.diagnostic import CdBackendError

from ..cuda.on_cpu import CpuDriver, Nothing, backend, installed


@pytest.fixture
def driver() -> CpuDriver:
    return CpuDriver()


@pytest.fixture
def device(driver: CpuDriver) -> Iterator[OpenedDevice]:
    with installed(backend(driver, Nothing)) as made:
        yield made.opened(0)


def lent(device: OpenedDevice, writable: bool = True) -> tuple[DeviceArray, LentArray, Any]:
    memory = DeviceMemory(device)
    array = memory.empty((2, 3), np.float32, "p", memory.lane())
    stream = memory.lane()
    return array, LentArray(array, stream, writable), stream


def followed(driver: CpuDriver, array: LentArray) -> list[Any]:
    driver.log.clear()
    array.end()
    return [what[2:] for what in driver.log if what[1] == "follow"]


def test_it_is_the_array_on_a_stream_of_its_user(device: OpenedDevice) -> None:
    array, given, stream = lent(device)
    assert (given.address, given.shape, given.dtype) == (array.address, (2, 3), np.float32)
    assert given.stream == device.context.number(stream)
    assert given.__cuda_array_interface__["stream"] == given.stream


def test_streams_that_it_was_exported_for_are_followed(
    device: OpenedDevice, driver: CpuDriver
) -> None:
    _, given, stream = lent(device)
    assert followed(driver, given) == []
    _, given, stream = lent(device)
    given.__dlpack__(stream=77)
    given.__dlpack__(stream=77)
    given.__dlpack__(stream=given.stream)
    assert followed(driver, given) == [(stream, 77)]
    for export in (lambda a: a.__cuda_array_interface__, lambda a: a.__dlpack__()):
        _, given, stream = lent(device)
        export(given)
        assert followed(driver, given) == [(stream, LEGACY)]
    _, given, stream = lent(device)
    given.__dlpack__(stream=-1)
    assert followed(driver, given) == [], "who asks for no order gets none"


def test_it_is_read_only_where_it_is_read_and_afterwards(device: OpenedDevice) -> None:
    for writable in (True, False):
        _, given, _ = lent(device, writable)
        assert given.__cuda_array_interface__["data"][1] is not writable
        given.end()
        assert given.__cuda_array_interface__["data"][1] is True


def test_what_was_queued_is_waited_for_and_then_nobody_has_it(
    device: OpenedDevice, driver: CpuDriver
) -> None:
    array, given, _ = lent(device)
    given.__dlpack__()
    assert array.on_device.order == "unknown"
    work = given.end()
    assert work.is_finished() and array.on_device.order == "unknown"
    work.finish()
    assert isinstance(array.on_device.order, int)
    array.__dlpack__()
    again = LentArray(array, device.plain, True)
    again.end().finish()
    assert array.on_device.order == "unknown", "somebody else has it"


def test_a_device_that_failed(device: OpenedDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    _, given, _ = lent(device)
    work = given.end()

    def fail(*_: Any) -> None:
        raise DriverError("an illegal address")

    monkeypatch.setattr(device.context, "synchronize", fail)
    monkeypatch.setattr(device.context, "query", fail)
    assert work.is_finished(), "finish says more"
    with pytest.raises(CdBackendError, match="CD0884.*an illegal address"):
        work.finish()
