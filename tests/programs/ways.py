"""In which ways a program runs: in C or not, after every pass or not, and by which settings."""

from __future__ import annotations

import random
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from plusequals.base.settings import Settings

SETTINGS = (
    "profile", "optimize", "checked", "stack_bytes", "schedule", "threads", "parallel_from",
    "pipeline",
)  # fmt: skip
"""Those of the fields below that are settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """How a program runs."""

    c: bool = True
    cuda: bool = False
    """Whether it runs as kernels, too, with threads that are fibres."""
    passes: bool = False
    """Whether the loops run after each pass, too."""
    plain: bool = True
    """Whether plain Python and the program written in another way run, too."""
    profile: Literal["strict", "default"] = "strict"
    optimize: Literal[0, 1, 2, 3] = 0
    checked: bool = False
    stack_bytes: int = 4096
    schedule: bool = False
    threads: int = 0
    parallel_from: int = 1_000_000
    pipeline: Literal["whole", "short"] = "whole"
    thresholds: int = 0
    """The seed of the tuned constants of the schedules; 0 as they are. See `thresholds`."""
    open: bool = False
    """Whether sizes are run-time sizes from the first call on. See `open_sizes`."""
    numbers: bool = False
    """Whether integers of a call are no constants, as from their fourth value on."""
    poison: bool = False
    """Whether memory that nothing has written yet holds NaNs and odd numbers. See `poison`."""
    processes: int = 0
    """How many processes call a program, with many sizes and values, over one cache. See
    `warm_cache`."""
    numpy: bool = False
    """Whether C is held against plain Python and NumPy alone: the interpreter is slow at size."""

    def settings(self) -> dict[str, Any]:
        """Return the settings by name."""
        return {name: getattr(self, name) for name in SETTINGS}

    def __str__(self) -> str:
        usual = Ways()
        named = {f.name: getattr(self, f.name) for f in fields(self)}
        changed = (f"{n}={v!r}" for n, v in named.items() if v != getattr(usual, n))
        return f"Ways({', '.join(changed)})".replace("'", '"')


def drawn(rng: random.Random, passes: bool, shared: float = 0.5) -> Ways:
    """Return ways under settings that are drawn from a source of random numbers.

    In that share of them threads divide every loop that they may, by a schedule whose policy
    numbers and caches are drawn, too: small programs reach all of it only there.
    """
    ways = Ways(
        passes=passes,
        plain=not passes,
        profile=rng.choice(("strict", "default")),
        optimize=rng.choice((0, 0, 0, 0, 1, 3)),  # 3 compiles for three times as long
        checked=rng.random() < 0.3,
        stack_bytes=rng.choice((0, 64, 4096, 1 << 20)),
        schedule=rng.random() < 0.5,
        threads=rng.choice((1, 2, 7)),
        parallel_from=rng.choice((0, 1_000_000)),
        pipeline=rng.choice(("whole", "whole", "whole", "short")),
        poison=rng.random() < 0.5,
        open=rng.random() < 0.3,
    )
    is_shared = rng.random() < shared
    ways = replace(ways, numbers=rng.random() < 0.3)
    if not is_shared:
        return ways
    return replace(
        ways, schedule=True, threads=rng.choice((2, 2, 3, 7)), parallel_from=1, pipeline="whole",
        thresholds=rng.randrange(1, 1 << 30),
    )  # fmt: skip


def warm_ways(rng: random.Random) -> Ways:
    """Return ways of calling programs often: in C, whose code processes find on disk, or, which is
    faster, interpreted in one process."""
    c = rng.random() < 0.5
    profile = rng.choice(("strict", "strict", "default"))
    return Ways(c=c, processes=3 if c else 1, profile=profile, schedule=rng.random() < 0.5)


def usual(rng: random.Random) -> Ways:
    """Return ways under the settings that a user has who changed none, NumPy as the only oracle."""
    given = {name: getattr(Settings(), name) for name in SETTINGS}
    return Ways(**given, plain=False, numpy=True, poison=True, open=rng.random() < 0.3)


def usual_and_interpreted(rng: random.Random) -> Ways:
    """Return the same, with the interpreters as oracles, too, and mostly a faster C compiler."""
    return replace(usual(rng), plain=True, numpy=False, optimize=rng.choice((1, 1, 3)))
