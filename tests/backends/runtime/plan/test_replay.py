"""Replays: what is queued again has the results, streams and errors of the calls."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.runtime.plan.replay import ReplayRecorder
from plusequals.backends.runtime.state import RUNTIME

from .scenes import SIZE, Scene, add, count_up, double, give, merged, shift, take

DEVICES = ("cc", "cc", "cc:1")
KINDS: tuple[Any, ...] = (
    (double, 2, ()),
    (count_up, 1, ()),
    (shift, 1, (0.5,)),
    (take, 1, (np.ones(SIZE),)),
)
"""Functions with the number of their tensors, and other arguments."""


class Program:
    """Calls of routines of three streams, which two sides make of the same numbers."""

    def __init__(self, seed: int) -> None:
        self.scenes = [
            Scene("abc" if not at else "", name, True) for at, name in enumerate(DEVICES)
        ]
        first, rng = self.scenes[0], random.Random(seed)
        self.tensors = [first.a, first.b, first.c]
        self.mergers = [  # first: each stream has arrays of its own
            (scene, tensor, scene.link(merged, tensor))
            for scene in self.scenes
            for tensor in self.tensors
        ]
        linked = [
            scene.link(function, *(rng.sample(self.tensors, count)), *values)
            for scene in self.scenes
            for function, count, values in KINDS
        ]
        self.steps = [self._step(rng, linked) for _ in range(rng.randint(3, 12))]

    def _step(self, rng: random.Random, linked: Any) -> Callable[[Any], list[Any]]:
        """Return a call of a routine, a merge or a copy, given numbers for its arguments."""
        kind = rng.randint(0, 3)
        if kind == 3:
            target, tensor, merger = rng.choice(self.mergers)
            source, mode = rng.choice(self.scenes), rng.choice(["copy", "streaming"])

            def merge(number: float) -> list[Any]:
                source.context.merge_into(merger, tensor, mode=mode)
                merger()
                return [{}]

            return merge
        if kind == 2:
            to, source = rng.sample(self.scenes, 2)
            tensor = rng.choice(self.tensors)

            def copy(number: float) -> list[Any]:
                to.context.copy_from(source.context, tensor)
                return []

            return copy
        routine = rng.choice(linked)

        def call(number: float) -> list[Any]:
            given: dict[str, Any] = {}
            if "amount" in routine.compiled.names:
                given = {"amount": number}
            if "values" in routine.compiled.names:
                given = {"values": np.full(SIZE, number)}
            routine(**given)
            return [given]

        return call

    def run(self, number: float) -> list[Any]:
        """Call everything; return the arguments of the calls."""
        return [given for step in self.steps for given in step(number)]

    def state(self) -> list[bytes]:
        return [
            scene.context.numpy(tensor).tobytes()
            for scene in self.scenes for tensor in self.tensors
        ]  # fmt: skip


def test_random_programs_are_those_of_the_calls() -> None:
    for seed in range(25):
        called, replayed = Program(seed), Program(seed)
        arguments: list[Any] = []
        replay = ReplayRecorder().record(lambda r=replayed, a=arguments: a.extend(r.run(0.0)))
        for number in (1.0, 2.5, -3.0):
            for side in (called, replayed):
                side.tensors[0][...] = number
            called.run(number)
            replay.queue({n: _like(v, number) for n, v in each.items()} for each in arguments)
            assert called.state() == replayed.state(), seed


def _like(given: Any, number: float) -> Any:
    return np.full(SIZE, number) if isinstance(given, np.ndarray) else number


def pair() -> tuple[Scene, Any, Any]:
    scene = Scene("abc", "cc", True)
    return scene, scene.link(shift, scene.a, 1.0), scene.link(add, scene.c, scene.a, scene.b)


def test_each_call_has_arguments_of_its_own() -> None:
    scene, up, _ = pair()
    replay = ReplayRecorder().record(lambda: (up(), up(2.0)))
    assert scene.first(scene.a) == [0]
    replay.queue([{"amount": 10.0}, {"amount": 5}])
    replay.queue([{}, {"amount": 0.5}])
    assert scene.first(scene.a) == [16.5]
    with pytest.raises(pe.CdError, match="CD0436"):
        replay.queue([{"much": 1.0}, {}])
    with pytest.raises(pe.CdError, match="CD0702"):
        replay.queue([{"amount": "many"}, {}])
    assert scene.first(scene.a) == [16.5]


def test_what_a_call_writes_is_there_when_it_returns() -> None:
    scene = Scene("a", "cc", True)
    scene.a[...] = 3.0
    out = np.zeros(SIZE)
    to = scene.link(give, scene.a, out)
    replay = ReplayRecorder().record(lambda: to(out=out))
    replay.queue([{"out": out}])
    assert out.tolist() == [6.0] * SIZE
    with pytest.raises(pe.CdError, match="CD0702"):
        replay.queue([{"out": np.zeros(SIZE + 1)}])


def test_a_recording_ends_with_the_function_whatever_happens() -> None:
    scene, up, _ = pair()
    recorder = ReplayRecorder()
    with pytest.raises(ZeroDivisionError):
        recorder.record(lambda: (up(), 1 // 0))
    assert RUNTIME.planned() is None
    recorder.record(up).queue([{}])
    assert scene.first(scene.a) == [1]


def test_merge_buffers_of_other_devices_are_shared_by_recordings() -> None:
    one, two = Scene("a", "cc"), Scene("", "cc:1", True)
    first, second = one.link(shift, one.a, 1.0), two.link(shift, one.a, 2.0)
    into = two.link(merged, one.a)
    used: list[int] = []

    def calls() -> None:
        first(), second()
        one.context.merge_into(into, one.a, mode="streaming")
        into()

    recorder = ReplayRecorder()
    for _ in range(3):
        recorder.record(calls).queue([{}, {}, {}])
        pe.sync()
        used.append(pe.device("cc:1").used_memory)
    assert len(set(used)) == 1
    assert float(two.context.numpy(one.a)[0]) == 1 + 2 + 2 + 2 + 2 + 3


def test_a_context_that_was_finalized_is_refused() -> None:
    scene, up, _ = pair()
    replay = ReplayRecorder().record(up)
    up.context.finalize()
    with pytest.raises(pe.CdError, match="CD0845"):
        replay.queue([{}])


def test_a_trace_sees_replays_and_a_profile_too() -> None:
    scene, up, total = pair()
    replay = ReplayRecorder().record(lambda: (up(), total()))
    with pe.trace() as trace:
        replay.queue([{}, {}])
        pe.sync()
    assert len(trace) == 2 * SIZE
    with pe.profile() as timeline:
        replay.queue([{}, {}])
        pe.sync()
    assert [(work.kind, work.name, work.where) for work in timeline.works] == [
        ("routine", name, scene.stream.name) for name in ("shift", "add")
    ]
    assert scene.first(scene.c) == [3]
