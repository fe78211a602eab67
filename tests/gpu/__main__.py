"""What needs a GPU, by one command; without one it says so, and ends well.

    python -m tests.gpu                           all of it
    python -m tests.gpu tests sanitizer           some of it: tests, sanitizer, benchmark
    python -m tests.gpu sanitizer --tools racecheck
    python -m tests.gpu benchmark --cells softmax,gemm_f32_4096 --into docs/performance.md

`tests` runs every test that takes a backend on the device, and loops of every kind against the
interpreter; `sanitizer` runs those loops under memcheck, racecheck, synccheck and initcheck;
`benchmark` checks results, then measures them by events of the device, beside PyTorch, Triton,
CuPy and JAX where they can be imported, and against a copy within the device.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

from plusequals.backends.cuda import nvrtc
from plusequals.backends.runtime.state import RUNTIME

from . import launching, nests, sanitizer, tensors
from .machine import Cuda, NoDevice
from .measure import copy_rate, into, rows, table
from .peers import PEERS, first_line
from .work import MEASURED

ROOT = Path(__file__).resolve().parents[2]
ABREAST = 8
"""So many processes share the device, at most."""
PARTS = ("tests", "sanitizer", "benchmark")
TESTED = ("tests/dsl", "tests/language", "tests/test_language_page.py")
"""Where tests are that take a backend."""
OTHERWISE = {
    "tests/language/test_rules.py::test_k1_what_was_written_before_a_check_stays[cuda]":
        "where a check fails, arrays that a call was given stay as they were",
    "tests/dsl/elaborate/test_adapting.py::test_it_raises_in_program_order[cuda]":
        "where a check fails, arrays that a call was given stay as they were",
    "tests/language/test_rules.py::test_k3_sums_go_in_order[cuda]":
        "the threads of a block share sums in an order of their own",
}  # fmt: skip
"""Tests of what docs/cuda.md says is otherwise on a device."""


def main(words: Sequence[str]) -> int:
    """Return 0 where nothing failed; so it is where there is nothing to run on."""
    given = options(words)
    if given.inside:
        return inside(given.inside)
    why = missing()
    if why:
        print(f"not run: {why}", flush=True)
        return 0
    done: dict[str, Callable[[], bool]] = {
        "tests": tests, "sanitizer": lambda: sanitized(given.tools),
        "benchmark": lambda: benchmark(given),
    }  # fmt: skip
    failed = [part for part in given.parts or PARTS if not ended_well(done[part])]
    print(f"failed: {', '.join(failed)}" if failed else "nothing failed", flush=True)
    return len(failed)


def options(words: Sequence[str]) -> argparse.Namespace:
    """Return what was asked for; ends the process where that is nothing that there is."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.gpu", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("parts", nargs="*", help="tests, sanitizer, benchmark; without any all")
    parser.add_argument("--cells", default="", help="names of workloads, with commas")
    parser.add_argument("--tools", default="", help="names of the sanitizer's tools, with commas")
    parser.add_argument("--into", type=Path, help="a page whose table is replaced")
    parser.add_argument("--inside", default="", help=argparse.SUPPRESS)
    given = parser.parse_args(words)
    if unknown := set(given.parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}")
    names = [name for name in given.cells.split(",") if name]
    given.cells = [what for what in MEASURED if not names or what.workload.name in names]
    if unknown := set(names) - {what.workload.name for what in MEASURED}:
        parser.error(f"there is no workload {', '.join(sorted(unknown))}")
    given.tools = [name for name in given.tools.split(",") if name] or sanitizer.TOOLS
    if unknown := set(given.tools) - set(sanitizer.TOOLS):
        parser.error(f"there is no tool {', '.join(sorted(unknown))}")
    return given


def missing() -> str:
    """Return why nothing can be run here, empty where something can."""
    try:
        Cuda()
    except NoDevice as why:
        return str(why)
    found = RUNTIME.backend("cuda").unavailable()
    return "" if found is None else str(found).splitlines()[0]


def ended_well(part: Callable[[], bool]) -> bool:
    """Whether a part passed; one that breaks off is told, and does not end the others."""
    try:
        return part()
    except Exception:
        traceback.print_exc()
        return False


def inside(what: str) -> int:
    """Do, in a process of its own, a part of the tests, or what a sanitizer looks at."""
    if what.startswith("wrong "):
        sanitizer.plant(what.removeprefix("wrong "))
    elif what == "programs":
        count = nests.run()
        print(
            f"{count} programs compute what the interpreter does, the same in each run", flush=True
        )
    elif what == "products":
        count = tensors.run()
        print(
            f"{count} products by tensor cores are what NumPy says, the same in each run",
            flush=True,
        )
    else:
        print(f"{nests.run(sizes=(5, 37))} programs", flush=True)
        products = tensors.run(sizes=((65, 63, 66), (16, 17, 200)))
        print(f"{products} products by tensor cores", flush=True)
    return 0


def tests() -> bool:
    """Whether tests pass on the device; each kind in a process of its own, since a device that has
    failed once refuses everything of its process."""
    python = (sys.executable, "-m")
    passed = [_passes(*python, "tests.gpu", "--inside", what) for what in ("programs", "products")]
    for test, why in OTHERWISE.items():
        print(f"left out: {test}: {why}", flush=True)
    left_out = [f"--deselect={test}" for test in OTHERWISE]
    chosen = ["-k", "cuda", "--backend", "cuda", *left_out, *TESTED]
    return _passes(*python, "pytest", "-q", *_abreast(), *chosen) and all(passed)


def _passes(*words: str) -> bool:
    return subprocess.run(words, cwd=ROOT, check=False).returncode == 0


def _abreast() -> list[str]:
    """Return how tests are run side by side, where that can be done: most of it is compiling."""
    if find_spec("xdist") is None:
        return []
    return ["-n", str(min(ABREAST, os.cpu_count() or 1)), "--dist", "worksteal"]


def sanitized(tools: Sequence[str]) -> bool:
    """Whether no tool of compute-sanitizer reports anything."""
    clean = True
    for tool in tools:
        passed, said = sanitizer.checked(tool, ROOT)
        print(said, flush=True)
        clean = clean and passed
    return clean


def benchmark(given: argparse.Namespace) -> bool:
    """Whether every cell could be measured; shows the table, and puts it into a page."""
    machine = Cuda()
    compiler = nvrtc.find(machine.facts.newest)
    rate, facts, host = copy_rate(machine), machine.facts, queued()
    found = []
    for row in rows(machine, compiler, given.cells, PEERS):
        found.append(row)
        print(table([row], rate, list(PEERS)).splitlines()[2], flush=True)
    text = (
        f"{facts.name}, {facts.target}, driver of CUDA {facts.driver}, {compiler.name}. A copy\n"
        f"within the device reads and writes {rate / 1e9:,.0f} GB/s. Times are medians of runs\n"
        "whose arguments are on the device, by its events (JAX: by the clock of the host).\n"
        f"{host}\n\n" + table(found, rate, list(PEERS))
    )
    print(f"\n{text}", flush=True)
    if given.into is not None:
        page = given.into.read_text(encoding="utf-8")
        given.into.write_text(into(page, text), encoding="utf-8")
    return all(row.ours is not None for row in found)


def queued() -> str:
    """Return a sentence on what the host spends on a linked routine of one kernel."""
    try:
        took = launching.seconds()
    except Exception as why:  # the cells are measured all the same
        return f"What the host spends on a routine was not measured: {first_line(why)}"
    return (
        f"The host spends {took * 1e6:.1f} microseconds on a linked routine of one kernel, which\n"
        f"it queues, the median of {launching.ROUNDS} runs of {launching.CALLS} calls."
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
