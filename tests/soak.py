"""Whether anything grows: thousands of compilations, and linked routines made and finalized.

    python -m tests.soak --compiles 2000 --cycles 100000

Prints memory, mappings, descriptors and threads of the process as it goes, and ends with an error
where one of them grows after the first tenth of the work. Needs Linux, which tells all of these.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import plusequals as pe
from plusequals.backends.runtime.state import RUNTIME

MEGABYTES = 8.0
"""How much the memory of the process may differ from what it was after the first tenth."""
FEW = 4
"""How many mappings: those of the allocator come and go."""


@dataclass(frozen=True, slots=True)
class Held:
    """What the process holds of the system."""

    megabytes: float
    mappings: int
    descriptors: int
    threads: int
    devices: int
    """Bytes in arrays of devices."""

    @classmethod
    def now(cls) -> Held:
        """Return it, after what is garbage is collected."""
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return cls(
            pages * os.sysconf("SC_PAGE_SIZE") / 2**20,
            len(Path("/proc/self/maps").read_text().splitlines()),
            len(os.listdir("/proc/self/fd")),
            len(os.listdir("/proc/self/task")),
            sum(device.used_memory for device in RUNTIME.devices.values()),
        )

    def grown(self, first: Held) -> list[str]:
        """Return what is more than it was at first, in words."""
        found = {
            "memory": self.megabytes > first.megabytes + MEGABYTES,
            "mappings": self.mappings > first.mappings + FEW,
            "descriptors": self.descriptors > first.descriptors,
            "threads": self.threads > first.threads,
            "memory of devices": self.devices > first.devices,
        }
        return [name for name, is_more in found.items() if is_more]

    def __str__(self) -> str:
        return (
            f"{self.megabytes:8.1f} MB {self.mappings:5d} mappings {self.descriptors:3d} "
            f"descriptors {self.threads:2d} threads {self.devices:6d} bytes on devices"
        )


def compile_one(number: int) -> None:
    """Compile and call a function that nobody has compiled before."""
    text = f"def f(y, x):\n    y[i] = x[i] * {number} + {number % 7}\n"
    function = pe.cd_from_source(text, backend="cc")
    y = np.zeros(5)
    function(y, np.arange(5.0))
    assert y[4] == 4 * number + number % 7, (number, y)


class Cycle:
    """A function that is compiled again for the same tensor, linked, run and finalized."""

    def __init__(self) -> None:
        text = "def step(p, x):\n    p.grad[i] = p.value[i] * x[i]\n"
        self.step = pe.cd_from_source(text, backend="cc")
        self.put = pe.cd_from_source("def put(p, n):\n    p.value[n] = 1.0\n", backend="cc")
        self.tensor = pe.tensor("p", (64,), dtype="float64", init=1.0)
        self.device = pe.device("cc")
        self.streams = [self.device.stream(threaded=False), self.device.stream()]

    def __call__(self, number: int) -> None:
        """Do one cycle; every hundredth has a stream of its own, which fails."""
        x = np.full(64, float(number))
        if number % 100 == 50:
            self.fail(self.device.stream(threaded=number % 200 == 50))
        context = self.streams[number % 2].context()
        routine = self.step.compile(self.tensor, x).link(context)
        routine(x)
        routine.context.finalize()
        context.finalize()
        if number % 100 == 0:
            assert self.tensor.grad.numpy()[0] == number

    def fail(self, stream: pe.Stream) -> None:
        """Have a routine of a stream fail, and let go of both."""
        routine = self.put.compile(self.tensor, 0).link(stream.context())
        try:
            routine(64)
            stream.synchronize()
        except IndexError:
            return
        raise AssertionError("nothing was raised")


def soak(what: str, count: int, work: Callable[[int], None]) -> list[str]:
    """Do some work many times; return what grew meanwhile."""
    started, first, grown = time.monotonic(), None, []
    for number in range(1, count + 1):
        work(number)
        if number % max(1, count // 10) == 0:
            held = Held.now()
            rate = number / (time.monotonic() - started)
            print(f"{what} {number:7,d} of {count:,} {held} {rate:8.1f}/s", flush=True)
            first = first or held
            grown = held.grown(first)
    return [f"{what}: {name}" for name in grown]


def main() -> int:
    """Return 0 where nothing grew."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compiles", type=int, default=2000)
    parser.add_argument("--cycles", type=int, default=100_000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as cache, pe.override(cache_dir=cache):
        grown = soak("cycles", asked.cycles, Cycle())
        grown += soak("compiles", asked.compiles, compile_one)
    print("grown: " + ", ".join(grown) if grown else "nothing has grown")
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
