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

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from math import prod
from typing import cast

from ..clash import is_injective
from ..ir.assignments import Alloc, Permute, Print
from ..ir.expressions import (
    Apply,
    Cast,
    Const,
    Dynamic,
    Expr,
    Index,
    Position,
    Read,
    Select,
    rebuild,
    walk,
)
from ..ir.indexing import Affine, Symbol, substitute, var
from ..ir.loops import Comment, Fill, For, If, Kernel, Program, Stmt, Store, While
from ..ir.node import Node
from ..ir.ops import Op
from ..ir.walk import (
    Rewrite,
    bodies,
    expressions_of,
    reads,
    rewrite,
    statements,
    substitute_expr,
    with_bodies,
)
from ..lower import conjuncts
from .access import Accesses, Route, Site, accesses, has_jumps, nodes_of
from .cells import are_apart, holds, is_inside, ranges, solve
from .decision import Decided, Decision, Reason

MAX_SIZE = 64
"""How many parts an expression may have after inlining."""
CHEAP = 2
"""Up to this cost an expression is always worth computing again: a read and an operation."""
STORE, READ = 4, 1
"""What it costs to store an element of an array, and to read it again."""


class Virtual(Reason):
    """Why a node has no array."""

    ONCE = "each element is used once, so it is computed where it is used"
    CHEAP = "computing it where it is used costs less than keeping it"


class Stored(Reason):
    """Why a node could not, or should not, do without an array."""

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
    LONG = f"an expression would grow beyond {MAX_SIZE} parts"


def virtualize(program: Program) -> Program:
    """Return the program with arrays inlined into their uses."""
    return virtualized(program).program


def virtualized(program: Program) -> Decided:
    """Return the program with arrays inlined into their uses, and why each was or was not."""
    decisions: list[Decision] = []
    kernels: list[Kernel] = []
    gone: set[int] = set()
    for kernel in program.kernels:
        others = {n.id for k in program.kernels if k is not kernel for n in reads(k.body)}
        own = frozenset(n.id for n in program.locals if n.id not in others)
        work = _Inlining(accesses(kernel.body), own, _fixed(kernel.body), decisions)
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
class _Definition:
    """A nest that computes every element of a node by one store."""

    node: Node
    index: tuple[Index, ...] | None
    value: Expr
    inside: tuple[Stmt, ...]
    """The loops and branches of the nest."""
    tests: tuple[Expr, ...]

    @property
    def sources(self) -> frozenset[Node]:
        """The nodes that decide what is stored."""
        return nodes_of(self.value).union(*map(nodes_of, self.tests))

    @property
    def points(self) -> int:
        """How often the store runs; of sizes that are not known, about."""
        if self.index is None:
            return prod(self.node.static_shape or (64,) * self.node.rank)
        return _rounds(self.inside)

    def at(self, index: tuple[Index, ...]) -> dict[Symbol, Affine] | None:
        """Return the point that computed an element; None where that cannot be told."""
        return {} if self.index is None else solve(self.index, index, self.inside)

    def value_at(self, index: tuple[Index, ...]) -> Expr:
        """Return the expression for an element; `at` must have an answer."""
        values = self.at(index)
        assert values is not None, "only called for reads that were proven"
        return substitute_expr(self.value, values)


def _definition(stmt: Stmt | None) -> _Definition | None:
    """Return what a statement defines, if it is a nest of loops and branches around one store."""
    inside: list[Stmt] = []
    tests: list[Expr] = []
    while stmt is not None:
        match stmt:
            case Store(access, value):
                return _Definition(access.node, access.index, value, tuple(inside), tuple(tests))
            case Fill(node, value):
                if inside:
                    return None
                return _Definition(node, None, value, (), ())
            case For(body=body) if not has_jumps(stmt):
                inside.append(stmt)
            case If(test, body, ()):
                inside.append(stmt)
                tests += conjuncts(test)
            case _:
                return None
        code = [one for one in body if not isinstance(one, Comment)]
        stmt = code[0] if len(code) == 1 else None
    return None


@dataclass(slots=True)
class _Inlining:
    """The work on one kernel."""

    found: Accesses
    """Of the kernel as it was; it stays true of every node that is not decided yet, because a
    value that is inlined reads only nodes that were computed, and so decided, before it."""
    own: frozenset[int]
    fixed: dict[int, Stored]
    decisions: list[Decision]
    decided: set[int] = field(default_factory=set)
    gone: dict[int, _Definition] = field(default_factory=dict)

    def body(self, body: tuple[Stmt, ...], route: Route) -> tuple[Stmt, ...]:
        """Return a list of statements with values inlined, then the lists inside of them."""
        current: list[Stmt | None] = list(body)
        for at, stmt in enumerate(current):
            found = _definition(stmt)
            if found is not None and found.node.id in self.own - self.decided:
                self.decided.add(found.node.id)
                self.decide(found, current, at, route)
        out: list[Stmt] = []
        for at, stmt in enumerate(current):
            if stmt is None or (isinstance(stmt, Alloc) and stmt.node.id in self.gone):
                continue
            inner = tuple(
                self.body(cast("tuple[Stmt, ...]", one), (*route, (at, number)))
                for number, one in enumerate(bodies(stmt))
            )
            out.append(with_bodies(stmt, inner) if inner else stmt)
        return tuple(out)

    def decide(self, made: _Definition, current: list[Stmt | None], at: int, route: Route) -> None:
        """Inline a definition, or note why not."""
        uses = [s for s in self.found.of(made.node) if s.reads]
        if not uses:
            return
        reason = (
            self.fixed.get(made.node.id)
            or self.impossible(made, uses, at, route)
            or self.unwise(made, uses, current, at, len(route))
        )
        if isinstance(reason, Stored):
            self.decisions.append(Decision("stored", reason, made.node))
            return
        places = sorted({site.route[len(route)][0] for site in uses})
        new = {place: _inlined(cast(Stmt, current[place]), made) for place in places}
        if any(_largest(stmt) > MAX_SIZE for stmt in new.values()):
            self.decisions.append(Decision("stored", Stored.LONG, made.node))
            return
        for place, stmt in new.items():
            current[place] = stmt
        current[at] = None
        self.gone[made.node.id] = made
        self.decisions.append(Decision("virtual", reason, made.node))

    def impossible(
        self, made: _Definition, uses: list[Site], at: int, route: Route
    ) -> Stored | None:
        """Return why the value cannot be computed at its uses; None if it can."""
        depth = len(route)
        sites = self.found.of(made.node)
        written = [s for s in sites if s.writes and not _is_storage(s, made)]
        if any(site.kind == "update" for site in written):
            return Stored.REDUCED
        if len(written) > 1:
            return Stored.SEVERAL
        if any(s.route[:depth] != route or s.route[depth][0] <= at for s in uses):
            return Stored.ELSEWHERE
        last = max(site.route[depth][0] for site in uses)
        for site in uses:
            values = None if site.index is None else made.at(site.index)
            if values is None:
                return Stored.PLACE
            known, holding = ranges(site.inside), tuple(map(self.now, site.tests))
            inside = is_inside(values, made.inside, known, holding)
            tests = (substitute_expr(test, values) for test in made.tests)
            if not inside or not all(holds(test, known, holding) for test in tests):
                return Stored.UNWRITTEN
        for node in made.sources:
            for write in self.found.of(node):
                if write.writes and write.route[:depth] == route:
                    place = write.route[depth][0]
                    if at < place < last or (
                        place == last and not _survives(made, write, uses, depth)
                    ):
                        return Stored.CHANGED
        return None

    def unwise(
        self, made: _Definition, uses: list[Site], current: list[Stmt | None], at: int, depth: int
    ) -> Stored | Virtual:
        """Return whether the value is worth computing at its uses, and why."""
        cost = _cost(made.value)
        ratio = sum(_rounds(s.inside[depth:]) for s in uses) / max(1, made.points)
        last = max(site.route[depth][0] for site in uses)
        kept = [
            node for node in nodes_of(made.value)
            if node.rank and node.id in self.own and not self.lives(node, last, depth)
        ]  # fmt: skip
        if cost == 0:
            return Virtual.CHEAP
        if ratio <= 1:
            between = (s for s in current[at + 1 : last] if s is not None)
            near = all(isinstance(stmt, Comment | Store | Alloc) for stmt in between)
            return Virtual.ONCE if near or len(kept) <= 1 else Stored.ALIVE
        if made.node.rank == 0:
            return Stored.COSTLY
        if kept:
            return Stored.ALIVE
        cheap = cost <= CHEAP or cost * ratio <= cost + STORE + READ * ratio
        return Virtual.CHEAP if cheap else Stored.COSTLY

    def now(self, expr: Expr) -> Expr:
        """Return an expression of the kernel as it was, with what was inlined since."""
        expr = rebuild(expr, self.now, lambda index: index)
        if isinstance(expr, Read) and expr.node.id in self.gone:
            return self.gone[expr.node.id].value_at(expr.index)
        return expr

    def lives(self, node: Node, last: int, depth: int) -> bool:
        """Whether a node is used behind a statement anyway, or in it."""
        route = self.found.last_use(node)
        return route is not None and len(route) > depth and route[depth][0] >= last


def _is_storage(site: Site, made: _Definition) -> bool:
    """Whether a site is the `Alloc` of the node, which its store overwrites."""
    return site.index is None and made.index is not None and site.kind == "write"


def _survives(made: _Definition, write: Site, uses: list[Site], depth: int) -> bool:
    """Whether the write of a source, in the last statement that uses the value, never comes before
    a use that reads the cell: it is of that very cell, in the same statement, or of others."""
    if write.index is None:
        return False
    loops = ranges(write.inside[depth:])
    fresh = {r.symbol: var(Symbol(r.symbol.name, -2 - r.symbol.serial)) for r in loops}
    moved = tuple(substitute(i, fresh) if isinstance(i, Affine) else i for i in write.index)
    there = tuple(
        replace(r, symbol=cast(Symbol, fresh[r.symbol].symbol), lo=substitute(r.lo, fresh),
                hi=substitute(r.hi, fresh)) for r in loops
    )  # fmt: skip
    repeated = any(isinstance(stmt, While) for stmt in write.inside[depth:])
    single = is_injective(write.index, loops) and not repeated
    for use in uses:
        value = made.value_at(use.index or ())
        for read in (e for e in walk(value) if isinstance(e, Read) and e.node == write.node):
            same = single and use.route == write.route and read.index == write.index
            if not same and not are_apart(moved, read.index, (*ranges(use.inside), *there)):
                return False
    return not any(write.node in nodes_of(test) for test in made.tests)


def _inlined(stmt: Stmt, made: _Definition) -> Stmt:
    """Return a statement with the reads of a node replaced by what it is computed from."""

    def expr(value: Expr) -> Expr:
        value = rebuild(value, expr, lambda index: index)
        if isinstance(value, Read) and value.node == made.node:
            return made.value_at(value.index)
        return value

    return rewrite((stmt,), Rewrite(expr=expr))[0]


def _rounds(inside: Iterable[Stmt]) -> int:
    """Return how often the innermost body runs; 64 for every size that is not known."""
    total = 1
    for stmt in inside:
        if isinstance(stmt, For):
            rounds = (stmt.hi - stmt.lo).constant
            total *= 64 if rounds is None else max(0, -(-rounds // stmt.step))
        elif isinstance(stmt, While):
            total *= 64
    return total


def _largest(stmt: Stmt) -> int:
    """Return the number of parts of the largest expression in a statement."""
    sizes = (sum(1 for _ in walk(e)) for one in statements((stmt,)) for e in expressions_of(one))
    return max(sizes, default=0)


LIGHT = frozenset(
    "max min fmax fmin abs neg sign floor ceil trunc rint relu relu_gate sat01 sat01_gate copysign "
    "signbit isnan isinf isfinite real imag conj complex invert shl shr eq ne fma".split()
)
HEAVY = frozenset("div floordiv mod fmod sqrt recip recip_sqrt".split())


def _cost(expr: Expr) -> int:
    """Return about how many additions an expression is worth; scalars cost nothing.

    A division counts as 4 and a function such as `exp` as 16.
    """
    match expr:
        case Const() | Position():
            return 0
        case Read(node, index):
            inner = sum(_cost(i.value) for i in index if isinstance(i, Dynamic))
            return inner + (READ if node.rank else 0)
        case Apply(op, args, _):
            return _op_cost(op, expr) + sum(map(_cost, args))
        case Cast(value, dtype):
            return _cost(value) + (1 if dtype.compute != dtype else 0)
        case Select(test, yes, no):
            return 1 + _cost(test) + _cost(yes) + _cost(no)
        case _:
            raise AssertionError("reductions are gone before loops are made")


def _op_cost(op: Op, expr: Apply) -> int:
    if op.name in HEAVY:
        return 4
    return 1 if op.infix or op.name in LIGHT else 16
