"""What was recorded: the records of all runs, in program order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from ...base.dataclass import dataclass
from ...lowering.ir.assignments import Assign
from ..instrument.recording import Recorder, Run
from ..instrument.sites import called, means
from ..instrument.where import fitted, parsed
from .points import Points, points_of, truth
from .records import Record, record_at
from .terms import Term, count_at, terms_at

_NOTHING = np.zeros((0, 2), np.int64)


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
        """What the array that is written is called there."""
        return called(self.statement.target.node, self.statement.names)

    def __repr__(self) -> str:
        return f"<{len(self.points)} records of {self.array} in run {self.run}>"


Content = tuple[int, tuple[Group, ...], npt.NDArray[np.int64], tuple[Group, ...]]
"""How many runs there were, the groups of records, their order, and the groups of terms."""


class Recorded:
    """The records of all runs of a trace, in program order; a sequence of `Record`."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._kept: Content = (-1, (), _NOTHING, ())

    @property
    def runs(self) -> tuple[Run, ...]:
        """What ran, in the order in which it ended."""
        return tuple(self._recorder.runs)

    @property
    def dropped(self) -> int:
        """How many wanted records there was no room for; they are the last ones of their runs."""
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
        """For each record in program order its group and its place there."""
        return self._content[2]

    @property
    def _content(self) -> Content:
        """What is known of the runs, found anew where there were more since."""
        runs, known = len(self.runs), self._kept
        if known[0] != runs:
            groups = tuple(
                Group(n, points)
                for n, run in enumerate(self.runs)
                for site in run.layout.sites
                if isinstance(site.statement, Assign) and len(points := points_of(run, site))
            )
            own = tuple(group for group in groups if group.points.site.is_assignment)
            terms = tuple(group for group in groups if not group.points.site.is_assignment)
            self._kept = known = (runs, own, _program_order(own), terms)
        return known

    def _record(self, at: int) -> Record:
        group, place = self.order[at]
        found = self.groups[group]
        return record_at(found.run, found.points, int(place))

    def where(self, text: str = "", array: str = "", line: int = 0) -> list[Record]:
        """Return the records at which a test of indices holds, of an array, of a line.

        What loops are handed on is no assignment of a line, and not asked for.
        Raises CdValueError CD0871 for what is no test.
        """
        tests = parsed(text) if text else ()
        chosen = np.zeros(len(self.order), bool)
        for number, group in enumerate(self.groups):
            points = group.points
            statement = group.statement
            if array and not means(array, group.array):
                continue
            if points.site.is_handed_on and (text or array or line):
                continue
            if line and not statement.span.line <= line <= statement.span.end_line:
                continue
            site = points.site
            own = tuple(axis.symbol for axis in site.axes)  # of one name the outer one
            fits = fitted(tests, (*own, *site.symbols), (), site.hidden)
            if fits is not None:
                holds = np.ones(len(points), bool)
                for test in fits.outer:
                    holds &= truth(test, points.symbols)
                chosen[self.order[:, 0] == number] = holds[self._places(number)]
        return [self._record(int(n)) for n in np.flatnonzero(chosen)]

    def _places(self, group: int) -> npt.NDArray[np.int64]:
        """Return the places of a group's records, in program order."""
        found: npt.NDArray[np.int64] = self.order[self.order[:, 0] == group, 1]
        return found

    def terms(self, record: Record) -> list[Term]:
        """Return the terms of the reductions in a record, in order, where they were recorded."""
        groups = [group for group in self._content[3] if group.run == record.run]
        return [term for group in groups for term in terms_at(group.points, record)]

    def main_terms(self, record: Record, most: int) -> tuple[list[Term], int]:
        """Return the most important terms of each reduction in a record, and how many more there
        are: those that are not finite come first, then the largest."""
        groups = [group for group in self._content[3] if group.run == record.run]
        found = [term for group in groups for term in terms_at(group.points, record, most)]
        return found, sum(count_at(group.points, record) for group in groups) - len(found)

    def first_nonfinite(self) -> Record | None:
        """Return the first record whose element became NaN or infinite, None where none did.

        Where records were `dropped`, they are not known.
        """
        first: tuple[tuple[int, int, int], Group, int] | None = None
        for group in self.groups:
            after = group.points.column("after")
            if after.dtype.kind not in "fcV":
                continue
            with np.errstate(all="ignore"):
                wrong = np.flatnonzero(~np.isfinite(after.astype(np.complex128)))
            if len(wrong):
                at = int(wrong[0])
                order = group.run, int(group.points.row[at]), int(group.points.number[at])
                if first is None or order < first[0]:
                    first = order, group, at
        return None if first is None else record_at(first[1].run, first[1].points, first[2])

    def records(self) -> np.ndarray:
        """Return all records as a structured array, in program order.

        Fields: `run`, `row` (how many statements of the run came before), `line`, `array`,
        `index` (filled up with -1), `before` and `after` (float64, or complex128 where an array
        is complex), and `before_int` and `after_int`, exact where the array is of integers: int64,
        or Python's integers where one is too large for that.
        """
        return _structured(self.groups, self.order)


def _program_order(groups: tuple[Group, ...]) -> npt.NDArray[np.int64]:
    if not groups:
        return np.zeros((0, 2), np.int64)
    sizes = [len(group.points) for group in groups]
    number = np.repeat(np.arange(len(groups)), sizes)
    place = np.concatenate([np.arange(size) for size in sizes])
    run = np.repeat([group.run for group in groups], sizes)
    row = np.concatenate([group.points.row for group in groups])
    point = np.concatenate([group.points.number for group in groups])
    by = np.lexsort((point, row, run))
    return np.stack([number[by], place[by]], axis=1)


def _structured(groups: tuple[Group, ...], order: npt.NDArray[np.int64]) -> np.ndarray:
    ranks = [len(group.statement.target.index) for group in groups]
    is_complex = any(group.statement.target.node.dtype.kind == "c" for group in groups)
    number = "c16" if is_complex else "f8"
    rank = max(ranks, default=0)
    longest = max((len(group.array) for group in groups), default=1)
    whole_number = "O" if any(map(_is_large, groups)) else "i8"
    dtype = np.dtype(
        [("run", "i4"), ("row", "i8"), ("line", "i4"), ("array", f"U{longest}"),
         ("index", "i8", (rank,)), ("before", number), ("after", number),
         ("before_int", whole_number), ("after_int", whole_number)]
    )  # fmt: skip
    parts = [_of_group(group, dtype, rank) for group in groups]
    if not parts:
        return np.zeros(0, dtype)
    starts = np.cumsum([0, *map(len, parts)])
    whole = np.concatenate(parts)
    return whole[starts[order[:, 0]] + order[:, 1]]


def _of_group(group: Group, dtype: np.dtype[Any], rank: int) -> np.ndarray:
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


def _is_large(group: Group) -> bool:
    """Whether an integer of a group is too large for int64."""
    values = [group.points.column(name) for name in ("before", "after")]
    return any(x.dtype == np.uint64 and bool((x > np.iinfo(np.int64).max).any()) for x in values)
