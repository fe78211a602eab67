"""What a process looks at, one after the other, and what it says of it meanwhile.

A line that begins with `@` is for whoever started the process: how many jobs were done, how many of
how many were wrong, and which is next. All other lines are for people.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf

SIGN = "@"


class NotAsked(Exception):
    """A job has nothing to look at, and is not counted; the text says why, where that matters."""


@dataclass(frozen=True, slots=True)
class Job:
    """Something to look at: `look` raises what is wrong with it."""

    name: str
    look: Callable[[], None]


@dataclass(slots=True)
class Tally:
    """How far a process is."""

    count: int
    """All that it was given."""
    looked: int = 0
    wrong: list[str] = field(default_factory=list)
    at: str = ""
    """The name of the job that it is at."""

    @property
    def line(self) -> str:
        """What tells it to whoever started the process."""
        return f"{SIGN} {self.looked} {len(self.wrong)} {self.count} {self.at}"


def share(jobs: Sequence[Job], part: str) -> list[Job]:
    """Return every n-th job, from one on: `2/16` are the second of each sixteen.

    >>> [job.name for job in share([Job(name, print) for name in "abcdefg"], "2/3")]
    ['b', 'e']
    """
    number, _, count = part.partition("/")
    return list(jobs[int(number) - 1 :: int(count)])


def done(
    jobs: Sequence[Job],
    seconds: float = inf,
    say: Callable[[str], object] = print,
    each: bool = False,
) -> Tally:
    """Return what was found of jobs, as many as can be begun in some seconds.

    What is wrong is said when it is found, and does not end the others; what is right as well, if
    `each` is to be told.
    """
    tally, ends = Tally(len(jobs)), time.monotonic() + seconds
    for job in jobs:
        if time.monotonic() >= ends:
            break
        tally.at = job.name
        say(tally.line)
        try:
            job.look()
        except NotAsked as why:
            tally.count -= 1
            if str(why):
                say(f"{job.name}: left out: {why}")
            continue
        except Exception as why:  # the others are looked at all the same
            said = str(why).strip()
            words = said if isinstance(why, AssertionError) else f"{type(why).__name__}: {said}"
            tally.wrong.append(f"{job.name}: {words}")
            say(f"wrong: {tally.wrong[-1]}")
        else:
            if each:
                say(f"{job.name}: passed")
        tally.looked += 1
    tally.at = ""
    say(tally.line)
    return tally
