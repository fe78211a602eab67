"""Random calls of functions and routines on the same tensors, by hand and in plans.

    python -m tests.dsl.api.random_calls --programs 2000 --seed 7

Both sides have tensors of their own, and do the same: plans or deferred blocks of calls on the one,
the calls themselves on the other; what the host writes, single calls and looks come in between.
"""

from __future__ import annotations

import argparse
import random
import sys
from typing import Any

import plusequals as pe
from plusequals import cd
from plusequals.idx import i

TENSORS = 5
Operation = tuple[Any, ...]


@cd
def copied(a, b):
    a[i] = b[i]


@cd
def added(a, b):
    a[i] += 0.5 * b[i]


@cd
def counted(a):
    a[i] += 1.0


FUNCTIONS = {"copied": (copied, 2), "added": (added, 2), "counted": (counted, 1)}


class Side:
    """One of the two sides of a program."""

    def __init__(self, seed: int, planned: bool) -> None:
        self.rng, self.planned = random.Random(seed), planned
        self.tensors = [
            pe.tensor(f"t{n}", 3, dtype="float64", init=float(n + 1)) for n in range(TENSORS)
        ]
        self.routines: list[Any] = []
        for _ in range(self.rng.randint(0, 2)):
            context = pe.device("cc").stream(threaded=False).context()
            for _ in range(self.rng.randint(1, 3)):
                function, numbers = self._drawn()
                code = FUNCTIONS[function][0].compile(*(self.tensors[n] for n in numbers))
                self.routines.append(code.link(context))
                context = self.routines[-1].context

    def _drawn(self) -> tuple[str, list[int]]:
        name = self.rng.choice(sorted(FUNCTIONS))
        return name, self.rng.sample(range(TENSORS), FUNCTIONS[name][1])

    def draw(self, count: int) -> list[Operation]:
        """Draw calls: of routines by number, of functions with tensors and a backend."""
        rng, calls = self.rng, []
        for _ in range(count):
            if self.routines and rng.random() < 0.4:
                calls.append((rng.randrange(len(self.routines)),))
            else:
                calls.append((*self._drawn(), rng.choice(("cc", "cc", "numpy"))))
        return calls

    def call(self, operations: list[Operation]) -> None:
        for operation in operations:
            if len(operation) == 1:
                self.routines[operation[0]]()
            else:
                name, numbers, backend = operation
                FUNCTIONS[name][0].on(backend)(*(self.tensors[n] for n in numbers))

    def run(self) -> list[float]:
        """Do everything; return what was looked at, and the tensors at the end."""
        rng, seen = self.rng, []
        deferred, caps = rng.random() < 0.3, [rng.choice((None, 1, 2)) for _ in range(2)]
        parts = [self.draw(rng.randint(1, 6)) for _ in caps]
        plans: list[Any] = []
        if self.planned and not deferred:
            for part, cap in zip(parts, caps, strict=True):
                with pe.plan(max_streams=cap) as plan:
                    self.call(part)
                plans.append(plan)
        for _ in range(6):
            drawn, at = rng.random(), rng.randrange(2)
            if drawn < 0.6:
                if plans:
                    plans[at]()
                elif self.planned:
                    with pe.deferred():
                        self.call(parts[at])
                else:
                    self.call(parts[at])
            elif drawn < 0.75:
                self.tensors[rng.randrange(TENSORS)][...] = float(rng.randrange(9))
            elif drawn < 0.9:
                self.call(self.draw(1))
            else:
                seen.append(self.tensors[rng.randrange(TENSORS)].numpy()[0])
        return [float(value) for value in (*seen, *(t.numpy()[0] for t in self.tensors))]


def differs(seed: int) -> str:
    """Return what is different on the two sides of a program, "" for nothing."""
    try:
        by_hand = Side(seed, planned=False).run()
    except pe.CdError:
        return ""  # a second stream would write what streams share
    planned = Side(seed, planned=True).run()
    return "" if planned == by_hand else f"seed {seed}: {planned} in plans, {by_hand} by hand"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    wrong = 0
    for number in range(given.programs):
        if why := differs(given.seed * 1_000_000 + number):
            wrong += 1
            print(why, flush=True)
    print(f"{given.programs} programs, {wrong} wrong")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
