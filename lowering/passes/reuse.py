"""Repeated: a nest that computes what another has computed is not run again.

Changes: where two nests are the same but for the local that they write, and for the names of their
symbols, the second goes and its local is read from the first one's; so `x.var()` sums no mean
again that `x.mean()` has summed. A nest that only checks goes where the same was checked before.

Needs: nothing; before `virtualize`, which would spread what is equal. Guarantees: the same values,
faults and prints: what the nests read is not written between them, each local is written by its
nest alone, and every use of the second comes after it, in the same list of statements.

>>> show(repeated, '''
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
from ..analysis.accesses import Accesses, Route, accesses, place_in
from ..analysis.effects import Summary, summary, touched
from ..ir.assignments import Break, Continue
from ..ir.comments import headed
from ..ir.indexing import Symbol
from ..ir.loops import Check, Comment, Fill, For, If, Program, Stmt, Store, Update
from ..ir.node import Node
from ..ir.rewrite import map_statements, rename, with_bodies
from ..ir.walk import bodies, own_writes, statements

Body = tuple[Stmt, ...]


def repeated(program: Program) -> Program:
    """Return the program with equal nests run once."""
    kernels = []
    taken: dict[int, Node] = {}
    static = [n for n in (*program.locals, *program.results) if n.static_shape is not None]
    ours = frozenset(node.id for node in static)
    gone = ours & {node.id for node in program.locals if node.request is None}
    for kernel in program.kernels:
        outside = {n for k in program.kernels if k is not kernel for n in touched(k.body)}
        work = _Merging(kernel.body, ours - outside, gone - outside, taken)
        kernels.append(replace(kernel, body=work.body(kernel.body, ())))
    if not taken:
        return replace(program, kernels=tuple(kernels))
    kept = tuple(node for node in program.locals if node.id not in taken)
    return replace(program, locals=kept, kernels=tuple(kernels))


@dataclass(slots=True)
class _Nest:
    """A nest that was seen, and stands for what it computed."""

    at: int
    stmt: Stmt
    target: Node | None
    """What it writes; None where it only checks."""
    sources: frozenset[int]
    holds: bool = True
    """Whether nothing has written to the sources since."""


@dataclass(slots=True)
class _Merging:
    """The work on one kernel."""

    kernel: Body
    ours: frozenset[int]
    """The ids of nodes that only this kernel touches, and that start as zeros."""
    gone: frozenset[int]
    """Those of them that may go."""
    taken: dict[int, Node]
    """What is read in the place of a node that went."""
    found: Accesses | None = None
    """Of the kernel as it was, once they are needed."""
    places: dict[Route, dict[int, int | None]] = field(default_factory=dict)
    """The only place where a node is written, by the list that it is in."""

    def body(self, body: Body, route: Route) -> Body:
        """Return a list of statements without repeated nests, then the lists inside of it."""
        if len(body) == 1:
            return (self.inside(self.now(body[0]), 0, route),)
        leaves = any(not JUMPS.isdisjoint(summary(stmt).kinds) for stmt in body)
        seen: dict[object, _Nest | dict[Stmt, _Nest]] = {}
        reading: dict[int, list[_Nest]] = {}
        left: list[Stmt | None] = []
        for at, stmt in enumerate(body):
            stmt = self.now(stmt)
            known = summary(stmt)
            nest = None if leaves else _nest(at, stmt, known)
            first = None if nest is None else self.first(nest, seen, route)
            if nest is not None and first is not None and self.merges(first, nest, route):
                left.append(None)
                continue
            for node in known.writes:
                for one in reading.pop(node, ()):
                    one.holds = False
            if nest is not None:
                for node in nest.sources:
                    reading.setdefault(node, []).append(nest)
            left.append(self.inside(stmt, at, route))
        return headed(left)

    def first(
        self, nest: _Nest, seen: dict[object, _Nest | dict[Stmt, _Nest]], route: Route
    ) -> _Nest | None:
        """Return the nest that has computed what another one does, or make this one the first.

        All else is only asked where its sketch was seen before.
        """
        sketch = _sketch(nest)
        same = seen.setdefault(sketch, nest)
        if same is nest:
            return None
        if isinstance(same, _Nest):
            same = seen[sketch] = {_bare(same): same} if self.stands(same, route) else {}
        if not self.stands(nest, route):
            return None
        bare = _bare(nest)
        first = same.get(bare)
        if first is None or not first.holds:
            same[bare] = nest
            return None
        return first

    def now(self, stmt: Stmt) -> Stmt:
        """Return a statement that reads what is left in the place of what went."""
        if summary(stmt).reads.isdisjoint(self.taken):
            return stmt
        (new,) = rename((stmt,), {}, self.taken)
        return new

    def inside(self, stmt: Stmt, at: int, route: Route) -> Stmt:
        lists = bodies(stmt)
        inner = (self.body(one, (*route, (at, n))) for n, one in enumerate(lists))
        return with_bodies(stmt, tuple(inner)) if lists else stmt

    def stands(self, nest: _Nest, route: Route) -> bool:
        """Whether what a nest computes stays until the end, and nothing else computes it."""
        node = nest.target
        if node is None:
            return True
        return node.id in self.ours and self.only_place(node, route) == nest.at

    def only_place(self, node: Node, route: Route) -> int | None:
        """Return where in a list a node is written, None where there is more than one place."""
        known = self.places.setdefault(route, {})
        if node.id not in known:
            found = self.found = self.found or accesses(self.kernel)
            places = {place_in(site.route, route) for site in found.of(node) if site.writes}
            known[node.id] = places.pop() if len(places) == 1 else None
        return known[node.id]

    def merges(self, first: _Nest, second: _Nest, route: Route) -> bool:
        """Whether the second nest may go; then its local is read from the first one's."""
        one, two = first.target, second.target
        if one is None or two is None:
            return one is two
        if two.id not in self.gone or (one.dtype, one.shape) != (two.dtype, two.shape):
            return False
        assert self.found is not None, "asked by `stands`"
        for site in self.found.of(two):
            place = place_in(site.route, route)
            if place is None or place < second.at:
                return False
        self.taken[two.id] = one
        return True


JUMPS = frozenset((Break, Continue))
_KINDS = frozenset((For, If, Store, Update, Fill, Check, Comment))


def _nest(at: int, stmt: Stmt, known: Summary) -> _Nest | None:
    """Return a statement as a nest that writes one node at most, and reads others."""
    if isinstance(stmt, Comment) or not known.kinds <= _KINDS or len(known.writes) > 1:
        return None
    target = _target(stmt) if known.writes else None
    return _Nest(at, stmt, target, known.reads - known.writes)


def _target(stmt: Stmt) -> Node:
    """Return the node that a nest writes first."""
    while not own_writes(stmt):
        stmt = next(one for body in bodies(stmt) for one in body if summary(one).writes)
    return own_writes(stmt)[0]


def _sketch(nest: _Nest) -> object:
    """Return what equal nests have in common and is soon found: sources and outer loops."""
    kinds: list[object] = [nest.sources]
    stmt = nest.stmt
    while isinstance(stmt, For) and stmt.body:
        kinds += (stmt.hi.offset, len(stmt.body))
        stmt = stmt.body[-1]
    return (*kinds, type(stmt))


def _bare(nest: _Nest) -> Stmt:
    """Return a nest with its symbols numbered, one name for its target, and checks as tests."""
    symbols: dict[Symbol, Symbol] = {}
    for stmt in statements((nest.stmt,)):
        if isinstance(stmt, For):
            symbols[stmt.symbol] = Symbol("", -1 - len(symbols))
    target = nest.target
    nodes = {} if target is None else {target.id: replace(target, id=-1, label="")}

    def bare(stmt: Stmt) -> Body:
        if isinstance(stmt, Comment):
            return ()
        return (If(stmt.test, ()),) if isinstance(stmt, Check) else (stmt,)

    (new,) = map_statements(rename((nest.stmt,), symbols, nodes), bare)
    return new
