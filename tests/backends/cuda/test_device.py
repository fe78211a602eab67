"""Devices in use: memory is kept and used again, streams too, and errors say what happened."""

from __future__ import annotations

import pytest

from plusequals.backends.cuda.device import Opened, failed
from plusequals.backends.cuda.verbs import DriverError
from plusequals.lowering.diagnostic import CdBackendError, CdMemoryError

from .on_cpu import CpuDriver


def opened(memory: int = 1 << 20) -> tuple[CpuDriver, Opened]:
    driver = CpuDriver(memory=memory)
    return driver, Opened(driver.open(0), driver.properties(0), 0)


def allocations(driver: CpuDriver) -> list[int]:
    return [what[2] for what in driver.log if what[1] == "allocate"]


def test_memory_is_used_again() -> None:
    driver, device = opened()
    with device.working("f") as stream:
        first = device.take(1000, "x", "f")
        device.give_back([first], stream)
        assert device.take(900, "y", "f") == first
        assert device.take(900, "z", "f") != first
    assert allocations(driver) == [1024, 1024]


def test_what_is_kept_goes_before_anything_is_refused() -> None:
    driver, device = opened(memory=4096)
    with device.working("f") as stream:
        pieces = [device.take(1024, "x", "f") for _ in range(4)]
        device.give_back(pieces, stream)
        assert device.take(4096, "y", "f")
    assert [what[2] for what in driver.log if what[1] == "free"] == [1024] * 4


def test_out_of_memory_tells_of_what_and_leaves_all_usable() -> None:
    _, device = opened(memory=4096)
    with device.working("f"):
        held = device.take(2048, "x", "f")
        with pytest.raises(CdMemoryError) as caught:
            device.take(1 << 20, "weights", "train")
        assert caught.value.code == "CD0880"
        assert "`weights` of `train` takes 1,048,576 bytes of cuda:0, which has 2,048 left" in str(
            caught.value
        )
        assert device.take(2048, "y", "f") != held


def test_streams_are_used_again_and_two_at_once_differ() -> None:
    _, device = opened()
    with device.working("f") as one, device.working("g") as other:
        assert one != other
        device.wait(one)
    with device.working("h") as third:
        assert third in (one, other)


def test_a_failure_of_the_device_names_the_function() -> None:
    _, device = opened()
    with pytest.raises(CdBackendError) as caught, device.working("train"):
        raise DriverError("an illegal memory access was encountered")
    assert caught.value.code == "CD0884"
    assert "`train` failed on cuda:0: an illegal memory access" in str(caught.value)
    assert failed("f", "cuda:1", DriverError("x")).code == "CD0884"
