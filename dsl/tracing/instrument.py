"""Recording as assignments: before and after each statement stand others that write its records.

    y[i] += x[i]    becomes    let row, floats, ints = what is used of the buffers
                               let go = 1 where all of it fits, else 0
                               if go: table[row, :], y and x before it, for i
                               y[i] += x[i]
                               if go: y after it, for i; then count what was used

The statements themselves stay as they are, so that no computed bit changes, and what is added is
ordinary assignments, so that every backend records without knowing of it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from ...lowering.ir import dtypes
from ...lowering.ir.assignments import (
    Access,
    Assign,
    Block,
    Branch,
    For,
    Let,
    Parameter,
    Permute,
    Procedure,
    Statement,
    While,
)
from ...lowering.ir.expressions import (
    Apply,
    Domain,
    Dynamic,
    Expr,
    Position,
    Read,
    Reduce,
    Select,
)
from ...lowering.ir.indexing import Affine, Range, Symbol, const, mod, multiply, var
from ...lowering.ir.node import Node
from ...lowering.ir.ops import OPS
from ...lowering.ir.walk import binds, statements
from ..checked import is_nan
from . import sites as s
from .boxes import axes_of, is_uneven
from .columns import Cell, Columns
from .sites import Layout, Level, Site, Wanted
from .where import Fits, fitted, parsed

_TABLE = (
    ("trace_table", dtypes.int64), ("trace_floats", dtypes.float64), ("trace_ints", dtypes.int64),
    ("trace_used", dtypes.int64),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Instrumented:
    """A procedure that records, and what its records mean.

    Its last four parameters are the table, the floats, the ints and the counters.
    """

    procedure: Procedure
    layout: Layout


def instrument(procedure: Procedure, wanted: Wanted) -> Instrumented:
    """Return the procedure with recording added; raises CdValueError CD0871 for a wrong `where`."""
    nodes = (*(p.node for p in procedure.parameters), *procedure.locals, *procedure.results)
    sizes = [x for node in nodes for extent in node.shape for x in extent.symbols()]
    bound = [x for one in statements(procedure.body) for x in binds(one)]
    work = _Work(
        wanted,
        parsed(wanted.where) if wanted.where else (),
        max((x.serial for x in (*sizes, *bound)), default=0),
        max((one.id for one in nodes), default=0),
    )
    body = work.body(procedure.body, (), ())
    made = replace(
        procedure,
        parameters=(
            *(replace(p, node=_plain(p.node)) for p in procedure.parameters),
            *(Parameter(one, True) for one in work.buffers),
        ),
        locals=tuple(map(_plain, procedure.locals)),
        results=tuple(map(_plain, procedure.results)),
        body=body,
    )
    return Instrumented(made, Layout(tuple(work.sites)))


def _plain(node: Node) -> Node:
    """Return a node without what was asked of its memory: a record may need it anywhere."""
    return node if node.request is None else replace(node, request=None)


class _Work:
    """The sites found so far, and the buffers of this procedure."""

    def __init__(self, wanted: Wanted, tests: tuple[ast.expr, ...], serial: int, node: int) -> None:
        self.wanted, self.tests, self.serial = wanted, tests, serial
        self.sites: list[Site] = []
        rows, width, floats, ints = map(self.symbol, ("rows", "width", "floats", "ints"))
        self.room = {s.ROWS: var(rows), s.FLOATS: var(floats), s.INTS: var(ints)}
        shapes = ((var(rows), var(width)), (var(floats),), (var(ints),), (const(s.COUNTERS),))
        self.buffers = [
            Node(node + n, label, shape, dtype)
            for n, ((label, dtype), shape) in enumerate(zip(_TABLE, shapes, strict=True), 1)
        ]
        self.table, self.floats, self.ints, self.used = self.buffers

    def symbol(self, name: str) -> Symbol:
        """Return a new symbol."""
        self.serial += 1
        return Symbol(name, self.serial)

    def body(
        self, body: tuple[Statement, ...], path: tuple[Level, ...], symbols: tuple[Symbol, ...]
    ) -> tuple[Statement, ...]:
        """Return a list of statements with recording added, given what stands around it."""
        out: list[Statement] = []
        for one in body:
            match one:
                case Assign() | Permute():
                    out += self.recorded(one, path, symbols)
                    continue
                case For(symbol=symbol, body=inner):
                    new = self.body(inner, (*path, one), (*symbols, symbol))
                    one = replace(one, body=new)
                case While(prelude, _, inner):
                    inside = (*path, one)
                    lets = tuple(x.symbol for x in prelude if isinstance(x, Let))
                    one = replace(
                        one,
                        prelude=self.body(prelude, inside, symbols),
                        body=self.body(inner, inside, (*symbols, *lets)),
                    )
                case Branch(_, then, other):
                    one = replace(
                        one,
                        then=self.body(then, (*path, s.Side(one, True)), symbols),
                        other=self.body(other, (*path, s.Side(one, False)), symbols),
                    )
                case Block(_, inner):
                    one = replace(one, body=self.body(inner, (*path, one), symbols))
                case Let(symbol=symbol):
                    symbols = (*symbols, symbol)
                case _:
                    pass
            out.append(one)
        return tuple(out)

    def recorded(
        self, one: Assign | Permute, path: tuple[Level, ...], symbols: tuple[Symbol, ...]
    ) -> Iterator[Statement]:
        """Yield a statement with what records it around it, where it is wanted."""
        fits = Fits(()) if isinstance(one, Permute) else self.fits(one, symbols)
        if fits is None:
            yield one
            return
        row = _Row(self, one, path, symbols, fits)
        self.sites.append(row.site)
        yield from row.begin()
        yield one
        yield from row.end()

    def fits(self, one: Assign, symbols: tuple[Symbol, ...]) -> Fits | None:
        """Return which points of an assignment are wanted, None where none is."""
        wanted = self.wanted
        if wanted.arrays and one.target.node.label not in wanted.arrays:
            return None
        if wanted.statements and not any(_is_named(one, name) for name in wanted.statements):
            return None
        if wanted.first_nan and one.target.node.dtype.kind not in "fc":
            return None
        return fitted(self.tests, symbols, one.free.ranges)


class _Row:
    """How one statement is recorded: the numbers of a row, and where each of them goes."""

    def __init__(
        self,
        work: _Work,
        one: Assign | Permute,
        path: tuple[Level, ...],
        symbols: tuple[Symbol, ...],
        fits: Fits,
    ) -> None:
        self.work, self.ranges, self.outer = work, fits.ranges, fits.outer
        self.row, self.first_float, self.first_int, self.want, self.go = map(
            work.symbol, ("row", "first_float", "first_int", "want", "go")
        )
        self.axes = tuple(axes_of(fits.ranges))
        self.first_nan = work.wanted.first_nan and isinstance(one, Assign)
        self.asked: Expr | None = None
        """What has to hold at a point for it to be wanted."""
        self.left: Expr | None = None
        """Whether a point is within the limit, where there is one."""
        self.where: Expr | None = None
        self.columns = Columns()
        self.after: tuple[Cell, ...] = ()
        number = len(work.sites)
        if isinstance(one, Permute):
            self.site = Site(number, one, path, symbols)
            return
        step = work.wanted.sample
        sampled = () if step == 1 else (_compare("eq", mod(self.flat, const(step)), const(0)),)
        own = () if one.free.where is None else (one.free.where,)
        self.asked = self.where = _all((*own, *fits.inner, *sampled))
        if work.wanted.limited and not self.first_nan:
            left = Apply(OPS["sub"], (self.counter(s.LIMIT), self.counter(s.POINTS)), dtypes.int64)
            self.left = _compare("lt", self.flat, left)
            self.where = self.left if self.asked is None else _both(self.asked, self.left)
        masked = self.where is not None or self.first_nan or is_uneven(fits.ranges)
        self.columns.of(one, masked)
        node, places = one.target.node, self.columns.places(one.target)
        ints = self.columns.ints + (node.dtype.kind not in "fc")
        index = tuple(
            x if at is None else Dynamic(self.kept_int(ints, at))
            for x, at in zip(one.target.index, places, strict=True)
        )
        after, self.after = self.columns.after(Read(node, index, one.span))
        self.site = Site(
            number, one, path, symbols, self.axes, (*self.columns.found, after),
            self.columns.floats, self.columns.ints, masked,
        )  # fmt: skip

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
        return Read(self.work.ints, (var(self.first_int) + self.flat * ints + place,))

    def begin(self) -> Iterator[Statement]:
        """Yield what records the state before the statement."""
        work = self.work
        for symbol, place in (
            (self.row, s.ROWS), (self.first_float, s.FLOATS), (self.first_int, s.INTS),
        ):  # fmt: skip
            yield Let(symbol, self.counter(place))
        size, site = self.size, self.site
        wanted = (*self.outer, _compare("eq", self.counter(s.STOPPED), const(0)))
        yield Let(self.want, _number(_all(wanted)))
        tests = [
            _compare("eq", var(self.want), const(1)),
            _compare("lt", var(self.row), work.room[s.ROWS]),
            _compare("lt", self.counter(s.POINTS), self.counter(s.LIMIT)),
        ]
        for first, per_point, place in (
            (self.first_float, site.floats, s.FLOATS), (self.first_int, site.ints, s.INTS),
        ):  # fmt: skip
            if per_point:
                needed = var(first) + size * per_point
                tests.append(_compare("le", needed, work.room[place]))
        yield Let(self.go, _number(_all(tests)))
        missed = self.count(s.DROPPED, self.counted(Domain(self.ranges, self.asked)))
        other = Branch(_compare("eq", var(self.want), const(1)), (missed,), ())
        yield Branch(_compare("eq", var(self.go), const(1)), tuple(self.before()), (other,))

    def before(self) -> Iterator[Statement]:
        """Yield the row of the table, and all columns but the last."""
        first = (const(self.site.number), var(self.first_float), var(self.first_int))
        for column, value in enumerate((*first, *map(var, self.site.symbols))):
            place = Access(self.work.table, (var(self.row), const(column)))
            yield Assign(place, None, False, Position(value), Domain())
        points = Domain(self.ranges, self.where)
        if self.left is not None:
            beyond = Apply(OPS["logical_not"], (self.left,), dtypes.bool_)
            over = beyond if self.asked is None else _both(self.asked, beyond)
            yield self.count(s.DROPPED, self.counted(Domain(self.ranges, over)))
        if self.first_nan:  # a row that made none left its numbers here
            number = self.work.symbol("number")
            at = var(self.first_int) + var(number) * self.site.ints
            box = Domain((Range(number, const(0), self.size),))
            yield Assign(Access(self.work.ints, (at,)), None, False, Position(const(0)), box)
        if self.site.masked:
            yield self.store((False, 0, Position(const(1))), points)
        for _, cells in self.columns.cells:
            yield from (self.store(cell, points) for cell in cells)

    def end(self) -> Iterator[Statement]:
        """Yield what records the state after the statement, and counts what was used."""
        yield Branch(_compare("eq", var(self.go), const(1)), tuple(self.behind()), ())

    def behind(self) -> Iterator[Statement]:
        """Yield the last column and the counts."""
        site, whole = self.site, Domain(self.ranges)
        mask = self.kept_int(site.ints, 0)
        kept = Apply(OPS["eq"], (mask, Position(const(1))), dtypes.bool_)
        points = replace(whole, where=kept) if site.masked else whole
        yield from (self.store(cell, points) for cell in self.after)
        if not self.first_nan:
            yield from self.used(self.counted(points))
            return
        after = site.columns[-1].expr
        assert after is not None
        yield self.store((False, 0, _number(is_nan(after))), points)
        found = self.work.symbol("found")
        yield Let(found, self.counted(points))
        stop = Assign(self.place(s.STOPPED), None, False, Position(const(1)), Domain())
        some = _compare("gt", var(found), const(0))
        yield Branch(some, (*self.used(Position(var(found))), stop), ())

    def used(self, points: Expr) -> Iterator[Statement]:
        """Yield the counting of what a row used."""
        size, site = self.size, self.site
        yield self.count(s.ROWS, Position(const(1)))
        if site.floats:
            yield self.count(s.FLOATS, Position(size * site.floats))
        if site.ints:
            yield self.count(s.INTS, Position(size * site.ints))
        if isinstance(site.statement, Assign):
            yield self.count(s.POINTS, points)

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
        node = self.work.floats if is_float else self.work.ints
        first, per_point = (
            (self.first_float, self.site.floats) if is_float else (self.first_int, self.site.ints)
        )
        at = var(first) + self.flat * per_point + place
        return Assign(Access(node, (at,)), None, False, value, points)

    def place(self, number: int) -> Access:
        """Return a counter, to be written."""
        return Access(self.work.used, (const(number),))

    def counter(self, number: int) -> Expr:
        """Return a counter's value."""
        return Read(self.work.used, (const(number),))

    def count(self, number: int, by: Expr) -> Assign:
        """Return what adds to a counter."""
        return Assign(self.place(number), OPS["add"], False, by, Domain())


def _is_named(one: Assign, name: int | str) -> bool:
    if isinstance(name, int):
        return one.span.line <= name <= one.span.end_line
    return name in one.span.text


def _compare(op: str, left: Affine | Expr, right: Affine | Expr) -> Expr:
    sides = tuple(Position(x) if isinstance(x, Affine) else x for x in (left, right))
    return Apply(OPS[op], sides, dtypes.bool_)


def _all(tests: Iterable[Expr]) -> Expr | None:
    """Return the test that all hold, an earlier one before a later one; None for none."""
    found: Expr | None = None
    for test in tests:
        found = test if found is None else _both(found, test)
    return found


def _both(one: Expr, other: Expr) -> Expr:
    return Apply(OPS["and"], (one, other), dtypes.bool_)


def _number(test: Expr | None) -> Expr:
    """Return 1 where a test holds, else 0."""
    assert test is not None
    return Select(test, Position(const(1)), Position(const(0)))
