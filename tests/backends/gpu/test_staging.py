"""Copies by way of pinned memory: right for every layout, waited for once, never without end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from plusequals.backends.gpu import staging
from plusequals.backends.gpu.device import OpenedDevice
from plusequals.backends.gpu.driver_protocol import DriverError, OutOfMemory
from plusequals.backends.gpu.staging import StagingPool

from ..cuda.faulty import FaultyDriver
from ..cuda.on_cpu import CpuDriver

Array = np.ndarray[Any, Any]


def opened(limit: int = staging.POOL_LIMIT) -> tuple[CpuDriver, OpenedDevice]:
    driver = CpuDriver()
    device = driver.opened(0)
    device.staging = StagingPool(device.context, limit)
    return driver, device


def there_and_back(device: OpenedDevice, array: Array, target: Array) -> None:
    address = device.pool.take(array.nbytes, "x", "f", device.plain)
    copies = device.transfers(device.plain)
    copies.upload(address, array)
    copies.download(target, address)
    copies.finish()
    assert not copies.busy
    device.pool.give_back([address], device.plain)


@pytest.mark.parametrize("limit", [0, 1 << 14, 1 << 18, staging.POOL_LIMIT])
@pytest.mark.parametrize("rows", [0, 1, 97, 401])
def test_layouts_of_any_size(monkeypatch: pytest.MonkeyPatch, limit: int, rows: int) -> None:
    monkeypatch.setattr(staging, "MAX_BUFFER_BYTES", 1 << 14)
    monkeypatch.setattr(staging, "MAX_DIRECT_UPLOAD", 100)
    _, device = opened(limit)
    base = np.arange(rows * 60, dtype=np.int32).reshape(rows, 60)
    for source in (base, base[::-1, ::2], base.T, np.broadcast_to(base[:, :1], (rows, 60))):
        room = np.full((2 * source.shape[0], source.shape[1]), -1, np.int32)
        for target in (np.empty(source.shape, np.int32), room[::-2]):
            there_and_back(device, source, target)
            assert np.array_equal(target, source)
        assert (room[::2] == -1).all()
    assert device.staging.pinned_bytes <= limit


def test_a_number_and_bytes() -> None:
    _, device = opened()
    for array in (np.array(2.5), np.array([True, False]), np.array(1 + 2j, np.complex64)):
        target = np.zeros_like(array)
        there_and_back(device, array, target)
        assert np.array_equal(array, target)


def test_all_is_queued_and_waited_for_once() -> None:
    driver, device = opened()
    device.pool.take(8, "x", "f", device.plain)
    targets = [np.zeros(100_000), np.zeros(3), np.zeros((300, 300))[:, ::2]]
    places = [device.pool.take(t.nbytes, "x", "f", device.plain) for t in targets]
    driver.log.clear()
    copies = device.transfers(device.plain)
    for target, place in zip(targets, places, strict=True):
        copies.upload(place, target)
        copies.download(target, place)
    assert "synchronize" not in {what[1] for what in driver.log}
    copies.finish()
    assert [what[1] for what in driver.log][-2:] == ["record", "synchronize"]


def test_pieces_are_used_again_and_not_while_they_are_in_use() -> None:
    _, device = opened()
    copies, address = device.transfers(device.plain), device.pool.take(1 << 20, "x", "f", None)
    one, two = np.ones(20_000), np.full(20_000, 2.0)
    copies.upload(address, one)
    copies.upload(address, two)
    assert device.staging.pinned_bytes == 2 << 18
    assert copies.busy
    copies.finish()
    copies.upload(address, one)
    copies.drop()
    assert not copies.busy
    assert device.staging.pinned_bytes == 2 << 18


def test_where_the_host_has_no_such_memory_the_driver_copies(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, device = opened()

    def none(size: int) -> Array:
        raise OutOfMemory("out of memory")

    monkeypatch.setattr(device.context, "pinned", none)
    source, target = np.arange(50_000.0), np.zeros((50_000, 2))[:, 0]
    there_and_back(device, source, target)
    assert np.array_equal(source, target)
    assert device.staging.pinned_bytes == 0


def test_what_the_device_may_still_write_is_not_used_again() -> None:
    driver = FaultyDriver()
    device = driver.opened(0)
    address = device.pool.take(1 << 18, "x", "f", device.plain)
    for failing in (1, 2):
        copies, target = device.transfers(device.plain), np.zeros(1 << 15)
        copies.download(target, address)
        driver.arm("record", 1, times=failing)
        with pytest.raises(DriverError):
            copies.finish()
        copies.drop()
        assert not copies.busy and not target.any()
        kept = [held for pieces in device.staging._free.values() for held in pieces]
        assert len(kept) == (failing == 1), "it is kept for later when the stream is done"
        driver.arm("", 0)


def test_what_fails_is_not_unpacked() -> None:
    _, device = opened()
    copies, target = device.transfers(device.plain), np.zeros(5)
    copies.download(target, device.pool.take(40, "x", "f", device.plain))
    copies.drop()
    assert not target.any()
