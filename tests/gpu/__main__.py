"""What needs a GPU, by one command; without one it says so, and ends well.

    python -m tests.gpu                           all of it
    python -m tests.gpu tests sanitizer           some of it: tests, sharing, sanitizer, benchmark
    python -m tests.gpu programs products suite   or what `tests` is made of
    python -m tests.gpu sanitizer --tools racecheck --seconds 45
    python -m tests.gpu benchmark --cells softmax,gemm_f32_4096 --into docs/performance.md

`programs` holds loops of every kind against the interpreter, `products` contractions by tensor
cores against NumPy, `suite` runs every test that takes a backend on the device: these are `tests`.
`sharing` is about arrays of CuPy, PyTorch, JAX and Numba, memory, streams and failures; `sanitizer`
runs loops and products under memcheck, racecheck, synccheck and initcheck; `benchmark` checks
results, then measures them by events of the device, beside PyTorch, Triton, CuPy and JAX where they
can be imported, and against a copy within the device.

Everything but the benchmark runs in several processes at once, each with its share. `--seconds` is
how long each kind of tests, or each tool of the sanitizer, may take; what is over then is told.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from plusequals.backends.cuda import nvrtc
from plusequals.backends.runtime.state import RUNTIME

from . import abreast, launching, nests, sanitizer, suite, tensors
from .jobs import done, share
from .machine import Cuda, NoDevice
from .measure import Row, copy_rate, into, rows, table
from .peers import PEERS
from .sharing import groups
from .work import MEASURED

ROOT = Path(__file__).resolve().parents[2]
TESTS = ("programs", "products", "suite")
PARTS = (*TESTS, "sharing", "sanitizer", "benchmark")
LIMIT = 1800.0
"""Seconds that a kind of tests may take."""
JOBS = {"programs": nests.jobs, "products": tensors.jobs, "nests": sanitizer.jobs}
"""What processes of their own look at."""


def main(words: Sequence[str]) -> int:
    """Return 0 where nothing failed; so it is where there is nothing to run on."""
    given = options(words)
    if given.inside:
        return inside(given)
    why = missing()
    if why:
        print(f"not run: {why}", flush=True)
        return 0
    limit = given.seconds or LIMIT
    ways: dict[str, Callable[[], bool]] = {
        "programs": lambda: looked("programs", limit),
        "products": lambda: looked("products", limit),
        "suite": lambda: suite.passed(ROOT, limit),
        "sharing": lambda: groups.passed(ROOT, limit),
        "sanitizer": lambda: sanitized(given.tools, given.seconds or sanitizer.BUDGET),
        "benchmark": lambda: benchmark(given),
    }
    failed = [part for part in given.parts if not ended_well(ways[part])]
    print(f"failed: {', '.join(failed)}" if failed else "nothing failed", flush=True)
    return len(failed)


def options(words: Sequence[str]) -> argparse.Namespace:
    """Return what was asked for; ends the process where that is nothing that there is."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.gpu", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    known = ("tests", *PARTS)
    parser.add_argument("parts", nargs="*", help=f"{', '.join(known)}; without any all")
    parser.add_argument("--cells", default="", help="names of workloads, with commas")
    parser.add_argument("--tools", default="", help="names of the sanitizer's tools, with commas")
    parser.add_argument("--into", type=Path, help="a page whose table is replaced")
    parser.add_argument("--seconds", type=float, help="how long each kind of tests may take")
    parser.add_argument("--inside", default="", help=argparse.SUPPRESS)
    parser.add_argument("--way", default="", help=argparse.SUPPRESS)
    parser.add_argument("--share", default="1/1", help=argparse.SUPPRESS)
    given = parser.parse_args(words)
    if unknown := set(given.parts) - set(known):
        parser.error(f"there is no part {', '.join(sorted(unknown))}")
    asked = [one for part in given.parts for one in (TESTS if part == "tests" else (part,))]
    given.parts = list(dict.fromkeys(asked or PARTS))
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


def inside(given: argparse.Namespace) -> int:
    """Do, in a process of its own, a share of the tests, or what a sanitizer looks at."""
    if given.inside.startswith("wrong "):
        sanitizer.plant(given.inside.removeprefix("wrong "))
        return 0
    if given.way:
        groups.use(given.way)
    if given.inside == "launching":
        said(f"{launching.seconds()}")
        return 0
    what, _, group = given.inside.partition(" ")
    jobs = groups.jobs(group) if group else JOBS[what]()
    tally = done(share(jobs, given.share), given.seconds or LIMIT, said, each=bool(group))
    return min(len(tally.wrong), 1)


def said(text: str) -> None:
    """Print a line at once."""
    print(text, flush=True)


def looked(what: str, seconds: float) -> bool:
    """Whether nothing is wrong of what several processes look at, each at its share: a device that
    has failed once refuses everything of its process."""
    count, words = abreast.at_once(), (sys.executable, "-m", "tests.gpu", "--inside", what)
    ran = abreast.run(
        {
            f"{what} {at}/{count}": (*words, "--share", f"{at}/{count}", "--seconds", str(seconds))
            for at in range(1, count + 1)
        },
        what, seconds, ROOT,
    )  # fmt: skip
    said(f"{what}: {abreast.progress(ran)}")
    return all(one.status == 0 and one.looked == one.count for one in ran)


def sanitized(tools: Sequence[str], seconds: float) -> bool:
    """Whether no tool of compute-sanitizer reports anything."""
    clean = True
    for tool in tools:
        passed, told = sanitizer.checked(tool, ROOT, seconds)
        said(told)
        clean = clean and passed
    return clean


def benchmark(given: argparse.Namespace) -> bool:
    """Whether every cell could be measured; shows the table, and puts it into a page."""
    machine = Cuda()
    compiler = nvrtc.find_compiler(machine.facts.newest)
    rate, facts, host = copy_rate(machine), machine.facts, queued()
    head = (
        f"{facts.name}, {facts.target}, driver of CUDA {facts.driver}, {compiler.name}. A copy\n"
        f"within the device reads and writes {rate / 1e9:,.0f} GB/s. Times are medians of runs\n"
        "whose arguments are on the device, by its events (JAX: by the clock of the host).\n"
        f"{host}\n\n"
    )
    print(head, flush=True)
    found, text = list[Row](), head
    for row in rows(machine, compiler, given.cells, PEERS):
        found.append(row)
        print(table([row], rate, list(PEERS)).splitlines()[2], flush=True)
        text = head + table(found, rate, list(PEERS))
        if given.into is not None:  # after each, since whoever lends a device may end all of this
            page = given.into.read_text(encoding="utf-8")
            given.into.write_text(into(page, text), encoding="utf-8")
    print(f"\n{text}", flush=True)
    return all(row.ours is not None for row in found)


def queued() -> str:
    """Return what the host spends on a linked routine of one kernel, in each way to the driver."""
    return (
        "For a linked routine of one kernel, which it queues, the host takes, as the median of\n"
        f"{launching.ROUNDS} runs of {launching.CALLS} calls:\n"
        + "\n".join(f"{queued_through(way)}." for way in groups.ways())
    )


def queued_through(way: str) -> str:
    """Return that of one way, measured by a process of its own: the cells need the rest."""
    words = (sys.executable, "-m", "tests.gpu", "--inside", "launching", "--way", way)
    (ran,) = abreast.run({way: words}, "", launching.LONGEST, ROOT, lambda line: False)
    last = ran.lines[-1] if ran.lines else "it said nothing"
    if ran.status != 0:
        return f"through `{way}` it was not measured, {last[:100]}"
    return f"through `{way}` {float(last) * 1e6:.1f} microseconds"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
