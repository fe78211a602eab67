"""Put faults into modules and count how many of them some test catches.

    python -m tests.mutants                                    every module, 40 faults each
    python -m tests.mutants --module inline --sample 40 --seed 1
    python -m tests.mutants --module fuse --sample 0             all faults of one module

Prints each fault that no test caught as two lines of a diff, then a table. The last column is the
part caught of those that matter; `equivalent.toml` lists those that do not, with reasons.
What was measured last is in docs/mutants.md.
"""

from __future__ import annotations

import argparse
import importlib
import os
import random
import sys
import time
from dataclasses import astuple, dataclass

import pytest

from .equivalent import equivalents
from .install import text_of
from .mutate import Mutant, mutants
from .session import Session, in_child
from .targets import ROOT, TARGETS, Target

PYTEST = "-q -p no:cacheprovider -p no:xdist -p no:benchmark --capture=sys --no-summary".split()


@dataclass(frozen=True, slots=True)
class Row:
    """What came out for one module."""

    name: str
    all: int
    tried: int
    equivalent: int
    survived: int
    seconds: float

    def __str__(self) -> str:
        caught = self.tried - self.survived
        part = f"{100 * caught / self.tried:5.1f} %" if self.tried else "      -"
        counts = f"{self.all:6} {self.tried:6} {self.equivalent:11} {caught:7} {self.survived:9}"
        return f"{self.name:44} {counts}  {part} {self.seconds:7.0f} s"


HEAD = f"{'module':44}    all  tried  equivalent  caught  survived   caught    time"


def main(arguments: list[str] | None = None) -> int:
    """Return 0 where every module asked for catches as many faults as it has to."""
    options = _options(arguments)
    rows = []
    for name in options.module or TARGETS:
        made = in_child(lambda name=name: astuple(_run(name, TARGETS[name], options)), 0)
        if made == -1:
            return 2
        rows.append(Row(*made))
        print(rows[-1], flush=True)
    print(f"\n{HEAD}")
    print(*rows, sep="\n")
    low = [r.name for r in rows if r.tried and 100 * r.survived > (100 - options.least) * r.tried]
    print(f"\nbelow {options.least} %: {', '.join(low)}" if low else "")
    return 1 if low else 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("python -m tests.mutants", None, __doc__, formatter_class=raw)
    parser.add_argument(
        "--module", action="extend", type=_paths, help="a path, or how it ends: inline, cpu/peel"
    )
    parser.add_argument("--sample", type=int, default=40, help="how many faults; 0: all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--function", default="", help="only faults in this function")
    parser.add_argument("--tests", nargs="+", help="run these tests instead")
    parser.add_argument("--least", type=int, default=90, help="percent that have to be caught")
    return parser.parse_args(arguments)


def _paths(end: str) -> list[str]:
    """Return the modules whose path ends so."""
    paths = [path for path in TARGETS if f"/{path}".endswith(f"/{end}")]
    if not paths:
        raise argparse.ArgumentTypeError(f"no module of the table ends in {end}")
    return paths


def _run(name: str, target: Target, options: argparse.Namespace) -> Row:
    """Return what came out for one module, as its file stands now."""
    start = time.monotonic()
    listed = equivalents(name)
    module = importlib.import_module(target.module)
    every = [m for m in mutants(text_of(module)) if options.function in ("", m.function)]
    matter = [m for m in every if not any(one.matches(m) for one in listed)]
    for one in listed:
        if not options.function and not any(one.matches(m) for m in every):
            print(f"equivalent.toml, {name}: nothing matches {one}")
    chosen = matter
    if options.sample and options.sample < len(matter):
        picked = random.Random(f"{name} {options.seed}").sample(range(len(matter)), options.sample)
        chosen = [matter[at] for at in sorted(picked)]
    session = _session(module.__name__, chosen, options.tests or target.tests)
    survived = session.results.count("")
    return Row(name, len(every), len(chosen), len(every) - len(matter), survived,
               time.monotonic() - start)  # fmt: skip


def _session(name: str, chosen: list[Mutant], tests: list[str] | tuple[str, ...]) -> Session:
    """Return the run of some tests on some mutants, after it is done."""

    def tell(number: int, caught: str) -> None:
        if not caught:
            made = chosen[number]
            print(f"\nsurvived: {made.function or 'a table'}, line {made.lines.start}")
            print(made.diff, flush=True)

    session = Session(sys.modules[name], chosen, tell)
    os.chdir(ROOT)
    status = pytest.main([*PYTEST, "-m", "not slow", *tests], plugins=[session])
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        raise SystemExit(f"pytest ended with status {status}")
    return session


if __name__ == "__main__":
    sys.exit(main())
