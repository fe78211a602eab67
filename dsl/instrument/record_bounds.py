"""Upper bounds on the size of the record buffers of a run, from loop bounds and sizes.

Each site takes a row for each iteration of its enclosing loops, and its floats and ints for each
point of a row. A loop with data-dependent bounds makes the size unbounded.

>>> from plusequals.dsl.instrument.instrument import instrument
>>> from plusequals.dsl.instrument.sites import TraceFilter
>>> import numpy as np
>>> import plusequals as pe
>>> text = "def f(x):\\n    for t in range(50):\\n        x[i] += t\\n"
>>> procedure = pe.cd_from_source(text).procedure(np.zeros(10))
>>> buffer_size(instrument(procedure, TraceFilter()).layout, {})
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
"""The assumed memory in bytes of a system that does not report it."""


class BufferSize(NamedTuple):
    """A buffer size: rows of the table, floats and ints."""

    rows: int
    floats: int
    ints: int

    def bytes(self, width: int) -> int:
        """Return the size in bytes for a table of that width."""
        return 8 * (self.rows * width + self.floats + self.ints)

    def within(self, most: BufferSize) -> BufferSize:
        """Return the size clamped to between 1 and `most` in each part."""
        return BufferSize(
            *(max(1, min(size, limit)) for size, limit in zip(self, most, strict=True))
        )

    def reduced_to(self, most: int, width: int) -> BufferSize:
        """Return the size reduced to `most` bytes: rows of a table of that width get up to a
        quarter, the others the rest in proportion to their size.

        >>> BufferSize(2, 90, 10).reduced_to(8 * (8 + 50), 4)
        Room(rows=2, floats=45, ints=5)
        """
        whole = self.bytes(width)
        if whole <= most:
            return self
        rows = min(self.rows, max(most // 4, most * self.rows * width * 8 // whole) // (8 * width))
        left, asked = most // 8 - rows * width, self.floats + self.ints
        return BufferSize(
            rows, *(max(left, 0) * size // max(asked, 1) for size in (self.floats, self.ints))
        )


def buffer_size(
    layout: Layout,
    sizes: Mapping[Symbol, int],
    one_by_one: bool = False,
    first_nan: bool = False,
) -> BufferSize | None:
    """Return the most that a run with arguments of these sizes records, None if data-dependent.

    With `one_by_one` each row overwrites the one before it; with `first_nan` so do its numbers,
    except that those of one library call are there together.
    """
    bounds = Bounds({symbol: (size, size) for symbol, size in sizes.items()})
    by_site = [_site_buffer_size(site, bounds) for site in layout.sites]
    if one_by_one:
        by_site = [
            needed and BufferSize(1, *(n // max(1, needed.rows) for n in needed[1:]))
            for needed in by_site
        ]
    site_sizes = [needed for needed in by_site if needed is not None]
    if len(site_sizes) < len(by_site):
        return None
    if first_nan and not one_by_one:
        rows = sum(needed.rows for needed in site_sizes)
        per_row = [
            BufferSize(1, *(n // max(1, needed.rows) for n in needed[1:])) for needed in site_sizes
        ]
        calls = [site.reads is not None for site in layout.sites]
        return BufferSize(
            rows, *(_largest_row([needed[at] for needed in per_row], calls) for at in (1, 2))
        )
    return BufferSize(
        *(_combine_rows((needed[at] for needed in site_sizes), one_by_one) for at in range(3))
    )


def _combine_rows(counts: Iterable[int], one_by_one: bool) -> int:
    return max(counts, default=0) if one_by_one else sum(counts)


def _largest_row(counts: Sequence[int], calls: Sequence[bool]) -> int:
    """Return the maximum of one row, and of all rows of library calls together."""
    together = sum(n for n, call in zip(counts, calls, strict=True) if call)
    return max([together, *counts])


def _site_buffer_size(site: Site, bounds: Bounds) -> BufferSize | None:
    """Return the size for a site, None where its iteration count is data-dependent."""
    iterations = 1
    for level in site.path:
        if isinstance(level, While):
            return None
        if isinstance(level, For):
            distance = level.hi - level.lo if level.step > 0 else level.lo - level.hi
            largest = bounds.most(distance)
            if largest is None:
                return None
            iterations *= max(0, -(-largest // abs(level.step)))
            is_ascending = level.step > 0
            lo, hi = (level.lo, level.hi) if is_ascending else (level.hi + 1, level.lo + 1)
            bounds = bounds.inside(Range(level.symbol, lo, hi))
    points = iterations
    for axis in site.axes:
        largest = bounds.most(axis.extent)
        if largest is None:
            return None
        points *= max(0, largest)
    floats, ints = site.spare
    return BufferSize(iterations, points * (site.floats + floats), points * (site.ints + ints))


def memory_left(root: str = "/") -> int:
    """Return how many bytes of memory this process may still allocate, given the host, its control
    groups and its resource limits; without such data the total memory of the system."""
    base = Path(root)
    return max(
        0,
        min([*_host_memory(base), *_cgroup_memory(base), *_rlimit_memory(base)], default=_UNKNOWN),
    )


def _host_memory(root: Path) -> Iterator[int]:
    """Yield the available memory of the host in bytes."""
    free = _number(root / "proc/meminfo", "MemAvailable")
    if free is not None:
        yield free << 10
    else:
        with suppress(AttributeError, OSError, ValueError):  # not on Windows
            yield os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _cgroup_memory(root: Path) -> Iterator[int]:
    """Yield the available bytes of the control groups of the process; cached files count as
    available."""
    names = {"", *(line.split(":", 2)[-1].strip("/") for line in _lines(root / "proc/self/cgroup"))}
    versions = ("", "memory.max", "memory.current"), (
        "memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
    )  # fmt: skip
    for folder, most, used in versions:
        for name in names:
            path = root / "sys/fs/cgroup" / folder / name
            limits = [int(line) for line in _lines(path / most) if line.strip().isdigit()]
            for line in _lines(path / used) if limits else ():
                files = _number(path / "memory.stat", "inactive_file") or 0
                yield min(limits) - int(line) + files


def _rlimit_memory(root: Path) -> Iterator[int]:
    """Yield the available bytes of address space and data under the resource limits."""
    limits = _lines(root / "proc/self/limits")
    for name, status_field in (("Max address space", "VmSize"), ("Max data size", "VmData")):
        for line in limits:
            soft = line.removeprefix(name).split()[0] if line.startswith(name) else ""
            used = _number(root / "proc/self/status", status_field) if soft.isdigit() else None
            if used is not None:
                yield int(soft) - (used << 10)


def _number(path: Path, name: str) -> int | None:
    """Return the number after a name at the start of a line of a file; None for none."""
    match = re.search(rf"^{name}:?\s+(\d+)", "\n".join(_lines(path)), re.MULTILINE)
    return int(match[1]) if match else None


def _lines(path: Path) -> list[str]:
    """Return the lines of a file, an empty list where it cannot be read."""
    with suppress(OSError):
        return path.read_text("utf-8", "replace").splitlines()
    return []
