"""One cell with all peers: results checked, then rounds in which each of them has its turn."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from .cell import Array, Case, Cell, wrong
from .environments import NotInstalled, environment, variables
from .peers import OURS, Peer
from .process import Died, LeftOut, Process
from .results import Timing

Say = Callable[[str], None]
Check = Callable[[str, tuple[Array, ...]], str | None]
"""`check(peer, answers)` is what is wrong with answers, None where nothing is."""
TURN = 0.02
"""Seconds of calls in one turn of one peer."""
SETTLE = 0.02
"""Seconds between turns, in which the processors are nobody's."""
PATIENCE = 8.0
"""Seconds of calls after which a peer with slow ones has had its rounds, if there were three."""


class Crew:
    """The processes of all peers with one number of threads; those that end are started again."""

    def __init__(
        self, peers: tuple[Peer, ...], threads: int, settings: Mapping[str, str], folder: Path,
        say: Say, clock: str = "wall",
    ) -> None:  # fmt: skip
        self.threads, self._settings, self._folder, self._say = threads, settings, folder, say
        self.clock = clock
        """What times of calls are read from: `wall`, or `processor` for what these work."""
        self._peers = {peer.name: peer for peer in peers}
        self._stack = ExitStack()
        self._there: dict[str, Process] = {}
        self.versions: dict[str, str] = {}
        self.left_out: dict[str, str] = {}

    def __enter__(self) -> Self:
        for name in self._peers:
            self.start(name)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self._stack.close()

    def start(self, name: str) -> None:
        """Start a peer's process; where that cannot be, `left_out` says why."""
        peer = self._peers[name]
        try:
            found = environment(peer, self._say)
            settings = self._settings if peer.base == OURS.name else {}
            around = variables(self.threads, found, settings)
            log = self._folder / f"{name}-{self.threads}.log"
            process = self._stack.enter_context(
                Process(found.python, name, self.threads, around, log)
            )
        except (NotInstalled, Died) as why:
            self._there.pop(name, None)
            self.left_out[name] = str(why)
            return
        self._there[name] = process
        self.versions[name] = process.hello["version"]

    def there(self) -> dict[str, Process]:
        """Return the processes that can be asked."""
        return dict(self._there)


def measure(
    crew: Crew, cell: Cell, rounds: int, folder: Path, say: Say, check: Check | None = None
) -> tuple[dict[str, Timing], dict[str, str]]:
    """Return the timings of a cell by peer, and why some have none: what `check` says.

    Without a check answers are compared with the reference.
    """
    case = cell.workload.case(cell.size)
    write(case, folder)
    if check is None:
        right = cell.workload.right(case)
        check = lambda name, found: wrong(found, right, cell.workload.tolerance)  # noqa: E731
    why: dict[str, str] = {}
    first: dict[str, float] = {}
    for name, process in crew.there().items():
        say(f"{cell.name}: {name}, first call")
        try:
            first[name] = process.ask("prepare", cell=cell.name, folder=str(folder))["first"]
            if problem := check(name, answers(folder, name)):
                why[name] = f"wrong: {problem}"
        except LeftOut as reason:
            why[name] = str(reason)
        except Died as reason:
            why[name] = str(reason)
            crew.start(name)
    ready = [name for name in first if name not in why]
    say(f"{cell.name}: rounds")
    samples = take_turns(crew, ready, rounds, why)
    return {name: Timing.of(taken, first[name]) for name, taken in samples.items()}, why


def take_turns(
    crew: Crew, ready: list[str], rounds: int, why: dict[str, str], do: str = "time"
) -> dict[str, list[float]]:
    """Return seconds per call of each peer for each round.

    The order of a round is drawn, so that no peer always comes after the same other one.
    """
    samples: dict[str, list[float]] = {name: [] for name in ready}
    spent = dict.fromkeys(ready, 0.0)
    orders = random.Random(0)
    for _ in range(rounds):
        for name in orders.sample(ready, len(ready)):
            if name in why or (spent[name] > PATIENCE and len(samples[name]) >= 3):
                continue
            asked: dict[str, Any] = {"calls": 200}
            if do == "time":
                asked = {"seconds": TURN, "clock": crew.clock}
            try:
                said = crew.there()[name].ask(do, **asked)
            except (Died, LeftOut) as reason:
                why[name] = str(reason)
                samples.pop(name)
                if isinstance(reason, Died):
                    crew.start(name)
                continue
            samples[name].append(1e-9 * said["nanoseconds"] / said["calls"])
            spent[name] += 1e-9 * said["nanoseconds"]
            time.sleep(SETTLE)
    return samples


def write(case: Case, folder: Path) -> None:
    """Write the arguments of a cell for the workers to read; the results of others go away."""
    for old in folder.glob("*.npy"):
        old.unlink()
    for number, array in enumerate(case.inputs):
        np.save(folder / f"input_{number}.npy", array)
    said = {"results": [(r.shape, r.dtype) for r in case.results], "numbers": case.numbers}
    (folder / "case.json").write_text(json.dumps(said))


def answers(folder: Path, peer: str) -> tuple[np.ndarray, ...]:
    """Return what a peer has written as its results."""
    return tuple(np.load(path) for path in sorted(folder.glob(f"{peer}_[0-9].npy")))
