"""Simplification of adjoints and tangents: what starts from zero is assigned, what nothing reads
is dropped, and constants are put in place.

    d_y = zeros;  d_y[i] += v[i];  ...;  d_y[i] = 0        d_y[i] = v[i];  ...
    d_s = 1.0;    d_x[i] += d_s * x[i]                     d_x[i] = x[i]

A forward pass follows which locals hold one number in all of their elements, a backward pass which
are read later. Both go around loops until nothing changes. Of a sum that starts from zero only the
sign of a zero is another one.

Source: F. Nielson, H. R. Nielson, C. Hankin, Principles of Program Analysis, sections 2.1 and 2.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ...base.dataclass import dataclass
from ..ir.assignments import (
    Access,
    Alloc,
    Assign,
    Block,
    Branch,
    Break,
    Check,
    Continue,
    For,
    Let,
    Permute,
    Print,
    Procedure,
    Statement,
    While,
)
from ..ir.expressions import Apply, Const, Domain, Expr, Read, reads, rebuild
from ..ir.indexing import Affine, Symbol, var
from ..ir.node import Node
from ..ir.ops import OPS
from ..ir.walk import direct_reads, direct_writes, statements, writes
from .rules import apply, number

Body = tuple[Statement, ...]
Facts = dict[int, Const]
"""The number that all elements of a local have, by the local's id."""
_FOLDED = ("mul", "div", "neg", "add", "sub")


def simplified(procedure: Procedure) -> Procedure:
    """Return a procedure that computes the same results with fewer statements.

    Precondition: locals and results are zero before the first statement. Postcondition: results and
    parameters are what they were, up to the signs of zeros.
    """
    created = (*procedure.locals, *procedure.results)
    facts = {
        node.id: Const(0.0, node.dtype) for node in created
        if node.dtype.kind == "f" and node.static_shape is not None
    }  # fmt: skip
    body = _Constants(frozenset(node.id for node in created)).body(procedure.body, facts)
    own = frozenset(node.id for node in procedure.locals)
    body, _ = _DeadStores(own).body(body, frozenset())
    used = {
        node.id for stmt in statements(body) if not isinstance(stmt, Alloc)
        for node in (*direct_reads(stmt), *direct_writes(stmt))
    }  # fmt: skip
    body = _without_allocations(body, own - used)
    return replace(procedure, body=body, locals=tuple(n for n in procedure.locals if n.id in used))


def live_before(body: Body, nodes: Iterable[int]) -> frozenset[int]:
    """Return which of some nodes, that nobody reads after a body, it reads before it writes them;
    only where that has an effect on others."""
    own = frozenset(nodes)
    return _DeadStores(own).body(body, frozenset())[1] & own


def covers(stmt: Assign) -> bool:
    """Whether an assignment writes all elements of its target, each at one point."""
    ranges = {r.symbol: r for r in stmt.free.ranges}
    whole: list[Symbol] = []
    for at, extent in zip(stmt.target.index, stmt.target.node.shape, strict=True):
        if isinstance(at, Affine) and at.constant == 0 and extent.constant == 1:
            continue
        r = ranges.get(at.symbol) if isinstance(at, Affine) and at.symbol else None
        if r is None or r.lo.constant != 0 or r.hi != extent:
            return False
        whole.append(r.symbol)
    return stmt.free.where is None and len(set(whole)) == len(whole) == len(ranges)


def _with_own_slices(body: Body, symbol: Symbol, facts: Facts) -> Body:
    """Return the body of a loop in which sums to a slice of each iteration's own are assigned,
    where the array is zero before the loop and the loop has nothing else to do with it."""
    out: list[Statement] = []
    for stmt in body:
        if isinstance(stmt, Assign) and _is_sum(stmt) and _has_slice_of(stmt, symbol):
            node, known = stmt.target.node, facts.get(stmt.target.node.id)
            touching = [
                one for one in statements(body) if node in (*direct_reads(one), *direct_writes(one))
            ]
            if known is not None and known.value == 0 and len(touching) == 1:
                stmt = _assigned(stmt)
        out.append(stmt)
    return tuple(out)


def _has_slice_of(stmt: Assign, symbol: Symbol) -> bool:
    """Whether the target is a whole slice, at a place of each iteration's own."""
    index = stmt.target.index
    places = [
        n for n, at in enumerate(index)
        if isinstance(at, Affine) and at - at.offset in (var(symbol), -var(symbol))
    ]  # fmt: skip
    if len(places) != 1:
        return False
    rest, shape = list(index), list(stmt.target.node.shape)
    del rest[places[0]], shape[places[0]]
    node = replace(stmt.target.node, shape=tuple(shape), strides=None)
    return covers(replace(stmt, target=Access(node, tuple(rest))))


def _is_sum(stmt: Assign) -> bool:
    return stmt.op in (OPS["add"], OPS["sub"]) and not stmt.initialize and stmt.pair is None


def _assigned(stmt: Assign) -> Assign:
    """Return a sum that starts from zero as an assignment."""
    if stmt.op == OPS["sub"]:
        stmt = replace(stmt, op=OPS["add"], value=apply("neg", stmt.value))
    if stmt.reduced == Domain():
        return replace(stmt, op=None)
    return replace(stmt, initialize=True)


def is_assigned_first(body: Body, node: Node) -> bool:
    """Whether the first statement that has to do with a node assigns all of its elements."""
    for stmt in body:
        inside = statements((stmt,))
        if any(node in (*direct_reads(one), *direct_writes(one)) for one in inside):
            if isinstance(stmt, Block):
                return is_assigned_first(stmt.body, node)
            return (
                isinstance(stmt, Assign)
                and stmt.target.node == node
                and (stmt.op is None or stmt.initialize)
                and covers(stmt)
                and not _reads_itself(stmt)
            )
    return False


def _reads_itself(stmt: Assign) -> bool:
    exprs = [e for e in (stmt.value, stmt.free.where, stmt.reduced.where) if e is not None]
    return any(read.node == stmt.target.node for expr in exprs for read in reads(expr))


def _jumps(body: Body) -> bool:
    return any(isinstance(stmt, Break | Continue) for stmt in statements(body))


@dataclass(frozen=True, slots=True)
class _Constants:
    """Follows forward which locals hold one number, and uses it."""

    locals: frozenset[int]

    def body(self, body: Body, facts: Facts) -> Body:
        """Return the statements of a body, and update the facts after it."""
        return tuple(new for stmt in body for new in self.statement(stmt, facts))

    def statement(self, stmt: Statement, facts: Facts) -> Body:
        """Return a statement, none where it changes nothing, and update the facts after it."""
        match stmt:
            case Assign():
                return self.assign(stmt, facts)
            case For(symbol=symbol, body=inside):
                before = dict(facts)
                self._at_head((inside,), facts)
                own = _with_own_slices(self._inside(inside, facts), symbol, before)
                return (replace(stmt, body=own),)
            case While(prelude, test, inside):
                self._at_head((prelude, inside), facts)
                again = dict(facts)
                first = self.body(prelude, again)
                _keep_common(facts, again)
                new = replace(stmt, prelude=first, test=_valued(test, again))
                return (replace(new, body=self._inside(inside, again)),)
            case Branch(test, then, orelse):
                other = dict(facts)
                test = _valued(test, facts)
                sides = self.body(then, facts), self.body(orelse, other)
                _keep_common(facts, other)
                return (replace(stmt, test=test, then=sides[0], orelse=sides[1]),)
            case Block(body=inside):
                return (replace(stmt, body=self.body(inside, facts)),)
            case Alloc(node):
                facts.pop(node.id, None)
                if node.id in self.locals and node.dtype.kind == "f":
                    facts[node.id] = number(0.0, node.dtype)
                return (stmt,)
            case Permute():
                _forget(facts, (stmt,))
                return (stmt,)
            case Let() | Check() | Print() | Break() | Continue():
                return (stmt,)

    def _at_head(self, inside: tuple[Body, ...], facts: Facts) -> None:
        """Keep the facts at the head of a loop before each of its iterations."""
        if any(_jumps(body) for body in inside):
            for body in inside:
                _forget(facts, body)
            return
        size = -1
        while len(facts) != size:
            size, after = len(facts), dict(facts)
            for body in inside:
                self.body(body, after)
            _keep_common(facts, after)

    def _inside(self, body: Body, facts: Facts) -> Body:
        """Return the body of a loop at whose head facts hold, which also hold after it."""
        return self.body(body, dict(facts))

    def assign(self, stmt: Assign, facts: Facts) -> Body:
        """Return an assignment with constants in place; a sum that starts from zero replaces."""
        stmt = replace(stmt, value=_valued(stmt.value, facts))
        node, known = stmt.target.node, facts.get(stmt.target.node.id)
        is_sum, whole = _is_sum(stmt), covers(stmt)
        if is_sum and isinstance(stmt.value, Const) and stmt.value.value == 0:
            return ()
        if is_sum and known is not None and known.value == 0 and whole and not _reads_itself(stmt):
            stmt = _assigned(stmt)
        stays = stmt.op is None and isinstance(stmt.value, Const) and stmt.value == known
        if not stays:
            _forget(facts, (stmt,))
        if node.id in self.locals and whole and stmt.op is None and isinstance(stmt.value, Const):
            if not stmt.reduced.ranges:
                facts[node.id] = stmt.value
        return (stmt,)


def _forget(facts: Facts, body: Body) -> None:
    for node in writes(body):
        facts.pop(node.id, None)


def _keep_common(facts: Facts, other: Facts) -> None:
    for number_ in [n for n, value in facts.items() if other.get(n) != value]:
        del facts[number_]


def _valued(expr: Expr, facts: Facts) -> Expr:
    """Return an expression with the numbers that locals hold."""
    if isinstance(expr, Read) and expr.node.id in facts:
        return facts[expr.node.id]
    new = rebuild(expr, lambda part: _valued(part, facts), lambda index: index)
    if new is not expr and isinstance(new, Apply) and new.op.name in _FOLDED:
        return apply(new.op.name, *new.args)
    return new


@dataclass(frozen=True, slots=True)
class _DeadStores:
    """Follows backward which nodes are read later, and drops what writes others."""

    locals: frozenset[int]
    """The nodes that nobody reads at the end."""

    def body(self, body: Body, live: frozenset[int]) -> tuple[Body, frozenset[int]]:
        """Return the statements of a body whose effects are used, and what is live before it.

        `live` are the locals that are read after it.
        """
        out: list[Statement] = []
        for stmt in reversed(body):
            new, live = self.statement(stmt, live)
            out[:0] = new
        return tuple(out), live

    def statement(self, stmt: Statement, live: frozenset[int]) -> tuple[Body, frozenset[int]]:
        """Return a statement, none where its effects are not used, and what is live before it."""
        read = frozenset(node.id for node in direct_reads(stmt))
        match stmt:
            case Assign(target, op, initialize):
                written = frozenset(node.id for node in direct_writes(stmt))
                if not written & live and written <= self.locals:
                    return (), live
                if (op is None or initialize) and stmt.pair is None and covers(stmt):
                    live = live - {target.node.id}
                return (stmt,), live | read
            case For(body=inside) if not _jumps(inside):
                at_end = self._around(((inside,),), live)
                new, before = self.body(inside, at_end)
                return ((replace(stmt, body=new),) if new else ()), live | before
            case While(prelude, _, inside) if not _jumps(inside):
                at_test = self._around(((inside, prelude),), live | read) | read
                new, before = self.body(inside, self.body(prelude, at_test)[1])
                first, before = self.body(prelude, at_test | before)
                return (replace(stmt, prelude=first, body=new),), before
            case For() | While():
                inner = frozenset(n.id for s in statements((stmt,)) for n in direct_reads(s))
                return (stmt,), live | inner
            case Branch(_, then, orelse):
                (yes, before), (no, otherwise) = self.body(then, live), self.body(orelse, live)
                if not yes and not no:
                    return (), live
                return (replace(stmt, then=yes, orelse=no),), before | otherwise | read
            case Block(body=inside):
                new, live = self.body(inside, live | read)
                return ((replace(stmt, body=new),) if new else ()), live | read
            case Alloc(node):
                return (stmt,), live - {node.id}
            case Permute(nodes, sources):
                moved = {n.id: s.id for n, s in zip(nodes, sources, strict=True)}
                if not live & moved.keys() and moved.keys() <= self.locals:
                    return (), live
                return (stmt,), frozenset(moved.get(n, n) for n in live)
            case Let() | Check() | Print() | Break() | Continue():
                return (stmt,), live | read

    def _around(self, loops: tuple[tuple[Body, ...], ...], live: frozenset[int]) -> frozenset[int]:
        """Return what is live at the end of an iteration: after the loop, or in the next one."""
        size = -1
        while len(live) != size:
            size = len(live)
            for bodies in loops:
                before = live
                for body in reversed(bodies):
                    before = self.body(body, before)[1]
                live |= before
        return live


def _without_allocations(body: Sequence[Statement], nodes: frozenset[int]) -> Body:
    """Return a body that allocates none of some nodes."""
    out: list[Statement] = []
    for stmt in body:
        if isinstance(stmt, Alloc) and stmt.node.id in nodes:
            continue
        if isinstance(stmt, For | Block):
            stmt = replace(stmt, body=_without_allocations(stmt.body, nodes))
        elif isinstance(stmt, While):
            inside = [_without_allocations(part, nodes) for part in (stmt.prelude, stmt.body)]
            stmt = replace(stmt, prelude=inside[0], body=inside[1])
        elif isinstance(stmt, Branch):
            sides = [_without_allocations(part, nodes) for part in (stmt.then, stmt.orelse)]
            stmt = replace(stmt, then=sides[0], orelse=sides[1])
        out.append(stmt)
    return tuple(out)
