"""How much a run records at most: what its buffers have to hold, from loops and sizes alone.

Each site takes a row for each round of the loops around it, and of each point in the ranges of a
row its floats and ints. A loop that the data decides leaves it open.

>>> from plusequals.dsl.instrument.instrument import instrument
>>> from plusequals.dsl.instrument.sites import Wanted
>>> import numpy as np
>>> import plusequals as pe
>>> text = "def f(x):\\n    for t in range(50):\\n        x[i] += t\\n"
>>> procedure = pe.cd_from_source(text).procedure(np.zeros(10))
>>> room_of(instrument(procedure, Wanted()).layout, {})
Room(rows=50, floats=1000, ints=0)
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ...lowering.ir.assignments import For, While
from ...lowering.ir.bounds import Bounds
from ...lowering.ir.indexing import Range, Symbol
from .sites import Layout, Site

_UNKNOWN = 1 << 32
"""Bytes of memory that a system is taken to have that does not say it."""


class Room(NamedTuple):
    """Rows of the table, floats and ints."""

    rows: int
    floats: int
    ints: int

    def bytes(self, width: int) -> int:
        """Return how much memory that is, of a table that is so wide."""
        return 8 * (self.rows * width + self.floats + self.ints)

    def within(self, most: Room) -> Room:
        """Return no more than some other room of anything, and something of everything."""
        return Room(*(max(1, min(one, other)) for one, other in zip(self, most, strict=True)))

    def shrunk(self, most: int, width: int) -> Room:
        """Return what of it fits into so many bytes: rows of a table that is so wide first, up to a
        quarter, and as much of the others as each asks for.

        >>> Room(2, 90, 10).shrunk(8 * (8 + 50), 4)
        Room(rows=2, floats=45, ints=5)
        """
        whole = self.bytes(width)
        if whole <= most:
            return self
        rows = min(self.rows, max(most // 4, most * self.rows * width * 8 // whole) // (8 * width))
        left, asked = most // 8 - rows * width, self.floats + self.ints
        return Room(
            rows, *(max(left, 0) * one // max(asked, 1) for one in (self.floats, self.ints))
        )


def room_of(
    layout: Layout,
    sizes: Mapping[Symbol, int],
    one_by_one: bool = False,
    first_nan: bool = False,
) -> Room | None:
    """Return what a run with arguments of such sizes records at most, None where data decides.

    With `one_by_one` each row takes the place of the one before it; with `first_nan`, too, its
    numbers, but those of a call of the library are there together.
    """
    known = Bounds({symbol: (size, size) for symbol, size in sizes.items()})
    found = [_of_site(site, known) for site in layout.sites]
    if one_by_one:
        found = [one and Room(1, *(n // max(1, one.rows) for n in one[1:])) for one in found]
    rooms = [one for one in found if one is not None]
    if len(rooms) < len(found):
        return None
    if first_nan and not one_by_one:
        rows = sum(one.rows for one in rooms)
        each = [Room(1, *(n // max(1, one.rows) for n in one[1:])) for one in rooms]
        calls = [site.reads is not None for site in layout.sites]
        return Room(rows, *(_of_one([one[at] for one in each], calls) for at in (1, 2)))
    return Room(*(_in_all((one[at] for one in rooms), one_by_one) for at in range(3)))


def _in_all(counts: Iterable[int], one_by_one: bool) -> int:
    return max(counts, default=0) if one_by_one else sum(counts)


def _of_one(counts: Sequence[int], calls: Sequence[bool]) -> int:
    """Return the most of one row, or of all those of calls of the library."""
    together = sum(n for n, call in zip(counts, calls, strict=True) if call)
    return max([together, *counts])


def _of_site(site: Site, known: Bounds) -> Room | None:
    """Return what a site takes, None where data decides how often it is reached."""
    rounds = 1
    for level in site.path:
        if isinstance(level, While):
            return None
        if isinstance(level, For):
            gap = level.hi - level.lo if level.step > 0 else level.lo - level.hi
            most = known.most(gap)
            if most is None:
                return None
            rounds *= max(0, -(-most // abs(level.step)))
            up = level.step > 0
            lo, hi = (level.lo, level.hi) if up else (level.hi + 1, level.lo + 1)
            known = known.inside(Range(level.symbol, lo, hi))
    points = rounds
    for axis in site.axes:
        most = known.most(axis.extent)
        if most is None:
            return None
        points *= max(0, most)
    floats, ints = site.spare
    return Room(rounds, points * (site.floats + floats), points * (site.ints + ints))


def memory_left(root: str = "/") -> int:
    """Return how many bytes of memory this process may still take, of the host, of its control
    groups and under its own limits; a system that does not tell is asked what it has in all."""
    base = Path(root)
    return max(0, min([*_of_host(base), *_of_groups(base), *_of_limits(base)], default=_UNKNOWN))


def _of_host(root: Path) -> Iterator[int]:
    """Yield what the host has left."""
    free = _number(root / "proc/meminfo", "MemAvailable")
    if free is not None:
        yield free << 10
    else:
        with suppress(AttributeError, OSError, ValueError):  # not on Windows
            yield os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _of_groups(root: Path) -> Iterator[int]:
    """Yield what the control groups of the process have left, pages of files apart."""
    names = {"", *(line.split(":", 2)[-1].strip("/") for line in _lines(root / "proc/self/cgroup"))}
    both = ("", "memory.max", "memory.current"), (
        "memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
    )  # fmt: skip
    for folder, most, used in both:
        for name in names:
            at = root / "sys/fs/cgroup" / folder / name
            limits = [int(line) for line in _lines(at / most) if line.strip().isdigit()]
            for line in _lines(at / used) if limits else ():
                files = _number(at / "memory.stat", "inactive_file") or 0
                yield min(limits) - int(line) + files


def _of_limits(root: Path) -> Iterator[int]:
    """Yield what the limits of the process leave of its address space and data."""
    told = _lines(root / "proc/self/limits")
    for name, of in (("Max address space", "VmSize"), ("Max data size", "VmData")):
        for line in told:
            soft = line.removeprefix(name).split()[0] if line.startswith(name) else ""
            used = _number(root / "proc/self/status", of) if soft.isdigit() else None
            if used is not None:
                yield int(soft) - (used << 10)


def _number(path: Path, name: str) -> int | None:
    """Return the number behind a name in a file, a line each; None where there is none."""
    found = re.search(rf"^{name}:?\s+(\d+)", "\n".join(_lines(path)), re.MULTILINE)
    return int(found[1]) if found else None


def _lines(path: Path) -> list[str]:
    """Return the lines of a file, none where it cannot be read."""
    with suppress(OSError):
        return path.read_text("utf-8", "replace").splitlines()
    return []
