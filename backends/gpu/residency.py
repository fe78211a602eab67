"""Resident arrays: allocation in device memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...base.finalizers import call_when_unreachable
from ..captures import GraphStep, NotCapturable
from ..device_arrays.device_array import DeviceArray
from .conditions import Conditions
from .driver_protocol import Handle, NotSupported


class DeviceMemory:
    """The memory of a device, for resident arrays."""

    def __init__(self, opened: Any) -> None:
        self.opened = opened

    def lane(self) -> Handle:
        """Return a new stream of the device."""
        with self.opened.working("a new stream"):
            return self.opened.stream()

    def spare(self, lane: Handle) -> None:
        """Return a stream for reuse; lock-free, so that finalizers may call it."""
        self.opened.spare.append(lane)

    def trim(self) -> int:
        """Free the unused blocks of the pool; return how many bytes they had."""
        with self.opened.working("giving memory back"):
            return int(self.opened.pool.trim())

    @property
    def pooled_bytes(self) -> int:
        """The bytes of unused blocks in the pool."""
        with self.opened.working("a look at its memory"):
            return int(self.opened.pool.pooled_bytes)

    def empty(self, shape: Sequence[int], dtype: Any, what: str, lane: Handle) -> DeviceArray:
        """Return a new uninitialized array; raises CdMemoryError CD0880."""
        with self.opened.working(what):
            size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
            address = self.opened.pool.take(size, what, self.opened.name, lane)
            return DeviceArray(self.opened, address, shape, dtype, lane)

    def graph(self, name: str, steps: Sequence[GraphStep], lane: Handle) -> Callable[[], object]:
        """Return a function that launches steps as a graph on a stream, and waits for its end.

        See `HasGraphs`; the function raises CdBackendError CD0884, in a forked child CD0882.
        """
        opened = self.opened

        def empty(count: int) -> DeviceArray:
            return self.empty((count,), np.int64, name, lane)

        conditions = Conditions(opened.context, empty, opened.condition_kernels)
        with opened.working(name, stream=lane):
            try:
                graph, memory = opened.graphs.capture(steps, opened, lane, conditions)
            except NotSupported as why:
                raise NotCapturable(str(why)) from None
        dropped = call_when_unreachable(opened.graphs.dropped.append, graph)

        def launch(held: object = (memory, dropped)) -> None:
            with opened.working(name, stream=lane):
                opened.context.launch_graph(graph, lane)
                opened.wait(lane)
            conditions.require()

        return launch

    @property
    def properties(self) -> dict[str, object]:
        """Properties of the device, for display."""
        device_properties = self.opened.properties
        return {
            "name": self.opened.name,
            "model": device_properties.name,
            "architecture": device_properties.target,
            "multiprocessors": device_properties.multiprocessors,
            "memory": device_properties.memory,
            "copy engines": device_properties.copy_engines,
            "uses host memory": False,
        }

    @property
    def suggested_streams(self) -> int:
        """The recommended number of streams: one for kernels, and one per copy engine."""
        return 1 + int(self.opened.properties.copy_engines)
