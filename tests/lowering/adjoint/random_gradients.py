"""A long search for gradients that are wrong.

    python -m tests.lowering.adjoint.random_gradients --programs 1000 --seed 1
    python -m tests.lowering.adjoint.random_gradients --programs 24 --seed 1 --start 408
    python -m tests.lowering.adjoint.random_gradients --programs 1000 --seed 2 --backend cuda

Random programs, whose results and arguments are summed to one number: what `pe.gradient` returns
is held against differences in extended precision along random directions, and as compiled,
interpreted and recompiled text, in reverse and forward, at several sizes, in 32 bits, and with some
states of loops against itself. Each batch is compiled under settings of its own; threads that
divide every loop have to give the same bits, whatever their number, and so has code of the profile
`strict` where all operations are rounded as IEEE 754 says. Where differences of two step sizes, or
of the two sides, disagree, the number has no derivative there, and the program counts as rough. The
status is 1 where anything was found.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field

from tests.programs.batch import warm
from tests.programs.isolate import Child, Crashed, first_ready
from tests.programs.model import Program
from tests.programs.reduce import reduced
from tests.programs.ways import Ways as Settings

from .random_losses import KINDS, Answer, answer, answers, program_of, settings_of

BATCH = 24
"""Programs in one process, and in one C file."""


@dataclass(slots=True)
class Tally:
    """What came out so far."""

    started: float = field(default_factory=time.monotonic)
    done: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    """How often a program ended in a way: "right", "rough", or why it was refused."""
    first: dict[str, int] = field(default_factory=dict)
    found: int = 0
    seen: Counter[str] = field(default_factory=Counter)
    """How many were held against what."""

    def line(self, wanted: int) -> str:
        """Return the progress as one line."""
        rate = self.done / max(time.monotonic() - self.started, 1e-9)
        return (
            f"{self.done}/{wanted} programs, {rate:.1f}/s, {self.ends['right']} right, "
            f"{self.ends['rough']} rough, {self.found} findings"
        )


def batch(options: argparse.Namespace, numbers: list[int]) -> list[Answer]:
    """Return what became of each program."""
    gc.disable()  # this process ends soon
    programs = [program_of(options.seed, n, options.kind) for n in numbers]
    return answers(programs, _settings(options, numbers[0]))


def _settings(options: argparse.Namespace, number: int) -> Settings:
    """Return the settings of the batch that has a program."""
    return settings_of(options.seed, number // BATCH, options.backend == "cuda")


def one_by_one(options: argparse.Namespace, numbers: list[int]) -> list[Answer]:
    """Return the same after a crash, each program in a process of its own."""
    found: list[Answer] = []
    for n in numbers:
        program = program_of(options.seed, n, options.kind)
        try:
            found.append(Child(answer, program, _settings(options, n)).result(300.0))
        except Crashed as why:
            found.append(Answer("crash", str(why), program))
    return found


def smaller(found: Answer, ways: Settings) -> Answer:
    """Return the same finding about the smallest program found."""
    best = found

    def fails(program: Program) -> bool:
        nonlocal best
        try:
            other = answer(program, ways)
        except Exception:
            return False  # what the reducer made is no program
        if other.kind != found.kind or not other.wrong:
            return False
        best = other
        return True

    reduced(found.program, fails)
    return best


def hunt(options: argparse.Namespace) -> Tally:
    """Run the programs; return the tally."""
    tally = Tally()
    answer(program_of(0, 0))  # imports, once for all processes
    if options.backend == "cc":
        warm()
    first, end = options.start, options.start + options.programs
    waiting = [
        list(range(max(low, first), min(low + BATCH, end)))
        for low in range(first - first % BATCH, end, BATCH)
    ]
    running: dict[Child, list[int]] = {}
    while waiting or running:
        while waiting and len(running) < options.jobs:
            numbers = waiting.pop(0)
            running[Child(batch, options, numbers)] = numbers
        child = first_ready(list(running))
        numbers = running.pop(child)
        try:
            found: list[Answer] = child.result(600.0)
        except Crashed:
            found = one_by_one(options, numbers)
        for number, one in zip(numbers, found, strict=True):
            _count(tally, number, one, options)
        print(f"\r{tally.line(options.programs)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return tally


def _count(tally: Tally, number: int, one: Answer, options: argparse.Namespace) -> None:
    tally.done += 1
    tally.ends[one.kind] += 1
    tally.first.setdefault(one.kind, number)
    tally.seen.update(one.seen)
    if not one.wrong:
        return
    tally.found += 1
    ways = _settings(options, number)
    if options.reduce and one.kind != "crash" and tally.ends[one.kind] <= options.each:
        with suppress(Crashed):
            one = Child(smaller, one, ways).result(600.0)
    print(f"\n{options.seed}:{number} {one}{ways}", flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line; return 1 where anything was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--start", type=int, default=0, help="number of the first program")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--kind", choices=KINDS)
    parser.add_argument("--backend", choices=("cc", "cuda"), default="cc",
                        help="cuda: kernels, whose threads are fibres")  # fmt: skip
    parser.add_argument("--each", type=int, default=3, help="findings of one kind made small")
    parser.add_argument("--no-reduce", dest="reduce", action="store_false")
    options = parser.parse_args(arguments)
    tally = hunt(options)
    print(tally.line(options.programs))
    for end, count in tally.ends.most_common():
        print(f"  {count:6}  {end} ({options.seed}:{tally.first[end]})")
    for what, count in sorted(tally.seen.items()):
        print(f"  {count:6}  held: {what}")
    return 1 if tally.found else 0


if __name__ == "__main__":
    sys.exit(main())
