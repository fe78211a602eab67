"""Recording of one statement: the layout of its row, and the assignments that write it.

Buffers := table, floats, ints, counters                shared by all rows of a procedure
Row     := [site, first float, first int, symbols...]   of the table, see `sites`
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...lowering.ir import dtypes
from ...lowering.ir.assignments import (
    Access,
    Assign,
    Branch,
    For,
    Let,
    Permute,
    Print,
    Statement,
)
from ...lowering.ir.expressions import (
    Apply,
    Const,
    Domain,
    Dynamic,
    Expr,
    Position,
    Read,
    Reduce,
    Select,
    walk,
)
from ...lowering.ir.indexing import (
    Affine,
    Range,
    Symbol,
    const,
    floordiv,
    maximum,
    minimum,
    mod,
    multiply,
    var,
)
from ...lowering.ir.ops import OPS
from ..values.range_analysis import extreme
from . import sites as s
from .buffers import Buffers, compare, conjunction, to_integer
from .call_results import is_nan
from .columns import Cell, Columns
from .sites import Axis, Site, TraceFilter
from .where import FilteredDomain


def bounding_box(ranges: tuple[Range, ...]) -> Iterator[Axis]:
    """Yield the axes of the bounding box: each range at its widest."""
    for at, r in enumerate(ranges):
        low = extreme(r.lo, ranges[:at], False)
        high = extreme(r.hi, ranges[:at], True)
        yield Axis(r.symbol, low, maximum(high - low, const(0)))


def is_non_rectangular(ranges: tuple[Range, ...]) -> bool:
    """Whether a range depends on another one, so that the box has points outside the domain."""
    symbols = {r.symbol for r in ranges}
    return any((r.lo.symbols() | r.hi.symbols()) & symbols for r in ranges)


ROW_LINE, REST_LINE, POINT_LINE = range(3)
"""The kinds of printed lines: a row of the table, its continuation, a point."""
MAX_VALUES_PER_LINE = 6
"""The most values in one line: devices limit what is printed at once."""


class Row:
    """The recording of one statement, or of the terms of a reduction in it."""

    def __init__(
        self,
        buffers: Buffers,
        wanted: TraceFilter,
        site: Site,
        fits: FilteredDomain,
        guard: Expr | None = None,
    ) -> None:
        self.buffers, self.outer = buffers, fits.outer
        (
            self.row,
            self.first_float,
            self.first_int,
            self.is_requested,
            self.is_recording,
            self.fit_count,
        ) = map(buffers.symbol, ("row", "first_float", "first_int", "want", "go", "fit"))
        statement, reduce = site.statement, site.reduce
        self.ranges: tuple[Range, ...] = fits.ranges
        self.axes = tuple(bounding_box(fits.ranges))
        self.is_assignment = site.is_assignment
        self.first_nan = wanted.first_nan and isinstance(statement, Assign)
        self.condition: Expr | None = None
        """The test that a point is requested, None where all are."""
        self.within_limit: Expr | None = None
        """The test that a point is within the limit, where its number decides that."""
        self.has_capacity: Expr | None = None
        """The test that the buffers have room for a point, where they may not."""
        self.is_ranked = False
        """Whether points are counted one by one to apply the limit."""
        self.is_scarce = wanted.scarce
        self.backup_counts = {True: 0, False: 0}
        """The number of floats and ints of a point with a backup position after the row."""
        self.is_late = False
        """Whether only values that the statement changes are saved before it, for a row that is
        written after it."""
        self.columns = Columns()
        self.after: tuple[Cell, ...] = ()
        self.site = site
        if isinstance(statement, Permute):
            return
        self.set_condition(statement, wanted, fits, guard)
        if reduce is not None:
            self.ranges = (*fits.ranges, *reduce.domain.ranges)
            self.axes = tuple(bounding_box(self.ranges))
        self.set_limit(wanted)
        if wanted.scarce:
            self.has_capacity = compare("lt", self.flat, var(self.fit_count))
        masked = self.condition is not None or self.within_limit is not None or self.is_ranked
        masked = masked or self.first_nan or is_non_rectangular(self.ranges)
        self.columns.of(statement, reduce, masked)
        after, self.after = self.columns.after(self.result_value(statement, reduce))
        self.is_late = self.first_nan and not wanted.printed and self.can_record_late(statement)
        kinds = [cell[0] for cell in self.cells(True)] if self.is_late else []
        self.backup_counts = {True: kinds.count(True), False: kinds.count(False)}
        self.site = replace(
            site, axes=self.axes, columns=(*self.columns.entries, after),
            floats=self.columns.floats, ints=self.columns.ints, is_masked=masked,
            spare=(self.backup_counts[True], self.backup_counts[False]),
        )  # fmt: skip

    def set_condition(
        self, statement: Assign, wanted: TraceFilter, fits: FilteredDomain, guard: Expr | None
    ) -> None:
        """Set the test of requested points; the axes are those of the assignment."""
        step = wanted.sample
        sampled = () if step == 1 else (compare("eq", mod(self.flat, const(step)), const(0)),)
        reduce = self.site.reduce
        tests = [statement.free.where, *fits.inner, *sampled, guard]
        tests.append(None if reduce is None else reduce.domain.where)
        self.condition = conjunction(test for test in tests if test is not None)

    def set_limit(self, wanted: TraceFilter) -> None:
        """Set how the limit is applied: by the number of a point where all are requested, else by
        counting."""
        if not wanted.is_limited or self.first_nan or not self.is_assignment:
            return
        self.is_ranked = self.condition is not None or is_non_rectangular(self.ranges)
        if not self.is_ranked:
            counters = (self.buffers.counter(s.LIMIT), self.buffers.counter(s.POINTS))
            self.within_limit = compare("lt", self.flat, Apply(OPS["sub"], counters, dtypes.int64))

    def can_record_late(self, statement: Assign) -> bool:
        """Whether the requested points and their indices are the same after a statement as before
        it; not for library calls, which change more than their target."""
        tests = [
            self.condition,
            *(x.value for x in statement.target.index if isinstance(x, Dynamic)),
        ]
        if (
            self.site.reads is not None
            or self.site.reduce is not None
            or statement.pair is not None
        ):
            return False
        return not any(self.is_changed(test) for test in tests if test is not None)

    def is_changed(self, value: Expr) -> bool:
        """Whether a value reads what the statement writes."""
        statement = self.site.statement
        assert isinstance(statement, Assign)
        return any(
            isinstance(part, Read) and part.node == statement.target.node for part in walk(value)
        )

    def result_value(self, statement: Assign, reduce: Reduce | None) -> Expr:
        """Return the result at a point: the written element, or a term."""
        if reduce is not None:
            return reduce.value
        node, positions = statement.target.node, self.columns.subscript_positions(statement.target)
        ints = self.columns.ints + (node.dtype.kind not in "fc")
        index = tuple(
            x if at is None else Dynamic(self.recorded_int(ints, at))
            for x, at in zip(statement.target.index, positions, strict=True)
        )
        return Read(node, index, statement.span)

    @property
    def flat(self) -> Affine:
        """The number of a point within its row."""
        at = const(0)
        for axis in self.axes:
            at = multiply(at, axis.extent) + (var(axis.symbol) - axis.first)
        return at

    @property
    def size(self) -> Affine:
        """The number of points in the box of a row."""
        size = const(1)
        for axis in self.axes:
            size = multiply(size, axis.extent)
        return size

    def recorded_int(self, ints: int, position: int) -> Expr:
        """Return a recorded int of a point."""
        return Read(self.buffers.ints, (var(self.first_int) + self.flat * ints + position,))

    @property
    def capacity(self) -> Affine:
        """The number of points of a row, the first ones, that the buffers have room for."""
        return var(self.fit_count) if self.is_scarce else self.size

    @property
    def points(self) -> Domain:
        """The recorded points, once the mask is set."""
        if not self.site.is_masked:
            return Domain(self.ranges, self.has_capacity)
        mask = self.recorded_int(self.site.ints, 0)
        is_recorded: Expr = Apply(OPS["eq"], (mask, Position(const(1))), dtypes.bool_)
        if self.has_capacity is not None:  # points without room have no mask
            is_recorded = Select(self.has_capacity, is_recorded, Const(False, dtypes.bool_))
        return Domain(self.ranges, is_recorded)

    def begin(self) -> Iterator[Statement]:
        """Yield the statements that record the state before the statement."""
        buffers = self.buffers
        for symbol, counter in (
            (self.row, s.ROWS), (self.first_float, s.FLOATS), (self.first_int, s.INTS),
        ):  # fmt: skip
            yield Let(symbol, buffers.counter(counter))
        site = self.site
        wanted = (*self.outer, compare("eq", buffers.counter(s.STOPPED), const(0)))
        yield Let(self.is_requested, to_integer(conjunction(wanted)))
        tests = [
            compare("eq", var(self.is_requested), const(1)),
            compare("lt", var(self.row), buffers.capacity[s.ROWS]),
            compare("lt", buffers.counter(s.POINTS), buffers.counter(s.LIMIT)),
        ]
        needs = [
            (var(first), per_point, buffers.capacity[counter])
            for first, per_point, counter in (
                (self.first_float, site.floats + self.backup_counts[True], s.FLOATS),
                (self.first_int, site.ints + self.backup_counts[False], s.INTS),
            ) if per_point
        ]  # fmt: skip
        if self.is_scarce:
            yield Let(self.fit_count, Position(self.fitting_points(needs)))
            tests.append(compare("ge", var(self.fit_count), minimum(self.size, const(1))))
        else:
            tests += [
                compare("le", first + self.size * n, capacity) for first, n, capacity in needs
            ]
        yield Let(self.is_recording, to_integer(conjunction(tests)))
        missed = buffers.count(s.DROPPED, self.count_points(Domain(self.ranges, self.condition)))
        orelse = Branch(
            compare("eq", var(self.is_requested), const(1)), (missed, *self.stop_recording()), ()
        )
        yield Branch(
            compare("eq", var(self.is_recording), const(1)), tuple(self.record_before()), (orelse,)
        )

    def fitting_points(self, needs: Sequence[tuple[Affine, int, Affine]]) -> Affine:
        """Return the number of points that fit, given for each buffer its used part, the size of a
        point, and its capacity."""
        fit = self.size
        for first, per_point, capacity in needs:
            fit = minimum(fit, floordiv(capacity - first, const(per_point)))
        return fit

    def stop_recording(self) -> Iterator[Statement]:
        """Yield, where room may be short, the statement that stops the recording."""
        if self.is_scarce:
            none = Position(const(0))
            yield Assign(self.buffers.counter_access(s.LIMIT), None, False, none, Domain())

    def record_before(self) -> Iterator[Statement]:
        """Yield the stores of the row of the table and all columns but the last; for a row that is
        written after the statement, the backups of changed values."""
        if self.is_late:
            yield from self.count_dropped()
            for position, (is_float, _, value) in self.backups():
                node = self.buffers.floats if is_float else self.buffers.ints
                yield Assign(Access(node, (position,)), None, False, value, self.requested_points)
            return
        yield from self.store_row()
        yield from self.count_dropped()
        if self.site.is_masked:
            yield from self.store_mask(self.requested_points)
        points = self.points if self.is_ranked else self.requested_points
        yield from (self.store(x, points) for _, cells in self.columns.cells for x in cells)

    @property
    def requested_points(self) -> Domain:
        """The requested points that are within the limit and the room."""
        tests = [
            test
            for test in (self.condition, self.within_limit, self.has_capacity)
            if test is not None
        ]
        return Domain(self.ranges, conjunction(tests))

    def cells(self, changed: bool) -> Iterator[Cell]:
        """Yield the cells whose values the statement changes, or does not."""
        for _, cells in self.columns.cells:
            yield from (cell for cell in cells if self.is_changed(cell[2]) == changed)

    def backups(self) -> Iterator[tuple[Affine, Cell]]:
        """Yield the backup positions, after the row, of changed values, and their cells."""
        used = {True: self.site.floats, False: self.site.ints}
        for cell in self.cells(True):
            first = self.first_float if cell[0] else self.first_int
            yield var(first) + multiply(self.capacity, const(used[cell[0]])) + self.flat, cell
            used[cell[0]] += 1

    def record_late(self) -> Iterator[Statement]:
        """Yield the search for a NaN in the written elements, and the recording of the row if
        there is one: without a NaN it costs only one pass over the elements."""
        statement = self.site.statement
        assert isinstance(statement, Assign)
        after = Read(statement.target.node, statement.target.index, statement.span)
        tests = [*(x for x in (self.requested_points.where,) if x is not None), is_nan(after)]
        nans, nan_count = Domain(self.ranges, conjunction(tests)), self.buffers.symbol("found")
        yield Let(nan_count, self.count_points(nans))
        saved = (
            (cell[0], cell[1], Read(self.buffers.floats if cell[0] else self.buffers.ints, (at,)))
            for at, cell in self.backups()
        )
        cells = (*saved, *self.cells(False), *self.after)
        stores = [self.store(x, self.points) for x in cells]
        stop = Assign(
            self.buffers.counter_access(s.STOPPED), None, False, Position(const(1)), Domain()
        )
        record = (
            *self.store_row(), self.clear_mask(), self.store((False, 0, Position(const(1))), nans),
            *stores, *self.count_used(Position(var(nan_count))), stop,
        )  # fmt: skip
        yield Branch(compare("gt", var(nan_count), const(0)), record, ())

    def store_row(self) -> Iterator[Statement]:
        """Yield the stores of the row of the table."""
        first = (const(self.site.number), var(self.first_float), var(self.first_int))
        for column, value in enumerate((*first, *map(var, self.site.symbols))):
            target = Access(self.buffers.table, (var(self.row), const(column)))
            yield Assign(target, None, False, Position(value), Domain())

    def count_dropped(self) -> Iterator[Statement]:
        """Yield the counting of points that the limit or the room excludes."""
        within = conjunction(
            test for test in (self.within_limit, self.has_capacity) if test is not None
        )
        if within is not None:
            beyond = Apply(OPS["logical_not"], (within,), dtypes.bool_)
            asked = conjunction(test for test in (self.condition, beyond) if test is not None)
            yield self.buffers.count(s.DROPPED, self.count_points(Domain(self.ranges, asked)))

    def store_mask(self, points: Domain) -> Iterator[Statement]:
        """Yield the stores of the mask of recorded points; a limit by ranks is applied to it."""
        if self.first_nan:  # an earlier row without a NaN left its numbers here
            yield self.clear_mask()
        yield self.store((False, 0, Position(const(1))), points)
        if self.is_ranked:
            yield from self.apply_ranks()

    def clear_mask(self) -> Assign:
        """Return the assignment that clears the mask."""
        number = self.buffers.symbol("number")
        at = var(self.first_int) + var(number) * self.site.ints
        box = Domain((Range(number, const(0), self.capacity),))
        return Assign(Access(self.buffers.ints, (at,)), None, False, Position(const(0)), box)

    def apply_ranks(self) -> Iterator[Statement]:
        """Yield the loop that clears the mask of points beyond the limit."""
        buffers, number = self.buffers, self.buffers.symbol("number")
        at = (var(self.first_int) + var(number) * self.site.ints,)
        counters = (buffers.counter(s.POINTS), buffers.counter(s.RANK))
        rank = Apply(OPS["add"], counters, dtypes.int64)
        dropped = (
            Assign(Access(buffers.ints, at), None, False, Position(const(0)), Domain()),
            buffers.count(s.DROPPED, Position(const(1))),
        )
        count_or_drop = Branch(
            compare("lt", rank, buffers.counter(s.LIMIT)),
            (buffers.count(s.RANK, Position(const(1))),),
            dropped,
        )
        limit_point = Branch(compare("eq", Read(buffers.ints, at), const(1)), (count_or_drop,), ())
        yield Assign(buffers.counter_access(s.RANK), None, False, Position(const(0)), Domain())
        yield For(number, const(0), self.capacity, 1, (limit_point,))

    def end(self) -> Iterator[Statement]:
        """Yield the statements that record the state after the statement, and the counters."""
        yield Branch(
            compare("eq", var(self.is_recording), const(1)), tuple(self.record_after()), ()
        )

    def record_after(self) -> Iterator[Statement]:
        """Yield the stores of the last column, and the counters."""
        if self.is_late:
            yield from self.record_late()
            yield from self.stop_if_full()
            return
        points = self.points
        yield from (self.store(cell, points) for cell in self.after)
        if not self.first_nan:
            yield from self.count_used(self.count_points(points))
            yield from self.stop_if_full()
            return
        yield self.mask_new_nans()
        nan_count = self.buffers.symbol("found")
        yield Let(nan_count, self.count_points(points))
        stop = Assign(
            self.buffers.counter_access(s.STOPPED), None, False, Position(const(1)), Domain()
        )
        has_nan = compare("gt", var(nan_count), const(0))
        yield Branch(has_nan, (*self.count_used(Position(var(nan_count))), stop), ())
        yield from self.stop_if_full()

    def mask_new_nans(self) -> Assign:
        """Return the assignment that masks all points but those that became NaN.

        It loops over point numbers: each iteration reads only the mask that it writes, and records.
        """
        number = self.buffers.symbol("number")
        parts = (
            is_nan(Read(self.buffers.floats, (var(self.first_float) + at,)))
            for _, position, _ in self.after
            for at in (var(number) * self.site.floats + position,)
        )
        at = var(self.first_int) + var(number) * self.site.ints
        mask = Read(self.buffers.ints, (at,))
        is_new_nan = functools.reduce(
            lambda left, right: Apply(OPS["or"], (left, right), dtypes.bool_), parts
        )
        mask_value = Select(
            compare("eq", mask, const(1)), to_integer(is_new_nan), Position(const(0))
        )
        box = Domain((Range(number, const(0), self.capacity),))
        return Assign(Access(self.buffers.ints, (at,)), None, False, mask_value, box)

    def stop_if_full(self) -> Iterator[Statement]:
        """Yield the statement that stops the recording where the row did not fit completely."""
        if self.is_scarce:
            yield Branch(
                compare("lt", var(self.fit_count), self.size), tuple(self.stop_recording()), ()
            )

    def printed(self) -> Iterator[Statement]:
        """Yield the prints of the row, see `printing`; the next row overwrites it."""
        yield Branch(compare("eq", var(self.is_recording), const(1)), tuple(self.print_lines()), ())

    def print_lines(self) -> Iterator[Statement]:
        """Yield the prints of the row and of each of its points, and the reset of the buffers."""
        site, number = self.site, self.buffers.symbol("number")
        symbols = [Position(var(symbol)) for symbol in site.symbols]
        yield from _lines(ROW_LINE, [Position(const(site.number)), *symbols])
        point = [
            *(self.recorded_number(False, number, position) for position in range(site.floats)),
            *(self.recorded_number(True, number, position) for position in range(site.ints)),
        ]
        if point:
            yield For(number, const(0), self.capacity, 1, tuple(_lines(POINT_LINE, point)))
        for counter in (s.ROWS, s.FLOATS, s.INTS):
            yield Assign(
                self.buffers.counter_access(counter), None, False, Position(const(0)), Domain()
            )

    def recorded_number(self, is_int: bool, point: Symbol, position: int) -> Expr:
        """Return a recorded number of a point."""
        if is_int:
            return Read(self.buffers.ints, (var(point) * self.site.ints + position,))
        return Read(self.buffers.floats, (var(point) * self.site.floats + position,))

    def reserved(self, op: str) -> Iterator[Statement]:
        """Yield the reservation of a row's buffer space before other rows begin (`add`), and its
        release (`sub`)."""
        used = tuple(self.count_used(self.count_points(self.points), op))
        yield Branch(compare("eq", var(self.is_recording), const(1)), used, ())

    def count_used(self, points: Expr, op: str = "add") -> Iterator[Statement]:
        """Yield the updates of the counters by the size of a row."""
        size, site, count = self.capacity, self.site, self.buffers.count
        yield count(s.ROWS, Position(const(1)), op)
        if site.floats:
            yield count(s.FLOATS, Position(size * site.floats), op)
        if site.ints:
            yield count(s.INTS, Position(size * site.ints), op)
        if self.is_assignment:
            yield count(s.POINTS, points, op)

    def count_points(self, points: Domain) -> Expr:
        """Return the number of points in a domain."""
        if not isinstance(self.site.statement, Assign):
            return Position(const(0))
        if points.where is None and not is_non_rectangular(self.ranges):
            return Position(self.size)
        return Reduce(OPS["add"], points, Position(const(1)), dtypes.int64)

    def store(self, cell: Cell, points: Domain) -> Assign:
        """Return the assignment that records one number of every point."""
        is_float, position, value = cell
        node = self.buffers.floats if is_float else self.buffers.ints
        first, per_point = (
            (self.first_float, self.site.floats) if is_float else (self.first_int, self.site.ints)
        )
        at = var(first) + self.flat * per_point + position
        return Assign(Access(node, (at,)), None, False, value, points)


def _lines(kind: int, values: Sequence[Expr]) -> Iterator[Print]:
    """Yield prints of a few values each, prefixed with the kind of line."""
    for at in range(0, len(values), MAX_VALUES_PER_LINE):
        what = REST_LINE if at and kind == ROW_LINE else kind
        yield Print((Position(const(what)), *values[at : at + MAX_VALUES_PER_LINE]), logs=True)
