"""Processes side by side: what they say is passed on as they say it, and none goes on for ever."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .jobs import SIGN

MOST = 16
"""So many processes share the device, at most."""
OFTEN = 20.0
"""Seconds between two lines that say how far all are."""
GRACE = 30.0
"""Seconds that a process has to end by itself, when it is told to."""


@dataclass(slots=True)
class Ran:
    """A process: what it said, how far it came, and how it ended."""

    name: str
    process: subprocess.Popen[str]
    lines: list[str] = field(default_factory=list)
    looked: int = 0
    wrong: int = 0
    count: int = 0
    at: str = ""
    late: bool = False
    """Whether it had to be told to end."""

    @property
    def status(self) -> int | None:
        """How it ended; None while it runs."""
        return self.process.returncode

    def hear(self, show: Callable[[str], bool], head: str) -> None:
        """Read what it says to its end; `show` says what is passed on, `head` what before it."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            line = line.rstrip("\n")
            if line.startswith(f"{SIGN} "):
                looked, wrong, count, *at = line[2:].split(" ", 3)
                self.looked, self.wrong, self.count = int(looked), int(wrong), int(count)
                self.at = " ".join(at)
                continue
            self.lines.append(line)
            if show(line):
                print(f"{head}{line}", flush=True)


def at_once() -> int:
    """Return how many processes run side by side: most of what they do is compiling."""
    return min(MOST, len(os.sched_getaffinity(0)))


def run(
    commands: Mapping[str, Sequence[str]],
    what: str,
    seconds: float,
    cwd: Path,
    show: Callable[[str], bool] = lambda line: True,
    together: bool = True,
) -> list[Ran]:
    """Return how commands ended that ran at the same time.

    One that takes longer than so many seconds is interrupted, `together` with the processes that it
    has started, and killed where that does not help; it is told where it was.
    """
    ran = [Ran(name, _started(words, cwd)) for name, words in commands.items()]
    readers = []
    for one in ran:
        given = show, f"{one.name}: " if len(ran) > 1 else ""
        readers.append(threading.Thread(target=one.hear, args=given, daemon=True))
        readers[-1].start()
    try:
        _wait(ran, what, seconds, together)
    finally:
        for one in ran:
            _end(one, signal.SIGKILL, True)
    for one, reader in zip(ran, readers, strict=True):
        one.process.wait()
        reader.join(GRACE)
    return ran


def _started(words: Sequence[str], cwd: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        words, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors="replace", start_new_session=True,
    )  # fmt: skip


def _wait(ran: Sequence[Ran], what: str, seconds: float, together: bool) -> None:
    """Return when all have ended, by themselves or not; says how far they are meanwhile."""
    started = told = time.monotonic()
    while any(one.process.poll() is None for one in ran):
        time.sleep(0.1)
        now = time.monotonic()
        if now - told >= OFTEN and any(one.count for one in ran):
            told = now
            print(f"{what}: {progress(ran)} after {now - started:.0f} s", flush=True)
        for one in ran:
            if one.process.poll() is not None:
                continue
            if now - started >= seconds and not one.late:
                one.late = True
                where = f", at {one.at}" if one.at else ""
                print(f"{one.name}: ended after {seconds:.0f} s{where}", flush=True)
                _end(one, signal.SIGINT, together)
            elif now - started >= seconds + GRACE:
                _end(one, signal.SIGKILL, True)


_COUNTS = ("looked", "wrong", "count")


def progress(ran: Sequence[Ran]) -> str:
    """Return how far all are together."""
    looked, wrong, count = (sum(getattr(one, key) for one in ran) for key in _COUNTS)
    return f"{looked} of {count}, {wrong} wrong"


def _end(one: Ran, how: signal.Signals, together: bool) -> None:
    """Send a signal to a process, or to it and all that it has started, which may outlive it."""
    with contextlib.suppress(ProcessLookupError):
        if together:
            os.killpg(one.process.pid, how)
        else:
            one.process.send_signal(how)
