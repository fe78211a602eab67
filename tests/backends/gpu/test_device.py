"""Devices in use: what waits for what, and errors that say what happened."""

from __future__ import annotations

import numpy as np
import pytest

from plusequals.backends.gpu.device import OpenedDevice, failure_error
from plusequals.backends.gpu.driver_protocol import DriverError
from plusequals.base.diagnostic import CdBackendError

from ..cuda.on_cpu import CpuDriver


def opened(memory: int = 1 << 20) -> tuple[CpuDriver, OpenedDevice]:
    driver = CpuDriver(memory=memory)
    return driver, OpenedDevice(driver.open(0), driver.properties(0), 0)


def test_plain_calls_share_a_stream_and_others_have_their_own() -> None:
    driver, device = opened()
    with device.working("f") as one, device.working("g") as other:
        assert one is other is device.plain
        device.wait(one)
    own = device.stream()
    with device.working("h", stream=own) as third:
        assert third is own is not one
        device.after(own, one)
        device.after(own, own)
    assert [what[1:] for what in driver.log] == [
        ("record", "event 2", "stream 1"), ("synchronize", "event 2"),
        ("record", "event 2", "stream 1"), ("wait", "stream 3", "event 2"),
    ]  # fmt: skip


def test_what_nobody_waited_for_is_named_by_the_next_error() -> None:
    _, device = opened()
    device.record_unwaited("settled")
    device.wait(device.plain)
    device.record_unwaited("train")
    with pytest.raises(CdBackendError) as caught, device.working("f"):
        raise DriverError("an illegal memory access was encountered")
    assert "note: before it, and not waited for: `train`" in str(caught.value)
    with pytest.raises(CdBackendError) as caught, device.working("f"):
        raise DriverError("an illegal memory access was encountered")
    assert "not waited for" not in str(caught.value)


def test_copies_of_nothing_ask_for_nothing() -> None:
    driver, device = opened()
    device.copy(0, 0, 0, device.plain)
    device.upload(0, np.empty((0, 3)), device.plain)
    device.download(np.empty(0), 0, device.plain)
    assert not driver.log


def test_a_failure_of_the_device_names_the_function() -> None:
    _, device = opened()
    with pytest.raises(CdBackendError) as caught, device.working("train"):
        raise DriverError("an illegal memory access was encountered")
    assert caught.value.code == "CD0884"
    assert "`train` failed on cuda:0: an illegal memory access" in str(caught.value)
    assert failure_error("f", "cuda:1", DriverError("x")).code == "CD0884"
