"""In which ways a program runs: in C or not, after every pass or not, and by which settings."""

from __future__ import annotations

import random
from dataclasses import dataclass, fields
from typing import Any, Literal

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
    """Decides from which sizes on a device is used in which way; 0 as it is. See `thresholds`."""

    def settings(self) -> dict[str, Any]:
        """Return the settings by name."""
        return {name: getattr(self, name) for name in SETTINGS}

    def __str__(self) -> str:
        usual = Ways()
        named = {f.name: getattr(self, f.name) for f in fields(self)}
        changed = (f"{n}={v!r}" for n, v in named.items() if v != getattr(usual, n))
        return f"Ways({', '.join(changed)})".replace("'", '"')


def drawn(rng: random.Random, passes: bool) -> Ways:
    """Return ways under settings that are drawn from a source of random numbers."""
    return Ways(
        passes=passes,
        plain=not passes,
        profile=rng.choice(("strict", "default")),
        optimize=rng.choice((0, 0, 1, 3, 3)),
        checked=rng.random() < 0.3,
        stack_bytes=rng.choice((0, 64, 4096, 1 << 20)),
        schedule=rng.random() < 0.5,
        threads=rng.choice((1, 2, 7)),
        parallel_from=rng.choice((0, 1_000_000)),
        pipeline=rng.choice(("whole", "whole", "whole", "short")),
    )
