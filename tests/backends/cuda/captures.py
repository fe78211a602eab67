"""A driver with captures, strict as drivers are, whose graphs run in any order that they allow.

While a stream is captured, what is queued on it becomes a node, and depends on what the stream had
so far; an event of it lets another stream join. A graph that is launched does its nodes in a random
topological order, so that a dependence that is missing gives wrong numbers. What a driver refuses
meanwhile, in its strictest mode, breaks the capture.
"""

from __future__ import annotations

import ctypes
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from plusequals.backends.gpu.driver_protocol import DriverError
from plusequals.backends.runtime.state import RUNTIME

from .faulty import FaultyContext, FaultyDriver
from .on_cpu import Array, CpuContext, backend, installed

Node = tuple[Callable[[], None], frozenset[int]]
"""Work, and the numbers of the nodes that it depends on."""
UNSET = 0xDEAD
MOST_ROUNDS = 10_000


@dataclass(eq=False)
class Condition:
    """A condition of a graph: its number is the address of a word, which kernels set."""

    word: Any = field(default_factory=lambda: ctypes.c_uint32(UNSET))
    has_node: bool = False

    @property
    def number(self) -> int:
        return ctypes.addressof(self.word)

    def take(self) -> bool:
        """Return whether it is set, and forget that: it has to be set before each look."""
        value, self.word.value = self.word.value, UNSET
        assert value in (0, 1), "no kernel has set the condition of a node"
        return bool(value)


@dataclass(eq=False)
class Capture:
    """Work that is being captured: each node with those that it depends on."""

    origin: Any
    thread: int = field(default_factory=threading.get_ident)
    nodes: list[Node] = field(default_factory=list)
    tails: dict[Any, frozenset[int]] = field(default_factory=dict)
    """What later work of each stream depends on."""
    broken: str = ""
    is_body: bool = False
    """Whether it is that of a conditional node: of one device, without other packages' work."""
    conditions: dict[int, Condition] = field(default_factory=dict)
    """The conditions of its graph, and of those around it, by their numbers."""

    def ancestors(self, ends: frozenset[int]) -> frozenset[int]:
        reached, left = set(ends), list(ends)
        while left:
            for before in self.nodes[left.pop()][1] - reached:
                reached.add(before)
                left.append(before)
        return frozenset(reached)


@dataclass(eq=False)
class Graph:
    """An executable graph."""

    nodes: Sequence[Node]
    conditions: Sequence[Condition] = ()
    destroyed: bool = False
    launches: int = 0

    def run(self, rng: random.Random) -> None:
        """Do the nodes in a random order in which each comes after those that it depends on."""
        assert not self.destroyed, "a graph is destroyed before it has run"
        for condition in self.conditions:
            condition.word.value = UNSET
        do_nodes(self.nodes, rng)


def do_nodes(nodes: Sequence[Node], rng: random.Random) -> None:
    """Do nodes in a random order in which each comes after those that it depends on."""
    left = dict(enumerate(nodes))
    while left:
        ready = [at for at, (_, before) in left.items() if not before & left.keys()]
        left.pop(rng.choice(ready))[0]()


class CapturingDriver(FaultyDriver):
    """Devices whose work can be captured."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self.rng = random.Random(seed)
        self.graphs: list[Graph] = []

    def open(self, device: int) -> CapturingContext:
        return CapturingContext(self, device)

    def dependences(self) -> list[list[int]]:
        """Return what each node of the last graph depends on."""
        return [sorted(before) for _, before in self.graphs[-1].nodes]


@contextmanager
def captured_devices() -> Iterator[CapturingDriver]:
    """Have the devices of CUDA be such ones, until what was queued on them has ended."""
    found = CapturingDriver()
    with installed(backend(found)):
        yield found
        for device in list(RUNTIME.devices.values()):
            device.synchronize()


class CapturingContext(FaultyContext):
    """One such device."""

    driver: CapturingDriver

    def __init__(self, driver: CapturingDriver, device: int) -> None:
        super().__init__(driver, device)
        self.captures: dict[Any, Capture] = {}
        """The captured streams."""
        self.captured: dict[int, tuple[Capture, frozenset[int]]] = {}
        """The captured events, by identity."""

    def begin_capture(self, stream: Any) -> None:
        self.driver.called("begin_capture")
        with self.driver.lock:
            if stream in self.captures:
                raise DriverError("the stream is captured already")
            self.captures[stream] = made = Capture(stream)
            made.tails[stream] = frozenset()

    def end_capture(self, stream: Any) -> Graph:
        with self.driver.lock:
            made = self.captures.get(stream)
            if made is None or made.origin != stream:
                raise DriverError("no capture began on the stream")
            for each in made.tails:
                del self.captures[each]
        self.driver.called("end_capture")
        if made.broken:
            raise DriverError(f"the capture is invalid: {made.broken}")
        joined = made.ancestors(made.tails[stream])
        for each, tail in made.tails.items():
            if not tail <= joined:
                raise DriverError(f"{each} has not joined the stream of its capture")
        unused = [each for each in made.conditions.values() if not each.has_node]
        if unused:
            raise DriverError(f"{len(unused)} conditions have no node")
        graph = Graph(tuple(made.nodes), tuple(made.conditions.values()))
        self.driver.graphs.append(graph)
        return graph

    def condition(self, stream: Any) -> int:
        self.driver.called("condition")
        with self.driver.lock:
            if stream not in self.captures:
                raise DriverError("a condition is that of a graph that is captured")
            made = Condition()
            self.captures[stream].conditions[made.number] = made
            return made.number

    def conditional(self, stream: Any, condition: int, repeats: bool) -> Capture:
        self.driver.called("conditional")
        with self.driver.lock:
            outer = self.captures[stream]
            held = outer.conditions.get(condition)
            if held is None or held.has_node:
                raise DriverError("a node needs a condition of its graph that no other node has")
            held.has_node = True
        body = Capture(None, conditions=outer.conditions, is_body=True)

        def run() -> None:
            rounds = 0
            while held.take():
                do_nodes(body.nodes, self.driver.rng)
                rounds += 1
                assert rounds < MOST_ROUNDS, "a loop of a graph does not end"
                if not repeats:
                    break

        self._node(stream, run)
        return body

    def begin_body(self, stream: Any, body: Capture) -> None:
        self.driver.called("begin_body")
        with self.driver.lock:
            if stream in self.captures:
                raise DriverError("the stream is captured already")
            if not body.is_body or body.nodes:
                raise DriverError("no body that is empty")
            self.captures[stream] = body
            body.origin, body.tails[stream] = stream, frozenset()

    def end_body(self, stream: Any) -> None:
        self.driver.called("end_body")
        with self.driver.lock:
            made = self.captures.get(stream)
            if made is None or not made.is_body or made.origin != stream:
                raise DriverError("no capture of a body began on the stream")
            for each in made.tails:
                del self.captures[each]
        if made.broken:
            raise DriverError(f"the capture is invalid: {made.broken}")

    def launch_graph(self, graph: Graph, stream: Any) -> None:
        self.driver.called("launch_graph")
        self._forbid("a graph is launched", stream)
        self.note("launch_graph", stream)
        graph.launches += 1
        self._later(stream, lambda: graph.run(self.driver.rng))

    def destroy_graph(self, graph: Graph) -> None:
        self.driver.called("destroy_graph")
        assert not graph.destroyed
        graph.destroyed = True

    # ------------------------------------------------------------------- what is queued meanwhile

    def _node(self, stream: Any, work: Callable[[], None]) -> bool:
        """Take work of a captured stream; return whether it is one."""
        with self.driver.lock:
            made = self.captures.get(stream)
            if made is None:
                return False
            made.nodes.append((work, made.tails[stream]))
            made.tails[stream] = frozenset((len(made.nodes) - 1,))
            return True

    def _forbid(self, what: str, stream: Any = None) -> None:
        """Break the captures that some work may not meet: of a stream, else of this thread."""
        mine = threading.get_ident()
        for made in {*self.captures.values()}:
            if made is self.captures.get(stream) or (stream is None and made.thread == mine):
                made.broken = what
                raise DriverError(f"{what} while a stream is captured")

    def copy(self, address: int, source: int, size: int, stream: Any) -> None:
        if not self._node(stream, lambda: CpuContext.copy(self, address, source, size, stream)):
            super().copy(address, source, size, stream)

    def copy_from(self, other: Any, address: int, source: int, size: int, stream: Any) -> None:
        ends = other, address, source, size, stream
        made = self.captures.get(stream)
        if made is not None and made.is_body and other is not self:
            self._forbid("memory of another device is copied in a body", stream)
        if not self._node(stream, lambda: CpuContext.copy_from(self, *ends)):
            super().copy_from(*ends)

    def clear(self, address: int, size: int, stream: Any) -> None:
        if not self._node(stream, lambda: CpuContext.clear(self, address, size, stream)):
            super().clear(address, size, stream)

    def launch(
        self, function: Any, grid: Any, block: Any, arguments: Any, stream: Any, given: int = 0
    ) -> None:
        values = function, grid, block, list(arguments), stream, given
        if stream in self.captures:
            self.driver.called("launch")
        if not self._node(stream, lambda: CpuContext.launch(self, *values)):
            super().launch(*values)

    def record(self, event: Any, stream: Any) -> None:
        with self.driver.lock:
            made = self.captures.get(stream)
            self.captured.pop(id(event), None)
            if made is not None:
                self.driver.called("record")
                self.captured[id(event)] = made, made.tails[stream]
                return
        super().record(event, stream)

    def wait(self, stream: Any, event: Any) -> None:
        with self.driver.lock:
            made, (theirs, tail) = (
                self.captures.get(stream), self.captured.get(id(event), (None, frozenset())),
            )  # fmt: skip
            if theirs is None and made is None:
                super().wait(stream, event)
                return
            self.driver.called("wait")
            if theirs is None or self.captures.get(theirs.origin) is not theirs:
                self._forbid("an event that is not captured is waited for", stream)
                raise DriverError("the event was captured, and nothing has been recorded since")
            if made not in (None, theirs):
                self._forbid("an event of another capture is waited for", stream)
            self.captures[stream] = theirs
            theirs.tails[stream] = theirs.tails.get(stream, frozenset()) | tail

    # ------------------------------------------------------------------------ what breaks captures

    def _ask(self, what: str, event: Any) -> None:
        made, _ = self.captured.get(id(event), (None, None))
        if made is not None:
            made.broken = what
            raise DriverError(f"{what} that was captured")

    def query(self, event: Any) -> bool:
        self._ask("an event is queried", event)
        return super().query(event)

    def synchronize(self, event: Any) -> None:
        self._ask("an event is waited for", event)
        super().synchronize(event)

    def finish(self) -> None:
        with self.capturing:
            for made in {*self.captures.values()}:
                made.broken = "the device is waited for"
                raise DriverError("the device is waited for while a stream is captured")
            super().finish()

    def allocate(self, size: int, stream: Any) -> int:
        self._forbid("memory is allocated")
        return super().allocate(size, stream)

    def free(self, address: int, stream: Any) -> None:
        self._forbid("memory is freed")
        with self.capturing:  # before the lock of the driver: a late one finishes all work
            super().free(address, stream)

    def pinned(self, size: int) -> Array:
        self._forbid("memory is pinned")
        return super().pinned(size)

    def upload(self, address: int, array: Array, stream: Any) -> None:
        self._forbid("memory of the host is copied", stream)
        super().upload(address, array, stream)

    def download(self, array: Array, address: int, stream: Any) -> None:
        self._forbid("memory of the host is copied", stream)
        super().download(array, address, stream)

    def follow(self, stream: Any, other: int) -> None:
        self._forbid("a stream of another package is waited for", stream)
        super().follow(stream, other)

    def lead(self, other: int, stream: Any) -> None:
        self._forbid("a stream of another package waits", stream)
        super().lead(other, stream)
