"""Streams of other packages and ours wait for each other; the host only where none is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from plusequals.backends.device_arrays.device_array import PlacedArray, StreamOrder
from plusequals.backends.gpu.stream_sync import signal_foreign, wait_for_foreign
from plusequals.base.diagnostic import CdTypeError

from ..cuda.on_cpu import CpuDriver


def placed(order: StreamOrder, ordinal: int | None = 0) -> PlacedArray:
    return PlacedArray(4096, (3,), np.dtype("f4"), ordinal, None, True, order, None)


@pytest.mark.parametrize(
    ("orders", "first", "then", "waits"),
    [
        ([77, 77], [("follow", 77)], [("lead", 77)], False),
        ([77, 2], [("follow", 77), ("follow", 2)], [("lead", 77), ("lead", 2)], False),
        (["done"], [], [], True),
        (["legacy", 77], [("follow", 1), ("follow", 77)], [], True),
        (["unknown", "legacy"], [("finish",)], [], True),
        ([], [], [], False),
    ],
)
def test_who_waits(orders: list[Any], first: Any, then: Any, waits: bool) -> None:
    driver = CpuDriver()
    device = driver.opened(0)
    arrays, stream = [placed(order) for order in orders], device.plain
    wait_for_foreign(device, arrays, stream)
    assert _asked(driver) == first
    driver.log.clear()
    assert signal_foreign(device, arrays, stream, "f") is waits
    assert _asked(driver) == then


def _asked(driver: CpuDriver) -> list[tuple[Any, ...]]:
    """What was asked, without our stream."""
    return [(verb, *(one for one in rest if isinstance(one, int)))
            for _, verb, *rest in driver.log]  # fmt: skip


def test_our_own_stream_is_in_order_by_itself() -> None:
    driver = CpuDriver()
    device = driver.opened(0)
    ours = placed(device.context.number(device.plain))
    wait_for_foreign(device, [ours], device.plain)
    assert signal_foreign(device, [ours], device.plain, "f") is False
    assert not driver.log


def test_an_array_elsewhere_is_refused_before_anything_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    driver = CpuDriver()
    device = driver.opened(0)
    for array in (placed(77, 1), placed(77, None)):
        monkeypatch.setattr(device.context, "where", lambda address: 1)
        with pytest.raises(CdTypeError) as caught:
            wait_for_foreign(device, [placed(77), array], device.plain)
        assert caught.value.code == "CD0886"
        assert not driver.log
