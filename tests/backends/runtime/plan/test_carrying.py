"""Arrays that change places: which are copied, and which are never written."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from plusequals.backends.runtime.memory import Buffer
from plusequals.backends.runtime.plan.carrying import Carrying
from plusequals.backends.runtime.plan.steps import Carry, Frame


def buffer(label: str, value: float) -> Buffer:
    return Buffer(label, np.array([value]), None)


def node(reads: list[Buffer], writes: list[Buffer]) -> Any:
    return SimpleNamespace(reads=tuple(reads), writes=tuple(writes))


class Scene:
    """A loop of one step that makes `y` of `x`, and what it copies and allocates."""

    def __init__(self, reads: list[str], writes: list[str]) -> None:
        self.names = {"x": buffer("x", 3.0), "y": buffer("y", 5.0)}
        steps = [node([self.names[n] for n in reads], [self.names[n] for n in writes])]
        before, after = SimpleNamespace(nodes=()), SimpleNamespace(nodes=steps)
        carries = (Carry(self.names["x"], self.names["y"], (self.make, self.make), lambda: None),)
        loop: Any = SimpleNamespace(
            carries=carries, before=before, after=after, bodies=(before, after)
        )
        self.made = self.copies = 0
        self.carrying = Carrying(loop, Frame({}, {}, {}), self.issue)

    def make(self, label: str, array: Any) -> Any:
        self.made += 1
        return np.full_like(array, np.nan)

    def issue(self, run: Any) -> None:
        self.copies += 1
        run()

    def run(self, times: int) -> None:
        """Double `x` into `y` so many times."""
        for _ in range(times):
            arrays = self.carrying.arrays
            arrays[self.names["y"]][...] = arrays[self.names["x"]] * 2
            self.carrying.advance()
        self.carrying.finish()


def test_nothing_is_copied_but_a_last_value_in_the_other_array() -> None:
    for times, copies in ((0, 1), (1, 0), (2, 1), (3, 0), (4, 1)):
        scene = Scene(["x"], ["y"])
        scene.run(times)
        assert (scene.copies, scene.made) == (copies, min(times, 1)), times
        assert scene.names["x"].array[0] == 3
        assert scene.names["y"].array[0] == 3 * 2**times


def test_an_input_that_is_written_has_an_array_of_its_own() -> None:
    scene = Scene(["x"], ["x", "y"])
    first = scene.carrying.arrays[scene.names["x"]]
    assert first is not scene.names["x"].array
    assert first[0] == 3


def test_an_output_that_is_read_first_keeps_its_value() -> None:
    scene = Scene(["x", "y"], ["y"])
    scene.carrying.arrays[scene.names["y"]][...] = 7.0
    scene.carrying.advance()
    assert scene.carrying.arrays[scene.names["y"]][0] == 7
    assert scene.carrying.arrays[scene.names["x"]][0] == 7


def test_a_predicate_sees_the_last_value() -> None:
    scene = Scene(["x"], ["y"])
    assert scene.carrying.shown[scene.names["y"]][0] == 5
    scene.carrying.arrays[scene.names["y"]][...] = 6.0
    scene.carrying.advance()
    assert scene.carrying.shown[scene.names["y"]][0] == 6
