"""Streams, signals and waits: the counts that follow by hand, and what every schedule keeps."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from plusequals.backends.runtime.plan.graph import graph_of
from plusequals.backends.runtime.plan.streams import ORDER, Schedule, schedule

from .test_graph import ARRAYS, Node, nodes


def made(*texts: str, cap: int | None = None, **changes: dict[int, object]) -> Schedule:
    """Return the schedule of nodes, with attributes of some of them by their number."""
    given = nodes(*texts)
    for name, values in changes.items():
        for at, value in values.items():
            given[at] = replace(given[at], **{name: value})  # type: ignore[arg-type]  # by name
    return schedule(given, graph_of(given), cap)


DIAMOND = ("a=", "b=a", "c=a", "d=bc")


def test_a_diamond_has_two_streams_and_two_signals() -> None:
    found = made(*DIAMOND)
    assert found.streams == ((0,), (0,), (1,), (0,))
    assert found.waits == ((), (), (0,), (2,))
    assert found.signals == {0, 2}
    assert (found.first, found.last, found.added) == ((), (), ())


def test_of_two_followers_the_one_of_the_streams_kind_goes_on() -> None:
    found = made(*DIAMOND, kind={0: "copy", 2: "copy"})
    assert found.streams == ((0,), (1,), (0,), (0,))


def test_a_longer_chain_goes_on_first() -> None:
    found = made("a=", "b=a", "c=a", "d=c", "e=d")
    assert found.streams == ((0,), (1,), (0,), (0,), (0,))


@pytest.mark.parametrize(
    ("texts", "streams", "signals"),
    [
        (("a=", "b=a", "c=b", "d=c", "e=d"), 1, 0),
        (("a=", "b=a", "c=ab"), 1, 0),
        (("a=", "b=", "c=", "d="), 4, 3),
        (("a=", "b=", "c=a", "d=b", "e=cd"), 2, 1),
        (("a=", "b=a", "c=a", "d=a", "e=bcd", "f=e"), 3, 3),
        (("a=", "b=a", "c=a", "d=bc", "e=d", "f=d", "g=ef"), 2, 4),
    ],
)
def test_counts_of_streams_and_signals(texts: tuple[str, ...], streams: int, signals: int) -> None:
    found = made(*texts)
    assert (len(found.devices), len(found.signals)) == (streams, signals)


def test_a_ladder_recycles_its_streams() -> None:
    """Each rung is a join and a fork; no more than two streams are ever needed."""
    rungs = [text for _ in range(5) for text in ("b=a", "c=a", "a=bc")]
    found = made("a=", *rungs)
    assert len(found.devices) == 2


def test_independent_nodes_have_streams_of_their_own_and_fences() -> None:
    found = made("a=", "b=", "c=")
    assert found.streams == ((0,), (1,), (2,))
    assert (found.first, found.last) == ((1, 2), (1, 2))


def test_a_cap_is_kept_by_edges_of_its_own() -> None:
    found = made("a=", "b=", "c=", "d=", cap=2)
    assert len(found.devices) == 2
    assert [(e.before, e.after, e.reasons) for e in found.added] == [
        (0, 2, (ORDER,)),
        (2, 3, (ORDER,)),
    ]


def test_a_cap_of_one_is_program_order() -> None:
    found = made("a=", "b=", "c=a", "d=b", cap=1)
    assert found.order == (0, 1, 2, 3)
    assert found.streams == ((0,),) * 4
    assert not found.signals


def test_a_cap_is_soft_for_devices() -> None:
    found = made("a=", "b=", cap=1, devices={1: ("cc:1",)})
    assert found.devices == ("cc:0", "cc:1")


def test_a_node_on_two_devices_joins_a_stream_of_each() -> None:
    both = {2: ("cc:0", "cc:1")}
    found = made("a=", "b=", "c=ab", "d=c", devices={1: ("cc:1",), **both, 3: ("cc:1",)})
    assert found.streams == ((0,), (1,), (0, 1), (1,))
    assert found.waits == ((), (), (1,), (2,))


@pytest.mark.parametrize("cap", [None, 1, 2, 3])
def test_every_schedule_keeps_every_dependence_and_unlimited_ones_add_none(cap: int | None) -> None:
    rng = random.Random(f"schedules {cap}")
    places = [("x",), ("x",), ("y",), ("x", "y"), ("y", "x")]
    for _ in range(1500):
        some = rng.sample(list(ARRAYS.values()), rng.randint(1, 6))
        given = [
            Node(
                tuple(rng.sample(some, rng.randint(0, min(2, len(some))))),
                tuple(rng.sample(some, rng.randint(0, min(2, len(some))))),
                rng.choice("kl"), rng.choice(places),
            )
            for _ in range(rng.randint(1, 12))
        ]  # fmt: skip
        graph = graph_of(given)
        found = schedule(given, graph, cap)
        before = happens_before(found)
        assert all(before[e.after] >> e.before & 1 for e in graph.edges)
        if cap is None and all(len(node.devices) == 1 for node in given):
            assert not found.added
            assert tuple(before) == graph.ancestors  # nobody waits for what it does not need


def happens_before(found: Schedule) -> list[int]:
    """Return for each node what has ended before it starts, as bits; checks the order of issue."""
    position = {at: n for n, at in enumerate(found.order)}
    before = [0] * len(found.order)
    tails: dict[int, int] = {}
    for at in found.order:
        home = found.streams[at][0]
        known = [tails[home]] if home in tails else []
        assert all(position[p] < position[at] for p in found.waits[at])
        for p in (*known, *found.waits[at]):
            before[at] |= before[p] | 1 << p
        tails[home] = at
    end = before[tails[0]] | 1 << tails[0] if 0 in tails else 0
    for p in found.last:
        end |= before[p] | 1 << p
    assert end == (1 << len(before)) - 1, "the end waits for everything"
    for stream in range(len(found.devices)):
        own = [at for at in found.order if stream in found.streams[at]]
        assert all(before[q] >> p & 1 for p, q in zip(own, own[1:], strict=False))
    return before
