"""What a run found, as values that can be written and drawn."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from .ceilings import Ceilings
from .peers import OURS


@dataclass(frozen=True, slots=True)
class Timing:
    """The seconds that a call takes, over the rounds of a run."""

    seconds: float
    """The median."""
    low: float
    high: float
    """The quartiles: between them lies half of the rounds."""
    rounds: int
    first: float
    """The first call, which compiles."""

    @classmethod
    def of(cls, samples: list[float], first: float) -> Timing:
        """Return what some samples come to."""
        ordered = sorted(samples)
        quarter = len(ordered) // 4
        low, high = ordered[quarter], ordered[-1 - quarter]
        return cls(median(ordered), low, high, len(ordered), first)


@dataclass(frozen=True, slots=True)
class Row:
    """One cell with one number of threads: a timing for each peer, or why there is none."""

    cell: str
    kind: str
    regime: str
    threads: int
    timings: dict[str, Timing]
    why: dict[str, str]
    tolerance: str
    roofline: float | None = None
    """Seconds below which nobody gets, as far as the ceilings know."""
    forward: Timing | None = None
    """Of a gradient: the timing of plusequals for the loss alone."""

    @property
    def ours(self) -> Timing | None:
        """The timing of plusequals."""
        return self.timings.get(OURS.name)

    @property
    def best(self) -> str | None:
        """The fastest of the others."""
        others = {name: t.seconds for name, t in self.timings.items() if name != OURS.name}
        return min(others, key=lambda name: others[name]) if others else None

    @property
    def ratio(self) -> float | None:
        """The time of plusequals over that of the best other."""
        if self.ours is None or self.best is None:
            return None
        return self.ours.seconds / self.timings[self.best].seconds

    @property
    def over_roofline(self) -> float | None:
        """The time of plusequals over the roofline."""
        if self.ours is None or not self.roofline:
            return None
        return self.ours.seconds / self.roofline

    @property
    def over_forward(self) -> float | None:
        """The time of plusequals for loss and gradient over that for the loss alone."""
        if self.ours is None or self.forward is None:
            return None
        return self.ours.seconds / self.forward.seconds


@dataclass(slots=True)
class Report:
    """All that a run found. It grows while the run goes on, and can be written at any time."""

    command: str
    machine: dict[str, str]
    versions: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    """Peers that were not measured at all, and why."""
    ceilings: list[Ceilings] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    gradients: list[Row] = field(default_factory=list)
    calls: dict[str, dict[str, float]] = field(default_factory=dict)
    """Seconds of a warm call of each peer: with the `same` arrays, with `fresh` ones."""
    imports: dict[str, float] = field(default_factory=dict)
    firsts: dict[str, dict[str, tuple[float, float]]] = field(default_factory=dict)
    """By cell and peer, seconds of the first call of a process: empty cache, warm cache."""
    memory: dict[str, dict[str, int]] = field(default_factory=dict)
    """By cell and peer, bytes at the peak beyond arguments and results."""
    problems: list[str] = field(default_factory=list)

    def ceiling(self, threads: int) -> Ceilings | None:
        """Return the ceilings for a number of threads."""
        return next((known for known in self.ceilings if known.threads == threads), None)

    def write(self, path: Path) -> None:
        """Write all of it as JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")


def read(path: Path) -> Report:
    """Return the report that was written to a file."""
    said: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    said["ceilings"] = [_ceilings(known) for known in said["ceilings"]]
    for part in ("rows", "gradients"):
        said[part] = [_row(row) for row in said.get(part, ())]
    for peers in said["firsts"].values():
        for name, pair in peers.items():
            peers[name] = tuple(pair)
    return Report(**said)


def _row(said: dict[str, Any]) -> Row:
    timings = {name: Timing(**t) for name, t in said.pop("timings").items()}
    forward = said.pop("forward", None)
    return Row(**said, timings=timings, forward=None if forward is None else Timing(**forward))


def _ceilings(said: dict[str, Any]) -> Ceilings:
    by_size = {
        name: {int(bytes): rate for bytes, rate in said[name].items()}
        for name in ("bandwidth", "triad", "read")
    }
    return Ceilings(said["threads"], said["peak"], **by_size)


def mean(ratios: Iterable[float]) -> float | None:
    """Return the geometric mean, None of nothing."""
    logs = [math.log(ratio) for ratio in ratios]
    return math.exp(sum(logs) / len(logs)) if logs else None
