"""All random hunts by one command, in three sizes.

    python -m tests.hunt --size seconds
    python -m tests.hunt --size minutes --seed 7
    python -m tests.hunt --size hours --seed 7 --jobs 2 --only nests large

Seconds is what a test runs, minutes what continuous integration does, hours what is worth a night.
Each part is a command of its own, which is printed: the same line finds the same again. What a hunt
of programs finds is made small and stored in `tests/programs/found`, where tests run it from then
on. The status is 1 where any part found something.
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
import time
from dataclasses import dataclass

SIZES = ("seconds", "minutes", "hours")


@dataclass(frozen=True, slots=True)
class Part:
    """One hunt: the module that is run, its arguments, and how many of what, by the size."""

    name: str
    module: str
    arguments: tuple[str, ...]
    counts: tuple[int, int, int]
    counted: str = "--programs"
    jobs: bool = False
    """Whether it runs in several processes."""

    def command(self, size: str, seed: int, jobs: int) -> list[str]:
        """Return the command, without Python itself."""
        count = self.counts[SIZES.index(size)]
        many = ["--jobs", str(jobs)] if self.jobs else []
        return [
            "-m",
            self.module,
            *self.arguments,
            self.counted,
            str(count),
            "--seed",
            str(seed),
            *many,
        ]


_PROGRAMS = "tests.programs.hunt"


def _of_kind(name: str, kind: str, counts: tuple[int, int, int]) -> Part:
    """Return the hunt with random programs of a kind, under random settings."""
    return Part(name, _PROGRAMS, ("--kind", kind, "--settings", "random"), counts, jobs=True)


PARTS = (
    Part("mixed", _PROGRAMS, ("--settings", "random"), (10, 60, 40_000), jobs=True),
    Part("passes", _PROGRAMS, ("--settings", "random", "--passes"), (0, 12, 20_000), jobs=True),
    _of_kind("nests", "nest", (10, 50, 4_500)),
    _of_kind("python", "python", (10, 40, 5_000)),
    _of_kind("flow", "flow", (10, 40, 20_000)),
    _of_kind("nested", "nested", (10, 40, 20_000)),
    _of_kind("carried", "carried", (10, 40, 20_000)),
    Part("pairs", _PROGRAMS, ("--kind", "pairs"), (0, 40, 12_000), jobs=True),
    Part("calls", _PROGRAMS, ("--warm",), (0, 16, 5_000), jobs=True),
    Part("large", _PROGRAMS, ("--kind", "large"), (0, 20, 2_000), jobs=True),
    Part(
        "kernels",
        _PROGRAMS,
        ("--backend", "cuda", "--settings", "random"),
        (0, 0, 3_000),
        jobs=True,
    ),
    Part("sweep", "tests.programs.sweep", (), (0, 60, 20_000), jobs=True),
    Part("wide", "tests.programs.sweep", ("--shapes", "large"), (0, 0, 12_000), jobs=True),
    Part(
        "settings",
        "tests.programs.sweep",
        ("--settings", "random", "--shapes", "both"),
        (0, 40, 20_000),
        jobs=True,
    ),
    Part("lanes", "tests.backends.codegen.random_lanes", (), (0, 20, 1_000)),
    Part("routines", "tests.backends.runtime.random_steps", ("--threads", "3"), (0, 200, 100_000)),
    Part("interrupts", "tests.backends.runtime.random_interrupts", (), (0, 100, 20_000), "--count"),
    Part("plans", "tests.backends.runtime.plan.random_plans", (), (0, 60, 100_000), "--plans"),
    Part("calls", "tests.dsl.api.random_calls", (), (0, 100, 100_000)),
    Part("gradients", "tests.lowering.adjoint.random_gradients", (), (0, 20, 5_000), jobs=True),
    Part("cache", "tests.dsl.cache_attack", (), (0, 0, 130), "--rounds"),
    Part("sources", "tests.errors.fuzz", (), (20, 200, 50_000), "--count", jobs=True),
)
"""Programs of both notations, the same after each pass, nests with scratch arrays small (under
drawn thresholds) and large (as users run them), functions of plain Python, programs about which
write comes before a read, about what iterations leave to others and about scalars that loops
carry on, pairs of idioms as users run them, programs of many calls in processes that share a
cache, kernels whose threads are fibres, NumPy's functions on small and large arrays, and at
drawn settings, loops over lanes as vectors, routines over streams, interrupts of calls, plans,
calls in plans and by hand, gradients against differences, processes that share a cache, and
texts with faults."""


def is_there(part: Part) -> bool:
    """Whether the module of a part is in this checkout."""
    return importlib.util.find_spec(part.module) is not None


def chosen(size: str, only: list[str]) -> list[Part]:
    """Return the parts that are run."""
    return [
        part for part in PARTS
        if part.counts[SIZES.index(size)] and is_there(part) and (not only or part.name in only)
    ]  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line; return 1 where anything was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--size", choices=SIZES, default="minutes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=[], choices=[part.name for part in PARTS])
    given = parser.parse_args(arguments)
    found = []
    for part in chosen(given.size, given.only):
        command = part.command(given.size, given.seed, given.jobs)
        print(f"=== {part.name}: python {' '.join(command)}", flush=True)
        started = time.monotonic()
        status = subprocess.run([sys.executable, *command], check=False).returncode
        said = "nothing found" if status == 0 else f"FOUND SOMETHING, status {status}"
        print(f"=== {part.name}: {said}, {time.monotonic() - started:.0f} s", flush=True)
        found += [part.name] if status else []
    print(f"{given.size}, seed {given.seed}: " + (", ".join(found) or "nothing found"))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
