"""A driver that does everything as late as it may: what nobody waits for is not there yet.

What is queued on a stream is kept, and done when somebody waits for an event behind it. Pages of
the host that no device reaches directly are read when they are given and written before the verb
returns, as drivers do; pinned memory is read and written when the stream comes to it. So whoever
forgets to wait, or lets memory be used too early, computes something wrong.
"""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any

import numpy as np

from .on_cpu import Array, CpuContext, CpuDriver


class LateDriver(CpuDriver):
    """Devices that do nothing before they have to."""

    lock = threading.RLock()
    """Held while anything is done: any thread may ask."""

    def open(self, device: int) -> LateContext:
        return LateContext(self, device)


class LateContext(CpuContext):
    """One such device."""

    driver: LateDriver

    def __init__(self, driver: LateDriver, device: int) -> None:
        super().__init__(driver, device)
        self.queues: dict[Any, deque[Callable[[], None]]] = defaultdict(deque)
        self.done: dict[Any, int] = defaultdict(int)
        self.queued: dict[Any, int] = defaultdict(int)
        self.points: dict[int, tuple[Any, int]] = {}
        self.pages: list[Array] = []

    def _later(self, stream: Any, work: Callable[[], None]) -> None:
        with self.driver.lock:
            self.queues[stream].append(work)
            self.queued[stream] += 1

    def reach(self, stream: Any, point: int) -> None:
        """Do what is queued on a stream up to a point."""
        with self.driver.lock:
            while self.done[stream] < point:
                self.done[stream] += 1
                self.queues[stream].popleft()()

    def pinned(self, size: int) -> Array:
        made = super().pinned(size)
        made[:] = 0xEE
        self.pages.append(made)
        return made

    def _is_pinned(self, array: Array) -> bool:
        return any(np.may_share_memory(array, page) for page in self.pages)

    def allocate(self, size: int, stream: Any) -> int:
        with self.driver.lock:
            return super().allocate(size, stream)

    def free(self, address: int, stream: Any) -> None:
        with self.driver.lock:
            self.finish()
            super().free(address, stream)

    def upload(self, address: int, array: Array, stream: Any) -> None:
        source = array if self._is_pinned(array) else array.copy()
        self._later(stream, lambda: super(LateContext, self).upload(address, source, stream))

    def download(self, array: Array, address: int, stream: Any) -> None:
        self._later(stream, lambda: super(LateContext, self).download(array, address, stream))
        if not self._is_pinned(array):
            self.reach(stream, self.queued[stream])

    def copy(self, address: int, source: int, size: int, stream: Any) -> None:
        self._later(stream, lambda: super(LateContext, self).copy(address, source, size, stream))

    def copy_from(self, other: Any, address: int, source: int, size: int, stream: Any) -> None:
        ends = other, address, source, size
        self._later(stream, lambda: super(LateContext, self).copy_from(*ends, stream))

    def clear(self, address: int, size: int, stream: Any) -> None:
        self._later(stream, lambda: super(LateContext, self).clear(address, size, stream))

    def launch(
        self, function: Any, grid: Any, block: Any, arguments: Any, stream: Any, given: int = 0
    ) -> None:
        values = function, grid, block, list(arguments), stream, given
        self._later(stream, lambda: super(LateContext, self).launch(*values))

    def record(self, event: Any, stream: Any) -> None:
        super().record(event, stream)
        self.points[id(event)] = stream, self.queued[stream]

    def wait(self, stream: Any, event: Any) -> None:
        super().wait(stream, event)
        where, point = self.points[id(event)]
        self._later(stream, lambda: self.reach(where, point))

    def follow(self, stream: Any, other: int) -> None:
        super().follow(stream, other)
        self._chain(self.called(other), stream)

    def lead(self, other: int, stream: Any) -> None:
        super().lead(other, stream)
        self._chain(stream, self.called(other))

    def _chain(self, first: Any, then: Any) -> None:
        point = self.queued[first]
        self._later(then, lambda: self.reach(first, point))

    def called(self, number: int) -> str:
        """The stream of a number."""
        return f"stream {number - 4096}" if number >= 4096 else f"theirs {number}"

    def query(self, event: Any) -> bool:
        where, point = self.points[id(event)]
        return self.done[where] >= point

    def synchronize(self, event: Any) -> None:
        super().synchronize(event)
        self.reach(*self.points[id(event)])

    def finish(self) -> None:
        super().finish()
        for stream in list(self.queues):
            self.reach(stream, self.queued[stream])
