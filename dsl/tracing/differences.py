"""Two traces of one function held against each other: the first assignment that differs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...base.dataclass import dataclass
from ...base.diagnostic import CdValueError, Diagnostic
from ...lowering.ir.accuracy import ulps
from ...lowering.ir.assignments import Assign
from ...lowering.ir.expressions import Reduce, walk
from ..instrument.recording import Run
from ..instrument.sites import Site
from .points import Points, Values, points_of
from .recorded import Recorded
from .records import Record, record_at, shown
from .why import Why, chain

_DEPTH, _TERMS = 4, 4
_NEVER = 1 << 62, 0


@dataclass(frozen=True, slots=True, repr=False)
class Difference:
    """Where two traces part: a record of each, and what made them.

    A record is None where only the other trace has one there: the runs took different ways.
    """

    first: Why | None
    second: Why | None
    titles: tuple[str, str]

    @property
    def records(self) -> tuple[Record | None, Record | None]:
        """The two records."""
        one, other = self.first, self.second
        return one.record if one else None, other.record if other else None

    def __str__(self) -> str:
        one, other = self.records
        places = [(x.site.number, x.index) if x else None for x in self.records]
        if one is None or other is None or places[0] != places[1]:
            ways = (
                f"{title} " + (f"assigns {x.element} (line {x.line})" if x else "ends")
                for title, x in zip(self.titles, self.records, strict=True)
            )
            head = f"the runs take different ways: {', '.join(ways)}"
        else:
            head = (
                f"{one.element} differs: {shown(one.after)} ({self.titles[0]}) against "
                f"{shown(other.after)} ({self.titles[1]}), line {one.line}"
            )
        told = (
            f"{title}:\n{made}" for title, made in zip(self.titles, (self.first, self.second))
            if made is not None
        )  # fmt: skip
        return "\n\n".join((head, *told))

    __repr__ = __str__


def difference(
    one: Recorded,
    other: Recorded,
    rtol: float = 0.0,
    atol: float = 0.0,
    by_table: bool = False,
) -> Difference | None:
    """Return the first assignment after which an element differs, None where none does.

    Without tolerances every bit counts, but not which NaN it is; `by_table` admits what elementary
    functions may differ by, see `Drift`. Runs are compared in order, each
    up to where records of either were dropped.
    Raises CdValueError CD0874 for traces of different functions, or of different things.
    """
    drift = Drift() if by_table else None
    for number, (run, theirs) in enumerate(zip(one.runs, other.runs, strict=False)):
        if [x.statement.span.text for x in run.layout.sites] != [
            x.statement.span.text for x in theirs.layout.sites
        ]:
            raise _other_functions(number, run, theirs)
        found = _first(run, theirs, rtol, atol, drift)
        if found is not None:
            made = [
                _told(trace, number, row, place)
                for trace, row, place in zip((one, other), *found, strict=True)
            ]
            return Difference(made[0], made[1], _titles(run, theirs))
    if len(one.runs) != len(other.runs):
        return Difference(None, None, ("the first trace", "the second trace"))
    return None


def _other_functions(number: int, run: Run, other: Run) -> CdValueError:
    names = f"`{run.name}` and `{other.name}`" if run.name != other.name else f"`{run.name}`"
    message = f"run {number} of the two traces is of {names}, and their statements differ"
    helps = ("trace the same calls twice, with arguments of the same kinds and the same filters",)
    return CdValueError(Diagnostic("CD0874", message, helps=helps))


def _titles(run: Run, other: Run) -> tuple[str, str]:
    if run.backend != other.backend:
        return run.backend, other.backend
    return "first", "second"


Found = tuple[tuple[int, int], tuple[int | None, int | None]]


@dataclass
class Drift:
    """How far two backends may drift apart by elementary functions, over the runs of a trace.

    Their ulps add up over the rows so far, and from the first such row on each row adds one for its
    own arithmetic. A point may differ by these ulps of the largest number that it has to do with;
    where its statement has an elementary function, times its operands, as `exp` makes what is off
    by a part of x off by x times that part; where it has a reduction, of the largest number of all
    so far, as its terms may cancel. First order: a chaotic program drifts further.
    """

    ulps: float = 0.0
    largest: float = 0.0

    def of(self, run: Run) -> npt.NDArray[np.float64]:
        """Return the ulps for each row of a run; later runs begin with those of its end."""
        each = np.array([_site_ulps(site) for site in run.layout.sites] or [0.0])
        own = each[run.table[:, 0]]
        total = self.ulps + np.cumsum(own)
        total += np.cumsum(total > 0)
        self.ulps = float(total[-1]) if len(total) else self.ulps
        for site in run.layout.sites:
            if site.is_assignment:
                points = points_of(run, site)
                self.largest = max(self.largest, float(_largest(points).max(initial=0)))
        return total

    def allowed(self, points: Points, ulps: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return how far each point may be off."""
        site, most = points.site, _largest(points)
        assert isinstance(site.statement, Assign)
        dtype = points.column("after").dtype
        if dtype.kind not in "fc" or not ulps.any():
            return np.zeros(len(points))
        if any(isinstance(part, Reduce) for part in walk(site.statement.value)):
            most = np.full(len(points), self.largest)
        if _site_ulps(site):
            most = most * np.maximum(1.0, _largest(points, False))
        eps = float(np.finfo(np.dtype(site.statement.target.node.dtype.numpy).name).eps)
        return np.asarray(ulps[points.row] * eps * most)


def _site_ulps(site: Site) -> float:
    return ulps(site.statement.value) if isinstance(site.statement, Assign) else 0.0


def _largest(points: Points, with_result: bool = True) -> npt.NDArray[np.float64]:
    """Return the largest absolute value that each point has to do with, of those that are
    finite."""
    most = np.zeros(len(points))
    for column, values in zip(points.site.columns, points.values, strict=True):
        if values.dtype.kind in "fciu" and (with_result or column.what != "after"):
            size = np.abs(values.astype(np.complex128))
            most = np.maximum(most, np.where(np.isfinite(size), size, 0.0))
    return most


def _first(
    run: Run, other: Run, rtol: float, atol: float, drift: Drift | None = None
) -> Found | None:
    """Return the rows that differ, and the places among the points of their sites.

    Rows are held against each other by their statements: what a loop variable or a number is that
    only the run knows matters where another element is written, or another value.
    """
    known = min(_known(run), _known(other))
    common = min(len(run.table), len(other.table))
    apart = np.flatnonzero(run.table[:common, 0] != other.table[:common, 0])
    end = int(apart[0]) if len(apart) else common
    ulps_of = None if drift is None else drift.of(run)
    best: tuple[tuple[int, int], tuple[int | None, int | None]] | None = None
    for site in run.layout.sites:
        if not site.is_assignment:
            continue
        ours, theirs = points_of(run, site), points_of(other, other.layout.sites[site.number])
        ours, theirs = _within(ours, known), _within(theirs, known)
        within: float | npt.NDArray[np.float64] = atol
        if drift is not None and ulps_of is not None:
            within = drift.allowed(ours, ulps_of)
        found = _mismatch(ours, theirs, end, rtol, within)
        if found is not None and (best is None or found[0] < best[0]):
            best = found
    if best is not None:
        return (best[0][0], best[0][0]), best[1]
    if end < max(len(run.table), len(other.table)) and (end < common or (end, 0) < known):
        (one, first), (two, second) = _start(run, end), _start(other, end)
        return (one, two), (first, second)
    return None


def _known(run: Run) -> tuple[int, int]:
    """Return the first place, by row and number of a point, from which on a run has no records
    because they were dropped; one behind all places where none was."""
    if not run.dropped:
        return _NEVER
    ends = [
        (int(points.row[-1]), int(points.number[-1]) + 1)
        for site in run.layout.sites
        if site.is_assignment and len(points := points_of(run, site))
    ]
    return max(ends, default=(0, 0))


def _within(points: Points, known: tuple[int, int]) -> Points:
    """Return the points in front of a place."""
    row, number = known
    kept = (points.row < row) | ((points.row == row) & (points.number < number))
    return points if kept.all() else points.where(kept)


def _start(run: Run, row: int) -> tuple[int, int | None]:
    """Return the first row from one on that holds no terms, and its first point."""
    while row < len(run.table):
        site = run.layout.sites[int(run.table[row, 0])]
        if site.is_assignment:
            found = np.flatnonzero(points_of(run, site).row == row)
            return row, int(found[0]) if len(found) else None
        if site.reduce is None:
            break
        row += 1
    return row, None


def _mismatch(
    one: Points, other: Points, end: int, rtol: float, atol: float | npt.NDArray[np.float64]
) -> tuple[tuple[int, int], tuple[int | None, int | None]] | None:
    """Return the row and number of the first point that differs, and its places.

    A place is None where only the other run has the point.
    """
    ours, theirs = (_keys(points, end) for points in (one, other))
    count = min(len(ours), len(theirs))
    apart = np.delete(ours[:count] != theirs[:count], 1, axis=1).any(axis=1)
    one_after, other_after = (points.column("after")[:count] for points in (one, other))
    within = atol[:count] if isinstance(atol, np.ndarray) else atol
    wrong = np.flatnonzero(apart | ~alike(one_after, other_after, rtol, within))
    if not len(wrong) and len(ours) == len(theirs):
        return None
    at = int(wrong[0]) if len(wrong) else count
    orders = [_order(keys[at]) if at < len(keys) else None for keys in (ours, theirs)]
    first = min(order for order in orders if order is not None)
    if len(wrong) and not apart[at]:
        return first, (at, at)
    places = [at if order == first else None for order in orders]
    if None not in places:  # the same place among the points, and another element
        return first, (at, at)
    return first, (places[0], places[1])


def _keys(points: Points, end: int) -> npt.NDArray[np.int64]:
    """Return row, number and index of every point before a row.

    The number is that in a box, which is of another width where a size is another one.
    """
    statement = points.site.statement
    assert isinstance(statement, Assign)
    kept = points.row < end
    columns = (points.row, points.number, *points.index(statement.target.index))
    return np.stack([column[kept] for column in columns], axis=1)


def _order(key: npt.NDArray[np.int64]) -> tuple[int, int]:
    return int(key[0]), int(key[1])


def alike(
    one: Values, other: Values, rtol: float, atol: float | npt.NDArray[np.float64]
) -> npt.NDArray[np.bool_]:
    """Return where values are the same: bit by bit, or within tolerances; any NaN is a NaN."""
    if one.dtype.kind not in "fcV":
        return np.asarray(one == other)
    with np.errstate(all="ignore"):
        a, b = one.astype(np.complex128), other.astype(np.complex128)
        same = np.asarray((a == b) & _signs(a, b))
        if rtol or np.any(atol):
            same |= np.abs(a - b) <= atol + rtol * np.abs(b)
        return np.asarray(same | (np.isnan(a) & np.isnan(b)))


def _signs(a: Values, b: Values) -> npt.NDArray[np.bool_]:
    return np.asarray(
        (np.signbit(a.real) == np.signbit(b.real)) & (np.signbit(a.imag) == np.signbit(b.imag))
    )


def _told(trace: Recorded, run: int, row: int, place: int | None) -> Why | None:
    if place is None:
        return None
    of = trace.runs[run]
    number = int(of.table[row, 0])
    record = record_at(run, points_of(of, of.layout.sites[number]), place)
    return chain(trace, record, _DEPTH, _TERMS)
