"""Calls in the middle of a first call, at any moment of it and from all that Python runs there.

python -m tests.reentry --count 200 --seed 1 --jobs 2

Each process makes a first call of a function. While it is read, compiled and run a signal's
handler, a finalizer, the callback of a weak reference or a profiler's hook calls the same function,
another one, and new ones, which are compiled there. All results have to be right, within the time
limit, and nothing may be said on stderr. Half of the processes begin with nothing on disk.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import os
import random
import signal
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

KINDS = ("profile", "signal", "finalizer", "weakref")
LIMIT = 120
"""Seconds that a process has; it takes about two."""
EVENTS = {True: 400_000, False: 60_000}
"""About how many calls and returns a first call makes, with nothing on disk and otherwise."""
MOST = 4
"""Calls from the middle of one."""


class Trial(NamedTuple):
    """One process: what calls in the middle, chosen how, and whether nothing is on disk."""

    kind: str
    seed: int
    cold: bool
    cache: str


class Calls:
    """What is called in the middle: the function of the first call, another one, new ones."""

    def __init__(self) -> None:
        from plusequals import cd, cd_from_source  # measured: part of what is interrupted

        @cd
        def first(y, x):
            y[:] = np.sort(x)[::-1] * 2 + 1

        @cd
        def second(y, x):
            for n in range(x.shape[0]):
                y[n] = x[n] + np.sum(x)

        self._from_source = cd_from_source
        self.first, self.second = first, second
        self.made = 0
        self.wrong: list[str] = []
        self._inside = False

    def outer(self) -> None:
        """Make the first call."""
        self._check(self.first, lambda x: np.sort(x)[::-1] * 2 + 1)

    def middle(self, *_: object) -> None:
        """Make the calls, unless they are being made, at most so often."""
        if self._inside or self.made >= MOST:
            return
        self._inside = True
        try:
            self.made += 1
            self._check(self.first, lambda x: np.sort(x)[::-1] * 2 + 1)
            self._check(self.second, lambda x: x + x.sum())
            number = self.made
            text = f"def new(y, x):\n    y[:] = x * {number} - 1\n"
            self._check(self._from_source(text), lambda x: x * number - 1)
        except BaseException as problem:
            self.wrong.append(f"{type(problem).__name__}: {problem}")
        finally:
            self._inside = False

    def _check(self, function: Any, expected: Callable[[Any], Any]) -> None:
        x, y = np.arange(12.0) % 5, np.zeros(12)
        function(y, x)
        if not np.array_equal(y, expected(x)):
            self.wrong.append(f"{function} gives {y}")


def profiled(calls: Calls, dice: random.Random, cold: bool) -> None:
    """Call at some of the calls and returns that happen."""
    at = sorted(dice.randrange(EVENTS[cold]) for _ in range(MOST - 1))
    at = [dice.randrange(3000), *at]
    seen = 0

    def event(*_: object) -> None:
        nonlocal seen
        seen += 1
        if at and seen >= at[0] and not calls._inside:
            at.pop(0)
            sys.setprofile(None)
            calls.middle()
            sys.setprofile(event)

    sys.setprofile(event)
    try:
        calls.outer()
    finally:
        sys.setprofile(None)


def signalled(calls: Calls, dice: random.Random, cold: bool) -> None:
    """Call from the handler of a timer."""
    signal.signal(signal.SIGALRM, calls.middle)
    gap = dice.uniform(0.002, 0.6 if cold else 0.15)
    signal.setitimer(signal.ITIMER_REAL, gap, gap)
    try:
        calls.outer()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


class Ring:
    """Garbage that only the collector finds."""

    def __init__(self) -> None:
        self.itself = self


def collected(calls: Calls, dice: random.Random, finalizer: bool) -> None:
    """Call from finalizers, or from callbacks of weak references, when the collector runs."""
    held = []

    class Last(Ring):
        def __del__(self) -> None:
            calls.middle()
            if calls.made < MOST:
                Last()

    def gone(_: object) -> None:
        calls.middle()
        if calls.made < MOST:
            held.append(weakref.ref(Ring(), gone))

    if finalizer:
        Last()
    else:
        held.append(weakref.ref(Ring(), gone))
    gc.set_threshold(dice.randrange(1, 400), 1, 1)
    calls.outer()


def child(kind: str, seed: int, cold: bool) -> int:
    """Make the calls of one process; return whether something is wrong."""
    faulthandler.dump_traceback_later(LIMIT - 20, exit=True)
    calls, dice = Calls(), random.Random(seed)
    match kind:
        case "profile":
            profiled(calls, dice, cold)
        case "signal":
            signalled(calls, dice, cold)
        case _:
            collected(calls, dice, kind == "finalizer")
    calls.outer()
    for text in calls.wrong:
        print(text, file=sys.stderr)
    print(f"{calls.made} calls in the middle")
    return bool(calls.wrong)


def problem_of(trial: Trial) -> str:
    """Return what is wrong with a process, nothing where all is right."""
    with tempfile.TemporaryDirectory() as empty:
        folder = empty if trial.cold else trial.cache
        command = [sys.executable, "-m", "tests.reentry", "--child", trial.kind]
        command += ["--seed", str(trial.seed), *["--cold"] * trial.cold]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=LIMIT,
                env={**os.environ, "PLUSEQUALS_CACHE_DIR": folder},
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"{trial}: it hangs"
    if done.returncode or done.stderr:
        return f"{trial}: ended with {done.returncode}\n{done.stderr[-3000:]}"
    return ""


def trials(count: int, seed: int, cache: str) -> Iterator[Trial]:
    """Yield the processes of a hunt."""
    for number in range(count):
        yield Trial(KINDS[number % 4], 1000 * seed + number, number // 4 % 2 == 0, cache)


def main() -> int:
    """Run the hunt, or one of its processes."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--count", type=int, default=40)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--jobs", type=int, default=1)
    options.add_argument("--child", choices=KINDS, help=argparse.SUPPRESS)
    options.add_argument("--cold", action="store_true", help=argparse.SUPPRESS)
    asked = options.parse_args()
    if asked.child:
        return child(asked.child, asked.seed, asked.cold)
    bad = 0
    with tempfile.TemporaryDirectory() as cache, ThreadPoolExecutor(asked.jobs) as pool:
        found = pool.map(problem_of, trials(asked.count, asked.seed, cache))
        for number, problem in enumerate(found, 1):
            if problem:
                bad += 1
                print(problem, flush=True)
            if number % 20 == 0:
                print(f"{number} processes, {bad} of them with a problem", flush=True)
    print(f"{asked.count} processes, {bad} with a problem (seed {asked.seed})")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
