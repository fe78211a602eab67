"""Random programs of routines, transfers, merges and host accesses, against their serial meaning.

    python -m tests.backends.runtime.random_steps --programs 5000 --seed 1

A program runs over 1 to 4 streams, inline and threaded, on 1 to 3 devices, with delays put into
whatever works. Every look of the host is compared at once, and everything again at the end. With
`--threads 3` as many programs run at the same time, on the same devices; with `--switch 1e-6`
threads take turns as often as they can.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import sys
import threading
import time

from tests.backends.runtime.random_program import Program
from tests.backends.runtime.step_functions import delays


def run_together(first: int, count: int, steps: int, backend: str) -> None:
    """Run some programs at the same time, each in a thread of its own; raises what one raises."""
    problems: list[BaseException] = []

    def one(seed: int) -> None:
        try:
            Program(seed, backend).run(steps, alone=count == 1)
        except BaseException as problem:
            print(f"--programs 1 --seed {seed} --steps {steps}", flush=True)
            problems.append(problem)

    with delays(first):
        if count == 1:
            one(first)
        else:
            threads = [threading.Thread(target=one, args=(first + n,)) for n in range(count)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    for problem in problems:
        raise problem


def main() -> None:
    """Run random programs and say how many; an AssertionError shows the first that differs."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--backend", default="cc")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--switch", type=float, default=sys.getswitchinterval())
    given = parser.parse_args()
    faulthandler.enable()
    sys.setswitchinterval(given.switch)
    last, started = given.seed + given.programs, time.monotonic()
    run_together(given.seed, 1, given.steps, given.backend)
    gc.freeze()  # or to collect takes a fifth of a second, for all that was imported
    for seed in range(given.seed, last, given.threads):
        faulthandler.dump_traceback_later(600, exit=True)  # nothing takes that long
        run_together(seed, min(given.threads, last - seed), given.steps, given.backend)
        done = seed - given.seed + given.threads
        if done % 1000 < given.threads:
            took, threads = time.monotonic() - started, threading.active_count()
            print(f"{done} of {given.programs}, {took:.0f} s, {threads} threads", flush=True)
            assert threads < 200, "threads of streams that are gone should have ended"
    faulthandler.cancel_dump_traceback_later()
    print(f"{given.programs} programs of {given.steps} steps agree")


if __name__ == "__main__":
    main()
