"""Inlining (virtualization) of arrays: values recomputed at their uses instead of stored in arrays.

Changes: a local array that plain stores fill, in loops of their own, is removed; each read is
replaced by the stored expression, at the iteration that computed the element. That iteration is
found by inverting the subscript of the store: shifted, strided, transposed and diagonal reads work
alike. What would cost more when it is recomputed stays an array.

Precondition: none. Postcondition: bit-identical. An expression keeps the type of the array: the
rounding of the store is now that of the cast that was stored; every read is surely of an element
that was written; nothing that the expression reads is written in between; no expression grows
beyond `MAX_INLINED_NODES` nodes.

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
from ...base.lazy_import import LazyModule
from .. import thresholds
from ..analysis.accesses import Accesses, Route, Site, collect_accesses, holding_tests, position_in
from ..analysis.effects import summarize
from ..analysis.expression_cost import cost, estimate_iterations
from ..analysis.guarded_reads import nodes_of
from ..analysis.self_dependence import is_injective
from ..analysis.subscripts import are_disjoint, ranges
from ..ir.assignments import Alloc, Let, Permute, Print
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
    definitions = LazyModule("..analysis.definitions", __package__)


class VirtualReason(Reason):
    """Why a node has no array."""

    ONCE = "each element is used once, so it is computed where it is used"
    CHEAP = "computing it where it is used costs less than keeping it"
    ASKED = "it was asked to be virtual"


class StoredReason(Reason):
    """Why a node could not, or should not, do without an array."""

    ASKED = "it was asked to have an array"
    MOVED = "it trades places with another array"
    PRINTED = "it is printed"
    SEVERAL = "more than one statement writes it"
    REDUCED = "it is accumulated, not computed in one go"
    ELSEWHERE = "it is read before, or outside of, the statements after the one that computes it"
    CHANGED = "what it is computed from is written before its last use"
    UNKNOWN_POINT = "the point at which a read element was computed cannot be told from its index"
    UNWRITTEN = "a read may be of an element that was never computed"
    COSTLY = "computing it again at every use would cost more than the array"
    ALIVE = "computing it where it is used would keep other arrays in its stead"
    SPREAD = "an array that reads it is computed where that is used, at other points"
    LONG = f"an expression would grow beyond {thresholds.MAX_INLINED_NODES} parts"


def virtualize(program: Program) -> Decided:
    """Return the program with arrays inlined into their uses, and the decision for each."""
    decisions: list[Decision] = []
    kernels: list[Kernel] = []
    gone: set[int] = set()
    requested = {node.id: node.request.mode for node in program.locals if node.request is not None}
    for kernel in program.kernels:
        others = {n.id for k in program.kernels if k is not kernel for n in reads(k.body)}
        candidates = frozenset(n.id for n in program.locals if n.id not in others)
        inlining = _Inlining(
            collect_accesses(kernel.body),
            candidates,
            _find_fixed(kernel.body),
            decisions,
            requested,
        )
        kernels.append(replace(kernel, body=inlining.body(kernel.body, ())))
        gone |= inlining.removed.keys()
    locals_ = tuple(node for node in program.locals if node.id not in gone)
    return Decided(replace(program, locals=locals_, kernels=tuple(kernels)), tuple(decisions))


def _find_fixed(body: Iterable[Stmt]) -> dict[int, StoredReason]:
    """Return the nodes that stay at any cost."""
    fixed: dict[int, StoredReason] = {}
    for stmt in statements(body):
        if isinstance(stmt, Permute):
            fixed |= {node.id: StoredReason.MOVED for node in (*stmt.nodes, *stmt.sources)}
        if isinstance(stmt, Print):
            fixed |= {
                node.id: StoredReason.PRINTED for e in expressions_of(stmt) for node in nodes_of(e)
            }
    return fixed


@dataclass(frozen=True, slots=True)
class _Definition:
    """The definition of a node: the layers that store it, and their positions in their list."""

    node: Node
    layers: tuple[definitions.Layer, ...]
    positions: tuple[int, ...]
    values: dict[tuple[Index, ...], Expr]
    """The value that is read at each index, by the index."""

    @property
    def points(self) -> int:
        """How often a store runs; an estimate for run-time sizes."""
        return max(1, sum(layer.points for layer in self.layers))

    @property
    def is_guarded(self) -> bool:
        """Whether some use has to test which layer defines its cell."""
        plain = max(cost(layer.value) for layer in self.layers)
        return any(cost(value) > plain for value in self.values.values())


_Facts = tuple[tuple[Range, ...], tuple[Expr, ...]]
"""The ranges of the symbols around a use, and the tests that hold there."""


@dataclass(slots=True)
class _Inlining:
    """Inlining in one kernel."""

    accesses: Accesses
    """Of the kernel as it was; it stays valid for every node that is not decided yet, because an
    inlined value reads only nodes that were computed, and so decided, before it."""
    candidates: frozenset[int]
    fixed: dict[int, StoredReason]
    decisions: list[Decision]
    requested: Mapping[int, Mode]
    """The requested memory modes, by node id."""
    decided: set[int] = field(default_factory=set)
    removed: dict[int, _Definition] = field(default_factory=dict)
    writes: dict[int, tuple[list[Route], list[Site]]] = field(default_factory=dict)
    """The writes of a node in program order; memoized."""

    def body(self, body: tuple[Stmt, ...], route: Route) -> tuple[Stmt, ...]:
        """Return a list of statements with values inlined, then the lists inside of them."""
        current: list[Stmt | None] = list(body)
        undecided = self.candidates - self.decided
        positions_by_node: dict[Node, list[int]] = {}
        for at, stmt in enumerate(body):
            layer = (
                None
                if undecided.isdisjoint(summarize(stmt).writes)
                else definitions.find_layer(stmt)
            )
            if layer is not None:
                positions_by_node.setdefault(layer.node, []).append(at)
        for node, positions in positions_by_node.items():
            self.decided.add(node.id)
            layers = (definitions.find_layer(current[at]) for at in positions)
            definition = _Definition(
                node, tuple(layer for layer in layers if layer), tuple(positions), {}
            )
            self.decide(definition, current, route)
        out: list[Stmt] = []
        for at, new in enumerate(current):
            if new is None or (isinstance(new, Alloc) and new.node.id in self.removed):
                continue
            lists = () if self.is_decided(new) else bodies(new)
            inner = tuple(self.body(nested, (*route, (at, n))) for n, nested in enumerate(lists))
            out.append(with_bodies(new, inner) if inner else new)
        return tuple(out)

    def is_decided(self, stmt: Stmt) -> bool:
        """Whether all that a statement writes was decided, and stays."""
        written = self.candidates & summarize(stmt).writes
        return written <= self.decided and not any(number in self.removed for number in written)

    def decide(self, definition: _Definition, current: list[Stmt | None], route: Route) -> None:
        """Inline the definition of a node, or record why not."""
        uses = [s for s in self.accesses.of(definition.node) if s.reads]
        if not uses:
            return
        requested = self.requested.get(definition.node.id)
        use_positions = {position_in(site.route, route) for site in uses}
        positions = sorted(position for position in use_positions if position is not None)
        reason = (
            (StoredReason.ASKED if not admits_virtual(requested) else None)
            or (
                StoredReason.SPREAD
                if any(current[position] is None for position in positions)
                else None
            )
            or self.fixed.get(definition.node.id)
            or self.check_writers(definition, uses, route)
            or self.resolve_values(definition, uses, len(route))
            or self.check_sources(definition, uses, route)
            or (VirtualReason.ASKED if requested is not None else None)
            or self.check_profit(definition, uses, current, len(route))
        )
        if isinstance(reason, StoredReason):
            self.decisions.append(Decision("stored", reason, definition.node))
            return
        replaced = {
            position: _inline_reads(cast(Stmt, current[position]), definition)
            for position in positions
        }
        if any(
            _largest_expression(stmt) > thresholds.MAX_INLINED_NODES for stmt in replaced.values()
        ):
            self.decisions.append(Decision("stored", StoredReason.LONG, definition.node))
            return
        for position, stmt in replaced.items():
            current[position] = stmt
        for position in definition.positions:
            current[position] = None
        self.removed[definition.node.id] = definition
        self.decisions.append(Decision("virtual", reason, definition.node))

    def check_writers(
        self, definition: _Definition, uses: list[Site], route: Route
    ) -> StoredReason | None:
        """Return why the stores do not define all that the uses may read; None if they do."""
        whole = any(layer.index is None for layer in definition.layers)
        written = [s for s in self.accesses.of(definition.node) if s.writes]
        written = [s for s in written if whole or s.index is not None or s.kind != "write"]
        if any(site.kind == "update" for site in written):
            return StoredReason.REDUCED
        if len(written) > len(definition.layers) or any(
            definition.node in layer.sources for layer in definition.layers
        ):
            return StoredReason.SEVERAL
        last = definition.positions[-1]
        positions = [position_in(s.route, route) for s in uses]
        if any(position is None or position <= last for position in positions):
            return StoredReason.ELSEWHERE
        return None

    def resolve_values(
        self, definition: _Definition, uses: list[Site], depth: int
    ) -> StoredReason | None:
        """Record the value at each use, or return why it cannot be determined."""
        is_zeroed = depth == 0 and definition.node.static_shape is not None
        initial = definitions.zero_of(definition.node.dtype) if is_zeroed else None
        facts_by_index: dict[tuple[Index, ...], list[_Facts]] = {}
        for site in uses:
            if site.index is None:
                return StoredReason.UNKNOWN_POINT
            index = tuple(self.inlined_index(subscript) for subscript in site.index)
            facts = ranges(site.inside), tuple(map(self.inlined, holding_tests(site)))
            facts_by_index.setdefault(index, []).append(facts)
        try:
            for index, facts_of_uses in facts_by_index.items():
                definition.values[index] = _value_at(
                    definition.layers, index, facts_of_uses, initial
                )
        except definitions.NotInvertible:
            return StoredReason.UNKNOWN_POINT
        except definitions.MaybeUnwritten:
            return StoredReason.UNWRITTEN
        return None

    def check_sources(
        self, definition: _Definition, uses: list[Site], route: Route
    ) -> StoredReason | None:
        """Return the reason if a source of the definition is written before the last use."""
        depth = len(route)
        last = max(site.route[depth][0] for site in uses)
        for layer, at in zip(definition.layers, definition.positions, strict=True):
            for node in layer.sources:
                for write in self.writes_from(node, (*route, (at + 1, 0))):
                    if write.route[:depth] != route or write.route[depth][0] > last:
                        break  # they are in program order
                    position = write.route[depth][0]
                    if position < last or not self.is_write_safe(definition, write, uses, depth):
                        return StoredReason.CHANGED
        return None

    def writes_from(self, node: Node, route: Route) -> Iterator[Site]:
        """Yield the writes of a node from a position of the program on."""
        if node.id not in self.writes:
            sites = [site for site in self.accesses.of(node) if site.writes]
            self.writes[node.id] = [site.route for site in sites], sites
        routes, sites = self.writes[node.id]
        return (sites[at] for at in range(bisect_left(routes, route), len(sites)))

    def check_profit(
        self, definition: _Definition, uses: list[Site], current: list[Stmt | None], depth: int
    ) -> StoredReason | VirtualReason:
        """Return whether recomputing the value at its uses is profitable, and why."""
        value_cost = max(map(cost, definition.values.values()))
        recomputations = (
            sum(estimate_iterations(s.inside[depth:]) for s in uses) / definition.points
        )
        at, last = definition.positions[-1], max(site.route[depth][0] for site in uses)
        read = frozenset[Node]().union(*map(nodes_of, definition.values.values()))
        extended = [
            node for node in read
            if node.rank and node.id in self.candidates and not self.is_live(node, last, depth)
        ]  # fmt: skip
        if value_cost == 0:
            return VirtualReason.CHEAP
        if definition.is_guarded:
            return VirtualReason.ONCE if _is_read_once(uses, depth) else StoredReason.COSTLY
        if recomputations <= 1:
            between = (current[position] for position in range(at + 1, last))
            only_scalars = (isinstance(stmt, Comment | Store | Alloc | None) for stmt in between)
            return (
                VirtualReason.ONCE
                if len(extended) <= 1 or all(only_scalars)
                else StoredReason.ALIVE
            )
        if definition.node.rank == 0:
            return StoredReason.COSTLY
        if extended:
            return StoredReason.ALIVE
        is_cheap = (
            value_cost <= thresholds.MAX_RECOMPUTED_COST
            or value_cost * recomputations
            <= value_cost + thresholds.STORE_COST + thresholds.READ_COST * recomputations
        )
        return VirtualReason.CHEAP if is_cheap else StoredReason.COSTLY

    def is_write_safe(
        self, definition: _Definition, write: Site, uses: list[Site], depth: int
    ) -> bool:
        """Whether the write of a source, in the last statement that uses the value, never precedes
        a use that reads the cell: it writes that very cell, in the same statement, or others, or
        the statement is no loop."""
        if all(use.route == write.route for use in uses) and len(write.route) == depth + 1:
            return True
        tests = (test for layer in definition.layers for test in layer.tests)
        if write.index is None or any(write.node in nodes_of(test) for test in tests):
            return False
        loops = ranges(write.inside[depth:])
        lets = (s.symbol for s in statements(write.inside[depth:][:1]) if isinstance(s, Let))
        names = (*(r.symbol for r in loops), *lets)  # of which each iteration has other values
        renaming = {name: var(Symbol(name.name, -2 - name.serial)) for name in names}
        renamed_index = tuple(
            substitute(i, renaming) if isinstance(i, Affine) else i for i in write.index
        )
        renamed_loops = tuple(
            Range(cast(Symbol, renaming[r.symbol].symbol), substitute(r.lo, renaming),
                  substitute(r.hi, renaming)) for r in loops
        )  # fmt: skip
        repeated = any(isinstance(stmt, While) for stmt in write.inside[depth:])
        writes_once = is_injective(write.index, loops) and not repeated
        for use in uses:
            value = definition.values[
                tuple(self.inlined_index(subscript) for subscript in use.index or ())
            ]
            for read in (e for e in walk(value) if isinstance(e, Read) and e.node == write.node):
                is_same_cell = (
                    writes_once and use.route == write.route and read.index == write.index
                )
                if not is_same_cell and not are_disjoint(
                    renamed_index, read.index, (*ranges(use.inside), *renamed_loops)
                ):
                    return False
        return True

    def inlined(self, expr: Expr) -> Expr:
        """Return an expression of the kernel as it was, with what was inlined since."""
        expr = rebuild(expr, self.inlined, lambda index: index)
        if isinstance(expr, Read) and expr.node.id in self.removed:
            return self.removed[expr.node.id].values.get(expr.index, expr)
        return expr

    def inlined_index(self, index: Index) -> Index:
        """Return a subscript of the kernel as it was, with what was inlined since."""
        return Dynamic(self.inlined(index.value)) if isinstance(index, Dynamic) else index

    def is_live(self, node: Node, last: int, depth: int) -> bool:
        """Whether a node is live at the end of a statement anyway, or used in it."""
        route = self.accesses.last_use(node)
        return route is not None and len(route) > depth and route[depth][0] >= last


def _value_at(
    layers: tuple[definitions.Layer, ...], index: tuple[Index, ...], facts_of_uses: list[_Facts],
    initial: Expr | None,
) -> Expr:  # fmt: skip
    """Return the value at an index, by the facts of each use that reads it.

    Where these make a difference it is the value by the facts that hold at all of the uses: a loop
    around one of them says that it has iterations, which the others need not know.
    """
    values = {
        definitions.reaching_value(layers, index, domain, tests, initial)
        for domain, tests in facts_of_uses
    }
    if len(values) == 1:
        return values.pop()
    domain, _ = facts_of_uses[0]
    shared = tuple(r for r in domain if all(r in other for other, _ in facts_of_uses))
    return definitions.reaching_value(layers, index, shared, (), initial)


def _is_read_once(uses: list[Site], depth: int) -> bool:
    """Whether no element is read twice."""
    (use, *more), loops = uses, uses[0].inside[depth:]
    no_while = not any(isinstance(stmt, While) for stmt in loops)
    return not more and no_while and is_injective(use.index or (), ranges(loops))


def _inline_reads(stmt: Stmt, definition: _Definition) -> Stmt:
    """Return a statement with the reads of a node replaced by its definition."""

    def expr(value: Expr) -> Expr:
        if isinstance(value, Read) and value.node == definition.node:
            return definition.values[value.index]
        return rebuild(value, expr, lambda index: index)

    return rewrite((stmt,), Rewrite(expr=expr))[0]


def _largest_expression(stmt: Stmt) -> int:
    """Return the size of the largest expression in a statement, in nodes."""
    sizes = (len(walk(e)) for nested in statements((stmt,)) for e in expressions_of(nested))
    return max(sizes, default=0)
