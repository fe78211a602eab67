"""Redundant nest elimination (value numbering of whole loop nests).

Changes: where two nests are equal up to the local that they write and the names of their symbols,
the second is removed and its local is read from the first one's; so `x.var()` does not repeat the
mean that `x.mean()` has summed. A nest that only checks is removed where the same was checked
before.

Precondition: none; to run before `virtualize`, which would duplicate equal nests. Postcondition:
the same values, faults and prints: what the nests read is not written between them, each local is
written by its nest alone, and every use of the second comes after it, in the same list of
statements.

>>> show(eliminate_repeated_nests, '''
... t[i] = sum(x[i, j])
... u[i] = sum(x[i, k])
... y[i] = t[i] / (u[i] + 1)
... ''', y="f32[8]", x="f32[8, 9]")
for i in 0..8:
    t[i] = 0.0
    for j in 0..9:
        t[i] += x[i, j]
for i in 0..8:
    y[i] = t[i] / (t[i] + 1.0)
"""

from __future__ import annotations

from dataclasses import field, replace

from ...base.dataclass import dataclass
from ..analysis.accesses import Accesses, Route, collect_accesses, position_in
from ..analysis.effects import Summary, summarize, touched_nodes
from ..ir.assignments import Break, Continue
from ..ir.comments import drop_removed
from ..ir.indexing import Symbol
from ..ir.loops import Check, Comment, Fill, For, If, Program, Stmt, Store, Update
from ..ir.node import Node
from ..ir.rewrite import map_statements, rename, with_bodies
from ..ir.walk import bodies, direct_writes, statements

Body = tuple[Stmt, ...]


def eliminate_repeated_nests(program: Program) -> Program:
    """Return the program with equal nests run once."""
    kernels = []
    replacements: dict[int, Node] = {}
    static = [n for n in (*program.locals, *program.results) if n.static_shape is not None]
    local_to_kernels = frozenset(node.id for node in static)
    removable = local_to_kernels & {node.id for node in program.locals if node.request is None}
    for kernel in program.kernels:
        outside = {n for k in program.kernels if k is not kernel for n in touched_nodes(k.body)}
        merging = _Merging(
            kernel.body, local_to_kernels - outside, removable - outside, replacements
        )
        kernels.append(replace(kernel, body=merging.body(kernel.body, ())))
    if not replacements:
        return replace(program, kernels=tuple(kernels))
    locals_ = tuple(node for node in program.locals if node.id not in replacements)
    return replace(program, locals=locals_, kernels=tuple(kernels))


@dataclass(slots=True)
class _Nest:
    """A nest that was visited, and the value that it computes."""

    at: int
    stmt: Stmt
    target: Node | None
    """The node that it writes; None where it only checks."""
    sources: frozenset[int]
    is_valid: bool = True
    """Whether none of the sources was written since."""


@dataclass(slots=True)
class _Merging:
    """Merging of equal nests in one kernel."""

    kernel: Body
    kernel_local: frozenset[int]
    """The ids of nodes that only this kernel accesses, and that start as zeros."""
    removable: frozenset[int]
    """Those of them that may be removed."""
    replacements: dict[int, Node]
    """The replacements of removed nodes, by id."""
    accesses_: Accesses | None = None
    """The accesses of the kernel as it was; None until needed."""
    writer_positions: dict[Route, dict[int, int | None]] = field(default_factory=dict)
    """The only position where a node is written, by the list that it is in; memoized."""

    def body(self, body: Body, route: Route) -> Body:
        """Return a list of statements without redundant nests, then the lists inside of it."""
        if len(body) == 1:
            return (self.inside(self.with_replacements(body[0]), 0, route),)
        has_jumps = any(not JUMPS.isdisjoint(summarize(stmt).kinds) for stmt in body)
        seen: dict[object, _Nest | dict[Stmt, _Nest]] = {}
        readers: dict[int, list[_Nest]] = {}
        remaining: list[Stmt | None] = []
        for at, stmt in enumerate(body):
            stmt = self.with_replacements(stmt)
            effects = summarize(stmt)
            nest = None if has_jumps else _nest(at, stmt, effects)
            first = None if nest is None else self.find_equal(nest, seen, route)
            if nest is not None and first is not None and self.try_merge(first, nest, route):
                remaining.append(None)
                continue
            for node in effects.writes:
                for reader in readers.pop(node, ()):
                    reader.is_valid = False
            if nest is not None:
                for node in nest.sources:
                    readers.setdefault(node, []).append(nest)
            remaining.append(self.inside(stmt, at, route))
        return drop_removed(remaining)

    def find_equal(
        self, nest: _Nest, seen: dict[object, _Nest | dict[Stmt, _Nest]], route: Route
    ) -> _Nest | None:
        """Return an earlier equal nest, or record this one as the first.

        The full comparison is made only for nests whose hash key was seen before.
        """
        key = _hash_key(nest)
        bucket = seen.setdefault(key, nest)
        if bucket is nest:
            return None
        if isinstance(bucket, _Nest):
            bucket = seen[key] = (
                {_canonical(bucket): bucket} if self.is_final(bucket, route) else {}
            )
        if not self.is_final(nest, route):
            return None
        form = _canonical(nest)
        first = bucket.get(form)
        if first is None or not first.is_valid:
            bucket[form] = nest
            return None
        return first

    def with_replacements(self, stmt: Stmt) -> Stmt:
        """Return a statement with the reads of removed nodes replaced."""
        if summarize(stmt).reads.isdisjoint(self.replacements):
            return stmt
        (new,) = rename((stmt,), {}, self.replacements)
        return new

    def inside(self, stmt: Stmt, at: int, route: Route) -> Stmt:
        lists = bodies(stmt)
        inner = (self.body(nested, (*route, (at, n))) for n, nested in enumerate(lists))
        return with_bodies(stmt, tuple(inner)) if lists else stmt

    def is_final(self, nest: _Nest, route: Route) -> bool:
        """Whether a nest's value is final, and nothing else computes it."""
        node = nest.target
        if node is None:
            return True
        return node.id in self.kernel_local and self.writer_position(node, route) == nest.at

    def writer_position(self, node: Node, route: Route) -> int | None:
        """Return the position in a list where a node is written, None where there are several."""
        memo = self.writer_positions.setdefault(route, {})
        if node.id not in memo:
            sites = self.accesses_ = self.accesses_ or collect_accesses(self.kernel)
            positions = {position_in(site.route, route) for site in sites.of(node) if site.writes}
            memo[node.id] = positions.pop() if len(positions) == 1 else None
        return memo[node.id]

    def try_merge(self, first: _Nest, second: _Nest, route: Route) -> bool:
        """Whether the second nest may be removed; then its local is read from the first one's."""
        retained, removed = first.target, second.target
        if retained is None or removed is None:
            return retained is removed
        if removed.id not in self.removable or (retained.dtype, retained.shape) != (
            removed.dtype,
            removed.shape,
        ):
            return False
        assert self.accesses_ is not None, "asked by `stands`"
        for site in self.accesses_.of(removed):
            position = position_in(site.route, route)
            if position is None or position < second.at:
                return False
        self.replacements[removed.id] = retained
        return True


JUMPS = frozenset((Break, Continue))
_KINDS = frozenset((For, If, Store, Update, Fill, Check, Comment))


def _nest(at: int, stmt: Stmt, effects: Summary) -> _Nest | None:
    """Return a statement as a nest that writes one node at most, and reads others."""
    if isinstance(stmt, Comment) or not effects.kinds <= _KINDS or len(effects.writes) > 1:
        return None
    target = _target(stmt) if effects.writes else None
    return _Nest(at, stmt, target, effects.reads - effects.writes)


def _target(stmt: Stmt) -> Node:
    """Return the node that a nest writes first."""
    while not direct_writes(stmt):
        stmt = next(nested for body in bodies(stmt) for nested in body if summarize(nested).writes)
    return direct_writes(stmt)[0]


def _hash_key(nest: _Nest) -> object:
    """Return a hash key of nests that is cheap to compute: sources and outer loops."""
    kinds: list[object] = [nest.sources]
    stmt = nest.stmt
    while isinstance(stmt, For) and stmt.body:
        kinds += (stmt.hi.offset, len(stmt.body))
        stmt = stmt.body[-1]
    return (*kinds, type(stmt))


def _canonical(nest: _Nest) -> Stmt:
    """Return a nest in canonical form: symbols numbered, one name for its target, checks as
    tests."""
    symbols: dict[Symbol, Symbol] = {}
    for stmt in statements((nest.stmt,)):
        if isinstance(stmt, For):
            symbols[stmt.symbol] = Symbol("", -1 - len(symbols))
    target = nest.target
    nodes = {} if target is None else {target.id: replace(target, id=-1, label="")}

    def convert(stmt: Stmt) -> Body:
        if isinstance(stmt, Comment):
            return ()
        return (If(stmt.test, ()),) if isinstance(stmt, Check) else (stmt,)

    (new,) = map_statements(rename((nest.stmt,), symbols, nodes), convert)
    return new
