"""Divergent lanes in lockstep: adjacent iterations that leave an inner loop separately.

Statements of an iteration outside of loops are one loop over lanes. An inner loop runs while one
lane is active; in each of its iterations all lanes execute its body, and select what inactive lanes
had. Scalars that are live from one run of statements to another, or from one inner iteration to the
next, are expanded, as are elements that an inner loop reads repeatedly. Lanes after the last
iteration are inactive from the start: they read only what other lanes may read, and their results
are not used.

Precondition: iterations that may run in any order, and `can_be_lanes`. Postcondition: each
iteration does what it did, in its order.

>>> program, _ = optimize(lowered('''
... for c in range(40):
...     u = x[c]
...     while u < 9:
...         u = u * 2 + x[c]
...     y[c] = u
... ''', x="f32[40]", y="f32[40]"), Target(), stop_after="eliminate_dead_code 2")
>>> (loop,) = (stmt for stmt in program.kernels[0].body if isinstance(stmt, For))
>>> privates = find_privatizable(loop, loop_local_nodes(program)[id(loop)])
>>> print_loops((run_in_lockstep(loop, fresh_for(program), privates, ranges((loop,))),))
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
from .. import thresholds
from ..analysis.accesses import collect_accesses
from ..analysis.complex_parts import source_of_part
from ..analysis.dependence import has_break
from ..analysis.effects import summarize
from ..analysis.subscripts import ranges
from ..analysis.vectorizable import subscript_symbols
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
from ..ir.walk import direct_writes, expressions_of, statements, writes
from ..transform.if_convert import (
    IfConverted,
    can_if_convert,
    conjoin,
    evaluate_eagerly,
    if_convert,
    substitute_values,
)

Body = tuple[Stmt, ...]


def may_exit_early(stmt: Stmt) -> bool:
    """Whether a loop may end before all of its iterations have run."""
    return isinstance(stmt, While) or (isinstance(stmt, For) and has_break(stmt.body))


def can_be_lanes(loop: For, domain: tuple[Range, ...]) -> bool:
    """Whether the iterations of a loop can be lanes; `domain` are the ranges of it and of enclosing
    loops."""
    trip_count = (loop.hi - loop.lo).constant
    return (trip_count is None or trip_count >= thresholds.DIVERGENT_LANES) and all(
        _can_run_lockstep(stmt, loop.symbol, domain) if isinstance(stmt, For | While)
        else can_if_convert((stmt,), (), domain)
        for stmt in loop.body
    )  # fmt: skip


def _can_run_lockstep(stmt: For | While, symbol: Symbol, domain: tuple[Range, ...]) -> bool:
    """Whether lanes can execute a loop in lockstep, some of them speculatively."""
    if any(node.rank for node in writes(stmt.body)):
        return False
    if isinstance(stmt, While):
        if stmt.prelude or not can_if_convert((If(stmt.test, ()),), (), domain, sure=False):
            return False
    elif stmt.kind != "serial" or symbol in stmt.lo.symbols() | stmt.hi.symbols():
        return False
    else:
        domain = (*domain, *ranges((stmt,)))
    return can_if_convert(stmt.body, (Break, Continue), domain, sure=False)


def lane_parts(body: Body) -> list[Body]:
    """Return the parts of an iteration that all lanes do one after the other: each inner loop, and
    the statements between these."""
    out: list[Body] = []
    for is_loop, group in groupby(body, lambda stmt: isinstance(stmt, For | While)):
        stmts = tuple(group)
        out += ((stmt,) for stmt in stmts) if is_loop else (stmts,)
    return out


def run_in_lockstep(
    loop: For, fresh: Fresh, privates: frozenset[int], domain: tuple[Range, ...]
) -> For:
    """Return the loop over strips of lanes that replaces a loop.

    `privates` are the ids of the private nodes of each iteration, `domain` the ranges of the loop
    and of enclosing ones.
    """
    trip_count, start = (loop.hi - loop.lo).constant, fresh.symbol(loop.symbol.name)
    width = thresholds.DIVERGENT_LANES
    is_full = trip_count is not None and trip_count % width == 0
    count = const(width) if is_full else minimum(const(width), loop.hi - var(start))
    lanes = _Lanes(fresh, loop, privates, domain, start, count)
    return For(start, loop.lo, loop.hi, thresholds.DIVERGENT_LANES, lanes.build(), span=loop.span)


@dataclass(slots=True)
class _Lanes:
    """A strip of iterations, one in each lane."""

    fresh: Fresh
    loop: For
    privates: frozenset[int]
    domain: tuple[Range, ...]
    start: Symbol
    """The first iteration."""
    count: Affine
    """How many lanes have an iteration: fewer in the last strip."""
    expanded: dict[int, Node] = field(default_factory=dict)
    """The expanded scalars, with an element for each lane, by the id of the scalar."""

    def build(self) -> Body:
        """Return the statements of all lanes."""
        parts = lane_parts(self.loop.body)
        for node in self.find_live(parts):
            self.expanded[node.id] = self.array(node.label, node.dtype)
        out: list[Stmt] = []
        for part in parts:
            first = part[0]
            out += (
                self.run_loop(first)
                if isinstance(first, For | While)
                else self.run_statements(part)
            )
        return tuple(out)

    def find_live(self, parts: list[Body]) -> Iterator[Node]:
        """Yield the scalars that are live from one part of an iteration to another, or from one
        inner iteration to the next."""
        used = [frozenset[int]().union(*(summarize(s).touches for s in part)) for part in parts]
        loops = [part for part in parts if isinstance(part[0], For | While)]
        for node in writes(self.loop.body):
            if not node.rank and node.id in self.privates:
                is_carried = any(
                    collect_accesses(part).is_read_before_written(node) for part in loops
                )
                if is_carried or sum(node.id in ids for ids in used) > 1:
                    yield node

    def array(self, label: str, dtype: DType) -> Node:
        """Return an array with an element for each lane."""
        return self.fresh.array(f"{label}_lanes", (thresholds.DIVERGENT_LANES,), dtype, "tile")

    # -------------------------------------------------------------------------- statements

    def run_statements(self, part: Body) -> Body:
        """Return statements outside of loops, for the lanes that have an iteration."""
        lane = self.fresh.symbol("lane")
        converted = if_convert(part, self.fresh, self.values(lane), self.domain)
        return (self.lane_loop(lane, self.store_values(converted, lane, None), self.count),)

    def run_loop(self, loop: For | While) -> Body:
        """Return an inner loop in lockstep, after the loops that prepare it."""
        lane = self.fresh.symbol("lane")
        near = self.invariant_arrays(loop)
        out = [self.gather(near)] if near else []
        is_far = any(
            self.loop.symbol in subscript_symbols(read.index) and part not in near
            for part, read in _find_elements(loop)
        )  # fmt: skip
        count = self.count if is_far else const(thresholds.DIVERGENT_LANES)
        if not may_exit_early(loop):
            assert isinstance(loop, For), "a `while` may end"
            body = self.store_values(self.if_convert(loop, near, lane), lane, None)
            return (*out, replace(loop, body=(self.lane_loop(lane, body, count),)))
        on = self.array("on", _mask_dtype(loop))
        start: Expr = Const(1, on.dtype)
        if self.count.constant is None:
            start = Cast(_comparison("lt", Position(var(lane)), Position(self.count)), on.dtype)
        out.append(self.lane_loop(lane, (Store(Access(on, (var(lane),)), start, loop.span),)))
        lane = self.fresh.symbol("lane")
        out += self.while_active(loop, on, self.run_iteration(loop, on, near, lane, count))
        return tuple(out)

    def run_iteration(
        self, loop: For | While, on: Node, near: Mapping[Expr, Node], lane: Symbol, count: Affine
    ) -> Stmt:
        """Return an iteration of a loop that lanes may leave: what active lanes do."""
        here = Access(on, (var(lane),))
        test: Expr = _comparison("ne", Read(here.node, here.index), Const(0, on.dtype))
        if isinstance(loop, While):
            guard = _read_gathered(evaluate_eagerly(loop.test, self.domain), near, lane)
            test = conjoin(test, substitute_values(guard, self.values(lane)))
        live = self.fresh.scalar("live", dtypes.bool_)
        converted = self.if_convert(loop, near, lane)
        goes_on = conjoin(Read(live, ()), converted.goes_on)
        stmts = (
            Store(Access(live, ()), test, loop.span),
            *self.store_values(converted, lane, Read(live, ())),
            Store(here, Cast(goes_on, on.dtype), loop.span),
        )
        return self.lane_loop(lane, stmts, count)

    def if_convert(self, loop: For | While, near: Mapping[Expr, Node], lane: Symbol) -> IfConverted:
        """Return the body of an inner loop, if-converted."""
        inner = (*ranges((loop,)), Range(lane, const(0), const(thresholds.DIVERGENT_LANES)))
        gathered = Rewrite(expr=partial(_read_gathered, near=near, lane=lane))
        body = rewrite(loop.body, gathered) if near else loop.body
        return if_convert(body, self.fresh, self.values(lane), (*self.domain, *inner))

    def while_active(self, loop: For | While, on: Node, iteration: Stmt) -> Body:
        """Return a loop that ends when no lane is active."""
        any_active, lane = self.fresh.scalar("some", on.dtype), self.fresh.symbol("lane")
        zero = Const(0, on.dtype)
        combine = Update(
            Access(any_active, ()), OPS["bitor"], Read(on, (var(lane),)), span=loop.span
        )
        leave = If(_comparison("eq", Read(any_active, ()), zero), (Break(),), (), loop.span)
        clear = Store(Access(any_active, ()), zero, loop.span)
        body = (iteration, clear, self.lane_loop(lane, (combine,)), leave)
        if isinstance(loop, While):
            return (While((), TRUE, body, loop.span),)
        return (replace(loop, body=body),)

    # --------------------------------------------------------------------------------- elements

    def values(self, lane: Symbol) -> dict[int, Expr]:
        """Return the expanded element of each scalar, by the id of the scalar."""
        return {number: Read(node, (var(lane),)) for number, node in self.expanded.items()}

    def store_values(self, converted: IfConverted, lane: Symbol, live: Expr | None) -> Body:
        """Return statements, with the new values of scalars stored for the active lanes."""
        body, line = list(converted.body), self.loop.span
        for number, node in self.expanded.items():
            old, new = Read(node, (var(lane),)), converted.values[number]
            if new == old:
                continue
            at = single_use_store(new, body, (*converted.values.values(), converted.goes_on), node)
            source = body.pop(at) if at is not None else None
            value, span = (source.value, source.span) if isinstance(source, Store) else (new, line)
            value = value if live is None else Select(live, value, old)
            store = Store(Access(node, old.index), value, span)
            body.insert(len(body) if at is None else at, store)
        return tuple(body)

    def invariant_arrays(self, loop: For | While) -> dict[Expr, Node]:
        """Return an array for each element that an inner loop reads in all of its iterations, and
        for each part of a complex one."""
        inner_symbols = {loop.symbol} if isinstance(loop, For) else set[Symbol]()
        arrays: dict[Expr, Node] = {}
        for part, read in _find_elements(loop):
            used = subscript_symbols(read.index)
            if self.loop.symbol in used and not used & inner_symbols and part not in arrays:
                arrays[part] = self.array(read.node.label, part.dtype)
        return arrays

    def gather(self, near: Mapping[Expr, Node]) -> Stmt:
        """Return the loop that gathers elements into these arrays."""
        lane = self.fresh.symbol("lane")
        stores = (
            Store(Access(node, (var(lane),)), part, reads(part)[0].span)
            for part, node in near.items()
        )
        return self.lane_loop(lane, tuple(stores), self.count)

    def lane_loop(self, lane: Symbol, body: Body, count: Affine | None = None) -> Stmt:
        """Return a loop over lanes, all of them unless a number is given."""
        count = const(thresholds.DIVERGENT_LANES) if count is None else count
        body = substitute(body, {self.loop.symbol: var(self.start) + var(lane)})
        return For(lane, const(0), count, 1, body, span=self.loop.span)


def _find_elements(loop: For | While) -> Iterator[tuple[Expr, Read]]:
    """Yield the elements, and parts of complex ones, that a loop reads, each with its read."""
    for stmt in statements((loop,)):
        for expr in expressions_of(stmt):
            inside = walk(expr)
            parts = [(part, read) for part in inside if (read := source_of_part(part)) is not None]
            in_parts = {id(read) for _, read in parts}
            parts += [(p, p) for p in inside if isinstance(p, Read) and id(p) not in in_parts]
            yield from ((part, read) for part, read in parts if read.node.rank)


def _read_gathered(expr: Expr, near: Mapping[Expr, Node], lane: Symbol) -> Expr:
    """Return an expression that reads gathered elements."""

    def value(expr: Expr) -> Expr:
        read = expr if isinstance(expr, Read) else source_of_part(expr)
        if read is not None and expr in near:
            return Read(near[expr], (var(lane),), read.span)
        return rebuild(expr, value, lambda index: index)

    return value(expr)


def single_use_store(
    new: Expr, body: Sequence[Stmt], values: Sequence[Expr], node: Node
) -> int | None:
    """Return which statement computes a value whose only use is a store to an array, where nothing
    after it needs the array's old element; else None."""
    if not isinstance(new, Read):
        return None
    position = next((n for n, s in enumerate(body) if new.node in direct_writes(s)), None)
    if position is None:
        return None
    others = [e for stmt in body for e in expressions_of(stmt)]
    later = [e for stmt in body[position + 1 :] for e in expressions_of(stmt)]
    uses = sum(read.node == new.node for e in (*others, *values) for read in reads(e))
    is_needed = any(read.node == node for e in (*later, *values) for read in reads(e))
    return None if uses > 1 or is_needed else position


def _mask_dtype(loop: For | While) -> DType:
    """Return an integer type as wide as what is computed, so that vectors have as many lanes."""
    written = [node.dtype for node in writes(loop.body)]
    bits = [dtype.bits for dtype in written if dtype.kind == "f"] or [
        dtype.bits for dtype in written
    ]
    return dtypes.int64 if max(bits, default=32) > 32 else dtypes.int32


def _comparison(name: str, left: Expr, right: Expr) -> Expr:
    return Apply(OPS[name], (left, right), dtypes.bool_)
