"""A long search for programs that are compiled wrongly.

    python -m tests.programs.hunt --programs 20000 --seed 1 --jobs 2
    python -m tests.programs.hunt --programs 20000 --seed 2 --jobs 2 --passes --settings random
    python -m tests.programs.hunt --programs 4000 --seed 3 --jobs 2 --backend cuda
    python -m tests.programs.hunt --programs 4500 --seed 4 --jobs 2 --kind nest --settings random
    python -m tests.programs.hunt --programs 400 --seed 5 --jobs 2 --kind large
    python -m tests.programs.hunt --programs 5000 --seed 6 --jobs 2 --kind python --settings random
    python -m tests.programs.hunt --programs 2000 --seed 7 --jobs 2 --warm
    python -m tests.programs.hunt --programs 5000 --seed 8 --jobs 2 --kind flow --settings random
    python -m tests.programs.hunt --programs 5000 --seed 9 --jobs 2 --kind nested --settings random
    python -m tests.programs.hunt --programs 5000 --seed 9 --jobs 2 --kind carried --settings random
    python -m tests.programs.hunt --programs 5000 --seed 10 --jobs 2 --kind pairs

Each finding is made small and stored in `tests/programs/found`, where `test_found` runs it.
"""

from __future__ import annotations

import argparse
import gc
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from .batch import warm
from .call_sequences import with_calls
from .check import Finding, check_all
from .findings import FOLDER, finding_of, kind_of, smaller, write
from .generate import KINDS, SIZED, generate
from .isolate import Child, Crashed, first_ready
from .model import Program
from .thresholds import lowered
from .warm_cache import check_sequences
from .ways import Ways, drawn, usual, usual_and_interpreted, warm_ways

BATCH = 40
"""Programs in one C file; nests are fewer, so that more settings are drawn."""


@dataclass
class Tally:
    """What came out so far."""

    started: float = field(default_factory=time.monotonic)
    done: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    first: dict[str, int] = field(default_factory=dict)
    """The number of the first program that was refused for a reason."""
    findings: list[Finding] = field(default_factory=list)
    kinds: Counter[tuple[str, str]] = field(default_factory=Counter)

    def line(self, wanted: int) -> str:
        """Return the progress as one line."""
        rate = self.done / max(time.monotonic() - self.started, 1e-9)
        return (
            f"{self.done}/{wanted} programs, {rate:.1f}/s, {sum(self.refused.values())} refused, "
            f"{sum(self.kinds.values())} findings, {len(self.findings)} kept"
        )


def program_of(seed: int, number: int, kind: str | None = None, processes: int = 0) -> Program:
    """Return the program of that number in the hunt of that seed, with calls in processes."""
    rng = random.Random(f"{seed}:{number}")
    program = generate(rng, kind, dynamic=processes > 0, number=number)
    return with_calls(rng, program, processes) if processes else program


def ways_of(options: argparse.Namespace, first: int) -> Ways:
    """Return how the batch that begins with that program is run."""
    if options.warm:
        return warm_ways(random.Random(f"{options.seed}:{first}:warm"))
    if options.kind == "pairs" and options.settings == "given":
        return usual_and_interpreted(random.Random(f"{options.seed}:{first}:usual"))
    if options.kind == "large":
        return usual(random.Random(f"{options.seed}:{first}:usual"))
    if options.settings == "random":
        rng = random.Random(f"{options.seed}:{first}:settings")
        ways = drawn(rng, options.passes, 0.9 if options.kind == "nest" else 0.5)
        if options.kind in ("carried", "pairs"):  # what is not reordered has no lanes
            profile: Literal["strict", "default"] = rng.choice(("strict", "default", "default"))
            ways = replace(ways, schedule=True, profile=profile)
    else:
        ways = Ways(passes=options.passes, profile=options.profile, optimize=options.optimize)
    if options.backend == "cc":
        return ways
    lowered = first + 1 if options.settings == "random" else 0
    return replace(ways, c=False, cuda=True, plain=False, thresholds=lowered)


def batch(options: argparse.Namespace, numbers: list[int]) -> list[tuple[int, str, Finding | None]]:
    """Return what became of each program: its number, why it was refused, the finding."""
    gc.disable()  # this process ends soon
    ways = ways_of(options, numbers[0])
    programs = [program_of(options.seed, n, options.kind, ways.processes) for n in numbers]
    cases = (check_sequences if ways.processes else check_all)(programs, ways)
    return [(n, case.refused, case.finding) for n, case in zip(numbers, cases)]


def one_by_one(
    options: argparse.Namespace, numbers: list[int]
) -> list[tuple[int, str, Finding | None]]:
    """Return the same after a crash, each program in a process of its own."""
    ways = ways_of(options, numbers[0])
    programs = [program_of(options.seed, n, options.kind, ways.processes) for n in numbers]
    return [(n, "", finding_of(one, ways)) for n, one in zip(numbers, programs)]


def hunt(options: argparse.Namespace) -> Tally:
    """Run the programs; return the tally."""
    tally = Tally()
    with lowered(1):  # imports, once for all processes
        check_all([program_of(1, 0)], Ways(c=False))
    if options.backend == "cc":
        warm()
    first, end = options.start, options.start + options.programs
    size = BATCH // 4 if options.kind in SIZED else BATCH
    waiting = [list(range(n, min(n + size, end))) for n in range(first, end, size)]
    running: dict[Child, list[int]] = {}
    while waiting or running:
        while waiting and len(running) < options.jobs:
            numbers = waiting.pop(0)
            running[Child(batch, options, numbers)] = numbers
        child = first_ready(list(running))
        numbers = running.pop(child)
        try:
            results = child.result(600.0)
        except Crashed:
            results = one_by_one(options, numbers)
        for number, refused, finding in results:
            _count(tally, number, refused, finding, options)
        print(f"\r{tally.line(options.programs)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return tally


def _count(
    tally: Tally, number: int, refused: str, finding: Finding | None, options: argparse.Namespace
) -> None:
    tally.done += 1
    if refused:
        reason = " ".join(refused.split("`")[0].split()[:6])
        tally.refused[reason] += 1
        tally.first.setdefault(reason, number)
    if finding is None:
        return
    kind = kind_of(finding)
    tally.kinds[kind] += 1
    if tally.kinds[kind] > options.each:
        return
    if options.reduce:
        finding = smaller(finding)
    tally.findings.append(finding)
    path = write(finding, Path(options.into))
    print(f"\n{options.seed}:{number} {path.name} {finding}", flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line; return 1 where anything was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=int, default=2000)
    parser.add_argument("--start", type=int, default=0, help="number of the first program")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--kind", choices=KINDS)
    parser.add_argument("--backend", choices=("cc", "cuda"), default="cc",
                        help="cuda: kernels, whose threads are fibres")  # fmt: skip
    parser.add_argument("--profile", choices=("strict", "default"), default="strict")
    parser.add_argument("--optimize", type=int, choices=(0, 1, 2, 3), default=0)
    parser.add_argument("--passes", action="store_true", help="run the loops after each pass, too")
    parser.add_argument("--warm", action="store_true",
                        help="many calls each, in processes that share a cache")  # fmt: skip
    parser.add_argument("--settings", choices=("given", "random"), default="given",
                        help="random: other ones for each batch")  # fmt: skip
    parser.add_argument("--each", type=int, default=4, help="findings of one kind to keep")
    parser.add_argument("--into", default=str(FOLDER), help="where findings are stored")
    parser.add_argument("--no-reduce", dest="reduce", action="store_false")
    options = parser.parse_args(arguments)
    tally = hunt(options)
    print(tally.line(options.programs))
    for reason, count in tally.refused.most_common(20):
        print(f"  refused {count:5}  {reason} ({options.seed}:{tally.first[reason]})")
    return 1 if tally.findings else 0


if __name__ == "__main__":
    sys.exit(main())
