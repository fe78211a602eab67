"""The dependences of a sequence of nodes, from what they read and write; ranks.

    Edge(before, after, reasons)    `after` starts when `before` has ended: it conflicts in the
                                    resources that the reasons name, "RAW a" or "WAR b"

Program order is the meaning of a sequence, so that edges point forwards in it, and it is a
topological order. An edge that a longer path implies is redundant: it is not `kept`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from ....base.dataclass import dataclass


class Resource(Protocol):
    """What nodes conflict in: a physical array, or the memory of an argument."""

    @property
    def label(self) -> str:
        """Its name for people."""


class Accesses(Protocol):
    """A node as the analysis sees it."""

    @property
    def reads(self) -> Iterable[Resource]:
        """The resources that it reads."""

    @property
    def writes(self) -> Iterable[Resource]:
        """The resources that it writes."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A dependence between two nodes, by their positions in program order."""

    before: int
    after: int
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Graph:
    """The dependences of a sequence of nodes."""

    size: int
    edges: tuple[Edge, ...]
    """All dependences, in order of their later node."""
    kept: tuple[Edge, ...]
    """Those that no longer path implies."""
    ancestors: tuple[int, ...]
    """For each node the set of nodes that have to end before it starts, as bits."""
    ranks: tuple[int, ...]
    """For each node the number of edges of the longest path that starts there."""

    def predecessors(self) -> list[list[int]]:
        """Return for each node the nodes that a kept edge leads from."""
        out: list[list[int]] = [[] for _ in range(self.size)]
        for edge in self.kept:
            out[edge.after].append(edge.before)
        return out

    def followers(self) -> list[list[int]]:
        """Return for each node the nodes that a kept edge leads to."""
        out: list[list[int]] = [[] for _ in range(self.size)]
        for edge in self.kept:
            out[edge.before].append(edge.after)
        return out


def graph_of(nodes: Sequence[Accesses], explicit: Iterable[Edge] = ()) -> Graph:
    """Return the dependences of nodes in program order, and those that are given beside them.

    Of two accesses of one resource, at least one of which writes, the later one waits: for the last
    write (RAW, WAW), and a write for all reads since the last one (WAR).
    """
    reasons: dict[tuple[int, int], list[str]] = {}
    for before, after, reason in _conflicts(nodes):
        found = reasons.setdefault((before, after), [])
        if reason not in found:
            found.append(reason)
    for edge in explicit:
        reasons.setdefault((edge.before, edge.after), []).extend(edge.reasons)
    edges = sorted(
        (Edge(before, after, tuple(why)) for (before, after), why in reasons.items()),
        key=lambda edge: (edge.after, edge.before),
    )
    kept, ancestors = _reduced(len(nodes), edges)
    return Graph(len(nodes), tuple(edges), kept, ancestors, _ranks(len(nodes), kept))


def _conflicts(nodes: Sequence[Accesses]) -> Iterator[tuple[int, int, str]]:
    """Yield pairs of nodes that have to stay in order, with the reason."""
    writers: dict[int, int] = {}
    readers: dict[int, list[int]] = {}
    for at, node in enumerate(nodes):
        writes = list(node.writes)
        for resource in node.reads:
            writer = writers.get(id(resource))
            if writer is not None:
                yield writer, at, f"RAW {resource.label}"
        for resource in writes:
            for reader in readers.get(id(resource), ()):
                yield reader, at, f"WAR {resource.label}"
            writer = writers.get(id(resource))
            if writer is not None:
                yield writer, at, f"WAW {resource.label}"
        for resource in writes:
            writers[id(resource)] = at
            readers[id(resource)] = []
        written = set(map(id, writes))
        for resource in node.reads:
            if id(resource) not in written:
                readers.setdefault(id(resource), []).append(at)


def _reduced(size: int, edges: Sequence[Edge]) -> tuple[tuple[Edge, ...], tuple[int, ...]]:
    """Return the edges that no longer path implies, and the ancestors of each node.

    The later of two predecessors has the earlier one as an ancestor if there is a path, so that
    they are looked at from the last to the first.
    """
    into: list[list[Edge]] = [[] for _ in range(size)]
    for edge in edges:
        into[edge.after].append(edge)
    kept: list[Edge] = []
    ancestors: list[int] = []
    for at in range(size):
        reached, own = 0, []
        for edge in sorted(into[at], key=lambda edge: -edge.before):
            if not reached >> edge.before & 1:
                own.append(edge)
                reached |= ancestors[edge.before] | 1 << edge.before
        kept += reversed(own)
        ancestors.append(reached)
    return tuple(kept), tuple(ancestors)


def _ranks(size: int, kept: Sequence[Edge]) -> tuple[int, ...]:
    ranks = [0] * size
    for edge in sorted(kept, key=lambda edge: -edge.after):
        ranks[edge.before] = max(ranks[edge.before], ranks[edge.after] + 1)
    return tuple(ranks)
