"""How one statement is recorded: where its numbers go, and the assignments that put them there.

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
    minimum,
    mod,
    multiply,
    var,
)
from ...lowering.ir.ops import OPS
from . import sites as s
from .boxes import axes_of, is_uneven
from .buffers import Buffers, all_of, compare, number_of
from .checked import is_nan
from .columns import Cell, Columns
from .sites import Site, Wanted
from .where import Fits

ROW, REST, POINT = range(3)
"""What the values of a printed line are: a row of the table, what did not fit, or of a point."""
VALUES = 6
"""At most so many are in one line: what a device prints at once is limited."""


class Row:
    """How one statement is recorded, or the terms of a reduction in it."""

    def __init__(
        self,
        buffers: Buffers,
        wanted: Wanted,
        site: Site,
        fits: Fits,
        guard: Expr | None = None,
    ) -> None:
        self.buffers, self.outer = buffers, fits.outer
        self.row, self.first_float, self.first_int, self.want, self.go, self.fit = map(
            buffers.symbol, ("row", "first_float", "first_int", "want", "go", "fit")
        )
        one, reduce = site.statement, site.reduce
        self.ranges: tuple[Range, ...] = fits.ranges
        self.axes = tuple(axes_of(fits.ranges))
        self.is_assignment = site.is_assignment
        self.first_nan = wanted.first_nan and isinstance(one, Assign)
        self.asked: Expr | None = None
        """What has to hold at a point for it to be wanted."""
        self.left: Expr | None = None
        """Whether a point is within the limit, where its number tells that."""
        self.inside: Expr | None = None
        """Whether there is room for a point, where there may be none."""
        self.is_ranked = False
        """Whether points are counted one by one to tell which are within the limit."""
        self.is_scarce = wanted.scarce
        self.spare = {True: 0, False: 0}
        """How many floats and ints of a point have a second place, see `plane`."""
        self.is_late = False
        """Whether only what the statement changes is recorded before it, see `found_late`."""
        self.columns = Columns()
        self.after: tuple[Cell, ...] = ()
        self.site = site
        if isinstance(one, Permute):
            return
        self.ask(one, wanted, fits, guard)
        if reduce is not None:
            self.ranges = (*fits.ranges, *reduce.domain.ranges)
            self.axes = tuple(axes_of(self.ranges))
        self.limit(wanted)
        if wanted.scarce:
            self.inside = compare("lt", self.flat, var(self.fit))
        masked = self.asked is not None or self.left is not None or self.is_ranked
        masked = masked or self.first_nan or is_uneven(self.ranges)
        self.columns.of(one, reduce, masked)
        after, self.after = self.columns.after(self.becomes(one, reduce))
        self.is_late = self.first_nan and not wanted.printed and self.may_be_late(one)
        kept = [cell[0] for cell in self.cells(True)] if self.is_late else []
        self.spare = {True: kept.count(True), False: kept.count(False)}
        self.site = replace(
            site, axes=self.axes, columns=(*self.columns.found, after),
            floats=self.columns.floats, ints=self.columns.ints, masked=masked,
            spare=(self.spare[True], self.spare[False]),
        )  # fmt: skip

    def ask(self, one: Assign, wanted: Wanted, fits: Fits, guard: Expr | None) -> None:
        """Find what has to hold at a point; the axes are those of the assignment."""
        step = wanted.sample
        sampled = () if step == 1 else (compare("eq", mod(self.flat, const(step)), const(0)),)
        reduce = self.site.reduce
        tests = [one.free.where, *fits.inner, *sampled, guard]
        tests.append(None if reduce is None else reduce.domain.where)
        self.asked = all_of(test for test in tests if test is not None)

    def limit(self, wanted: Wanted) -> None:
        """Find how a limit is kept: by the number of a point where all are wanted, else one by
        one."""
        if not wanted.limited or self.first_nan or not self.is_assignment:
            return
        self.is_ranked = self.asked is not None or is_uneven(self.ranges)
        if not self.is_ranked:
            counters = (self.buffers.counter(s.LIMIT), self.buffers.counter(s.POINTS))
            self.left = compare("lt", self.flat, Apply(OPS["sub"], counters, dtypes.int64))

    def may_be_late(self, one: Assign) -> bool:
        """Whether which points are wanted, and where they are, can be told after a statement as
        well as before it; not of calls of the library, which change more than their target."""
        tests = [self.asked, *(x.value for x in one.target.index if isinstance(x, Dynamic))]
        if self.site.reads is not None or self.site.reduce is not None or one.pair is not None:
            return False
        return not any(self.is_changed(test) for test in tests if test is not None)

    def is_changed(self, value: Expr) -> bool:
        """Whether a value reads what the statement writes."""
        one = self.site.statement
        assert isinstance(one, Assign)
        return any(isinstance(part, Read) and part.node == one.target.node for part in walk(value))

    def becomes(self, one: Assign, reduce: Reduce | None) -> Expr:
        """Return what a point comes to: the element that is written, or a term."""
        if reduce is not None:
            return reduce.value
        node, places = one.target.node, self.columns.places(one.target)
        ints = self.columns.ints + (node.dtype.kind not in "fc")
        index = tuple(
            x if at is None else Dynamic(self.kept_int(ints, at))
            for x, at in zip(one.target.index, places, strict=True)
        )
        return Read(node, index, one.span)

    @property
    def flat(self) -> Affine:
        """The number of a point within its row."""
        at = const(0)
        for axis in self.axes:
            at = multiply(at, axis.extent) + (var(axis.symbol) - axis.first)
        return at

    @property
    def size(self) -> Affine:
        """How many points a row has room for."""
        size = const(1)
        for axis in self.axes:
            size = multiply(size, axis.extent)
        return size

    def kept_int(self, ints: int, place: int) -> Expr:
        """Return an int of a point as it was recorded."""
        return Read(self.buffers.ints, (var(self.first_int) + self.flat * ints + place,))

    @property
    def room(self) -> Affine:
        """How many points of a row there is room for: the first ones."""
        return var(self.fit) if self.is_scarce else self.size

    @property
    def points(self) -> Domain:
        """The points that are recorded, once it is known which."""
        if not self.site.masked:
            return Domain(self.ranges, self.inside)
        mask = self.kept_int(self.site.ints, 0)
        kept: Expr = Apply(OPS["eq"], (mask, Position(const(1))), dtypes.bool_)
        if self.inside is not None:  # what has no room has no mask
            kept = Select(self.inside, kept, Const(False, dtypes.bool_))
        return Domain(self.ranges, kept)

    def begin(self) -> Iterator[Statement]:
        """Yield what records the state before the statement."""
        buffers = self.buffers
        for symbol, place in (
            (self.row, s.ROWS), (self.first_float, s.FLOATS), (self.first_int, s.INTS),
        ):  # fmt: skip
            yield Let(symbol, buffers.counter(place))
        site = self.site
        wanted = (*self.outer, compare("eq", buffers.counter(s.STOPPED), const(0)))
        yield Let(self.want, number_of(all_of(wanted)))
        tests = [
            compare("eq", var(self.want), const(1)),
            compare("lt", var(self.row), buffers.room[s.ROWS]),
            compare("lt", buffers.counter(s.POINTS), buffers.counter(s.LIMIT)),
        ]
        needs = [
            (var(first), per_point, buffers.room[place])
            for first, per_point, place in (
                (self.first_float, site.floats + self.spare[True], s.FLOATS),
                (self.first_int, site.ints + self.spare[False], s.INTS),
            ) if per_point
        ]  # fmt: skip
        if self.is_scarce:
            yield Let(self.fit, Position(self.fitting(needs)))
            tests.append(compare("ge", var(self.fit), minimum(self.size, const(1))))
        else:
            tests += [compare("le", first + self.size * n, room) for first, n, room in needs]
        yield Let(self.go, number_of(all_of(tests)))
        missed = buffers.count(s.DROPPED, self.counted(Domain(self.ranges, self.asked)))
        other = Branch(compare("eq", var(self.want), const(1)), (missed, *self.full()), ())
        yield Branch(compare("eq", var(self.go), const(1)), tuple(self.before()), (other,))

    def fitting(self, needs: Sequence[tuple[Affine, int, Affine]]) -> Affine:
        """Return how many points there is room for, given what is used of each buffer, how much of
        it a point takes, and how large it is."""
        fit = self.size
        for first, per_point, room in needs:
            fit = minimum(fit, floordiv(room - first, const(per_point)))
        return fit

    def full(self) -> Iterator[Statement]:
        """Yield, where room may lack, what lets nothing more be recorded: the first records are
        there."""
        if self.is_scarce:
            none = Position(const(0))
            yield Assign(self.buffers.place(s.LIMIT), None, False, none, Domain())

    def before(self) -> Iterator[Statement]:
        """Yield the row of the table, and all columns but the last; of a row that is looked at
        after the statement only those that this changes."""
        if self.is_late:
            yield from self.missed()
            for place, (is_float, _, value) in self.planes():
                node = self.buffers.floats if is_float else self.buffers.ints
                yield Assign(Access(node, (place,)), None, False, value, self.wanted)
            return
        yield from self.listed()
        yield from self.missed()
        if self.site.masked:
            yield from self.mask(self.wanted)
        points = self.points if self.is_ranked else self.wanted
        yield from (self.store(x, points) for _, cells in self.columns.cells for x in cells)

    @property
    def wanted(self) -> Domain:
        """The points that are asked for and that there is room for."""
        tests = [test for test in (self.asked, self.left, self.inside) if test is not None]
        return Domain(self.ranges, all_of(tests))

    def cells(self, changed: bool) -> Iterator[Cell]:
        """Yield the cells whose values the statement changes, or the others."""
        for _, cells in self.columns.cells:
            yield from (cell for cell in cells if self.is_changed(cell[2]) == changed)

    def planes(self) -> Iterator[tuple[Affine, Cell]]:
        """Yield where the numbers are kept, one after another behind the row, that are seldom
        looked at again, and their cells."""
        used = {True: self.site.floats, False: self.site.ints}
        for cell in self.cells(True):
            first = self.first_float if cell[0] else self.first_int
            yield var(first) + multiply(self.room, const(used[cell[0]])) + self.flat, cell
            used[cell[0]] += 1

    def found_late(self) -> Iterator[Statement]:
        """Yield what looks for a NaN in what the statement wrote, and records the row if there is
        one: all but a pass over the elements is left out where there is none."""
        one = self.site.statement
        assert isinstance(one, Assign)
        after = Read(one.target.node, one.target.index, one.span)
        tests = [*(x for x in (self.wanted.where,) if x is not None), is_nan(after)]
        nans, found = Domain(self.ranges, all_of(tests)), self.buffers.symbol("found")
        yield Let(found, self.counted(nans))
        kept = (
            (cell[0], cell[1], Read(self.buffers.floats if cell[0] else self.buffers.ints, (at,)))
            for at, cell in self.planes()
        )
        cells = (*kept, *self.cells(False), *self.after)
        stores = [self.store(x, self.points) for x in cells]
        stop = Assign(self.buffers.place(s.STOPPED), None, False, Position(const(1)), Domain())
        record = (
            *self.listed(), self.unmasked(), self.store((False, 0, Position(const(1))), nans),
            *stores, *self.used(Position(var(found))), stop,
        )  # fmt: skip
        yield Branch(compare("gt", var(found), const(0)), record, ())

    def listed(self) -> Iterator[Statement]:
        """Yield the row of the table."""
        first = (const(self.site.number), var(self.first_float), var(self.first_int))
        for column, value in enumerate((*first, *map(var, self.site.symbols))):
            place = Access(self.buffers.table, (var(self.row), const(column)))
            yield Assign(place, None, False, Position(value), Domain())

    def missed(self) -> Iterator[Statement]:
        """Yield what counts the points that a limit by numbers, and the room, leave out."""
        within = all_of(test for test in (self.left, self.inside) if test is not None)
        if within is not None:
            beyond = Apply(OPS["logical_not"], (within,), dtypes.bool_)
            asked = all_of(test for test in (self.asked, beyond) if test is not None)
            yield self.buffers.count(s.DROPPED, self.counted(Domain(self.ranges, asked)))

    def mask(self, points: Domain) -> Iterator[Statement]:
        """Yield what says which points are recorded, and counts those beyond a limit by ranks."""
        if self.first_nan:  # a row that made none left its numbers here
            yield self.unmasked()
        yield self.store((False, 0, Position(const(1))), points)
        if self.is_ranked:
            yield from self.ranked()

    def unmasked(self) -> Assign:
        """Return what says that no point is recorded."""
        number = self.buffers.symbol("number")
        at = var(self.first_int) + var(number) * self.site.ints
        box = Domain((Range(number, const(0), self.room),))
        return Assign(Access(self.buffers.ints, (at,)), None, False, Position(const(0)), box)

    def ranked(self) -> Iterator[Statement]:
        """Yield what leaves the first of the wanted points, as many as the limit admits."""
        buffers, number = self.buffers, self.buffers.symbol("number")
        at = (var(self.first_int) + var(number) * self.site.ints,)
        counters = (buffers.counter(s.POINTS), buffers.counter(s.RANK))
        rank = Apply(OPS["add"], counters, dtypes.int64)
        dropped = (
            Assign(Access(buffers.ints, at), None, False, Position(const(0)), Domain()),
            buffers.count(s.DROPPED, Position(const(1))),
        )
        kept = Branch(
            compare("lt", rank, buffers.counter(s.LIMIT)),
            (buffers.count(s.RANK, Position(const(1))),),
            dropped,
        )
        asked = Branch(compare("eq", Read(buffers.ints, at), const(1)), (kept,), ())
        yield Assign(buffers.place(s.RANK), None, False, Position(const(0)), Domain())
        yield For(number, const(0), self.room, 1, (asked,))

    def end(self) -> Iterator[Statement]:
        """Yield what records the state after the statement, and counts what was used."""
        yield Branch(compare("eq", var(self.go), const(1)), tuple(self.behind()), ())

    def behind(self) -> Iterator[Statement]:
        """Yield the last column and the counts."""
        if self.is_late:
            yield from self.found_late()
            yield from self.ended()
            return
        points = self.points
        yield from (self.store(cell, points) for cell in self.after)
        if not self.first_nan:
            yield from self.used(self.counted(points))
            yield from self.ended()
            return
        yield self.made_nan()
        found = self.buffers.symbol("found")
        yield Let(found, self.counted(points))
        stop = Assign(self.buffers.place(s.STOPPED), None, False, Position(const(1)), Domain())
        some = compare("gt", var(found), const(0))
        yield Branch(some, (*self.used(Position(var(found))), stop), ())
        yield from self.ended()

    def made_nan(self) -> Assign:
        """Return what leaves those of the recorded points that became NaN.

        By their numbers, of what was recorded: each reads only what it writes, whatever the axes.
        """
        number = self.buffers.symbol("number")
        parts = (
            is_nan(Read(self.buffers.floats, (var(self.first_float) + at,)))
            for _, place, _ in self.after
            for at in (var(number) * self.site.floats + place,)
        )
        at = var(self.first_int) + var(number) * self.site.ints
        mask = Read(self.buffers.ints, (at,))
        some = functools.reduce(
            lambda one, other: Apply(OPS["or"], (one, other), dtypes.bool_), parts
        )
        kept = Select(compare("eq", mask, const(1)), number_of(some), Position(const(0)))
        box = Domain((Range(number, const(0), self.room),))
        return Assign(Access(self.buffers.ints, (at,)), None, False, kept, box)

    def ended(self) -> Iterator[Statement]:
        """Yield what lets nothing more be recorded where not all of the row had room."""
        if self.is_scarce:
            yield Branch(compare("lt", var(self.fit), self.size), tuple(self.full()), ())

    def printed(self) -> Iterator[Statement]:
        """Yield what prints the row, see `printing`, and leaves its place to the next one."""
        yield Branch(compare("eq", var(self.go), const(1)), tuple(self.lines()), ())

    def lines(self) -> Iterator[Statement]:
        """Yield the prints of the row, then of each of its points, and what empties the buffers."""
        site, number = self.site, self.buffers.symbol("number")
        symbols = [Position(var(symbol)) for symbol in site.symbols]
        yield from _lines(ROW, [Position(const(site.number)), *symbols])
        point = [
            *(self.number(False, number, place) for place in range(site.floats)),
            *(self.number(True, number, place) for place in range(site.ints)),
        ]
        if point:
            yield For(number, const(0), self.room, 1, tuple(_lines(POINT, point)))
        for counter in (s.ROWS, s.FLOATS, s.INTS):
            yield Assign(self.buffers.place(counter), None, False, Position(const(0)), Domain())

    def number(self, is_int: bool, point: Symbol, place: int) -> Expr:
        """Return a number of a point as it was recorded."""
        if is_int:
            return Read(self.buffers.ints, (var(point) * self.site.ints + place,))
        return Read(self.buffers.floats, (var(point) * self.site.floats + place,))

    def reserved(self, op: str) -> Iterator[Statement]:
        """Yield what keeps the place of a row from others that begin before it ends (`add`), and
        what gives it back (`sub`)."""
        used = tuple(self.used(self.counted(self.points), op))
        yield Branch(compare("eq", var(self.go), const(1)), used, ())

    def used(self, points: Expr, op: str = "add") -> Iterator[Statement]:
        """Yield the counting of what a row used."""
        size, site, count = self.room, self.site, self.buffers.count
        yield count(s.ROWS, Position(const(1)), op)
        if site.floats:
            yield count(s.FLOATS, Position(size * site.floats), op)
        if site.ints:
            yield count(s.INTS, Position(size * site.ints), op)
        if self.is_assignment:
            yield count(s.POINTS, points, op)

    def counted(self, points: Domain) -> Expr:
        """Return how many points there are."""
        if not isinstance(self.site.statement, Assign):
            return Position(const(0))
        if points.where is None and not is_uneven(self.ranges):
            return Position(self.size)
        return Reduce(OPS["add"], points, Position(const(1)), dtypes.int64)

    def store(self, cell: Cell, points: Domain) -> Assign:
        """Return the assignment that records one number of every point."""
        is_float, place, value = cell
        node = self.buffers.floats if is_float else self.buffers.ints
        first, per_point = (
            (self.first_float, self.site.floats) if is_float else (self.first_int, self.site.ints)
        )
        at = var(first) + self.flat * per_point + place
        return Assign(Access(node, (at,)), None, False, value, points)


def _lines(kind: int, values: Sequence[Expr]) -> Iterator[Print]:
    """Yield prints of a few values each, behind what they are."""
    for at in range(0, len(values), VALUES):
        what = REST if at and kind == ROW else kind
        yield Print((Position(const(what)), *values[at : at + VALUES]), logs=True)
