"""The sequence of records of all runs of a trace, in program order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from ...base.dataclass import dataclass
from ...lowering.ir.assignments import Assign
from ..instrument.recording import Recorder, Run
from ..instrument.sites import array_name, matches_label
from ..instrument.where import apply_filter, parse_filter
from .points import Points, evaluate_test, read_points
from .records import Record, read_record
from .terms import Term, count_terms, read_terms

_NO_RECORDS = np.zeros((0, 2), np.int64)


@dataclass(frozen=True, slots=True, repr=False)
class Group:
    """The points of one site in one run."""

    run: int
    points: Points

    @property
    def statement(self) -> Assign:
        """The statement of the points."""
        statement = self.points.site.statement
        assert isinstance(statement, Assign)
        return statement

    @property
    def array(self) -> str:
        """The name of the written array at the statement."""
        return array_name(self.statement.target.node, self.statement.names)

    def __repr__(self) -> str:
        return f"<{len(self.points)} records of {self.array} in run {self.run}>"


GroupedRecords = tuple[int, tuple[Group, ...], npt.NDArray[np.int64], tuple[Group, ...]]
"""The number of runs, the groups of records, their order, and the groups of terms."""


class RecordSequence:
    """The records of all runs of a trace, in program order; a sequence of `Record`."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._cached: GroupedRecords = (-1, (), _NO_RECORDS, ())

    @property
    def runs(self) -> tuple[Run, ...]:
        """The finished runs, in the order of their calls."""
        return tuple(self._recorder.runs)

    @property
    def dropped(self) -> int:
        """The number of records that were dropped for lack of room, the last ones of their runs."""
        return sum(run.dropped for run in self.runs)

    def __len__(self) -> int:
        return len(self.order)

    @overload
    def __getitem__(self, at: int) -> Record: ...

    @overload
    def __getitem__(self, at: slice) -> list[Record]: ...

    def __getitem__(self, at: int | slice) -> Record | list[Record]:
        if isinstance(at, slice):
            return [self._record(n) for n in range(*at.indices(len(self.order)))]
        if not -len(self.order) <= at < len(self.order):
            raise IndexError(f"record {at} of {len(self.order)}")
        return self._record(at % len(self.order))

    def __iter__(self) -> Iterator[Record]:
        return (self._record(n) for n in range(len(self.order)))

    @property
    def groups(self) -> tuple[Group, ...]:
        """The points of every site of every run."""
        return self._content[1]

    @property
    def order(self) -> npt.NDArray[np.int64]:
        """For each record in program order its group and its index in the group."""
        return self._content[2]

    @property
    def _content(self) -> GroupedRecords:
        """The grouped records, cached until there are more runs."""
        runs, content = len(self.runs), self._cached
        if content[0] != runs:
            groups = tuple(
                Group(n, points)
                for n, run in enumerate(self.runs)
                for site in run.layout.sites
                if isinstance(site.statement, Assign) and len(points := read_points(run, site))
            )
            assignments = tuple(group for group in groups if group.points.site.is_assignment)
            terms = tuple(group for group in groups if not group.points.site.is_assignment)
            self._cached = content = (runs, assignments, _program_order(assignments), terms)
        return content

    def _record(self, at: int) -> Record:
        group, number = self.order[at]
        source = self.groups[group]
        return read_record(source.run, source.points, int(number))

    def where(self, text: str = "", array: str = "", line: int = 0) -> list[Record]:
        """Return the records that satisfy a test of indices, of an array, of a line.

        Copies of loop-carried names are no assignments of a line, and excluded by a filter.
        Raises CdValueError CD0871 for an invalid test.
        """
        tests = parse_filter(text) if text else ()
        selected = np.zeros(len(self.order), bool)
        for number, group in enumerate(self.groups):
            points = group.points
            statement = group.statement
            if array and not matches_label(array, group.array):
                continue
            if points.site.is_phi_copy and (text or array or line):
                continue
            if line and not statement.span.line <= line <= statement.span.end_line:
                continue
            site = points.site
            axis_symbols = tuple(axis.symbol for axis in site.axes)  # of one name the outer one
            fits = apply_filter(tests, (*axis_symbols, *site.symbols), (), site.hidden)
            if fits is not None:
                holds = np.ones(len(points), bool)
                for test in fits.outer:
                    holds &= evaluate_test(test, points.symbols)
                selected[self.order[:, 0] == number] = holds[self._group_indices(number)]
        return [self._record(int(n)) for n in np.flatnonzero(selected)]

    def _group_indices(self, group: int) -> npt.NDArray[np.int64]:
        """Return the indices in a group of its records, in program order."""
        indices: npt.NDArray[np.int64] = self.order[self.order[:, 0] == group, 1]
        return indices

    def terms(self, record: Record) -> list[Term]:
        """Return the recorded terms of the reductions in a record, in order."""
        groups = [group for group in self._content[3] if group.run == record.run]
        return [term for group in groups for term in read_terms(group.points, record)]

    def main_terms(self, record: Record, most: int) -> tuple[list[Term], int]:
        """Return the `most` largest terms of each reduction in a record, non-finite ones first, and
        the number of the others."""
        groups = [group for group in self._content[3] if group.run == record.run]
        terms = [term for group in groups for term in read_terms(group.points, record, most)]
        return terms, sum(count_terms(group.points, record) for group in groups) - len(terms)

    def first_nonfinite(self) -> Record | None:
        """Return the first record whose element became NaN or infinite, None where none did.

        Records that were `dropped` are not considered.
        """
        first: tuple[tuple[int, int, int], Group, int] | None = None
        for group in self.groups:
            after = group.points.column("after")
            if after.dtype.kind not in "fcV":
                continue
            with np.errstate(all="ignore"):
                nonfinite = np.flatnonzero(~np.isfinite(after.astype(np.complex128)))
            if len(nonfinite):
                at = int(nonfinite[0])
                order = group.run, int(group.points.row[at]), int(group.points.number[at])
                if first is None or order < first[0]:
                    first = order, group, at
        return None if first is None else read_record(first[1].run, first[1].points, first[2])

    def records(self) -> np.ndarray:
        """Return all records as a structured array, in program order.

        Fields: `run`, `row` (how many statements of the run came before), `line`, `array`,
        `index` (padded with -1), `before` and `after` (float64, or complex128 where an array
        is complex), and `before_int` and `after_int`, exact where the array is of integers: int64,
        or Python's integers where one is too large for that.
        """
        return _structured_array(self.groups, self.order)


def _program_order(groups: tuple[Group, ...]) -> npt.NDArray[np.int64]:
    if not groups:
        return np.zeros((0, 2), np.int64)
    sizes = [len(group.points) for group in groups]
    number = np.repeat(np.arange(len(groups)), sizes)
    number_in_group = np.concatenate([np.arange(size) for size in sizes])
    run = np.repeat([group.run for group in groups], sizes)
    row = np.concatenate([group.points.row for group in groups])
    point = np.concatenate([group.points.number for group in groups])
    permutation = np.lexsort((point, row, run))
    return np.stack([number[permutation], number_in_group[permutation]], axis=1)


def _structured_array(groups: tuple[Group, ...], order: npt.NDArray[np.int64]) -> np.ndarray:
    ranks = [len(group.statement.target.index) for group in groups]
    is_complex = any(group.statement.target.node.dtype.kind == "c" for group in groups)
    float_type = "c16" if is_complex else "f8"
    rank = max(ranks, default=0)
    longest = max((len(group.array) for group in groups), default=1)
    int_type = "O" if any(map(_exceeds_int64, groups)) else "i8"
    dtype = np.dtype(
        [("run", "i4"), ("row", "i8"), ("line", "i4"), ("array", f"U{longest}"),
         ("index", "i8", (rank,)), ("before", float_type), ("after", float_type),
         ("before_int", int_type), ("after_int", int_type)]
    )  # fmt: skip
    arrays = [_group_array(group, dtype, rank) for group in groups]
    if not arrays:
        return np.zeros(0, dtype)
    starts = np.cumsum([0, *map(len, arrays)])
    joined = np.concatenate(arrays)
    return joined[starts[order[:, 0]] + order[:, 1]]


def _group_array(group: Group, dtype: np.dtype[Any], rank: int) -> np.ndarray:
    points, target = group.points, group.statement.target
    out = np.zeros(len(points), dtype)
    out["run"], out["row"] = group.run, points.row
    out["line"], out["array"] = group.statement.span.line, group.array
    out["index"] = -1
    for axis, values in enumerate(points.index(target.index)):
        out["index"][:, axis] = values
    for name in ("before", "after"):
        values = points.column(name)
        out[name] = values
        if values.dtype.kind in "iub":
            out[f"{name}_int"] = values
    return out


def _exceeds_int64(group: Group) -> bool:
    """Whether an integer of a group does not fit int64."""
    values = [group.points.column(name) for name in ("before", "after")]
    return any(x.dtype == np.uint64 and bool((x > np.iinfo(np.int64).max).any()) for x in values)
