"""Numbers that each round counts on by the same: what they are follows from the round.

    k = 0
    for i in 0..n: y[k] = x[i]; k = k + 2      becomes   for i in 0..n: y[2*i] = x[i]
                                                         k = 2*n

and loops that count on until a bound are loops over a range:

    while m <= n: y[m] = 0; m = m + p          becomes   if p >= 1: for r in 0..(n - m + p)//p: ...

Needs whole numbers of 64 bits that nothing else in a round changes, rounds that are not left early,
and steps and bounds that stay. Where a step is data, the loop stays as it is beside, for steps that
are not positive.

>>> program, _ = optimize(lowered('''
... k = 0
... i = 0
... while i < 9:
...     y[k] = x[i]
...     k += 2
...     i += 1
... ''', y="f32[90]", x="f32[9]"), Target("cuda"))
>>> print_loops(induced(program).kernels[0].body)
# while i < 9
for i in 0..9:
    # y[k] = x[i]
    y[2*i] = x[i]
    # k += 2
    # i += 1
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, replace

from ...base.dataclass import dataclass
from ..analysis.dependence import ends_early
from ..analysis.parallel_band import rounds_of, trips
from ..ir import dtypes
from ..ir.assignments import Access, Alloc, Let
from ..ir.bounds import as_index
from ..ir.expressions import Apply, Const, Expr, Position, Read, reads, rebuild
from ..ir.fresh import Fresh, fresh_for
from ..ir.indexing import Affine, Symbol, const, floordiv, maximum, multiply, substitute, var
from ..ir.loops import Comment, For, If, Program, Stmt, Store, Update, While
from ..ir.node import Node
from ..ir.ops import OPS
from ..ir.rewrite import (
    Rewrite,
    map_statements,
    over_kernels,
    rebuild_statement,
    rename,
    with_bodies,
)
from ..ir.walk import binds, bodies, free_symbols, own_writes, statements, writes
from ..passes.dce import dead
from ..passes.dead_stores import overwritten
from ..passes.simplify import simplify

Body = tuple[Stmt, ...]
Steps = dict[int, Affine]
"""By how much scalars count on, by their ids."""
UPWARD = {"lt": 0, "le": 1}
"""Tests of a number and its bound, and how many more numbers hold than for less."""
MIRRORED = {"gt": "lt", "ge": "le", "lt": "gt", "le": "ge"}


def induced(program: Program) -> Program:
    """Return the program in which such numbers are found from the rounds of loops."""
    numbers = (n for n in program.locals if not n.rank and n.dtype is dtypes.int64)
    inside = [stmt for kernel in program.kernels for stmt in statements(kernel.body)]
    sizes = (extent for s in inside if isinstance(s, Alloc) for extent in s.node.shape)
    stays = frozenset(symbol for extent in sizes for symbol in extent.symbols())
    own, fresh, found = frozenset(node.id for node in numbers), fresh_for(program), list[int]()
    made = over_kernels(program, _Ranges(own, fresh, found).inside)
    while True:  # what is known of loops inside is known of those around them next
        more: list[int] = []
        walked = over_kernels(made, _Walk(own, stays, fresh, more).inside)
        if not more:
            return dead(overwritten(simplify(walked))) if found else program
        made, found = simplify(walked), [*found, *more]


@dataclass(slots=True)
class _Walk:
    """What is known where a statement stands."""

    own: frozenset[int]
    """Whole numbers that nobody else sees."""
    stays: frozenset[Symbol]
    """Symbols that shapes are made of."""
    fresh: Fresh
    found: list[int]
    """The numbers that were found from rounds."""
    values: dict[int, Affine] = field(default_factory=dict)
    """What scalars are."""
    names: dict[Symbol, Affine] = field(default_factory=dict)
    """What symbols are."""

    def inside(self, body: Body) -> Body:
        """Return statements inside of others, whose values end with them."""
        inner = replace(self, values=dict(self.values), names=dict(self.names))
        return tuple(made for stmt in body for made in inner.statement(stmt))

    def statement(self, stmt: Stmt) -> Body:
        """Return what takes the place of a statement."""
        if isinstance(stmt, While):
            self.forget(writes((stmt,)))
            return (with_bodies(stmt, tuple(map(self.inside, bodies(stmt)))),)
        stmt = rebuild_statement(stmt, Rewrite(self.expr, self.index))
        match stmt:
            case Let(symbol, value):
                place = _number(value)
                if place is not None and symbol not in self.stays:
                    self.names[symbol] = place
            case Store(access, value) if access.node.id in self.own:
                place = _number(value)
                self.forget((access.node,))
                if place is not None:
                    self.values[access.node.id] = place
            case For():
                return self.loop(stmt)
            case If():
                stmt = with_bodies(stmt, tuple(map(self.inside, bodies(stmt))))
                self.forget(writes((stmt,)))
            case _:
                self.forget(own_writes(stmt))
        return (stmt,)

    def expr(self, expr: Expr) -> Expr:
        """Return an expression with what is known in its place."""
        if isinstance(expr, Read) and not expr.index and expr.node.id in self.values:
            return Position(self.values[expr.node.id])
        new = rebuild(expr, self.expr, self.index)
        place = _number(new) if isinstance(new, Apply) else None
        return new if place is None else Position(place)

    def index(self, index: Affine) -> Affine:
        """Return an index with what is known in its place."""
        return substitute(index, self.names)

    def forget(self, nodes: Iterable[Node]) -> None:
        """Forget what scalars are."""
        for node in nodes:
            self.values.pop(node.id, None)

    def loop(self, loop: For) -> Body:
        """Return a loop whose rounds find what they would have counted to, what it needs before,
        and what it has counted to in the end."""
        written = {node.id: node for node in writes((loop,))}
        before = {number: self.values.get(number) for number in written}
        self.forget(written.values())
        steps = self.steps(loop) if loop.step in (1, -1) else {}
        lets: list[Stmt] = []
        starts: dict[int, Affine] = {}
        for number in steps:
            start = before[number]
            if start is None:
                symbol = self.fresh.symbol(written[number].label)
                lets.append(Let(symbol, Read(written[number], ())))
                start = var(symbol)
            starts[number] = start
        here = (var(loop.symbol) - loop.lo) * loop.step
        inner = replace(self, values=dict(self.values), names=dict(self.names))
        inner.values |= {n: starts[n] + multiply(by, here) for n, by in steps.items()}
        body = tuple(made for stmt in loop.body for made in inner.statement(stmt))
        count = trips(loop)
        rounds = maximum(const(0), rounds_of(loop)) if count is None else const(count)
        ends: list[Stmt] = []
        for number, by in steps.items():
            self.found.append(number)
            place, total = Access(written[number], ()), Position(multiply(by, rounds))
            if before[number] is not None:
                self.values[number] = starts[number] + total.index
                total = Position(self.values[number])
                ends.append(Store(place, total))
            else:
                old = Read(place.node, ())
                ends.append(Store(place, Apply(OPS["add"], (old, total), dtypes.int64)))
        kept = map_statements(body, lambda s: () if _counts(s, steps) else (s,))
        return (*lets, replace(loop, body=kept), *ends)

    def steps(self, loop: For) -> Steps:
        """Return by how much each round of a loop counts scalars on, where that is always so."""
        out: Steps = {}
        others: set[int] = set()
        if ends_early(loop.body):
            return out
        bound = {symbol for stmt in statements((loop,)) for symbol in binds(stmt)}
        for stmt in loop.body:
            theirs = {node.id for node in writes((stmt,))} & self.own
            steps: Steps = {}
            if isinstance(stmt, For):
                count = trips(stmt)
                steps = (
                    {} if count is None else {n: by * count for n, by in self.steps(stmt).items()}
                )
            elif (by := self.by(stmt)) is not None:
                steps = dict.fromkeys(theirs, by)
            for number in theirs:
                if number not in steps or steps[number].symbols() & bound:
                    others.add(number)
                else:
                    out[number] = out.get(number, const(0)) + steps[number]
        return {number: by for number, by in out.items() if number not in others}

    def by(self, stmt: Stmt) -> Affine | None:
        """Return by how much a statement counts a scalar on, None where it does something else."""
        found = _by(stmt)
        place = None if found is None else _number(self.expr(found[0]))
        return None if found is None or place is None else place * found[1]


# ----------------------------------------------------------------------- loops until a bound


@dataclass(frozen=True, slots=True)
class _Ranges:
    """Makes loops over ranges of loops that count on until a bound."""

    own: frozenset[int]
    fresh: Fresh
    found: list[int]

    def inside(self, body: Body) -> Body:
        """Return statements with such loops, which still count."""
        return tuple(made for stmt in body for made in self.statement(stmt))

    def statement(self, stmt: Stmt) -> Body:
        """Return what takes the place of a statement."""
        stmt = with_bodies(stmt, tuple(map(self.inside, bodies(stmt))))
        found = _until(stmt, self.own) if isinstance(stmt, While) else None
        return (stmt,) if found is None else self.counted(found)

    def counted(self, what: _Until) -> Body:
        """Return a loop that counts as a range; itself where it does not end so."""
        match what.by:
            case Const(int() as number):
                return self.by_number(what, number * what.sign)
            case _:
                return self.by_data(what)

    def by_number(self, what: _Until, by: int) -> Body:
        """Return a loop that counts by a number."""
        if not by or (by > 0) != (what.name in UPWARD):
            return (what.loop,)
        lets, start, stop = self.ends(what)
        gap, name = (stop - start, what.name) if by > 0 else (start - stop, MIRRORED[what.name])
        rounds = floordiv(gap + (UPWARD[name] + abs(by) - 1), const(abs(by)))
        return (*lets, self.over(what, rounds, what.loop.body))

    def by_data(self, what: _Until) -> Body:
        """Return a loop that counts by what data says, and beside it what it was."""
        lets, start, stop = self.ends(what)
        step = self.named(what.by, "step", lets)
        rounds = floordiv(stop - start + UPWARD[what.name] + step - 1, step)
        more = Apply(OPS["add"], (Read(what.node, ()), Position(step)), dtypes.int64)
        last = Store(Access(what.node, ()), more, what.loop.span)
        body = tuple(last if stmt is what.last else stmt for stmt in what.loop.body)
        made = self.over(what, rounds, body)
        names = {s: self.fresh.symbol(s.name) for one in statements(body) for s in binds(one)}
        is_up = Apply(OPS["ge"], (Position(step), Position(const(1))), dtypes.bool_)
        return (*lets, If(is_up, rename((made,), names, {}), (what.loop,), what.loop.span))

    def ends(self, what: _Until) -> tuple[list[Stmt], Affine, Affine]:
        """Return what names the first number and the bound of a loop, and these."""
        self.found.append(what.node.id)
        lets: list[Stmt] = []
        start = self.named(Read(what.node, ()), what.node.label, lets)
        return lets, start, self.named(what.bound, "stop", lets)

    def named(self, value: Expr, label: str, lets: list[Stmt]) -> Affine:
        """Return the name of a value."""
        symbol = self.fresh.symbol(label)
        lets.append(Let(symbol, value))
        return var(symbol)

    def over(self, what: _Until, rounds: Affine, body: Body) -> For:
        """Return the loop over so many rounds."""
        symbol = self.fresh.symbol(what.node.label)
        return For(symbol, const(0), rounds, 1, body, span=what.loop.span)


@dataclass(frozen=True, slots=True)
class _Until:
    """A loop that counts on until a bound."""

    loop: While
    node: Node
    name: str
    """The test that holds of the number and the bound."""
    bound: Expr
    last: Stmt
    by: Expr
    sign: int


def _until(loop: While, own: frozenset[int]) -> _Until | None:
    """Return how a loop counts, None where it does more, or ends in another way."""
    plain = [stmt for stmt in loop.body if not isinstance(stmt, Comment)]
    told = all(isinstance(stmt, Comment) for stmt in loop.prelude)
    if not told or not plain or ends_early(loop.body) or not isinstance(loop.test, Apply):
        return None
    last, name = plain[-1], loop.test.op.name
    written = {node.id: node for node in writes(loop.body)}
    times = [node.id for stmt in statements(loop.body) for node in own_writes(stmt)]
    how = _by(last)
    if name not in MIRRORED or how is None or not isinstance(last, Store | Update):
        return None
    (by, sign), node, (one, other) = how, last.access.node, loop.test.args
    if other == Read(node, ()):
        one, other, name = other, one, MIRRORED[name]
    bound = {symbol for stmt in statements(loop.body) for symbol in binds(stmt)}
    for value in (by, other):
        if free_symbols(value) & bound or any(read.node.id in written for read in reads(value)):
            return None
    counts = one == Read(node, ()) and node.id in own and times.count(node.id) == 1
    if not counts or other.dtype is not dtypes.int64 or by.dtype is not dtypes.int64:
        return None
    if not isinstance(by, Const):
        scalars = {number for number, one in written.items() if not one.rank}
        if sign < 0 or name not in UPWARD or scalars != {node.id}:
            return None
    return _Until(loop, node, name, other, last, by, sign)


def _by(stmt: Stmt) -> tuple[Expr, int] | None:
    """Return what a statement adds to a scalar, and the sign of that, None where it does something
    else."""
    match stmt:
        case Store(Access(node, ()), Apply(op, (Read() as old, value))) if (
            op.name in ("add", "sub") and old.node == node
        ):
            return value, 1 if op.name == "add" else -1
        case Update(Access(_, ()), op, value, None) if op.name == "add":
            return value, 1
        case _:
            return None


def _counts(stmt: Stmt, steps: Steps) -> bool:
    """Whether a statement changes nothing but a number that is found from rounds."""
    return isinstance(stmt, Store | Update) and stmt.access.node.id in steps


def _number(value: Expr) -> Affine | None:
    """Return a whole number of 64 bits as an index expression, None where it reads anything."""
    match value:
        case Apply(op, (one, other), dtype) if dtype is dtypes.int64 and op.name in ("add", "sub"):
            left, right = _number(one), _number(other)
            if left is None or right is None:
                return None
            return left + right if op.name == "add" else left - right
        case _:
            return as_index(value)
