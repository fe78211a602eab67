"""Programs under the sanitizers of the C compiler: races, memory, undefined behaviour.

    python -m tests.sanitize                     all three, one after the other
    python -m tests.sanitize thread address      some of them
    python -m tests.sanitize --kernels 20        fewer kernels, chosen evenly
    python -m tests.sanitize address --programs 2000 --seed 7    random programs, too

Generated code and the run-time library are compiled with `-fsanitize=...` and run in a process of
their own: every kernel with its loops shared among two and seven threads, several threads of
Python at once, faults, forks before, between and after, and a call that a signal ends. What comes
out is compared with what comes out without a schedule. A report of a sanitizer fails the run.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np

import plusequals as pe
from plusequals.backends.cc.loader import ffi
from plusequals.backends.codegen.source import Source, preamble
from plusequals.backends.runtime.state import RUNTIME
from plusequals.base import settings
from plusequals.base.diagnostic import CdError
from plusequals.lowering.passes.buffer_sharing import MemoryPlan

from .backends import procedures
from .backends.cc.forks import begun, status_of
from .compare import copied, run_on

ROOT = Path(__file__).resolve().parent.parent
LIBRARIES = {"thread": "libtsan.so", "address": "libasan.so", "undefined": "libubsan.so"}
OPTIONS = {
    "TSAN_OPTIONS": "die_after_fork=0:halt_on_error=0:exitcode=66:report_signal_unsafe=0",
    "ASAN_OPTIONS": "detect_leaks=0:exitcode=66",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1:exitcode=66",
}
REPORTS = ("WARNING: ThreadSanitizer", "ERROR: AddressSanitizer", "runtime error:")
NO_RANDOM_ADDRESSES = 0x0040000
SIZE = 1000
LONG = 10**11
TRIES = 5
"""So many children in turn may be stuck: each is rare, so that five say that something is wrong."""
PATIENCE = 60.0
"""Seconds after which a child is looked at: its call takes milliseconds, or a second when busy."""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("which", nargs="*", help="thread, address, undefined; without any all")
    parser.add_argument("--kernels", type=int, default=1000, help="how many, at the most")
    parser.add_argument("--programs", type=int, default=0, help="random programs, too: how many")
    parser.add_argument("--seed", type=int, default=1, help="which random programs")
    parser.add_argument("--inside", default="", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if unknown := set(given.which) - LIBRARIES.keys():
        parser.error(f"there is no sanitizer {', '.join(sorted(unknown))}")
    if given.inside:
        if given.inside == "programs":
            run(given.kernels, given.programs, given.seed)
        else:
            run_wrong(given.inside)
        return 0
    amounts = {name: getattr(given, name) for name in ("kernels", "programs", "seed")}
    chosen = [f"--{name}={amount}" for name, amount in amounts.items()]
    return sum(not sanitized(which, chosen) for which in given.which or LIBRARIES)


def sanitized(which: str, amounts: list[str]) -> bool:
    """Whether a run under a sanitizer is clean, and a fault of that kind is reported; says so."""
    if shutil.which("gcc") is None:
        print(f"{which}: not run, there is no gcc", flush=True)
        return True
    started = time.monotonic()
    reports, status, said = _under(which, which, amounts)
    if not reports:
        print(f"{which}: a planted fault was not noticed\n{said[-20_000:]}", flush=True)
        return False
    reports, status, said = _under(which, "programs", amounts)
    clean = status == 0 and not reports
    took = time.monotonic() - started
    lines = [line for line in said.splitlines() if line.startswith("ran ")]
    print(f"{which}: {'clean' if clean else f'{reports} reports, status {status}'}, {took:.0f} s",
          *lines, sep="\n    ", flush=True)  # fmt: skip
    if not clean:
        print(said[-20_000:], flush=True)
    return clean


def _under(which: str, what: str, amounts: list[str]) -> tuple[int, int, str]:
    """Return how many reports a run gave, how it ended, and what it said."""
    compiler = shutil.which("gcc") or "gcc"
    preloaded = _asked([compiler, f"-print-file-name={LIBRARIES[which]}"])
    with tempfile.TemporaryDirectory(prefix="plusequals-") as folder:
        log = Path(folder, "log")
        environment = {**os.environ, **OPTIONS, "LD_PRELOAD": preloaded, "PYTHONPATH": str(ROOT)}
        environment |= {
            "CC": f"{compiler} -g -fsanitize={which}",
            "PLUSEQUALS_CACHE_DIR": str(Path(folder, "cache")),
            "PLUSEQUALS_OPTIMIZE": "1",
        }
        command = [sys.executable, "-m", "tests.sanitize", "--inside", what]
        with open(log, "w") as out:
            done = subprocess.run(
                [*command, *amounts], cwd=ROOT, env=environment, stdout=out,
                stderr=subprocess.STDOUT, preexec_fn=_at_fixed_addresses,
            )  # fmt: skip
        said = log.read_text(errors="replace")
    return sum(said.count(one) for one in REPORTS), done.returncode, said


def _asked(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _at_fixed_addresses() -> None:
    """Some sanitizers find no place for what they remember where addresses are random."""
    ctypes.CDLL(None).personality(NO_RANDOM_ADDRESSES)


# ------------------------------------------------------------------------------- in the process


def run(kernels: int, programs: int, seed: int) -> None:
    """Run everything; raises AssertionError where results differ."""
    if programs:
        print("ran", run_random(programs, seed), flush=True)
    kinds = (lambda: run_kernels(kernels), run_threads, run_plans, run_faults, run_forks,
             run_interrupted)  # fmt: skip
    for what in kinds:
        if what is run_forks and "=thread" in os.environ.get("CC", ""):
            print("ran no forks: ThreadSanitizer of gcc 12 itself ends in some of their children")
            continue
        print("ran", what(), flush=True)


def run_random(programs: int, seed: int) -> str:
    """Run the programs of the hunt of a seed, each batch under settings of its own."""
    from .programs.check import check_all
    from .programs.hunt import BATCH, program_of
    from .programs.ways import drawn

    refused, findings = 0, []
    for first in range(0, programs, BATCH):
        numbers = range(first, min(first + BATCH, programs))
        ways = drawn(random.Random(f"{seed}:{first}:sanitized"), passes=False)
        ways = replace(ways, plain=False)  # what Python does is not what is looked at
        for case in check_all([program_of(seed, number) for number in numbers], ways):
            refused += bool(case.refused)
            if case.finding is not None:
                findings.append(case.finding)
                print(case.finding, flush=True)
        print(f"{numbers.stop}/{programs} random programs", flush=True)
    assert not findings, f"{len(findings)} of {programs} random programs are wrong, see above"
    return f"{programs} random programs of seed {seed}, {refused} of them refused"


def sharing(threads: int) -> dict[str, object]:
    return {"schedule": True, "threads": threads, "parallel_from": 0}


def run_kernels(most: int) -> str:
    from .kernels.registry import KERNELS

    chosen = KERNELS[:: max(1, -(-len(KERNELS) // most))]
    count = 0
    for kernel in chosen:
        args, kwargs = kernel.make("tiny", 20)
        results = []
        for changes in ({}, sharing(2), *[sharing(7)] * 3):
            given = copied(args)
            try:
                with settings.override(**changes):
                    returned = run_on("cc", pe.cd(kernel.function), *given, **kwargs)
            except CdError as refused:
                returned = str(refused)
            results.append(_bytes(returned) + _bytes(given))
            count += 1
        assert all(one == results[0] for one in results), f"{kernel} depends on threads"
    return f"{len(chosen)} kernels in {count} ways"


def _bytes(value: object) -> list[bytes]:
    if isinstance(value, tuple | list):
        return [part for one in value for part in _bytes(one)]
    return [str(value).encode()] if value is None or isinstance(value, str) else [_raw(value)]


def _raw(value: object) -> bytes:
    return np.asarray(value).tobytes()


def scaled() -> Callable[[], bool]:
    """Return a call that shares a loop, and says whether its result is right."""
    with settings.override(**sharing(7)):
        code = RUNTIME.backend("cc").compile(procedures.scale(size=SIZE))
    x = np.arange(float(SIZE))

    def call() -> bool:
        y = np.zeros(SIZE)
        code.run((y, x))
        return bool((y == 2 * x).all())

    return call


WRONG = {
    "thread": """
static int part(const void *with, int64_t first, int64_t last, int64_t *fault)
{
    (void)fault;
    for (int64_t i = 1000 * first; i < 1000 * last; i++) *(volatile double *)with += i;
    return 0;
}
int pe_wrong(void **args)
{
    const shared_run *const run = args[1];
    return run->parallel(run, part, args[0], 1000, 1000000, NULL);
}
""",
    "address": """
int pe_wrong(void **args)
{
    volatile double *const some = calloc(10, sizeof(double));
    *(double *)args[0] = some[10];
    return 0;
}
""",
    "undefined": """
int pe_wrong(void **args)
{
    volatile int by = 40;
    *(double *)args[0] = 1 << by;
    return 0;
}
""",
}
"""Faults that have to be reported, or the reports of none about the rest say nothing."""


def run_wrong(which: str) -> None:
    """Do what is wrong."""
    backend, y = RUNTIME.backend("cc"), np.zeros(1)
    text = preamble(WRONG[which]) + WRONG[which]
    library, _ = backend.load(
        Source(text, "pe_wrong", {}, (), (), MemoryPlan((), (), (), ()), 0), "x"
    )
    table = backend.threads().table(2, 0)
    for _ in range(20):
        library.function("pe_wrong")(ffi.new(ffi.typeof("void *[]"), [ffi.from_buffer(y), table]))


def run_threads() -> str:
    call = scaled()
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(lambda _: all(call() for _ in range(100)), range(4)))
    return "4 threads at once, 400 calls"


def run_plans() -> str:
    """Run random plans, whose streams have threads of their own."""
    from .backends.runtime.plan.random_plans import Sides

    for seed in range(100):
        Sides(seed).check()
    return "100 random plans"


def run_faults() -> str:
    with settings.override(**sharing(7)):
        code = RUNTIME.backend("cc").compile(procedures.roots(SIZE))
    y, x = np.zeros(SIZE), np.ones(SIZE)
    x[[300, 301, 650, 999]] = -1
    for _ in range(100):
        try:
            code.run((y, x))
        except CdError as fault:
            assert "i = 300" in str(fault)
        else:
            raise AssertionError("there is a fault")
    return "the first of four faults, 100 times"


def run_forks() -> str:
    call = scaled()
    assert _forked(call)
    assert call() and _forked(call) and call()
    stop = threading.Event()
    busy = threading.Thread(target=lambda: [call() for _ in iter(stop.is_set, True)])
    busy.start()
    try:
        assert all(_forked(call) for _ in range(5))
    finally:
        stop.set()
        busy.join()
    assert call()
    return "children forked before, after and during shared loops"


def _forked(call: Callable[[], bool]) -> bool:
    """Whether a child's call is right; a child stuck in the sanitizer's own locks counts for none.

    The allocators of sanitizers before gcc 14 do not hold their locks over a fork, as that of the
    C library does: a child of a process with threads can find one held for ever.
    """
    for _ in range(TRIES):
        pid = begun(call)
        status = status_of(pid, PATIENCE)
        if status is not None:
            return status == 0
        try:
            where = {_waits_in(pid, task) for task in os.listdir(f"/proc/{pid}/task")}
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        if not any(name in path for path in where for name in LIBRARIES.values()):
            raise AssertionError(f"a child after a fork waits in {sorted(where)}")
    raise AssertionError(f"{TRIES} children in turn are stuck in the sanitizer's own locks")


def _waits_in(pid: int, task: str) -> str:
    """Return the path of the library whose system call a thread waits in, empty where none."""
    said = Path(f"/proc/{pid}/task/{task}/syscall").read_text().split()
    if len(said) < 2:
        return ""
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        span, *_, path = line.split()
        first, last = (int(one, 16) for one in span.split("-"))
        if first <= int(said[-1], 16) < last:
            return path
    return ""


def run_interrupted() -> str:
    from .backends.cc import long_calls

    signal.signal(signal.SIGINT, signal.default_int_handler)
    settings.use(**sharing(2))
    for call in long_calls.CALLS.values():
        call(10)
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            call(LONG)
        except KeyboardInterrupt:
            continue
        raise AssertionError("it was interrupted")
    return f"{len(long_calls.CALLS)} calls that Ctrl-C ended"


if __name__ == "__main__":
    sys.exit(main())
