"""A stream for each node of a graph, and the signals and waits between streams.

The algorithm is that of NNC (libccv, "static schedule"): nodes are visited in program order; one
without a stream gets one, and passes it on to its follower of the highest rank on the same device,
and so on. A stream is recycled for a node only if its last node is an ancestor, so that no node
waits for what it does not need. Among several streams, or followers of one rank, those that fit the
kind of work that the stream ran are preferred: they share memory and code.

At a cap of streams one is reused whose last node does not depend on the new node, with an edge of
its own. The cap is soft: where there is no such stream, and for each device, a new one is made.

A node on several devices has one stream on each; it is issued on its first one, and joins all.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Protocol

from ....base.dataclass import dataclass
from .graph import Edge, Graph

ORDER = "order on a stream"
"""The reason of an edge that a cap of streams made."""


class Placed(Protocol):
    """A node as the assignment of streams sees it."""

    @property
    def kind(self) -> str:
        """What kind of work it is."""

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices that it runs on, at least one."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """The streams of the nodes of a body, which starts and ends on stream 0."""

    order: tuple[int, ...]
    """The nodes in the order in which they are issued: a topological one, and each stream's."""
    streams: tuple[tuple[int, ...], ...]
    """For each node its streams, one for each device; it is issued on the first one."""
    devices: tuple[str, ...]
    """The device of each stream."""
    waits: tuple[tuple[int, ...], ...]
    """For each node the nodes of other streams that it waits for."""
    first: tuple[int, ...]
    """The nodes that wait for the begin of the body."""
    last: tuple[int, ...]
    """The nodes of other streams that its end waits for."""
    added: tuple[Edge, ...] = ()
    """The edges that a cap of streams made."""

    @property
    def signals(self) -> frozenset[int]:
        """The nodes that are waited for, also at the end."""
        return frozenset(p for waits in self.waits for p in waits) | frozenset(self.last)


class _Stream:
    __slots__ = ("device", "kinds", "last", "number")

    def __init__(self, number: int, device: str) -> None:
        self.number, self.device = number, device
        self.kinds: set[str] = set()
        self.last = -1
        """The last node put on it, -1 for none."""


def schedule(nodes: Sequence[Placed], graph: Graph, max_streams: int | None = None) -> Schedule:
    """Return the schedule of nodes, which uses at most so many streams if it can.

    Postcondition: two nodes of one stream are in order by the graph or by an added edge; each node
    comes in `order` after those that it waits for.
    """
    assignment = _Assignment(nodes, graph, max_streams)
    for at in range(len(nodes)):
        assignment.visit(at)
    return assignment.finished()


class _Assignment:
    """Streams while they are being chosen."""

    def __init__(self, nodes: Sequence[Placed], graph: Graph, cap: int | None) -> None:
        self.nodes, self.graph, self.cap = nodes, graph, cap
        self.streams: list[_Stream] = []
        self.chosen: list[list[int]] = [[] for _ in nodes]
        self.ancestors = list(graph.ancestors)
        self.followers = graph.followers()
        self.added: list[Edge] = []
        self.sequences: list[list[int]] = []
        """The nodes of each stream in order."""

    def visit(self, at: int) -> None:
        """Give a node the streams that it lacks, and pass the first one on along a chain."""
        for device in self.nodes[at].devices:
            if not any(self.streams[s].device == device for s in self.chosen[at]):
                self._put(at, self._stream_for(at, device))
        self.chosen[at].sort(key=lambda s: self.nodes[at].devices.index(self.streams[s].device))
        if self.cap != 1:
            self._pass_on(at)

    def _pass_on(self, at: int) -> None:
        """Give the first stream of a node to a chain of followers that have none."""
        stream = self.streams[self.chosen[at][0]]
        while True:
            open_ = [
                n for n in self.followers[at]
                if not self.chosen[n] and stream.device in self.nodes[n].devices
            ]  # fmt: skip
            if stream.last != at or not open_:
                return
            rank, kinds = self.graph.ranks, stream.kinds
            at = max(open_, key=lambda n: (rank[n], self.nodes[n].kind in kinds, -n))
            self._put(at, stream)

    def _put(self, at: int, stream: _Stream) -> None:
        if stream.last >= 0 and not self.ancestors[at] >> stream.last & 1:
            self._add(stream.last, at)
        stream.last = at
        stream.kinds.add(self.nodes[at].kind)
        self.chosen[at].append(stream.number)
        self.sequences[stream.number].append(at)

    def _add(self, before: int, after: int) -> None:
        """Add an edge between two nodes of one stream that are independent otherwise."""
        self.added.append(Edge(before, after, (ORDER,)))
        if self.cap == 1:  # nodes are put in program order: nothing later is an ancestor
            return
        self.followers[before].append(after)
        reached = self.ancestors[before] | 1 << before
        for n, ancestors in enumerate(self.ancestors):
            if n == after or ancestors >> after & 1:
                self.ancestors[n] = ancestors | reached

    def _stream_for(self, at: int, device: str) -> _Stream:
        """Return the stream of a device for a node: a recycled one, a new one, or at the cap any
        whose last node does not depend on it."""
        kind = self.nodes[at].kind
        own = [s for s in self.streams if s.device == device and s.number not in self.chosen[at]]
        free = [s for s in own if self.ancestors[at] >> s.last & 1]
        if not free and self.cap and len(self.streams) >= self.cap:
            free = [s for s in own if not self.ancestors[s.last] >> at & 1]
        if free:
            return max(free, key=lambda s: (kind in s.kinds, -s.number))
        stream = _Stream(len(self.streams), device)
        self.streams.append(stream)
        self.sequences.append([])
        return stream

    def finished(self) -> Schedule:
        """Return the schedule: the order of issue, and what each node waits for."""
        predecessors = self.graph.predecessors()
        for sequence in self.sequences:
            for before, after in zip(sequence, sequence[1:], strict=False):
                predecessors[after].append(before)
        order = _topological_order(predecessors)
        home = [streams[0] for streams in self.chosen]
        known = [0] * len(self.streams)
        """What has ended when the next node of a stream starts, as bits."""
        after_node = [0] * len(self.nodes)
        waits: list[tuple[int, ...]] = [()] * len(self.nodes)
        for at in order:
            stream, own = home[at], []
            latest_first = sorted({*predecessors[at]}, key=lambda p: -after_node[p].bit_count())
            for p in latest_first:
                if home[p] != stream and not known[stream] >> p & 1:
                    own.append(p)
                    known[stream] |= after_node[p]
            waits[at] = tuple(sorted(own))
            after_node[at] = known[stream] = known[stream] | 1 << at
        return Schedule(
            tuple(order), tuple(map(tuple, self.chosen)), tuple(s.device for s in self.streams),
            tuple(waits), self._first(order, home, waits), self._last(home, known, after_node),
            tuple(self.added),
        )  # fmt: skip

    def _first(
        self, order: Sequence[int], home: Sequence[int], waits: Sequence[tuple[int, ...]]
    ) -> tuple[int, ...]:
        """Return the nodes that start a stream other than 0 and wait for no node."""
        begun: set[int] = set()
        first = []
        for at in order:
            if home[at] and home[at] not in begun and not waits[at]:
                first.append(at)
            begun.add(home[at])
        return tuple(first)

    def _last(
        self, home: Sequence[int], known: Sequence[int], after_node: Sequence[int]
    ) -> tuple[int, ...]:
        """Return the last nodes of other streams that stream 0 has not waited for."""
        ended = known[0] if known else 0
        tails = [s[-1] for s in self.sequences if s and home[s[-1]] != 0]
        last = []
        for at in sorted({*tails}, key=lambda p: -after_node[p].bit_count()):
            if not ended >> at & 1:
                last.append(at)
                ended |= after_node[at]
        return tuple(sorted(last))


def _topological_order(predecessors: Sequence[Sequence[int]]) -> list[int]:
    """Return the nodes so that predecessors come first, otherwise in program order (Kahn)."""
    missing = [len({*before}) for before in predecessors]
    followers: list[list[int]] = [[] for _ in predecessors]
    for at, before in enumerate(predecessors):
        for p in {*before}:
            followers[p].append(at)
    ready = [at for at, count in enumerate(missing) if not count]
    order = []
    while ready:
        at = heapq.heappop(ready)
        order.append(at)
        for n in followers[at]:
            missing[n] -= 1
            if not missing[n]:
                heapq.heappush(ready, n)
    assert len(order) == len(predecessors), "added edges make no cycle"
    return order
