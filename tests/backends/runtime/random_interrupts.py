"""Interrupts at random moments of calls, reads and runs of plans: whoever comes later goes on.

    python -m tests.backends.runtime.random_interrupts --count 600 --seed 1

A signal handler raises at a random moment, again and again; now and then another thread calls a
routine and reads a tensor, for which no lock may be left taken. Ends with 1 where it waits for
longer than ten seconds, and shows where all threads are.
"""

from __future__ import annotations

import argparse
import faulthandler
import random
import signal
import sys
import threading
from types import FrameType

import plusequals as pe

from .plan.scenes import Scene, count_up

OTHER = 20
"""After how many interrupts another thread has its turn."""


class Interrupt(Exception):
    """What the signal handler raises."""


def interrupt(number: int, frame: FrameType | None) -> None:
    """Raise: the handler of the signal."""
    raise Interrupt


class Work:
    """Routines of one context, and a plan of them."""

    def __init__(self) -> None:
        self.scene = Scene()
        self.tensor = self.scene.a
        tensors = self.scene.a, self.scene.b, self.scene.c
        self.steps = [self.scene.link(count_up, tensor) for tensor in tensors]
        with pe.plan() as self.plan, self.plan.while_(lambda n: n < 20):
            for step in self.steps:
                step()

    def some(self, rng: random.Random) -> None:
        """Call, read, and rarely run the plan."""
        pick = rng.randrange(6)
        if pick < 4:
            self.steps[pick % len(self.steps)]()
        elif pick == 4:
            self.tensor.numpy()
        elif rng.random() < 0.05:
            self.plan()

    def goes_on_elsewhere(self) -> bool:
        """Whether another thread ends a call and a read within ten seconds."""

        def other() -> None:
            self.steps[0]()
            self.tensor.numpy()

        thread = threading.Thread(target=other, daemon=True)
        thread.start()
        thread.join(10)
        return not thread.is_alive()


def hunt(count: int, seed: int) -> bool:
    """Return whether everything went on after each of so many interrupts."""
    rng, work = random.Random(seed), Work()
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for number in range(1, count + 1):
            try:
                signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.0001, 0.003))
                for _ in range(5000):  # an interrupt of a finalizer raises nothing
                    work.some(rng)
            except Interrupt:
                pass
            signal.setitimer(signal.ITIMER_REAL, 0)
            if number % OTHER == 0 and not work.goes_on_elsewhere():
                print(f"another thread waits for ever after {number} interrupts")
                faulthandler.dump_traceback(sys.stdout)
                return False
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    print(f"{count} interrupts: everything went on")
    return True


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line; return 1 where something did not go on."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--count", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    return 0 if hunt(given.count, given.seed) else 1


if __name__ == "__main__":
    sys.exit(main())
