"""One run of pytest that collects once, then runs tests on each mutant in a child of its own.

The tests of a module are first run on the module as it is, to see which lines each reaches and how
long it takes. A mutant is then shown to the tests that reach its line, the quickest killers first,
until one fails, crashes, or takes far longer than it did: the mutant is caught.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from .install import install
from .mutate import Mutant

MEMORY = 6 << 30
"""How much address space a child may have: a mutant may collect without end."""


@dataclass(slots=True)
class Baseline:
    """What a test does to the module as it is."""

    seconds: float
    lines: frozenset[int]


@dataclass(slots=True)
class Session:
    """A pytest plugin; `results` has one entry for each mutant: the test that caught it, or ''."""

    module: ModuleType
    mutants: Sequence[Mutant]
    tell: Callable[[int, str], None]
    items: list[pytest.Item] = field(default_factory=list)
    seen: dict[str, Baseline] = field(default_factory=dict)
    kills: dict[str, int] = field(default_factory=dict)
    results: list[str] = field(default_factory=list)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the tests as they are, then on every mutant, in place of running them once."""
        self.items = list(session.items)
        file = self.module.__file__ or ""
        seen = in_child(lambda: [_observed(item, file) for item in self.items], 600)
        if seen == -1:
            raise pytest.UsageError("the tests end the process, or take too long, without a fault")
        for item, one in zip(list(self.items), seen, strict=True):
            self.seen[item.nodeid] = Baseline(one[0], frozenset(one[1]))
            if one[2]:
                print(f"{item.nodeid} fails without a fault, and is left out")
                self.items.remove(item)
        for number, mutant in enumerate(self.mutants):
            caught = self._caught_by(mutant)
            self.results.append(caught)
            self.tell(number, caught)
        return True

    def _caught_by(self, mutant: Mutant) -> str:
        """Return the name of the test that fails on a mutant; empty where none does."""
        items = self._reaching(mutant)
        limits = [3 + 8 * self.seen[item.nodeid].seconds for item in items]
        at: int | None = in_child(lambda: self._first_failing(mutant, items, limits), 120)
        if at is None:
            return ""
        name = items[at].nodeid if at >= 0 else "a limit of time or memory"
        self.kills[name] = self.kills.get(name, 0) + 1
        return name

    def _reaching(self, mutant: Mutant) -> list[pytest.Item]:
        """Return the tests that reach a mutant, those first that caught the most for their time."""
        if not mutant.function:
            found = list(self.items)
        else:
            found = self._at(mutant.lines) or self._at(mutant.whole)
        kills, seen = self.kills, self.seen
        return sorted(found, key=lambda item: (
            seen[item.nodeid].seconds / (1 + 4 * kills.get(item.nodeid, 0))))  # fmt: skip

    def _at(self, lines: Iterable[int]) -> list[pytest.Item]:
        wanted = frozenset(lines)
        return [item for item in self.items if self.seen[item.nodeid].lines & wanted]

    def _first_failing(
        self, mutant: Mutant, items: Sequence[pytest.Item], limits: Sequence[float]
    ) -> int | None:
        """Return the number of the first test that fails; a signal ends one that takes too long."""
        install(self.module, mutant)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        for at, (item, limit) in enumerate(zip(items, limits, strict=True)):
            signal.setitimer(signal.ITIMER_VIRTUAL, limit)  # processor time: others may be at work
            if _failed(item):
                return at
        return None


def _failed(item: pytest.Item) -> bool:
    return any(report.failed for report in runtestprotocol(item, log=False, nextitem=None))


def _observed(item: pytest.Item, file: str) -> tuple[float, list[int], bool]:
    """Run a test; return how long it takes, which lines it reaches, and whether it fails."""
    lines: set[int] = set()
    name = Path(file).resolve().as_posix()
    known: dict[str, bool] = {}

    def inner(frame: FrameType, event: str, _: object) -> Any:
        lines.add(frame.f_lineno)
        return inner

    def outer(frame: FrameType, event: str, _: object) -> Any:
        where = frame.f_code.co_filename
        if where not in known:
            known[where] = Path(where).resolve().as_posix() == name
        if not known[where]:
            return None
        lines.add(frame.f_lineno)
        return inner

    start = time.process_time()
    sys.settrace(outer)
    try:
        failed = _failed(item)
    finally:
        sys.settrace(None)
    return time.process_time() - start, sorted(lines), failed


def in_child(work: Callable[[], Any], seconds: float) -> Any:
    """Return what a function returns in a child process, as JSON; -1 where the child fails.

    A signal ends the child after the seconds; with 0 of them it may take as long as it likes.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reader)
            signal.setitimer(signal.ITIMER_REAL, seconds)
            with os.fdopen(writer, "w") as file:
                json.dump(work(), file)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader) as file:
        data = file.read()
    _, status = os.waitpid(child, 0)
    return json.loads(data) if status == 0 else -1
