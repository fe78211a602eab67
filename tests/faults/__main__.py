"""Inject all faults and print what came of each; see the package."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from tests.faults import (
    arguments,
    compilers,
    given,
    interruptions,
    limits,
    processes,
    stored,
)
from tests.faults.rows import Row, run

ROWS: list[Row] = [
    row
    for part in (compilers, stored, limits, processes, given, interruptions, arguments)
    for row in part.ROWS
]


def main(argv: Sequence[str] | None = None) -> int:
    """Inject faults, and return how the process is to end: 0 where all were survived."""
    parser = argparse.ArgumentParser(prog="tests.faults")
    parser.add_argument("-k", metavar="WORD", default="", help="only with it in subject or name")
    parser.add_argument("--jobs", type=int, default=2, help="how many at once")
    parser.add_argument("--list", action="store_true", help="only say which there are")
    chosen = parser.parse_args(argv)
    rows = [row for row in ROWS if chosen.k in f"{row.subject} {row.name}"]
    if chosen.list:
        print("\n".join(f"{row.subject:<12} {row.name}" for row in rows))
        return 0
    fell = untried = 0
    started = time.monotonic()
    with ThreadPoolExecutor(chosen.jobs) as pool:
        for row, (good, text) in zip(rows, pool.map(run, rows), strict=True):
            fell, untried = fell + (good is False), untried + (good is None)
            word = {True: "survived", False: "FELL", None: "not run"}[good]
            print(f"{word:<9} {row.subject:<12} {row.name[:48]!a:<50} {text}", flush=True)
    took = time.monotonic() - started
    left = len(rows) - untried
    print(f"{left - fell} of {left} survived, {untried} not run, {took:.0f} seconds")
    return 1 if fell or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
