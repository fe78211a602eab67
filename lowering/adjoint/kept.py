"""The values of the forward statements that the adjoint statements read again, and where they are.

A value that nothing overwrites later is read where it is. Any other is kept: its array is copied
before the statement that read it, into an array with an axis for each sequential loop around.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import count
from operator import is_

from ...base.dataclass import dataclass
from ...base.diagnostic import NOWHERE, Span
from ..ir.assignments import (
    Access,
    Alloc,
    Assign,
    For,
    Permute,
    Procedure,
    Statement,
    While,
)
from ..ir.dtypes import DType
from ..ir.expressions import Cast, Const, Domain, Dynamic, Expr, Index, Read, Select, rebuild, walk
from ..ir.indexing import (
    Affine,
    Quasi,
    Range,
    Symbol,
    const,
    floordiv,
    maximum,
    minimum,
    substitute,
    var,
)
from ..ir.node import Node
from ..ir.rewrite import substitute_expr
from ..ir.walk import binds, bodies, direct_writes, expressions_of, free_symbols, statements
from .rules import NotDifferentiable

Loops = tuple[For | While, ...]
Tests = tuple[tuple[Expr, bool], ...]
"""Tests of selects, and which side of each is meant."""


class UnknownSize(NotDifferentiable):
    """What is kept has a size that is bound inside of a loop, by symbols."""

    def __init__(self, symbols: Collection[Symbol], what: str, span: Span) -> None:
        super().__init__(f"{what}, whose size is known only inside a loop", span)
        self.symbols = frozenset(symbols)


@dataclass(slots=True)
class Names:
    """New nodes and symbols of a procedure."""

    node: int
    serial: int
    nodes: list[Node] = field(default_factory=list)

    @classmethod
    def above(cls, procedure: Procedure) -> Names:
        """Return names that occur nowhere in a procedure."""
        nodes = [p.node for p in procedure.parameters]
        ids = [n.id for n in (*nodes, *procedure.locals, *procedure.results)]
        symbols = [s.serial for stmt in statements(procedure.body) for s in binds(stmt)]
        symbols += [s.serial for n in nodes for e in n.shape for s in e.symbols()]
        return cls(max(ids, default=0), max(symbols, default=0))

    def array(self, label: str, shape: Sequence[Affine], dtype: DType) -> Node:
        """Return a new local."""
        self.node += 1
        node = Node(self.node, label, tuple(shape), dtype)
        self.nodes.append(node)
        return node

    def symbol(self, name: str) -> Symbol:
        """Return a new symbol."""
        self.serial += 1
        return Symbol(name, self.serial)

    def axes(self, shape: Sequence[Affine]) -> tuple[Range, ...]:
        """Return new symbols over the axes of an array."""
        return tuple(
            Range(self.symbol("ijklmn"[axis % 6]), const(0), size)
            for axis, size in enumerate(shape)
        )

    def copied(
        self,
        target: Node,
        source: Node,
        at: tuple[Affine, ...] = (),
        from_: tuple[Affine, ...] = (),
        span: Span = NOWHERE,
    ) -> Assign:
        """Return the assignment of an array to another one of that shape, in the other's type.

        `at` and `from_` are the first subscripts of the target and of the source.
        """
        ranges = self.axes(target.shape if from_ else source.shape)
        axes = tuple(var(r.symbol) for r in ranges)
        value: Expr = Read(source, (*from_, *axes))
        if source.dtype != target.dtype:
            value = Cast(value, target.dtype)
        return Assign(Access(target, (*at, *axes)), None, False, value, Domain(ranges), span=span)

    def filled(self, target: Node, value: Expr) -> Assign:
        """Return the assignment of a number to all elements of an array."""
        ranges = self.axes(target.shape)
        index = tuple(var(r.symbol) for r in ranges)
        return Assign(Access(target, index), None, False, value, Domain(ranges))


@dataclass(frozen=True, slots=True)
class Place:
    """Where a statement is: its number in program order, and the loops around it."""

    number: int
    loops: Loops
    lists: tuple[int, ...] = ()
    """The lists of statements that it is in, numbered, outermost first."""


def places(body: Sequence[Statement]) -> dict[int, Place]:
    """Return the places of all statements of a body, by the `id` of each."""
    found: dict[int, Place] = {}
    numbers = count()

    def visit(stmts: Sequence[Statement], loops: Loops, lists: tuple[int, ...]) -> None:
        lists = (*lists, next(numbers))
        for stmt in stmts:
            found[id(stmt)] = Place(len(found), loops, lists)
            inner = (*loops, stmt) if isinstance(stmt, For | While) else loops
            for nested in bodies(stmt):
                visit(nested, inner, lists)

    visit(body, (), ())
    return found


def writes(body: Sequence[Statement], at: Mapping[int, Place]) -> dict[int, list[Place]]:
    """Return where each node is written, by its id."""
    found: dict[int, list[Place]] = {}
    for stmt in statements(body):
        nodes = [stmt.node] if isinstance(stmt, Alloc) else list(direct_writes(stmt))
        if isinstance(stmt, Permute):
            nodes += stmt.nodes
        for node in nodes:
            found.setdefault(node.id, []).append(at[id(stmt)])
    return found


@dataclass(slots=True)
class Kept:
    """What is kept: arrays by node and statement, and the statements that fill them."""

    names: Names
    places: Mapping[int, Place]
    written: Mapping[int, list[Place]]
    limits: Mapping[Symbol, tuple[Affine, Affine]] = field(default_factory=dict)
    """The least and the largest values of integers that are bound inside of loops."""
    created_late: Collection[int] = ()
    """The arrays, by id, that exist on one side of a test alone: their sizes are known only there.
    Adjoint statements cannot read these themselves."""
    arrays: dict[tuple[int, int], Node] = field(default_factory=dict)
    values: dict[tuple[Read, int, Tests], Node] = field(default_factory=dict)
    """The arrays that keep single values of a statement, by read, statement and tests."""
    kept_at: dict[Node | Read, list[tuple[Place, Tests, Node]]] = field(default_factory=dict)
    """Where arrays and single values are kept, under which tests, and in which arrays."""
    allocations: list[Alloc] = field(default_factory=list)
    """Those of run-time shape, which have to be allocated before the outermost loop."""

    def is_stable(self, node: Node, place: Place) -> bool:
        """Whether nothing writes a node from a statement on, and it still exists at the end."""
        return node.id not in self.created_late and all(
            write.number < place.number and not any(loop in place.loops for loop in write.loops)
            for write in self.written.get(node.id, ())
        )

    def reads(
        self, expr: Expr, stmt: Statement, before: list[Statement], tests: Tests = ()
    ) -> Expr:
        """Return an expression with the values that its reads had at a statement.

        It is evaluated where `tests` hold, or do not; `before` receives the statements that keep
        them.
        """
        return self._changed(expr, stmt, before, tests)

    def _changed(self, expr: Expr, stmt: Statement, before: list[Statement], tests: Tests) -> Expr:
        """Return an expression evaluated where `tests` hold, or do not."""
        if isinstance(expr, Select):
            test = self._changed(expr.test, stmt, before, tests)
            yes = self._changed(expr.yes, stmt, before, (*tests, (expr.test, True)))
            no = self._changed(expr.no, stmt, before, (*tests, (expr.test, False)))
            same = test is expr.test and yes is expr.yes and no is expr.no
            return expr if same else Select(test, yes, no)
        place = self.places[id(stmt)]
        if isinstance(expr, Read) and not self.is_stable(expr.node, place):
            points = self._points(expr, stmt, place, tests)
            if points is not None:
                return self._point(expr, points, place, before, tests, _span(stmt))
            kept, iteration = self.array(expr.node, place, before, _span(stmt))
            index = self.index(expr.index, stmt, before, tests)
            return Read(kept, (*iteration, *index), expr.span)
        return rebuild(
            expr, lambda part: self._changed(part, stmt, before, tests), lambda index: index
        )

    def result(self, read: Read, stmt: Assign, after: list[Statement]) -> Expr:
        """Return a read with the value that a statement gave it; its subscripts are affine.

        `after` receives the statement that keeps it.
        """
        place = self.places[id(stmt)]
        own = replace(place, number=place.number + 1)
        if self.is_stable(read.node, own):
            return read
        own = replace(place, number=-1 - place.number)  # beside what is kept before the statement
        points = self._points(read, replace(stmt, reduced=Domain()), place, ())
        if points is not None:
            return self._point(read, points, own, after, (), stmt.span)
        kept, iteration = self.array(read.node, own, after, stmt.span)
        return Read(kept, (*iteration, *read.index), read.span)

    def _points(
        self, read: Read, stmt: Statement, place: Place, tests: Tests
    ) -> tuple[Range, ...] | None:
        """Return the ranges for whose points the value of a read is kept, None where the whole
        array is smaller than the values of all reads of it."""
        if not isinstance(stmt, Assign):
            return ()
        ranges = (*stmt.free.ranges, *stmt.reduced.ranges)
        if ranges and not (stmt.free.where is None and stmt.reduced.where is None):
            return None
        bound = {r.symbol for r in ranges}
        if any((r.lo.symbols() | r.hi.symbols()) & bound for r in ranges):
            return None
        same = {
            part for expr in expressions_of(stmt) for part in walk(expr)
            if isinstance(part, Read) and part.node == read.node
        }  # fmt: skip
        total = 0
        for part in same:
            inside = _ranges_of(part, ranges)
            sizes = [self.bounded(r.hi - r.lo, place.loops).constant for r in inside]
            if None in sizes:
                return None
            total += math.prod(size for size in sizes if size is not None)
        whole = read.node.static_shape
        if whole is not None and total > math.prod(whole):
            return None
        used = free_symbols(read).union(*(free_symbols(test) for test, _ in tests))
        return tuple(r for r in ranges if r.symbol in used)

    def _point(
        self,
        read: Read,
        points: tuple[Range, ...],
        place: Place,
        before: list[Statement],
        tests: Tests,
        span: Span,
    ) -> Read:
        """Return the read of a value that is kept for points of a statement, at `span`."""
        iteration = tuple(_iteration(loop) for loop in place.loops)
        at = (*iteration, *(var(r.symbol) - r.lo for r in points))
        key = read, place.number, tests
        if not points and (same := self._elsewhere(read, place, tests)) is not None:
            self.values[key] = same
        if key not in self.values:
            sizes = (self.bounded(r.hi - r.lo, place.loops) for r in points)
            shape = (*self._trip_counts(place.loops), *sizes)
            kept = self.names.array(f"{read.node.label}_kept", shape, read.dtype)
            self.values[key] = kept
            if not points:
                self.kept_at.setdefault(read, []).append((place, tests, kept))
            if kept.static_shape is None:
                self.allocations.append(Alloc(kept))
            value: Expr = read
            if tests and read.dtype.compute != read.dtype:
                value = Cast(read, read.dtype.compute)  # 16-bit floats are not computed with
            for test, wanted in reversed(tests):
                none = Const(False if value.dtype.kind == "b" else 0, value.dtype)
                value = Select(test, value, none) if wanted else Select(test, none, value)
            value = value if value.dtype == read.dtype else Cast(value, read.dtype)
            from_zero = {r.symbol: var(r.symbol) + r.lo for r in points}
            over = tuple(Range(r.symbol, const(0), r.hi - r.lo) for r in points)
            target = Access(kept, (*iteration, *(var(r.symbol) for r in points)))
            value = substitute_expr(value, from_zero)
            before.append(Assign(target, None, False, value, Domain(over), span=span))
        return Read(self.values[key], at, read.span)

    def _elsewhere(self, what: Node | Read, place: Place, tests: Tests) -> Node | None:
        """Return the array that keeps the same value at another place, which every iteration
        passes that passes this one; None where there is none."""
        nodes = [what] if isinstance(what, Node) else [
            part.node for part in walk(what) if isinstance(part, Read)
        ]  # fmt: skip
        written = [w.number for node in nodes for w in self.written.get(node.id, ())]
        for other, under, kept in self.kept_at.get(what, ()):
            same_loops = len(other.loops) == len(place.loops)
            same_loops = same_loops and all(map(is_, other.loops, place.loops))
            if min(other.number, place.number) < 0 or under not in ((), tests) or not same_loops:
                continue
            first, last = sorted((other.number, place.number))
            depth = len(other.lists)
            lists = place.lists if first < other.number else place.lists[:depth]
            if lists == other.lists and not any(first <= number < last for number in written):
                return kept
        return None

    def index(
        self, index: tuple[Index, ...], stmt: Statement, before: list[Statement], tests: Tests = ()
    ) -> tuple[Index, ...]:
        """Return subscripts with the values that they had at a statement."""
        return tuple(
            Dynamic(self._changed(at.value, stmt, before, tests)) if isinstance(at, Dynamic) else at
            for at in index
        )

    def array(
        self, node: Node, place: Place, before: list[Statement], span: Span = NOWHERE
    ) -> tuple[Node, tuple[Affine, ...]]:
        """Return the array that keeps a node, and the subscripts of the iteration in it; `span` is
        what reads it."""
        iteration = tuple(_iteration(loop) for loop in place.loops)
        key = node.id, place.number
        if (same := self._elsewhere(node, place, ())) is not None:
            self.arrays[key] = same
        if key not in self.arrays:
            shape = (*self._trip_counts(place.loops), *self.sizes(node, place))
            kept = self.names.array(f"{node.label}_kept", shape, node.dtype)
            self.arrays[key] = kept
            self.kept_at.setdefault(node, []).append((place, (), kept))
            if kept.static_shape is None:
                self.allocations.append(Alloc(kept))
            before.append(self.names.copied(kept, node, at=iteration, span=span))
        return self.arrays[key], iteration

    def whole(
        self, node: Node, stmt: Statement, before: list[Statement]
    ) -> tuple[Node, tuple[Affine, ...]]:
        """Return the array that a node was at a statement, and its first subscripts in it."""
        place = self.places[id(stmt)]
        return (node, ()) if self.is_stable(node, place) else self.array(node, place, before)

    def whole_after(
        self, node: Node, stmt: Statement, after: list[Statement]
    ) -> tuple[Node, tuple[Affine, ...]]:
        """Return the array that a node was after a statement and what is nested in it."""
        place = self.places[id(stmt)]
        last = max(self.places[id(inner)].number for inner in statements((stmt,)))
        if self.is_stable(node, replace(place, number=last + 1)):
            return node, ()
        return self.array(node, replace(place, number=-1 - place.number), after)

    def sizes(self, node: Node, place: Place) -> Iterator[Affine]:
        """Yield the largest sizes of an array over all iterations of the loops around."""
        return (self.bounded(extent, place.loops) for extent in node.shape)

    def _trip_counts(self, loops: Loops) -> Iterator[Affine]:
        """Yield the largest trip count of each loop over all iterations of those around it."""
        for at, loop in enumerate(loops):
            assert isinstance(loop, For), "a `while` is counted before"
            yield maximum(self.bounded(trip_count(loop), loops[:at]), const(0))

    def bounded(self, index: Affine, loops: Loops) -> Affine:
        """Return an upper bound of an index expression over the iterations of loops."""
        for loop in reversed(loops):
            if isinstance(loop, For):
                index = _largest(index, loop)
        for symbol, ends in self.limits.items():
            bound = upper_bound(index, symbol, *ends)
            if bound is None:
                text = "a size that depends on another one in no linear way"
                raise NotDifferentiable(text, loops[0].span if loops else NOWHERE)
            index = bound
        return index


def _span(stmt: Statement) -> Span:
    span: Span = getattr(stmt, "span", NOWHERE)
    return span


def _iteration(loop: For | While) -> Affine:
    """Return the number of an iteration, from zero."""
    if isinstance(loop, While):
        raise NotDifferentiable("a `while` of an unknown number of iterations", loop.span)
    return floordiv(var(loop.symbol) - loop.lo, const(loop.step))


def trip_count(loop: For) -> Affine:
    """Return the number of iterations of a loop."""
    if loop.step == 1:
        return loop.hi - loop.lo
    toward = 1 if loop.step > 0 else -1
    return floordiv(loop.hi - loop.lo + (loop.step - toward), const(loop.step))


def _largest(count: Affine, outer: For) -> Affine:
    """Return an upper bound of an index expression over the iterations of a loop."""
    last = outer.lo + (trip_count(outer) - 1) * outer.step
    ends = (outer.lo, last) if outer.step > 0 else (last, outer.lo)
    bound = upper_bound(count, outer.symbol, *ends)
    if bound is None:
        text = "a loop whose length depends on another loop in no linear way"
        raise NotDifferentiable(text, outer.span)
    return bound


def upper_bound(index: Affine, symbol: Symbol, first: Affine, last: Affine) -> Affine | None:
    """Return an upper bound of an index expression for `first <= symbol <= last`; None where none
    is found."""
    if symbol not in index.symbols():
        return index
    for atom, factor in index.terms:
        if isinstance(atom, Quasi) and symbol in Affine(((atom, 1),)).symbols():
            rest = index - Affine(((atom, factor),))
            sides = [
                upper_bound(rest + side * factor, symbol, first, last)
                for side in (atom.left, atom.right)
            ]
            found = [side for side in sides if side is not None]
            match atom.op, factor:
                case ("min", 1) | ("max", -1):
                    return minimum(*found) if len(found) == 2 else found[0] if found else None
                case ("min", -1) | ("max", 1):
                    return maximum(*found) if len(found) == 2 else None
                case "floordiv", _ if factor > 0 and atom.right.constant:
                    sign = 1 if atom.right.constant > 0 else -1
                    other = upper_bound(rest, symbol, first, last)
                    inner = upper_bound(atom.left * sign, symbol, first, last)
                    if other is None or inner is None:
                        return None
                    return other + floordiv(inner, atom.right * sign) * factor
                case _:
                    return None
    return substitute(index, {symbol: last if index.coefficient(symbol) > 0 else first})


def _ranges_of(read: Read, ranges: tuple[Range, ...]) -> tuple[Range, ...]:
    """Return the ranges whose symbols the subscripts of a read use."""
    used = free_symbols(read)
    return tuple(r for r in ranges if r.symbol in used)


def index_symbols(at: Index) -> frozenset[Symbol]:
    """Return the symbols that a subscript uses."""
    return free_symbols(at.value) if isinstance(at, Dynamic) else at.symbols()
