"""Memory is used again in the order of streams, and what there is too little of is told."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

import pytest

from plusequals.backends.gpu.device import OpenedDevice
from plusequals.backends.gpu.driver_protocol import DriverError, OutOfMemory
from plusequals.base.diagnostic import CdMemoryError

from ..cuda.on_cpu import CpuContext, CpuDriver


def opened(memory: int = 1 << 20) -> tuple[CpuDriver, OpenedDevice]:
    driver = CpuDriver(memory=memory)
    return driver, driver.opened(0)


def asked(driver: CpuDriver, verb: str) -> list[tuple[object, ...]]:
    return [what[2:] for what in driver.log if what[1] == verb]


def test_memory_is_used_again_without_waiting() -> None:
    driver, device = opened()
    stream, pool = device.plain, device.pool
    first = pool.take(1000, "x", "f", stream)
    pool.give_back([first], stream)
    assert pool.take(900, "y", "f", stream) == first
    assert pool.take(900, "z", "f", stream) != first
    assert asked(driver, "allocate") == [(1024,), (1024,)]
    assert not asked(driver, "synchronize") and not asked(driver, "wait")


def test_another_stream_waits_on_the_device_for_what_used_it_last() -> None:
    driver, device = opened()
    one, other, pool = device.stream(), device.stream(), device.pool
    first = pool.take(512, "x", "f", one)
    second = pool.take(512, "x", "f", other)
    pool.give_back([first], one)
    pool.give_back([second], other)
    assert pool.take(512, "y", "g", other) == second, "its own is taken first"
    assert not asked(driver, "wait")
    assert pool.take(512, "y", "g", other) == first
    names = [what[1:] for what in driver.log[-2:]]
    assert names[0][0] == "record" and names[0][2] == one
    assert names[1][:2] == ("wait", other)
    assert names[1][2] == names[0][1], "for the event that was just recorded"


def test_what_is_kept_goes_before_anything_is_refused() -> None:
    driver, device = opened(memory=4096)
    stream, pool = device.plain, device.pool
    pieces = [pool.take(1024, "x", "f", stream) for _ in range(4)]
    pool.give_back(pieces, stream)
    assert pool.pooled_bytes == 4096
    assert pool.take(4096, "y", "f", stream)
    assert asked(driver, "free") == [(1024,)] * 4
    assert (pool.used, pool.pooled_bytes) == (4096, 0)


def test_out_of_memory_tells_who_holds_it_and_leaves_all_usable() -> None:
    _, device = opened(memory=8192)
    stream, pool = device.plain, device.pool
    held = [pool.take(256 * k, f"x{k}", "load", stream) for k in range(1, 7)]
    with pytest.raises(CdMemoryError) as caught:
        pool.take(1 << 20, "weights", "train", stream)
    assert str(caught.value) == (
        "error[CD0880]: `weights` of `train` takes 1,048,576 bytes of cuda:0, "
        "which has 2,816 left\n"
        "  = note: `x6` of `load` holds 1,536 bytes\n"
        "  = note: `x5` of `load` holds 1,280 bytes\n"
        "  = note: `x4` of `load` holds 1,024 bytes\n"
        "  = note: `x3` of `load` holds 768 bytes\n"
        "  = note: 2 smaller arrays hold 768 bytes\n"
        "  = help: work on smaller pieces, or let go of tensors and contexts on the device"
    )
    assert pool.take(2048, "y", "f", stream) not in held
    assert pool.used == 256 * 21 + 2048


def test_what_others_had_is_used_when_the_device_is_done() -> None:
    driver, device = opened()
    stream, pool = device.plain, device.pool
    mine, lent = (pool.take(512, "r", "f", stream) for _ in range(2))
    pool.returned(mine, stream, lent=False)
    assert pool.used == 512
    assert not asked(driver, "finish")
    pool.returned(lent, stream, lent=True)
    assert pool.used == 0
    assert asked(driver, "finish") == [()]
    assert {pool.take(512, "s", "f", stream) for _ in range(2)} == {mine, lent}


def test_a_driver_that_fails_while_memory_is_handed_over_loses_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, device = opened(memory=512)
    one, other, pool = device.stream(), device.stream(), device.pool
    first = pool.take(512, "x", "f", one)
    pool.give_back([first], one)

    def fails(*_: object) -> None:
        raise DriverError("unknown error")

    with monkeypatch.context() as patched:
        patched.setattr(device.context, "wait", fails)
        with pytest.raises(DriverError):
            pool.take(512, "y", "g", other)
    assert pool.take(512, "y", "g", other) == first


class Interrupted(CpuContext):
    """A device during whose verbs the collector may run, and with it finalizers that use it."""

    also: Callable[[], None] | None = None

    def _interrupt(self) -> None:
        also, self.also = self.also, None
        if also is not None:
            also()
            self.also = also

    def allocate(self, size: int, stream: Any) -> int:
        self._interrupt()
        return super().allocate(size, stream)

    def free(self, address: int, stream: Any) -> None:
        self._interrupt()
        super().free(address, stream)

    def wait(self, stream: Any, event: Any) -> None:
        self._interrupt()
        super().wait(stream, event)

    def finish(self) -> None:
        self._interrupt()
        super().finish()


@pytest.mark.parametrize("seed", range(20))
def test_finalizers_may_use_memory_while_it_is_taken_and_given_back(seed: int) -> None:
    random, driver = Random(seed), CpuDriver(memory=256 * 24)
    context = Interrupted(driver, 0)
    device = OpenedDevice(context, driver.properties(0), 0)
    streams, pool = [device.stream() for _ in range(3)], device.pool
    held: list[tuple[int, Any]] = []

    def act() -> None:
        what = random.choice(("take", "take", "give", "return", "lent", "trim"))
        if what == "take":
            stream = random.choice(streams)
            with suppress(CdMemoryError):
                address = pool.take(random.choice((200, 500)), "x", "f", stream)
                assert address not in [one for one, _ in held], "nobody else has it"
                held.append((address, stream))
        elif what == "trim":
            pool.trim()
        elif held:
            address, stream = held.pop(random.randrange(len(held)))
            if what == "give":
                pool.give_back([address], stream)
            else:
                pool.returned(address, stream, lent=what == "lent")

    context.also = act
    for _ in range(300):
        act()
    context.also = None
    for address, stream in held:
        pool.returned(address, stream, lent=False)
    assert (pool.used, pool.pooled_bytes) == (0, context.used)
    pool.trim()
    assert (pool.pooled_bytes, context.used) == (0, 0)


def test_where_even_the_rest_is_not_known_it_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    _, device = opened()

    def full(*_: object) -> int:
        raise OutOfMemory("out of memory")

    def fails() -> int:
        raise DriverError("unknown error")

    monkeypatch.setattr(device.context, "allocate", full)
    monkeypatch.setattr(device.context, "free_memory", fails)
    with pytest.raises(CdMemoryError, match="takes 5 bytes of cuda:0\n"):
        device.pool.take(5, "y", "g", device.plain)
