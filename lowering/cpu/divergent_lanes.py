"""Neighbouring rounds in lockstep: lanes that leave a loop inside each at a time of its own.

A part of a round that has no loop is one loop over lanes. A loop inside runs while one lane is on;
in each of its rounds all lanes do what it says, and those that are off keep what they had. Scalars
that are handed from part to part, or from one round of an inner loop to the next, have an element
for each lane, as does what an inner loop reads again and again. Lanes behind the last round are off
from the start: they read nothing but what other lanes may read, and nothing is made of them.

Needs: rounds that may run in any order, and `can_be_lanes`. Guarantees: each round does what it
did, in its order.

>>> program, _ = optimize(lowered('''
... for c in range(40):
...     u = x[c]
...     while u < 9:
...         u = u * 2 + x[c]
...     y[c] = u
... ''', x="f32[40]", y="f32[40]"), Target(), stop_after="dead again")
>>> (loop,) = (stmt for stmt in program.kernels[0].body if isinstance(stmt, For))
>>> mine = private(loop, confined(program)[id(loop)])
>>> print_loops((in_lockstep(loop, fresh_for(program), mine, ranges((loop,))),))
for c in 0..40 step 32:
    for lane in 0..min(-c + 40, 32):
        # u = x[c]
        # while u < 9
        u_lanes[lane] = x[c + lane]
    for lane in 0..min(-c + 40, 32):
        x_lanes[lane] = x[c + lane]
    for lane in 0..32:
        on_lanes[lane] = i32(lane < min(-c + 40, 32))
    while True:
        for lane in 0..32:
            live = on_lanes[lane] != 0 and u_lanes[lane] < 9.0
            # u = u * 2 + x[c]
            u_lanes[lane] = u_lanes[lane] * 2.0 + x_lanes[lane] if live else u_lanes[lane]
            on_lanes[lane] = i32(live)
        some = 0
        for lane in 0..32:
            some |= on_lanes[lane]
        if some == 0:
            break
    for lane in 0..min(-c + 40, 32):
        # y[c] = u
        y[c + lane] = u_lanes[lane]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from itertools import groupby

from ...base.dataclass import dataclass
from ..analysis.accesses import accesses
from ..analysis.complex_parts import part_of
from ..analysis.dependence import is_left
from ..analysis.effects import summary
from ..analysis.subscripts import ranges
from ..analysis.vectorizable import symbols_in
from ..ir import dtypes
from ..ir.algebra import TRUE
from ..ir.assignments import Access, Break, Continue
from ..ir.dtypes import DType
from ..ir.expressions import Apply, Cast, Const, Expr, Position, Read, Select, reads, rebuild, walk
from ..ir.fresh import Fresh
from ..ir.indexing import Affine, Range, Symbol, const, minimum, var
from ..ir.loops import For, If, Stmt, Store, Update, While
from ..ir.node import Node
from ..ir.ops import OPS
from ..ir.rewrite import Rewrite, rewrite, substitute
from ..ir.walk import expressions_of, own_writes, statements, writes
from ..transform.if_convert import Straight, both, eager, fits, now, straight

Body = tuple[Stmt, ...]
LANES = 32
"""How many rounds wait for each other: enough to hide how long an operation takes, and few. A loop
with fewer rounds is left as it is."""


def may_leave(stmt: Stmt) -> bool:
    """Whether a loop may end before all of its rounds have run."""
    return isinstance(stmt, While) or (isinstance(stmt, For) and is_left(stmt.body))


def can_be_lanes(loop: For, known: tuple[Range, ...]) -> bool:
    """Whether the rounds of a loop can be lanes; `known` are the ranges of it and those around."""
    rounds = (loop.hi - loop.lo).constant
    return (rounds is None or rounds >= LANES) and all(
        _can_run(stmt, loop.symbol, known) if isinstance(stmt, For | While)
        else fits((stmt,), (), known)
        for stmt in loop.body
    )  # fmt: skip


def _can_run(stmt: For | While, symbol: Symbol, known: tuple[Range, ...]) -> bool:
    """Whether lanes can run a loop together, some of them for nothing."""
    if any(node.rank for node in writes(stmt.body)):
        return False
    if isinstance(stmt, While):
        if stmt.prelude or not fits((If(stmt.test, ()),), (), known, sure=False):
            return False
    elif stmt.kind != "serial" or symbol in stmt.lo.symbols() | stmt.hi.symbols():
        return False
    else:
        known = (*known, *ranges((stmt,)))
    return fits(stmt.body, (Break, Continue), known, sure=False)


def in_lockstep(loop: For, fresh: Fresh, mine: frozenset[int], known: tuple[Range, ...]) -> For:
    """Return the loop over strips of lanes that takes the place of a loop.

    `mine` are the ids of what each round has for itself, `known` the ranges of the loop and of
    those around it.
    """
    rounds, at = (loop.hi - loop.lo).constant, fresh.symbol(loop.symbol.name)
    full = rounds is not None and rounds % LANES == 0
    count = const(LANES) if full else minimum(const(LANES), loop.hi - var(at))
    lanes = _Lanes(fresh, loop, mine, known, at, count)
    return For(at, loop.lo, loop.hi, LANES, lanes.made(), span=loop.span)


@dataclass(slots=True)
class _Lanes:
    """Some rounds of a loop, one in each lane."""

    fresh: Fresh
    loop: For
    mine: frozenset[int]
    known: tuple[Range, ...]
    at: Symbol
    """The first round."""
    count: Affine
    """How many lanes have a round: all but for the last ones."""
    own: dict[int, Node] = field(default_factory=dict)
    """What has an element for each lane, by the id of the scalar."""

    def made(self) -> Body:
        """Return what is done for all lanes."""
        parts: list[Body] = []
        for apart, group in groupby(self.loop.body, lambda stmt: isinstance(stmt, For | While)):
            found = tuple(group)
            parts += ((stmt,) for stmt in found) if apart else (found,)
        for node in self.handed(parts):
            self.own[node.id] = self.array(node.label, node.dtype)
        out: list[Stmt] = []
        for part in parts:
            first = part[0]
            out += self.together(first) if isinstance(first, For | While) else self.alone(part)
        return tuple(out)

    def handed(self, parts: list[Body]) -> Iterator[Node]:
        """Yield the scalars that go from one part of a round to another, or from inner round to
        inner round."""
        used = [frozenset[int]().union(*(summary(s).touches for s in part)) for part in parts]
        loops = [part for part in parts if isinstance(part[0], For | While)]
        for node in writes(self.loop.body):
            if not node.rank and node.id in self.mine:
                carried = any(accesses(part).read_before_written(node) for part in loops)
                if carried or sum(node.id in one for one in used) > 1:
                    yield node

    def array(self, label: str, dtype: DType) -> Node:
        """Return an array with an element for each lane."""
        return self.fresh.array(f"{label}_lanes", (LANES,), dtype, "tile")

    # -------------------------------------------------------------------------- parts of a round

    def alone(self, part: Body) -> Body:
        """Return statements without a loop, for the lanes that have a round."""
        lane = self.fresh.symbol("lane")
        made = straight(part, self.fresh, self.values(lane), self.known)
        return (self.each(lane, self.kept(made, lane, None), self.count),)

    def together(self, loop: For | While) -> Body:
        """Return a loop that lanes run together, and what is there for it before."""
        lane = self.fresh.symbol("lane")
        near = self.near(loop)
        out = [self.brought(near)] if near else []
        is_far = any(
            self.loop.symbol in symbols_in(read.index) and part not in near
            for part, read in _elements(loop)
        )  # fmt: skip
        count = self.count if is_far else const(LANES)
        if not may_leave(loop):
            assert isinstance(loop, For), "a `while` may end"
            body = self.kept(self.straight(loop, near, lane), lane, None)
            return (*out, replace(loop, body=(self.each(lane, body, count),)))
        on = self.array("on", _flag(loop))
        start: Expr = Const(1, on.dtype)
        if self.count.constant is None:
            start = Cast(_compared("lt", Position(var(lane)), Position(self.count)), on.dtype)
        out.append(self.each(lane, (Store(Access(on, (var(lane),)), start, loop.span),)))
        lane = self.fresh.symbol("lane")
        out += self.while_on(loop, on, self.round(loop, on, near, lane, count))
        return tuple(out)

    def round(
        self, loop: For | While, on: Node, near: Mapping[Expr, Node], lane: Symbol, count: Affine
    ) -> Stmt:
        """Return a round of a loop that lanes may leave: what lanes that are on do."""
        here = Access(on, (var(lane),))
        test: Expr = _compared("ne", Read(here.node, here.index), Const(0, on.dtype))
        if isinstance(loop, While):
            asked = _aside(eager(loop.test, self.known), near, lane)
            test = both(test, now(asked, self.values(lane)))
        live = self.fresh.scalar("live", dtypes.bool_)
        made = self.straight(loop, near, lane)
        going = both(Read(live, ()), made.goes_on)
        stmts = (
            Store(Access(live, ()), test, loop.span),
            *self.kept(made, lane, Read(live, ())),
            Store(here, Cast(going, on.dtype), loop.span),
        )
        return self.each(lane, stmts, count)

    def straight(self, loop: For | While, near: Mapping[Expr, Node], lane: Symbol) -> Straight:
        """Return what a round of an inner loop does, without branches."""
        own = (*ranges((loop,)), Range(lane, const(0), const(LANES)))
        by = Rewrite(expr=partial(_aside, near=near, lane=lane))
        body = rewrite(loop.body, by) if near else loop.body
        return straight(body, self.fresh, self.values(lane), (*self.known, *own))

    def while_on(self, loop: For | While, on: Node, turn: Stmt) -> Body:
        """Return a loop that ends when no lane is on."""
        some, lane = self.fresh.scalar("some", on.dtype), self.fresh.symbol("lane")
        zero = Const(0, on.dtype)
        each = Update(Access(some, ()), OPS["bitor"], Read(on, (var(lane),)), span=loop.span)
        left = If(_compared("eq", Read(some, ()), zero), (Break(),), (), loop.span)
        cleared = Store(Access(some, ()), zero, loop.span)
        body = (turn, cleared, self.each(lane, (each,)), left)
        if isinstance(loop, While):
            return (While((), TRUE, body, loop.span),)
        return (replace(loop, body=body),)

    # --------------------------------------------------------------------------------- elements

    def values(self, lane: Symbol) -> dict[int, Expr]:
        """Return where each scalar with an element for each lane is."""
        return {number: Read(node, (var(lane),)) for number, node in self.own.items()}

    def kept(self, made: Straight, lane: Symbol, live: Expr | None) -> Body:
        """Return statements, and what keeps the new values of scalars, for lanes that are live."""
        body, line = list(made.body), self.loop.span
        for number, node in self.own.items():
            old, new = Read(node, (var(lane),)), made.values[number]
            if new == old:
                continue
            at = _only_kept(new, body, (*made.values.values(), made.goes_on), node)
            source = body.pop(at) if at is not None else None
            value, span = (source.value, source.span) if isinstance(source, Store) else (new, line)
            value = value if live is None else Select(live, value, old)
            store = Store(Access(node, old.index), value, span)
            body.insert(len(body) if at is None else at, store)
        return tuple(body)

    def near(self, loop: For | While) -> dict[Expr, Node]:
        """Return an array for each element that a loop reads again in each of its rounds, and for
        each part of one."""
        bound = {loop.symbol} if isinstance(loop, For) else set[Symbol]()
        found: dict[Expr, Node] = {}
        for part, read in _elements(loop):
            used = symbols_in(read.index)
            if self.loop.symbol in used and not used & bound and part not in found:
                found[part] = self.array(read.node.label, part.dtype)
        return found

    def brought(self, near: Mapping[Expr, Node]) -> Stmt:
        """Return the loop that puts elements side by side."""
        lane = self.fresh.symbol("lane")
        stores = (
            Store(Access(node, (var(lane),)), part, reads(part)[0].span)
            for part, node in near.items()
        )
        return self.each(lane, tuple(stores), self.count)

    def each(self, lane: Symbol, body: Body, count: Affine | None = None) -> Stmt:
        """Return a loop over lanes, all of them unless a number is given."""
        count = const(LANES) if count is None else count
        body = substitute(body, {self.loop.symbol: var(self.at) + var(lane)})
        return For(lane, const(0), count, 1, body, span=self.loop.span)


def _elements(loop: For | While) -> Iterator[tuple[Expr, Read]]:
    """Yield what a loop reads of arrays, elements and parts of complex ones, each with the read."""
    for stmt in statements((loop,)):
        for expr in expressions_of(stmt):
            inside = walk(expr)
            parts = [(part, read) for part in inside if (read := part_of(part)) is not None]
            in_parts = {id(read) for _, read in parts}
            parts += [(p, p) for p in inside if isinstance(p, Read) and id(p) not in in_parts]
            yield from ((part, read) for part, read in parts if read.node.rank)


def _aside(expr: Expr, near: Mapping[Expr, Node], lane: Symbol) -> Expr:
    """Return an expression that reads what has been put side by side."""

    def value(one: Expr) -> Expr:
        read = one if isinstance(one, Read) else part_of(one)
        if read is not None and one in near:
            return Read(near[one], (var(lane),), read.span)
        return rebuild(one, value, lambda index: index)

    return value(expr)


def _only_kept(new: Expr, body: Sequence[Stmt], values: Sequence[Expr], node: Node) -> int | None:
    """Return which statement computes a value that is kept in an array and of no other use, where
    nothing behind it needs what the array had."""
    if not isinstance(new, Read):
        return None
    at = next((n for n, s in enumerate(body) if new.node in own_writes(s)), None)
    if at is None:
        return None
    others = [e for stmt in body for e in expressions_of(stmt)]
    later = [e for stmt in body[at + 1 :] for e in expressions_of(stmt)]
    uses = sum(read.node == new.node for e in (*others, *values) for read in reads(e))
    is_needed = any(read.node == node for e in (*later, *values) for read in reads(e))
    return None if uses > 1 or is_needed else at


def _flag(loop: For | While) -> DType:
    """Return a type of whole numbers as long as what is computed: vectors then fit each other."""
    changed = [node.dtype for node in writes(loop.body)]
    bits = [one.bits for one in changed if one.kind == "f"] or [one.bits for one in changed]
    return dtypes.int64 if max(bits, default=32) > 32 else dtypes.int32


def _compared(name: str, one: Expr, two: Expr) -> Expr:
    return Apply(OPS[name], (one, two), dtypes.bool_)
