"""Dependences: reasons, what is redundant, ranks."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass

import pytest

from plusequals.backends.runtime.plan.graph import Edge, Graph, graph_of


@dataclass(frozen=True, eq=False)
class Array:
    label: str


@dataclass(frozen=True)
class Node:
    reads: tuple[Array, ...] = ()
    writes: tuple[Array, ...] = ()
    kind: str = "routine"
    devices: tuple[str, ...] = ("cc:0",)


ARRAYS = {name: Array(name) for name in "abcdefgh"}


def nodes(*texts: str) -> list[Node]:
    """Return nodes from texts like `bc=a`, which reads a and writes b and c."""
    made = []
    for text in texts:
        writes, _, reads = text.partition("=")
        made.append(Node(tuple(ARRAYS[n] for n in reads), tuple(ARRAYS[n] for n in writes)))
    return made


def pairs(graph: Graph) -> list[tuple[int, int]]:
    return [(edge.before, edge.after) for edge in graph.kept]


def test_each_conflict_is_an_edge_with_its_reasons() -> None:
    graph = graph_of(nodes("a=", "b=a", "ab=a", "=b"))
    assert [(e.before, e.after, e.reasons) for e in graph.edges] == [
        (0, 1, ("RAW a",)),
        (0, 2, ("RAW a", "WAW a")),
        (1, 2, ("WAR a", "WAW b")),
        (2, 3, ("RAW b",)),
    ]


@pytest.mark.parametrize(
    ("texts", "kept", "ranks"),
    [
        (["a=", "b=a", "c=a", "d=bc"], [(0, 1), (0, 2), (1, 3), (2, 3)], (2, 1, 1, 0)),
        (["a=", "b=a", "c=ab"], [(0, 1), (1, 2)], (2, 1, 0)),
        (["a=", "b=", "=a", "=b"], [(0, 2), (1, 3)], (1, 1, 0, 0)),
        (["a=", "a=a", "a=a"], [(0, 1), (1, 2)], (2, 1, 0)),
        (["=a", "=a", "a="], [(0, 2), (1, 2)], (1, 1, 0)),
        (["a=", "a="], [(0, 1)], (1, 0)),
        (["=a", "=a"], [], (0, 0)),
        ([], [], ()),
    ],
)
def test_what_a_path_implies_is_no_edge(
    texts: list[str], kept: list[tuple[int, int]], ranks: tuple[int, ...]
) -> None:
    graph = graph_of(nodes(*texts))
    assert (pairs(graph), graph.ranks) == (kept, ranks)


def test_an_explicit_edge_counts_as_others() -> None:
    graph = graph_of(nodes("a=", "b=", "c=b"), [Edge(0, 2, ("asked",))])
    assert pairs(graph) == [(0, 2), (1, 2)]


def test_reduction_keeps_what_is_reached() -> None:
    rng = random.Random(7)
    for _ in range(200):
        names = rng.choices("abcd", k=24)
        texts = ["".join({*names[n : n + 2]}) + "=" + names[n + 2] for n in range(0, 24, 3)]
        graph = graph_of(nodes(*texts))
        reached = [0] * graph.size
        for edge in sorted(graph.kept, key=lambda e: e.after):
            reached[edge.after] |= reached[edge.before] | 1 << edge.before
        assert tuple(reached) == graph.ancestors
        assert all(reached[e.after] >> e.before & 1 for e in graph.edges)
        for left_out in graph.kept:  # each is needed
            others = [e for e in graph.kept if e is not left_out]
            again = [0] * graph.size
            for edge in sorted(others, key=lambda e: e.after):
                again[edge.after] |= again[edge.before] | 1 << edge.before
            assert again != reached


def test_followers_and_predecessors_are_those_of_kept_edges() -> None:
    graph = graph_of(nodes("a=", "b=a", "c=ab"))
    assert graph.followers() == [[1], [2], []]
    assert graph.predecessors() == [[], [0], [1]]
    assert list(itertools.chain(*graph.followers())) == [1, 2]
