"""Upward-exposed reads: elements whose value on entry a call needs, as no write precedes the read.

Every access gets a time: the position of its statement in the text, and the iteration of each loop
around it. All reads that may happen count, but only writes that surely happen, so an answer "not
needed" is sure. Analysis only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from .. import thresholds
from ..ir.expressions import Dynamic
from ..ir.indexing import Affine, Symbol
from ..ir.loops import For, While
from .accesses import Accesses, Site
from .iteration_domains import CallValues, Points, domain_points, evaluate_index

_Integers = NDArray[np.int64]
_TimedAccesses = tuple[_Integers, _Integers]
"""The times of accesses, a row each, and the flat indices of the elements that they access."""


def upward_exposed(
    readers: Iterable[Site],
    writers: Iterable[Site],
    shape: tuple[int, ...],
    call_values: CallValues,
    record: Callable[[Points], Points],
) -> NDArray[np.bool_] | None:
    """Return which elements are read before they are surely written, bool of `shape`; None where
    that is unclear.

    `writers` surely write at each of their points; `record` is called with points, and returns them
    after recording their assumptions.
    """
    reads, writes = list[_TimedAccesses](), list[_TimedAccesses]()
    for sites, events in ((readers, reads), (writers, writes)):
        for site in sites:
            event = _accesses_of(site, shape, call_values, record)
            if event is None:
                return None
            events.append(event)
    if sum(len(flat) for _, flat in (*reads, *writes)) > thresholds.MAX_TIMED_ACCESSES:
        return None
    ranks = _dense_ranks([times for times, _ in (*reads, *writes)])
    never = np.iinfo(np.int64).max
    first_read, first_write = (np.full(int(np.prod(shape)), never) for _ in range(2))
    for number, (_, flat) in enumerate((*reads, *writes)):
        np.minimum.at(first_read if number < len(reads) else first_write, flat, ranks[number])
    # a statement reads before it writes
    return ((first_read < never) & (first_read <= first_write)).reshape(shape)


def _accesses_of(
    site: Site, shape: tuple[int, ...], call_values: CallValues, record: Callable[[Points], Points]
) -> _TimedAccesses | None:
    """Return when a site accesses which elements; None where that is not known."""
    if any(isinstance(stmt, While) for stmt in site.inside):
        return None
    if any(isinstance(subscript, Dynamic) for subscript in site.index or ()):
        return None
    symbols = frozenset[Symbol]().union(
        *(subscript.symbols() for subscript in site.index or () if isinstance(subscript, Affine)),
        (stmt.symbol for stmt in site.inside if isinstance(stmt, For)),
    )
    at = record(domain_points(site.inside, site.tests, symbols, call_values))
    count = len(at.weight)
    size = int(np.prod(shape))
    if at.is_sampled or count * (size if site.index is None else 1) > thresholds.MAX_TIMED_ACCESSES:
        return None
    if site.index is None:
        return _access_times(site, at).repeat(size, axis=0), np.tile(np.arange(size), count)
    flat, inside = np.zeros(count, np.int64), np.ones(count, bool)
    for subscript, extent in zip(site.index, shape, strict=True):
        number = (
            evaluate_index(subscript, at.columns, call_values)
            if isinstance(subscript, Affine)
            else None
        )
        if number is None:
            return None
        inside &= (number >= 0) & (number < extent)
        flat = flat * extent + number
    return _access_times(site, at)[inside], flat[inside]


def _access_times(site: Site, at: Points) -> _Integers:
    """Return a row for each point: for each list the position in it and the iteration of its
    loop."""
    count = len(at.weight)
    columns: list[_Integers] = []
    for stmt, (position, number) in zip(site.inside, site.route, strict=False):
        iterations = np.zeros(count, np.int64)
        if isinstance(stmt, For):
            iterations = at.columns[stmt.symbol] * (1 if stmt.step > 0 else -1)
        columns += [np.full(count, position), np.full(count, number), iterations]
    last, _ = site.route[-1]
    columns += [np.full(count, last), np.full(count, -1)]  # a test comes before what it guards
    return np.stack(columns, axis=1)


def _dense_ranks(times: list[_Integers]) -> list[_Integers]:
    """Return dense ranks of the times of each list: equal for equal times."""
    width = max(rows.shape[1] for rows in times)
    padded = [np.pad(rows, ((0, 0), (0, width - rows.shape[1]))) for rows in times]
    whole = np.concatenate(padded)
    order = np.lexsort(whole.T[::-1])
    steps = np.any(np.diff(whole[order], axis=0) != 0, axis=1)
    ranks = np.empty(len(whole), np.int64)
    ranks[order] = np.concatenate(([0], np.cumsum(steps)))[: len(whole)]
    return np.split(ranks, np.cumsum([len(rows) for rows in times])[:-1])


def may_read_entry_value(accesses: Accesses, site: Site) -> bool:
    """Whether a site may read the value of an element on entry."""
    return site.reads and site.index is not None and not accesses.is_covered(site)


def is_box(site: Site) -> bool:
    """Whether the subscripts of a site take their values independently of each other."""
    if site.index is None:
        return False
    symbols = [i.symbols() if isinstance(i, Affine) else frozenset[Symbol]() for i in site.index]
    is_separable = sum(map(len, symbols)) == len(frozenset[Symbol]().union(*symbols))
    loops = (stmt for stmt in site.inside if isinstance(stmt, For))
    return (
        is_separable and not site.tests and not any(x.lo.symbols() | x.hi.symbols() for x in loops)
    )


def are_in_place_updates(readers: Iterable[Site], writers: Iterable[Site]) -> bool:
    """Whether each write has a read of its own element by the same statement."""
    read = {(site.route, site.index, site.tests) for site in readers}
    return all((site.route, site.index, site.tests) in read for site in writers)
