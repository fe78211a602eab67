"""Processes that are killed while they fill one cold cache with others.

    python -m tests.faults.storm --processes 10 --kills 8 --seed 1

Each process calls the same functions; some are killed at a moment of chance and begun again. Prints
how often each function was compiled (about once), and ends with 1 where a call fails or is wrong,
or where what the killed left behind stays.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from plusequals.backends.cache import cache, folders
from tests.faults.rows import ROOT

FUNCTIONS = 6
LONGEST = 300.0
"""Seconds after which a process counts as hanging."""

_TEXT = "import numpy as np\nfrom plusequals import cd\n" + "".join(
    f"@cd\ndef f{n}(x):\n    return np.sum(np.sqrt(x + {n})) * {n}\n" for n in range(FUNCTIONS)
)
_RUN = f"""
import os, sys
sys.path.insert(0, sys.argv[1])
import numpy as np, stormed
from plusequals.backends.runtime.state import RUNTIME
x = np.arange(100.0)
for n in range({FUNCTIONS}):
    before = RUNTIME.counts().get("compiled", 0)
    got = getattr(stormed, f"f{{n}}")(x)
    assert np.isclose(got, np.sum(np.sqrt(x + n)) * n), (n, got)
    print(n, RUNTIME.counts().get("compiled", 0) - before, flush=True)
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Raise the storm, and return how the process is to end: 0 where nothing was harmed."""
    parser = argparse.ArgumentParser(prog="tests.faults.storm", description=__doc__)
    parser.add_argument("--processes", type=int, default=10)
    parser.add_argument("--kills", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args(argv)
    rng = random.Random(chosen.seed)
    with tempfile.TemporaryDirectory(prefix="storm-") as made:
        problems, compiled = storm(Path(made), chosen.processes, chosen.kills, rng)
        left = _swept(Path(made))
    for problem in problems:
        print(problem)
    times = [compiled[n] for n in range(FUNCTIONS)]
    print(
        f"{chosen.processes} processes, {chosen.kills} killed and begun again: "
        f"{len(problems)} failures; functions compiled {times} times, {left} leftovers"
    )
    return 1 if problems or left else 0


def storm(
    place: Path, processes: int, kills: int, rng: random.Random
) -> tuple[list[str], Counter[int]]:
    """Return what went wrong, and how often each function was compiled by those not killed."""
    (place / "stormed.py").write_text(_TEXT)
    running = [_started(place) for _ in range(processes)]
    for _ in range(kills):
        time.sleep(rng.uniform(0.05, 0.8))
        at = rng.randrange(processes)
        running[at].kill()
        running[at].communicate()
        running[at] = _started(place)
    problems, compiled = list[str](), Counter[int]()
    for process in running:
        try:
            said, errors = process.communicate(timeout=LONGEST)
        except subprocess.TimeoutExpired:
            process.kill()
            problems.append(f"a process hangs: {process.communicate()}")
            continue
        lines = [line.split() for line in said.splitlines()]
        if process.returncode or errors or len(lines) != FUNCTIONS:
            problems.append(f"a process ended with {process.returncode}: {errors}")
        for number, times in lines:
            compiled[int(number)] += int(times)
    return problems, compiled


def _started(place: Path) -> subprocess.Popen[str]:
    given = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PLUSEQUALS_CACHE_DIR": str(place / "cache"),
        "PLUSEQUALS_OPTIMIZE": "0",
    }
    return subprocess.Popen(
        [sys.executable, "-c", _RUN, str(place)],
        cwd=place,
        env=given,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def _swept(place: Path) -> int:
    """Return how much is left of the killed after a sweep."""
    found = place / "cache" / f"v{cache.SCHEMA}"
    folders.sweep(str(found), time.time() + 1, 0.0, cache._SCRATCH, ".entry.", ".tmp")
    return sum(
        not path.name.startswith(("lock-",)) and path.suffix != ".entry" for path in found.iterdir()
    )


if __name__ == "__main__":
    sys.exit(main())
