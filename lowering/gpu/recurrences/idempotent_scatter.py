"""Rounds that fill what is not filled yet, all with the same: they mark it, then it is filled.

    for e: if level[u[e]] == k and level[v[e]] < 0: level[v[e]] = k + 1
    becomes
    marks = 0
    for e: if level[u[e]] == k and level[v[e]] < 0: marks[v[e]] max= 1
    for c: if marks[c]: level[c] = k + 1

In whichever order rounds are done, the same elements are filled: where it is known, or is found
before, that `k + 1` is not less than zero and not `k`, and that `k` is not less than zero, no round
changes what another asks of elements other than that which both may fill. Needs rounds that do
nothing but to fill elements of one place, of which they ask, and to set flags.

>>> program, _ = optimize(lowered('''
... for k in range(5):
...     for e in range(len(u)):
...         if level[u[e]] == k and level[v[e]] < 0:
...             level[v[e]] = k + 1
... ''', level="i64[90]", u="i64[900]", v="i64[900]"), Target("cuda"))
>>> made = marks(program, facts_of(program), fresh_for(program))
>>> [type(stmt).__name__ for stmt in made.kernels[0].body[-1].body[-3:]]
['For', 'For', 'For']
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ....base.dataclass import dataclass
from ...analysis.conjunctions import every, parts_of
from ...analysis.dependence import is_left
from ...analysis.guarded_reads import negated
from ...analysis.involution import Round, round_of
from ...analysis.monotonic import growing
from ...analysis.parallel_band import Facts, around
from ...analysis.predicate_facts import SAFE, Values, is_never
from ...analysis.subscripts import ranges
from ...ir import dtypes
from ...ir.algebra import TRUE
from ...ir.assignments import Access, Alloc, Continue, Let, Permute, Print
from ...ir.expressions import (
    Apply,
    Const,
    Dynamic,
    Expr,
    Index,
    Position,
    Read,
    Select,
    reads,
    rebuild,
)
from ...ir.fresh import Fresh
from ...ir.indexing import Range, Symbol, const, var
from ...ir.loops import Check, Fill, For, If, Program, Stmt, Store, Update, While
from ...ir.node import Node
from ...ir.ops import OPS
from ...ir.rewrite import over_kernels, rename, with_bodies
from ...ir.walk import binds, bodies, own_reads, own_writes, statements, writes

Body = tuple[Stmt, ...]
ONE = Const(1, dtypes.int32)


def marks(program: Program, facts: Facts, fresh: Fresh) -> Program:
    """Return the program whose rounds mark what they fill, where that makes them independent."""

    least = {number: (fresh.symbol("n"), one) for number, one in growing(program).items()}
    values: Values = {number: Position(var(symbol)) for number, (symbol, _) in least.items()}
    counts = tuple(Range(symbol, const(one), const(SAFE)) for symbol, one in least.values())

    def body(stmts: Sequence[Stmt], outer: tuple[For, ...]) -> Body:
        return tuple(made for stmt in stmts for made in statement(stmt, outer))

    def statement(stmt: Stmt, outer: tuple[For, ...]) -> Body:
        if isinstance(stmt, For):
            found = _filling(stmt, facts, values, (*counts, *ranges(outer)))
            if found is not None and fresh.fits(found.node.shape):
                return found.made(fresh)
            outer = (*outer, stmt)
        return (with_bodies(stmt, tuple(body(part, outer) for part in bodies(stmt))),)

    return over_kernels(program, lambda stmts: body(stmts, ()))


@dataclass(frozen=True, slots=True)
class _Filling:
    """A loop that fills elements, all of them with the same."""

    loop: For
    list: Body
    """Where it does so."""
    stores: tuple[Store, ...]
    flags: tuple[Store, ...]
    never: tuple[Expr, ...]
    """What must not hold, as far as that is not known."""

    @property
    def node(self) -> Node:
        """The array that is filled, of some that are alike."""
        return self.stores[0].access.node

    def made(self, fresh: Fresh) -> Body:
        """Return what marks elements, and what fills those that are marked."""
        node = self.node
        marked = fresh.array(f"{node.label}_marks", node.shape, dtypes.int32, "marks")
        mark = Update(Access(marked, self.stores[0].access.index), OPS["max"], ONE)
        once = For(fresh.symbol("once"), const(0), const(1), 1, (mark,), "atomic", self.loop.span)
        gone = {id(one) for one in (*self.stores, *self.flags)}
        rest = tuple(stmt for stmt in self.list if id(stmt) not in gone)
        looks = replace(self.loop, body=_with(self.loop.body, self.list, (*rest, once)))
        if self.never:
            copies = {n.id: fresh.like(n) for n in writes((looks,)) if n != marked}
            names = {s: fresh.symbol(s.name) for one in statements((looks,)) for s in binds(one)}
            (looks,) = rename((looks,), names, copies)
        axes = [fresh.symbol("at") for _ in node.shape]
        at = tuple(map(var, axes))
        fills = (replace(one, access=Access(one.access.node, at)) for one in self.stores)
        is_one = Apply(OPS["eq"], (Read(marked, at), ONE), dtypes.bool_)
        nothing = Store(Access(marked, at), Const(0, dtypes.int32))
        filled = self.each(axes, node, If(is_one, (*fills, *self.flags)))
        made: Body = (*self.each(axes, node, nothing), looks, *filled)
        if not self.never:
            return made
        return (If(every([negated(one) for one in self.never]), made, (self.loop,)),)

    def each(self, axes: Sequence[Symbol], node: Node, stmt: Stmt) -> Body:
        """Return the loops over all elements."""
        loops = [
            For(symbol, const(0), size, 1, (), span=self.loop.span)
            for symbol, size in zip(axes, node.shape, strict=True)
        ]
        return around(loops, (stmt,))


def _with(body: Body, old: Body, new: Body) -> Body:
    """Return statements with another list in the place of one in them."""
    if body is old:
        return new
    return tuple(
        with_bodies(stmt, tuple(_with(part, old, new) for part in bodies(stmt))) for stmt in body
    )


# ---------------------------------------------------------------- what may be marked


def _filling(loop: For, facts: Facts, values: Values, outer: tuple[Range, ...]) -> _Filling | None:
    """Return what a loop fills, None where its rounds need each other, or do not."""
    inside = statements(loop.body)
    own = facts.private(loop)
    halts = Print, Permute, Alloc, While, Continue, Fill
    effects = [one for one in inside if any(node.id not in own for node in own_writes(one))]
    if loop.kind != "serial" or is_left(loop.body) or not effects:
        return None
    if any(isinstance(stmt, halts) for stmt in inside) or facts.is_free(loop, own):
        return None
    found = next(((part, path) for part, path in _lists(loop.body, ()) if effects[0] in part), None)
    if found is None or not all(any(one is stmt for stmt in found[0]) for one in effects):
        return None
    stores = [one for one in effects if isinstance(one, Store)]
    if len(stores) < len(effects):
        return None
    made = _Asking(loop, round_of(loop), found[1], own).filling(found[0], stores)
    if made is None:
        return None
    return replace(made, never=tuple(e for e in made.never if not is_never(e, values, outer)))


def _lists(body: Body, path: tuple[Stmt, ...]) -> Iterator[tuple[Body, tuple[Stmt, ...]]]:
    """Yield the lists inside of statements, with what is around them."""
    for stmt in body:
        for part in bodies(stmt):
            yield part, (*path, stmt)
            yield from _lists(part, (*path, stmt))


@dataclass(frozen=True, slots=True)
class _Asking:
    """What the rounds of a loop ask before they fill anything."""

    loop: For
    round: Round
    path: tuple[Stmt, ...]
    own: frozenset[int]

    def filling(self, part: Body, stores: Sequence[Store]) -> _Filling | None:
        """Return what is filled in a list, None where rounds need each other for it."""
        arrays = tuple(one for one in stores if one.access.node.rank)
        flags = tuple(one for one in stores if not one.access.node.rank)
        nodes = [one.access.node for one in arrays]
        places = {self.place(one.access.index) for one in arrays}
        plain = all(self.round.stays(one.value) for one in stores)
        sizes = {node.shape for node in nodes}
        if len(places) != 1 or not plain or len(set(nodes)) < len(nodes) or len(sizes) > 1:
            return None
        (place,) = places
        written = writes((self.loop,))
        if any(read.node in written for one in place for read in reads(one)):
            return None
        values = {one.access.node: one.value for one in arrays}
        if self.uses({one.access.node for one in flags}) or not self.is_all(values, place):
            return None
        never = self.never(values, place)
        if never is None or not all(map(self.round.stays, never)):
            return None
        return _Filling(self.loop, part, arrays, flags, tuple(never))

    def place(self, index: tuple[Index, ...]) -> tuple[Expr, ...]:
        """Return where an element is, as far as it is known."""
        return tuple(
            self.round.known(at.value if isinstance(at, Dynamic) else Position(at)) for at in index
        )

    def parts(self) -> list[Expr]:
        """Return what is asked, part by part; nothing where it is asked for something else."""
        tests = [stmt for stmt in self.path if isinstance(stmt, If)]
        lists = [stmt.body for stmt in self.path if isinstance(stmt, For)]
        if any(stmt.other for stmt in tests) or len(tests) + len(lists) < len(self.path):
            return []
        return [part for one in tests for part in parts_of(self.round.known(one.test))]

    def uses(self, nodes: set[Node]) -> bool:
        """Whether rounds ask for some nodes."""
        return any(node in nodes for stmt in statements(self.loop.body) for node in own_reads(stmt))

    def never(self, values: Mapping[Node, Expr], place: tuple[Expr, ...]) -> list[Expr] | None:
        """Return what must not hold of what is filled, and with what, None where that is not all
        that there is to it."""
        theirs: dict[Node, list[tuple[Expr, Read]]] = {node: [] for node in values}
        others: list[tuple[Expr, Read]] = []
        for part in self.parts():
            found = [read for read in reads(part) if read.node in values]
            if len(found) > 1:
                return None
            for read in found:
                is_here = self.place(read.index) == place
                (theirs[read.node] if is_here else others).append((part, read))
        asked = [
            _at(part, read, values[node]) for node, ones in theirs.items() for part, read in ones
        ]
        if not asked:
            return None
        out = [every(asked)]
        for part, read in others:
            number = self.number(part, read)
            if number is None or not theirs[read.node]:
                return None
            out.append(_at(part, read, values[read.node]))
            out.append(every([_at(one, other, number) for one, other in theirs[read.node]]))
        return out

    def number(self, part: Expr, read: Read) -> Expr | None:
        """Return the only whole number for which a test of an element holds, None where there are
        more."""
        match part:
            case Apply(op, (one, other)) if op.name == "eq" and read in (one, other):
                by = other if one == read else one
                whole = read.dtype.kind in "iu" and by.dtype is read.dtype
                return by if whole and self.round.stays(by) else None
            case _:
                return None

    def is_all(self, values: Mapping[Node, Expr], place: tuple[Expr, ...]) -> bool:
        """Whether rounds ask of what is filled nowhere else, and fail where it is asked of none
        but that place."""
        asked = {id(stmt) for stmt in self.path}
        below = False
        for stmt in statements(self.loop.body):
            below = below or (isinstance(stmt, If) and self.asks(stmt.test, values, place))
            if isinstance(stmt, Check):
                if not self.fails_alike(stmt, values, place, below):
                    return False
                continue
            uses = any(node in values for node in own_reads(stmt))
            is_known = isinstance(stmt, Store) and stmt.access.node.id in self.round.values
            if uses and id(stmt) not in asked and not is_known:
                return False
            if isinstance(stmt, If) and id(stmt) not in asked and self.asks(stmt.test, values, ()):
                return False
            if isinstance(stmt, Let) and self.asks(stmt.value, values, ()):
                return False
        return True

    def fails_alike(
        self, check: Check, values: Mapping[Node, Expr], place: tuple[Expr, ...], below: bool
    ) -> bool:
        """Whether a check fails in the same rounds whatever was filled before: or, where it is done
        as long as nothing was, needs only the place, so that it would have failed before."""
        parts = [one for one in self.parts() if self.asks(one, values, ())]
        parts += [one.args[0] for one in parts
                  if isinstance(one, Apply) and one.op.name == "logical_not"]  # fmt: skip

        def without(one: Expr) -> Expr:
            return TRUE if one in parts else rebuild(one, without, lambda index: index)

        tests = [self.round.known(one) for one in (check.test, *check.values)]
        rest = [without(one) for one in tests]
        if self.holds(check):
            return True
        if any(self.asks(one, values, ()) for one in rest):
            return False
        below = below or any(self.asks(one, values, place) for one in tests)
        return not below or all(self.is_of(one, place) for one in rest)

    def holds(self, check: Check) -> bool:
        """Whether a check asks again what one at the start of the round has asked, there under
        tests that hold here."""
        around = [s for s in self.path if any(one is check for one in statements((s,)))]
        tests = [s.test for s in around if isinstance(s, If)]
        known = [part for one in tests for part in parts_of(self.round.known(one))]
        for stmt in self.loop.body:
            if any(one is check for one in statements((stmt,))):
                break
            if isinstance(stmt, Check):
                test = self.round.known(stmt.test)
                if isinstance(test, Select) and test.no == TRUE and test.test in known:
                    test = test.yes
                if test == self.round.known(check.test):
                    return True
        return False

    def asks(self, expr: Expr, values: Mapping[Node, Expr], place: tuple[Expr, ...]) -> bool:
        """Whether an expression needs an element of what is filled: of a place, if there is one."""
        found = [read for read in reads(self.round.known(expr)) if read.node in values]
        return any(not place or self.place(read.index) == place for read in found)

    def is_of(self, expr: Expr, place: tuple[Expr, ...]) -> bool:
        """Whether an expression needs nothing but the place of an element."""

        def without(one: Expr) -> Expr:
            if one in place:
                return Const(0, dtypes.int64)
            return rebuild(one, without, lambda index: index)

        return self.round.stays(without(self.round.known(expr)))


def _at(part: Expr, read: Read, value: Expr) -> Expr:
    """Return a test of a value in the place of an element."""
    if part == read:
        return value
    return rebuild(part, lambda one: _at(one, read, value), lambda index: index)
