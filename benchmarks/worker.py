"""One peer's process: `python -m benchmarks.worker PEER THREADS`. It answers lines of JSON.

    {"do": "prepare", "cell": "saxpy:small", "folder": ...}   first call; writes its results there
    {"do": "time", "seconds": 0.02}       as many calls as that takes; how many, and how long: with
                                          "clock": "processor" on the processors of the process
    {"do": "fresh", "calls": 100}         as many calls, each with arrays that are new to it
    {"do": "memory"}                      what one more call needs beyond arguments and results

Each answer is one line: a dictionary, with `left_out` or `error` and why where it was not done.
What libraries print goes to the standard error.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .cell import Result
from .cells import cell
from .peers import Peer, peer
from .peers.library import Arguments, Function, LeftOut, Library, Task

Answer = dict[str, Any]
MOST_CALLS = 10_000_000
STATUS = Path("/proc/self/status")
CLOCKS = {"wall": time.perf_counter_ns, "processor": time.process_time_ns}


class Worker:
    """The state between requests: one function with the arguments of one cell."""

    def __init__(self, chosen: Peer, threads: int, kept: bool = False) -> None:
        started = time.perf_counter()
        adapter = importlib.import_module(chosen.adapter)
        self.imported = time.perf_counter() - started
        self.library: Library = adapter.Library(threads, kept)
        self._chosen = chosen
        self._ready: Ready | None = None

    def prepare(self, cell: str, folder: str, wide: bool = False) -> Answer:
        """Bind the function of a cell to arrays from files, call it once, write its results.

        `wide`: floats of the inputs have 64 bits.
        """
        self._ready = None
        place = Path(folder)
        task, kind = read_task(place, cell, wide)
        module = importlib.import_module(f"benchmarks.{kind}.{self._chosen.functions}")
        arguments = self.library.arguments(module, task)
        before = settled()
        started = time.perf_counter()
        function = self.library.function(module, task)
        returned = function(*arguments)
        first = time.perf_counter() - started
        for number, array in enumerate(self.library.answer(returned, arguments, task)):
            np.save(place / f"{self._chosen.name}_{number}.npy", np.ascontiguousarray(array))
        self._ready = Ready(module, task, function, arguments, before)
        return {"first": first}

    def time(self, seconds: float, clock: str = "wall") -> Answer:
        """Return how many calls were made, and how many nanoseconds they took, after one more."""
        ready = self.ready
        now = CLOCKS[clock]
        ready.function(*ready.arguments)  # so that nobody pays for what others left in the caches
        while True:
            calls = ready.calls
            taken = timed(ready.function, [ready.arguments] * calls, now)
            if taken >= 0.5e9 * seconds or calls >= MOST_CALLS:
                return {"calls": calls, "nanoseconds": taken}
            ready.calls = int(calls * min(100.0, max(2.0, 1e9 * seconds / max(taken, 1))))

    def fresh(self, calls: int) -> Answer:
        """Return how long calls take that get arrays which no call has had before."""
        ready = self.ready
        old, every = ready.task, []
        for _ in range(calls):
            inputs = tuple(array.copy() for array in old.inputs)
            task = Task(old.name, old.regime, inputs, old.results, old.numbers)
            every.append(self.library.arguments(ready.module, task))
        return {"calls": calls, "nanoseconds": timed(ready.function, every)}

    def memory(self) -> Answer:
        """Return the bytes at the peak of a warm call beyond what there was before the first.

        What the library keeps from call to call counts, arguments and results do not.
        """
        ready = self.ready
        returned = ready.function(*ready.arguments)
        results = 0 if returned is None else sum(a.nbytes for a in ready.task.empty())
        del returned
        settled()
        Path("/proc/self/clear_refs").write_text("5")  # from here the peak is what there is now
        ready.function(*ready.arguments)
        return {"bytes": max(0, status("VmHWM") - ready.before - results)}

    @property
    def ready(self) -> Ready:
        """What was prepared."""
        assert self._ready is not None, "nothing was prepared"
        return self._ready


class Ready:
    """A function that has been called with its arguments once."""

    __slots__ = ("arguments", "before", "calls", "function", "module", "task")

    def __init__(
        self, module: Any, task: Task, function: Function, arguments: Arguments, before: int
    ) -> None:
        self.module, self.task = module, task
        self.before = before
        """The bytes of the process before the first call."""
        self.function, self.arguments = function, arguments
        self.calls = 1
        """How many of them take as long as one request for a time."""


def timed(
    function: Function, every: list[Arguments], now: Callable[[], int] = time.perf_counter_ns
) -> int:
    """Return how many nanoseconds the calls take together."""
    gc.collect()
    gc.disable()
    try:
        started = now()
        for arguments in every:
            function(*arguments)
        return now() - started
    finally:
        gc.enable()


def read_task(place: Path, name: str, wide: bool = False) -> tuple[Task, str]:
    """Return the task whose arrays and description are in a folder, and its kind."""
    chosen = cell(name)
    said = json.loads((place / "case.json").read_text())
    inputs = tuple(np.load(path) for path in sorted(place.glob("input_*.npy")))
    if wide:
        inputs = tuple(a.astype(np.float64) if a.dtype.kind == "f" else a for a in inputs)
    results = tuple(Result(tuple(shape), dtype) for shape, dtype in said["results"])
    work, numbers = chosen.workload, tuple(said["numbers"])
    task = Task(work.name, chosen.size.regime, inputs, results, numbers, work.constants)
    return task, work.kind


def settled() -> int:
    """Return the bytes of this process, after what is free was given back to the system."""
    gc.collect()
    if not STATUS.exists():
        return 0
    with contextlib.suppress(AttributeError):  # not every C library has it
        ctypes.CDLL(None).malloc_trim(0)
    return status("VmRSS")


def status(name: str) -> int:
    """Return a number of bytes that the system knows of this process."""
    lines = STATUS.read_text().splitlines()
    line = next(line for line in lines if line.startswith(name + ":"))
    return 1024 * int(line.split()[1])


def stay(threads: int) -> None:
    """Let this process run on as many processors as it may have threads."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


def requests() -> Iterator[dict[str, Any]]:
    """Yield what is asked, until there is nobody left to ask."""
    for line in sys.stdin:
        yield json.loads(line)


def main() -> int:
    """Answer until the input ends; return 0."""
    name, threads = sys.argv[1], int(sys.argv[2])
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    stay(threads)
    worker = Worker(peer(name), threads, kept="--kept" in sys.argv)
    hello = {"version": worker.library.version(), "imported": worker.imported}
    print(json.dumps(hello), file=answers, flush=True)
    for request in requests():
        action = getattr(worker, request.pop("do"))
        try:
            answer: Answer = action(**request)
        except LeftOut as why:
            answer = {"left_out": str(why)}
        except Exception as problem:  # whatever a library raises is what the table says
            answer = {"error": f"{type(problem).__name__}: {problem}".strip()[:2000]}
        print(json.dumps(answer), file=answers, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
