"""A long search for gradients that are wrong.

    python -m tests.lowering.adjoint.random_gradients --programs 1000 --seed 1
    python -m tests.lowering.adjoint.random_gradients --programs 1 --seed 1 --start 412

Random programs, whose results and arguments are summed to one number: what `pe.gradient` returns
is held against differences along random directions, and as compiled, interpreted and recompiled
text, in reverse and forward, at several sizes and in 32 bits against itself. Where differences of
two step sizes, or of the two sides, disagree, the number has no derivative there, and the program
counts as rough. The status is 1 where anything was found.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

from tests.programs.isolate import Child, Crashed
from tests.programs.model import Program
from tests.programs.reduce import reduced

from .random_losses import KINDS, Answer, answer, program_of

BATCH = 20
"""Programs in one process."""


@dataclass(slots=True)
class Tally:
    """What came out so far."""

    started: float = field(default_factory=time.monotonic)
    done: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    """How often a program ended in a way: "right", "rough", or why it was refused."""
    first: dict[str, int] = field(default_factory=dict)
    found: int = 0

    def line(self, wanted: int) -> str:
        """Return the progress as one line."""
        rate = self.done / max(time.monotonic() - self.started, 1e-9)
        return (
            f"{self.done}/{wanted} programs, {rate:.1f}/s, {self.ends['right']} right, "
            f"{self.ends['rough']} rough, {self.found} findings"
        )


def batch(seed: int, kind: str | None, numbers: list[int]) -> list[Answer]:
    """Return what became of each program."""
    return [answer(program_of(seed, number, kind)) for number in numbers]


def answers(seed: int, kind: str | None, numbers: list[int]) -> list[Answer]:
    """Return the same from a process of its own, where a crash is an answer."""
    try:
        found: list[Answer] = Child(batch, seed, kind, numbers).result(300.0)
        return found
    except Crashed as why:
        if len(numbers) == 1:
            return [Answer("crash", str(why), program_of(seed, numbers[0], kind))]
        return [one for number in numbers for one in answers(seed, kind, [number])]


def smaller(found: Answer) -> Answer:
    """Return the same finding about the smallest program found."""
    best = found

    def fails(program: Program) -> bool:
        nonlocal best
        try:
            other = answer(program)
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
    first, end = options.start, options.start + options.programs
    for low in range(first, end, BATCH):
        numbers = list(range(low, min(low + BATCH, end)))
        for number, one in zip(numbers, answers(options.seed, options.kind, numbers), strict=True):
            tally.done += 1
            tally.ends[one.kind] += 1
            tally.first.setdefault(one.kind, number)
            if one.wrong:
                tally.found += 1
                if options.reduce and one.kind != "crash" and tally.ends[one.kind] <= options.each:
                    one = Child(smaller, one).result(600.0)
                print(f"\n{options.seed}:{number} {one}", flush=True)
        print(f"\r{tally.line(options.programs)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return tally


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line; return 1 where anything was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--start", type=int, default=0, help="number of the first program")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", choices=KINDS)
    parser.add_argument("--each", type=int, default=3, help="findings of one kind made small")
    parser.add_argument("--no-reduce", dest="reduce", action="store_false")
    options = parser.parse_args(arguments)
    tally = hunt(options)
    print(tally.line(options.programs))
    for end, count in tally.ends.most_common():
        print(f"  {count:6}  {end} ({options.seed}:{tally.first[end]})")
    return 1 if tally.found else 0


if __name__ == "__main__":
    sys.exit(main())
