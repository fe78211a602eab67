"""Comparison of two traces of one function: the first assignment that differs."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from ...base.dataclass import dataclass
from ...base.diagnostic import CdValueError, Diagnostic
from ...lowering.ir.accuracy import epsilon, relative_error
from ...lowering.ir.assignments import Assign
from ...lowering.ir.expressions import Reduce, walk
from ...lowering.ir.indexing import Affine, Symbol, evaluate
from ..instrument.recording import Run
from ..instrument.sites import Site
from .points import Points, Values, read_points
from .recorded import RecordSequence
from .records import Record, read_record, to_text
from .why import Why, explain_record

_MAX_DEPTH, _MAX_TERMS = 4, 4
_NEVER = 1 << 62, 0


@dataclass(frozen=True, slots=True, repr=False)
class Difference:
    """The first difference of two traces: a record of each, with its provenance.

    A record is None where only the other trace has one there: control flow diverged.
    """

    first: Why | None
    second: Why | None
    titles: tuple[str, str]

    @property
    def records(self) -> tuple[Record | None, Record | None]:
        """The two records."""
        first, second = self.first, self.second
        return first.record if first else None, second.record if second else None

    def __str__(self) -> str:
        first, second = self.records
        elements = [(x.site.number, x.index) if x else None for x in self.records]
        if first is None or second is None or elements[0] != elements[1]:
            divergences = (
                f"{title} " + (f"assigns {x.element} (line {x.line})" if x else "ends")
                for title, x in zip(self.titles, self.records, strict=True)
            )
            head = f"the runs take different ways: {', '.join(divergences)}"
        else:
            head = (
                f"{first.element} differs: {to_text(first.after)} ({self.titles[0]}) against "
                f"{to_text(second.after)} ({self.titles[1]}), line {first.line}"
            )
        sections = (
            f"{title}:\n{why}" for title, why in zip(self.titles, (self.first, self.second))
            if why is not None
        )  # fmt: skip
        return "\n\n".join((head, *sections))

    __repr__ = __str__


def find_difference(
    first: RecordSequence,
    second: RecordSequence,
    rtol: float = 0.0,
    atol: float = 0.0,
    by_table: bool = False,
) -> Difference | None:
    """Return the first assignment after which an element differs, None where none does.

    Without tolerances values must be bit-identical, except that all NaNs are equal; `by_table`
    admits the differences of elementary functions, see `ErrorBound`. With them each assigned value,
    also of an intermediate, may differ by `atol + rtol * abs(b)`, where `b` is the second's, and
    integers and booleans by nothing. Runs are compared in order, up
    to the first dropped record of either.
    Raises CdValueError CD0874 for traces of different functions, or with different filters.
    """
    drift = ErrorBound() if by_table else None
    for number, (run, second_run) in enumerate(zip(first.runs, second.runs, strict=False)):
        if [x.statement.span.text for x in run.layout.sites] != [
            x.statement.span.text for x in second_run.layout.sites
        ]:
            raise _other_functions(number, run, second_run)
        mismatch = _first_mismatch(run, second_run, rtol, atol, drift)
        if mismatch is not None:
            whys = [
                _why_at(trace, number, row, point)
                for trace, row, point in zip((first, second), *mismatch, strict=True)
            ]
            return Difference(whys[0], whys[1], _run_titles(run, second_run))
    if len(first.runs) != len(second.runs):
        return Difference(None, None, ("the first trace", "the second trace"))
    return None


def _other_functions(number: int, run: Run, second_run: Run) -> CdValueError:
    names = (
        f"`{run.name}` and `{second_run.name}`" if run.name != second_run.name else f"`{run.name}`"
    )
    message = f"run {number} of the two traces is of {names}, and their statements differ"
    helps = ("trace the same calls twice, with arguments of the same kinds and the same filters",)
    return CdValueError(Diagnostic("CD0874", message, helps=helps))


def _run_titles(run: Run, second_run: Run) -> tuple[str, str]:
    if run.backend != second_run.backend:
        return run.backend, second_run.backend
    return "first", "second"


Mismatch = tuple[tuple[int, int], tuple[int | None, int | None]]


@dataclass
class ErrorBound:
    """Error bound for the rounding differences of elementary functions between two backends.

    Relative errors accumulate over the rows so far; after the first such row each row adds one ulp
    for its arithmetic. Statements without rows, which filters and library calls leave out, count at
    the next row. A point may differ by this error of its largest operand or result; multiplied by
    its operands where its statement has an elementary function, as `exp` amplifies a relative error
    of x by x; relative to the largest number so far where it has a reduction or is a library call,
    as terms may cancel.
    This is first order: chaotic programs diverge further.
    """

    error: float = 0.0
    largest: float = 0.0

    def of(self, run: Run) -> npt.NDArray[np.float64]:
        """Return the accumulated error for each row of a run; later runs continue from its end."""
        each = np.array([_row_error(site, run.sizes) for site in run.layout.sites] or [(0.0, 0.0)])
        errors, steps = each[run.table[:, 0]].T
        total = self.error + np.cumsum(errors)
        total += np.cumsum(np.where(total > 0, steps, 0.0))
        self.error = float(total[-1]) if len(total) else self.error
        for site in run.layout.sites:
            if site.is_assignment:
                points = read_points(run, site)
                self.largest = max(self.largest, float(_largest(points).max(initial=0)))
        return total

    def tolerances(
        self, points: Points, errors: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.float64]:
        """Return the admitted absolute difference of each point."""
        site, magnitude = points.site, _largest(points)
        assert isinstance(site.statement, Assign)
        if points.column("after").dtype.kind not in "fc" or not errors.any():
            return np.zeros(len(points))
        reduces = any(isinstance(part, Reduce) for part in walk(site.statement.value))
        if reduces or site.reads is not None:
            magnitude = np.full(len(points), self.largest)
        if relative_error(site.statement.value):
            magnitude = magnitude * np.maximum(1.0, _largest(points, False))
        return np.asarray(errors[points.row] * magnitude)


def _row_error(site: Site, sizes: Mapping[Symbol, int]) -> tuple[float, float]:
    """Return the relative errors of elementary functions, and of arithmetic, of each row of a site
    with the statements before it that have no row; loops with a run-time number of
    iterations count as one."""
    statement, error, step = site.statement, 0.0, 0.0
    if isinstance(statement, Assign):
        error, step = relative_error(statement.value), epsilon(statement.target.node.dtype)
    for item in site.unrecorded:
        times = math.prod(_trip_count(*loop, sizes) for loop in item.loops)
        error, step = error + times * item.error, step + times * item.epsilon
    return error, step


def _trip_count(lo: Affine, hi: Affine, step: int, sizes: Mapping[Symbol, int]) -> int:
    if not (lo.symbols() | hi.symbols()) <= sizes.keys():
        return 1
    return len(range(evaluate(lo, sizes), evaluate(hi, sizes), step))


def _largest(points: Points, with_result: bool = True) -> npt.NDArray[np.float64]:
    """Return the largest finite absolute value among the operands and the result of each point."""
    largest = np.zeros(len(points))
    for column, values in zip(points.site.columns, points.values, strict=True):
        if values.dtype.kind in "fciu" and (with_result or column.what != "after"):
            magnitude = np.abs(values.astype(np.complex128))
            largest = np.maximum(largest, np.where(np.isfinite(magnitude), magnitude, 0.0))
    return largest


def _first_mismatch(
    run: Run, second_run: Run, rtol: float, atol: float, drift: ErrorBound | None = None
) -> Mismatch | None:
    """Return the rows that differ, and the positions among the points of their sites.

    Rows are matched by statement only: different values of loop variables or other scalars matter
    only where they lead to another written element or value.
    """
    limit = min(_first_dropped(run), _first_dropped(second_run))
    common = min(len(run.table), len(second_run.table))
    differing = np.flatnonzero(run.table[:common, 0] != second_run.table[:common, 0])
    end = int(differing[0]) if len(differing) else common
    errors = None if drift is None else drift.of(run)
    best: tuple[tuple[int, int], tuple[int | None, int | None]] | None = None
    for site in run.layout.sites:
        if not site.is_assignment:
            continue
        points, second_points = (
            read_points(run, site),
            read_points(second_run, second_run.layout.sites[site.number]),
        )
        points, second_points = _points_before(points, limit), _points_before(second_points, limit)
        tolerance: float | npt.NDArray[np.float64] = atol
        if drift is not None and errors is not None:
            tolerance = drift.tolerances(points, errors)
        mismatch = _site_mismatch(points, second_points, end, rtol, tolerance)
        if mismatch is not None and (best is None or mismatch[0] < best[0]):
            best = mismatch
    if best is not None:
        return (best[0][0], best[0][0]), best[1]
    if end < max(len(run.table), len(second_run.table)) and (end < common or (end, 0) < limit):
        (row, first), (second_row, second) = (
            _first_assignment(run, end),
            _first_assignment(second_run, end),
        )
        return (row, second_row), (first, second)
    return None


def _first_dropped(run: Run) -> tuple[int, int]:
    """Return the position (row, point number) of the first dropped record of a run, one after all
    positions where none was dropped."""
    if not run.dropped:
        return _NEVER
    positions = [
        (int(points.row[-1]), int(points.number[-1]) + 1)
        for site in run.layout.sites
        if site.is_assignment and len(points := read_points(run, site))
    ]
    return max(positions, default=(0, 0))


def _points_before(points: Points, limit: tuple[int, int]) -> Points:
    """Return the points before a position."""
    row, number = limit
    is_before = (points.row < row) | ((points.row == row) & (points.number < number))
    return points if is_before.all() else points.where(is_before)


def _first_assignment(run: Run, row: int) -> tuple[int, int | None]:
    """Return the first row at or after `row` that contains no terms, and its first point."""
    while row < len(run.table):
        site = run.layout.sites[int(run.table[row, 0])]
        if site.is_assignment:
            positions = np.flatnonzero(read_points(run, site).row == row)
            return row, int(positions[0]) if len(positions) else None
        if site.reduce is None:
            break
        row += 1
    return row, None


def _site_mismatch(
    left: Points, right: Points, end: int, rtol: float, atol: float | npt.NDArray[np.float64]
) -> tuple[tuple[int, int], tuple[int | None, int | None]] | None:
    """Return row and number of the first point that differs, and its positions in both.

    A position is None where only the other run has the point.
    """
    left_keys, right_keys = (_point_keys(points, end) for points in (left, right))
    count = min(len(left_keys), len(right_keys))
    differs = np.delete(left_keys[:count] != right_keys[:count], 1, axis=1).any(axis=1)
    left_after, right_after = (points.column("after")[:count] for points in (left, right))
    tolerance = atol[:count] if isinstance(atol, np.ndarray) else atol
    mismatches = np.flatnonzero(differs | ~equal_within(left_after, right_after, rtol, tolerance))
    if not len(mismatches) and len(left_keys) == len(right_keys):
        return None
    at = int(mismatches[0]) if len(mismatches) else count
    orders = [
        _key_position(keys[at]) if at < len(keys) else None for keys in (left_keys, right_keys)
    ]
    first = min(order for order in orders if order is not None)
    if len(mismatches) and not differs[at]:
        return first, (at, at)
    positions = [at if order == first else None for order in orders]
    if None not in positions:  # the same position among the points, another element
        return first, (at, at)
    return first, (positions[0], positions[1])


def _point_keys(points: Points, end: int) -> npt.NDArray[np.int64]:
    """Return row, number and index of every point before a row.

    The number is relative to the row's box, whose extents depend on the sizes of the run.
    """
    statement = points.site.statement
    assert isinstance(statement, Assign)
    selected = points.row < end
    columns = (points.row, points.number, *points.index(statement.target.index))
    return np.stack([column[selected] for column in columns], axis=1)


def _key_position(key: npt.NDArray[np.int64]) -> tuple[int, int]:
    return int(key[0]), int(key[1])


def equal_within(
    left: Values, right: Values, rtol: float, atol: float | npt.NDArray[np.float64]
) -> npt.NDArray[np.bool_]:
    """Return where values are equal: bitwise, or within tolerances, which only finite ones may
    differ by; all NaNs are equal."""
    if left.dtype.kind not in "fcV":
        return np.asarray(left == right)
    with np.errstate(all="ignore"):
        a, b = left.astype(np.complex128), right.astype(np.complex128)
        is_equal = np.asarray((a == b) & _have_equal_signs(a, b))
        if rtol or np.any(atol):
            is_finite = np.isfinite(a) & np.isfinite(b)
            is_equal |= is_finite & (np.abs(a - b) <= atol + rtol * np.abs(b))
        return np.asarray(is_equal | (np.isnan(a) & np.isnan(b)))


def _have_equal_signs(a: Values, b: Values) -> npt.NDArray[np.bool_]:
    return np.asarray(
        (np.signbit(a.real) == np.signbit(b.real)) & (np.signbit(a.imag) == np.signbit(b.imag))
    )


def _why_at(trace: RecordSequence, run: int, row: int, point: int | None) -> Why | None:
    if point is None:
        return None
    recorded_run = trace.runs[run]
    number = int(recorded_run.table[row, 0])
    record = read_record(run, read_points(recorded_run, recorded_run.layout.sites[number]), point)
    return explain_record(trace, record, _MAX_DEPTH, _MAX_TERMS)
