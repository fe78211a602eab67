"""Compute values where they are used, instead of storing them in arrays first.

Changes: a local array that one plain store fills, in loops of its own, vanishes; wherever it was
read stands the stored expression, at the point of those loops that computed the element. That point
is found by turning the index of the store round: shifted, strided, transposed and diagonal reads
work alike. What would cost more when it is computed again stays an array.

Needs: nothing. Guarantees: not a bit changes. An expression keeps the type of the array, so what
was rounded by the store is rounded now by the cast that was stored; every read surely is of an
element that was written; nothing that the expression reads is written in between; no expression
grows beyond `MAX_SIZE` parts.

>>> show(virtualize, '''
... u[i] = x[i] * 0.5
... y[1:] = u[1:] - u[:-1]
... ''', y="f32[8]", x="f32[8]")
for i in 0..7:
    y[i + 1] = x[i + 1] * 0.5 - x[i] * 0.5
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, cast

from ...base.dataclass import dataclass
from ...base.lazy_import import Later
from ..analysis.accesses import Accesses, Route, Site, accesses, place_in
from ..analysis.effects import summary
from ..analysis.expression_cost import CHEAP, READ, STORE, cost, rounds
from ..analysis.guarded_reads import nodes_of
from ..analysis.self_dependence import is_injective
from ..analysis.subscripts import are_apart, ranges
from ..ir.assignments import Alloc, Permute, Print
from ..ir.decision import Decided, Decision, Reason
from ..ir.expressions import Dynamic, Expr, Index, Read, rebuild, walk
from ..ir.indexing import Affine, Range, Symbol, substitute, var
from ..ir.loops import Comment, Kernel, Program, Stmt, Store, While
from ..ir.memory_mode import Mode, admits_virtual
from ..ir.node import Node
from ..ir.rewrite import Rewrite, rewrite, with_bodies
from ..ir.walk import bodies, expressions_of, reads, statements

if TYPE_CHECKING:
    from ..analysis import definitions
else:  # what few programs need
    definitions = Later("..analysis.definitions", __package__)

MAX_SIZE = 64
"""How many parts an expression may have after inlining."""


class Virtual(Reason):
    """Why a node has no array."""

    ONCE = "each element is used once, so it is computed where it is used"
    CHEAP = "computing it where it is used costs less than keeping it"
    ASKED = "it was asked to be virtual"


class Stored(Reason):
    """Why a node could not, or should not, do without an array."""

    ASKED = "it was asked to have an array"
    MOVED = "it trades places with another array"
    PRINTED = "it is printed"
    SEVERAL = "more than one statement writes it"
    REDUCED = "it is accumulated, not computed in one go"
    ELSEWHERE = "it is read before, or outside of, the statements after the one that computes it"
    CHANGED = "what it is computed from is written before its last use"
    PLACE = "the point at which a read element was computed cannot be told from its index"
    UNWRITTEN = "a read may be of an element that was never computed"
    COSTLY = "computing it again at every use would cost more than the array"
    ALIVE = "computing it later would keep other arrays in its stead"
    SPREAD = "an array that reads it was inlined before, at other places than its own"
    LONG = f"an expression would grow beyond {MAX_SIZE} parts"


def virtualize(program: Program) -> Program:
    """Return the program with arrays inlined into their uses."""
    return virtualized(program).program


def virtualized(program: Program) -> Decided:
    """Return the program with arrays inlined into their uses, and why each was or was not."""
    decisions: list[Decision] = []
    kernels: list[Kernel] = []
    gone: set[int] = set()
    asked = {node.id: node.request.mode for node in program.locals if node.request is not None}
    for kernel in program.kernels:
        others = {n.id for k in program.kernels if k is not kernel for n in reads(k.body)}
        own = frozenset(n.id for n in program.locals if n.id not in others)
        work = _Inlining(accesses(kernel.body), own, _fixed(kernel.body), decisions, asked)
        kernels.append(replace(kernel, body=work.body(kernel.body, ())))
        gone |= work.gone.keys()
    kept = tuple(node for node in program.locals if node.id not in gone)
    return Decided(replace(program, locals=kept, kernels=tuple(kernels)), tuple(decisions))


def _fixed(body: Iterable[Stmt]) -> dict[int, Stored]:
    """Return the nodes that stay whatever they cost."""
    fixed: dict[int, Stored] = {}
    for stmt in statements(body):
        if isinstance(stmt, Permute):
            fixed |= {node.id: Stored.MOVED for node in (*stmt.nodes, *stmt.sources)}
        if isinstance(stmt, Print):
            fixed |= {node.id: Stored.PRINTED for e in expressions_of(stmt) for node in nodes_of(e)}
    return fixed


@dataclass(frozen=True, slots=True)
class _Made:
    """How a node is computed: the layers that store it, and where in their list they stand."""

    node: Node
    layers: tuple[definitions.Layer, ...]
    places: tuple[int, ...]
    values: dict[tuple[Index, ...], Expr]
    """What is read at each index, by the index."""

    @property
    def points(self) -> int:
        """How often a store runs; of sizes that are not known, about."""
        return max(1, sum(one.points for one in self.layers))

    @property
    def is_guarded(self) -> bool:
        """Whether some use has to ask which layer reaches its cell."""
        plain = max(cost(one.value) for one in self.layers)
        return any(cost(value) > plain for value in self.values.values())


@dataclass(slots=True)
class _Inlining:
    """The work on one kernel."""

    found: Accesses
    """Of the kernel as it was; it stays true of every node that is not decided yet, because a
    value that is inlined reads only nodes that were computed, and so decided, before it."""
    own: frozenset[int]
    fixed: dict[int, Stored]
    decisions: list[Decision]
    asked: Mapping[int, Mode]
    """The memory modes that were asked for, by node id."""
    decided: set[int] = field(default_factory=set)
    gone: dict[int, _Made] = field(default_factory=dict)
    writes: dict[int, tuple[list[Route], list[Site]]] = field(default_factory=dict)
    """The writes of a node in the order of the program, found when they are first asked for."""

    def body(self, body: tuple[Stmt, ...], route: Route) -> tuple[Stmt, ...]:
        """Return a list of statements with values inlined, then the lists inside of them."""
        current: list[Stmt | None] = list(body)
        open_ = self.own - self.decided
        makers: dict[Node, list[int]] = {}
        for at, stmt in enumerate(body):
            one = None if open_.isdisjoint(summary(stmt).writes) else definitions.layer(stmt)
            if one is not None:
                makers.setdefault(one.node, []).append(at)
        for node, places in makers.items():
            self.decided.add(node.id)
            layers = (definitions.layer(current[at]) for at in places)
            made = _Made(node, tuple(one for one in layers if one), tuple(places), {})
            self.decide(made, current, route)
        out: list[Stmt] = []
        for at, new in enumerate(current):
            if new is None or (isinstance(new, Alloc) and new.node.id in self.gone):
                continue
            lists = () if self.is_settled(new) else bodies(new)
            inner = tuple(self.body(one, (*route, (at, n))) for n, one in enumerate(lists))
            out.append(with_bodies(new, inner) if inner else new)
        return tuple(out)

    def is_settled(self, stmt: Stmt) -> bool:
        """Whether all that a statement writes was decided, and stays."""
        known = self.own & summary(stmt).writes
        return known <= self.decided and not any(number in self.gone for number in known)

    def decide(self, made: _Made, current: list[Stmt | None], route: Route) -> None:
        """Inline what a node is computed from, or note why not."""
        uses = [s for s in self.found.of(made.node) if s.reads]
        if not uses:
            return
        asked = self.asked.get(made.node.id)
        found = {place_in(site.route, route) for site in uses}
        places = sorted(place for place in found if place is not None)
        reason = (
            (Stored.ASKED if not admits_virtual(asked) else None)
            or (Stored.SPREAD if any(current[place] is None for place in places) else None)
            or self.fixed.get(made.node.id)
            or self.misplaced(made, uses, route)
            or self.unknown(made, uses, len(route))
            or self.changed(made, uses, route)
            or (Virtual.ASKED if asked is not None else None)
            or self.unwise(made, uses, current, len(route))
        )
        if isinstance(reason, Stored):
            self.decisions.append(Decision("stored", reason, made.node))
            return
        new = {place: _inlined(cast(Stmt, current[place]), made) for place in places}
        if any(_largest(stmt) > MAX_SIZE for stmt in new.values()):
            self.decisions.append(Decision("stored", Stored.LONG, made.node))
            return
        for place, stmt in new.items():
            current[place] = stmt
        for place in made.places:
            current[place] = None
        self.gone[made.node.id] = made
        self.decisions.append(Decision("virtual", reason, made.node))

    def misplaced(self, made: _Made, uses: list[Site], route: Route) -> Stored | None:
        """Return why what is stored is not all that the uses may read; None if it is."""
        whole = any(one.index is None for one in made.layers)
        written = [s for s in self.found.of(made.node) if s.writes]
        written = [s for s in written if whole or s.index is not None or s.kind != "write"]
        if any(site.kind == "update" for site in written):
            return Stored.REDUCED
        if len(written) > len(made.layers) or any(made.node in one.sources for one in made.layers):
            return Stored.SEVERAL
        last = made.places[-1]
        places = [place_in(s.route, route) for s in uses]
        if any(place is None or place <= last for place in places):
            return Stored.ELSEWHERE
        return None

    def unknown(self, made: _Made, uses: list[Site], depth: int) -> Stored | None:
        """Note what is read at each use, or return why that cannot be told."""
        starts = depth == 0 and made.node.static_shape is not None
        below = definitions.zero_of(made.node.dtype) if starts else None
        for site in uses:
            if site.index is None:
                return Stored.PLACE
            index = tuple(self.now_at(one) for one in site.index)
            known, tests = ranges(site.inside), tuple(map(self.now, site.tests))
            try:
                value = definitions.value_at(made.layers, index, known, tests, below)
                if made.values.setdefault(index, value) != value:
                    made.values[index] = definitions.value_at(made.layers, index, known, (), below)
            except definitions.Unplaced:
                return Stored.PLACE
            except definitions.Unwritten:
                return Stored.UNWRITTEN
        return None

    def changed(self, made: _Made, uses: list[Site], route: Route) -> Stored | None:
        """Return whether what the node is computed from is written before its last use."""
        depth = len(route)
        last = max(site.route[depth][0] for site in uses)
        for one, at in zip(made.layers, made.places, strict=True):
            for node in one.sources:
                for write in self.writes_behind(node, (*route, (at + 1, 0))):
                    if write.route[:depth] != route or write.route[depth][0] > last:
                        break  # they are in the order of the program
                    place = write.route[depth][0]
                    if place < last or not self.survives(made, write, uses, depth):
                        return Stored.CHANGED
        return None

    def writes_behind(self, node: Node, route: Route) -> Iterator[Site]:
        """Yield the writes of a node from a place of the program on."""
        if node.id not in self.writes:
            sites = [site for site in self.found.of(node) if site.writes]
            self.writes[node.id] = [site.route for site in sites], sites
        routes, sites = self.writes[node.id]
        return (sites[at] for at in range(bisect_left(routes, route), len(sites)))

    def unwise(
        self, made: _Made, uses: list[Site], current: list[Stmt | None], depth: int
    ) -> Stored | Virtual:
        """Return whether the value is worth computing at its uses, and why."""
        price = max(map(cost, made.values.values()))
        ratio = sum(rounds(s.inside[depth:]) for s in uses) / made.points
        at, last = made.places[-1], max(site.route[depth][0] for site in uses)
        read = frozenset[Node]().union(*map(nodes_of, made.values.values()))
        kept = [
            node for node in read
            if node.rank and node.id in self.own and not self.lives(node, last, depth)
        ]  # fmt: skip
        if price == 0:
            return Virtual.CHEAP
        if made.is_guarded:
            return Virtual.ONCE if _is_single(uses, depth) else Stored.COSTLY
        if ratio <= 1:
            between = (current[place] for place in range(at + 1, last))
            near = (isinstance(stmt, Comment | Store | Alloc | None) for stmt in between)
            return Virtual.ONCE if len(kept) <= 1 or all(near) else Stored.ALIVE
        if made.node.rank == 0:
            return Stored.COSTLY
        if kept:
            return Stored.ALIVE
        cheap = price <= CHEAP or price * ratio <= price + STORE + READ * ratio
        return Virtual.CHEAP if cheap else Stored.COSTLY

    def survives(self, made: _Made, write: Site, uses: list[Site], depth: int) -> bool:
        """Whether the write of a source, in the last statement that uses the value, never comes
        before a use that reads the cell: it is of that very cell, in the same statement, or of
        others, or the statement is no loop."""
        if all(use.route == write.route for use in uses) and len(write.route) == depth + 1:
            return True
        tested = (test for one in made.layers for test in one.tests)
        if write.index is None or any(write.node in nodes_of(test) for test in tested):
            return False
        loops = ranges(write.inside[depth:])
        fresh = {r.symbol: var(Symbol(r.symbol.name, -2 - r.symbol.serial)) for r in loops}
        moved = tuple(substitute(i, fresh) if isinstance(i, Affine) else i for i in write.index)
        there = tuple(
            Range(cast(Symbol, fresh[r.symbol].symbol), substitute(r.lo, fresh),
                  substitute(r.hi, fresh)) for r in loops
        )  # fmt: skip
        repeated = any(isinstance(stmt, While) for stmt in write.inside[depth:])
        single = is_injective(write.index, loops) and not repeated
        for use in uses:
            value = made.values[tuple(self.now_at(one) for one in use.index or ())]
            for read in (e for e in walk(value) if isinstance(e, Read) and e.node == write.node):
                same = single and use.route == write.route and read.index == write.index
                if not same and not are_apart(moved, read.index, (*ranges(use.inside), *there)):
                    return False
        return True

    def now(self, expr: Expr) -> Expr:
        """Return an expression of the kernel as it was, with what was inlined since."""
        expr = rebuild(expr, self.now, lambda index: index)
        if isinstance(expr, Read) and expr.node.id in self.gone:
            return self.gone[expr.node.id].values.get(expr.index, expr)
        return expr

    def now_at(self, index: Index) -> Index:
        """Return a part of an index of the kernel as it was, with what was inlined since."""
        return Dynamic(self.now(index.value)) if isinstance(index, Dynamic) else index

    def lives(self, node: Node, last: int, depth: int) -> bool:
        """Whether a node is used behind a statement anyway, or in it."""
        route = self.found.last_use(node)
        return route is not None and len(route) > depth and route[depth][0] >= last


def _is_single(uses: list[Site], depth: int) -> bool:
    """Whether no element is read twice."""
    (use, *more), loops = uses, uses[0].inside[depth:]
    once = not any(isinstance(stmt, While) for stmt in loops)
    return not more and once and is_injective(use.index or (), ranges(loops))


def _inlined(stmt: Stmt, made: _Made) -> Stmt:
    """Return a statement with the reads of a node replaced by what it is computed from."""

    def expr(value: Expr) -> Expr:
        if isinstance(value, Read) and value.node == made.node:
            return made.values[value.index]
        return rebuild(value, expr, lambda index: index)

    return rewrite((stmt,), Rewrite(expr=expr))[0]


def _largest(stmt: Stmt) -> int:
    """Return the number of parts of the largest expression in a statement."""
    sizes = (len(walk(e)) for one in statements((stmt,)) for e in expressions_of(one))
    return max(sizes, default=0)
