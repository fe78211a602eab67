"""If-conversion in inner loops: guarded accumulators as selects, so that columns are SIMD lanes.

Changes: a loop with independent iterations, each with inner loops that update private scalars, or
elements, under a test. What one test guards becomes selects, as a best value and its position:

    for j: best = x[0, j]; at = 0                      for j: best = x[0, j]; at = 0
           for i: if x[i, j] > best:                          for i: t = x[i, j] > best
                      best = x[i, j]; at = i     ->                  best = x[i, j] if t else best
           y[j] = at                                                 at = i if t else at
                                                              y[j] = at

`vectorize_outer` has the lanes then. An argmin or argmax is such an update, too; the first NaN is
best of all. Where its loops certainly run, it starts from the first position and the neutral
element instead of "nothing found": a test less, and the same result, as the first best value is the
first term if no term is better than the neutral element. Positions are as wide as the values, where
they fit (`narrow_positions`).

Precondition: a loop that `vectorize_outer` vectorizes when its tests are selects; guarded
statements that can be executed speculatively (`if_convert`). Postcondition: bit-identical: each
iteration does what it did, in its order.

>>> from plusequals.lowering.passes.contract_arrays import contract_arrays
>>> show(lambda program: select_guarded(contract_arrays(program).program, Target(schedule=True)),
...      "y[j] = argmax(x[i, j])", y="i64[70]", x="i32[9, 70]")
for j in 0..70:
    argmax_acc_2 = 0
    best = -2147483648
    for i in 0..9:
        candidate = x[i, j]
        is_better = candidate > best
        best = candidate if is_better else best
        argmax_acc_2 = i32(i) if is_better else argmax_acc_2
    argmax[j] = i64(argmax_acc_2)
for j in 0..70:
    y[j] = argmax[j]
"""

from __future__ import annotations

from dataclasses import field, replace
from itertools import groupby
from typing import NamedTuple

from ...base.dataclass import dataclass
from ...base.diagnostic import Span
from .. import thresholds
from ..analysis.accesses import collect_accesses
from ..analysis.effects import summarize
from ..analysis.expression_cost import cost
from ..analysis.parallel_band import perfect_nest
from ..analysis.subscripts import ranges
from ..ir import dtypes
from ..ir.assignments import Access, Pair
from ..ir.bounds import Bounds
from ..ir.decision import Decided, Decision, Reason
from ..ir.expressions import Apply, Const, Expr, Position, Read, Select, reads
from ..ir.fresh import Fresh
from ..ir.indexing import Affine, Range
from ..ir.indexing import substitute as substitute_index
from ..ir.loops import For, If, Program, Stmt, Store, Update, While
from ..ir.node import Node
from ..ir.ops import OPS, Op, neutral_of
from ..ir.walk import direct_reads, direct_writes, expressions_of, statements, writes
from ..target import Target
from ..transform.if_convert import can_if_convert, if_convert
from ..transform.narrow_positions import narrow_positions
from ..transform.outermost import OutermostRewriter
from .divergent_lanes import single_use_store
from .outer_vectorize import find_lanes

Body = tuple[Stmt, ...]
Loops = tuple[For, ...]
_NOTHING_FOUND = Const(-1, dtypes.int64)


class ArgSelectReason(Reason):
    """Why guarded updates become selects."""

    COLUMNS = "what its inner loops update under a test is selected, so that it runs in SIMD lanes"


def select_guarded(program: Program, target: Target) -> Decided:
    """Return the program with the guarded updates of columns as selects, and the decisions."""
    return _Columns.on(program, target)


class _Columns(OutermostRewriter):
    """The if-conversion of the columns of one program."""

    __slots__ = ()

    def nest(self, loop: For, outer: Loops) -> Body | None:
        """Return a loop without branches that can be vectorized; None where it stays."""
        if loop.kind != "serial" or loop.step != 1 or not _has_guarded_loops(loop):
            return None
        only, before = self.only()[id(loop)], len(self.fresh.nodes)
        outside = self.bounds
        for enclosing in outer:
            outside = outside.inside(enclosing)
        conversion = _Conversion(self.fresh, _find_pairs(loop, only), _count_touches(loop.body))
        body = conversion.body(loop.body, (*outer, loop), outside.inside(loop))
        converted = None if body is None else replace(loop, body=body)
        new = {node.id for node in self.fresh.nodes[before:]}
        temporaries = self.temporaries | new
        if converted is None or not find_lanes(
            converted, outer, self.target, only | new, temporaries
        ):
            del self.fresh.nodes[before:]
            return None
        written, name = writes(loop.body), loop.symbol.name
        node = next((node for node in written if node.id not in only), written[0])
        self.decisions.append(
            Decision("masked", ArgSelectReason.COLUMNS, node, span=loop.span, variable=name)
        )
        return (narrow_positions(converted, only | new, self.fresh, outside),)


def _has_guarded_loops(loop: For) -> bool:
    """Whether a loop has inner loops with a test of data, or an argmin or argmax."""
    inside = statements(loop.body)
    tests = [stmt.test for stmt in inside if isinstance(stmt, If)]
    return (
        not any(isinstance(stmt, While) for stmt in inside)
        and all(reads(test) for test in tests)
        and any(_is_guarded(s) for s in statements(s for s in loop.body if isinstance(s, For)))
    )


def _is_guarded(stmt: Stmt) -> bool:
    return isinstance(stmt, If) or _pair_of(stmt) is not None


def _pair_of(stmt: Stmt) -> Pair | None:
    return stmt.pair if isinstance(stmt, Update) else None


class _PairNodes(NamedTuple):
    """The accumulator of an argmin or argmax."""

    best: Node
    op: Op
    is_unset: bool
    """Whether the best value is initialized by nothing, as it is not used before the first term."""
    is_single: bool
    """Whether a single statement initializes the position, and a single one updates it."""

    def neutral(self, span: Span) -> Stmt:
        """Return the store of a value that no term is worse than."""
        dtype = self.best.dtype
        op = OPS["max" if self.op.name == "argmax" else "min"]
        start = Const(neutral_of(op, dtype.kind, dtype.bits), dtype)
        return Store(Access(self.best, ()), start, span)


def _find_pairs(loop: For, only: frozenset[int]) -> dict[int, _PairNodes]:
    """Return the accumulators of argmin and argmax in a loop, by the ids of their positions.

    They are scalars that only the loop accesses, see `only`; the position is initialized by
    "nothing found", and by no other value.
    """
    updates: dict[int, list[Update]] = {}
    others: dict[int, list[Stmt]] = {}
    for stmt in statements(loop.body):
        pair = _pair_of(stmt)
        if isinstance(stmt, Update) and pair is not None:
            updates.setdefault(pair.access.node.id, []).append(stmt)
        touched = {node.id for expr in expressions_of(stmt) for node in map(_node, reads(expr))}
        if pair is None:
            touched |= {node.id for node in direct_writes(stmt)}
        for number in touched:
            others.setdefault(number, []).append(stmt)
    pairs: dict[int, _PairNodes] = {}
    for number, found in updates.items():
        node, op = found[0].access.node, found[0].op
        used = [u for many in updates.values() for u in many if u.access.node == node]
        starts = [s for s in others.get(number, ()) if _is_written(s, number)]
        if (
            len(used) == len(found)
            and all(update.access.node == node and update.op == op for update in found)
            and {node.id, number} <= only
            and not any(a.index for u in found if u.pair for a in (u.access, u.pair.access))
            and all(isinstance(s, Store) and s.value == _NOTHING_FOUND for s in starts)
        ):
            pairs[number] = _PairNodes(
                node, op, node.id not in others, len(found) == len(starts) == 1
            )
    return pairs


def _node(read: Read) -> Node:
    return read.node


def _is_written(stmt: Stmt, number: int) -> bool:
    return any(node.id == number for node in direct_writes(stmt))


@dataclass(slots=True)
class _Conversion:
    """The if-conversion of the statements of one loop."""

    fresh: Fresh
    pairs: dict[int, _PairNodes]
    """The accumulators of argmin and argmax that are private scalars, by their positions' ids."""
    touches: dict[int, int]
    """How many statements of the loop access each node, by its id."""
    started: set[int] = field(default_factory=set)
    """The ids of positions that start from that of the first term."""

    def body(self, body: Body, outer: Loops, bounds: Bounds) -> Body | None:
        """Return statements without branches; None where that is impossible.

        `outer` are the loops around them, `bounds` the facts there.
        """
        out: list[Stmt] = []
        for is_loop, stmts in groupby(self.start(body, bounds), lambda s: isinstance(s, For)):
            if not is_loop:
                converted = self.straight(tuple(stmts), outer)
                if converted is None:
                    return None
                out += converted
                continue
            for stmt in stmts:
                assert isinstance(stmt, For), "they are grouped"
                inner = self.body(stmt.body, (*outer, stmt), bounds.inside(stmt))
                if inner is None:
                    return None
                out.append(replace(stmt, body=inner))
        return tuple(out)

    def start(self, body: Body, bounds: Bounds) -> Body:
        """Return statements in which each best value has an initial one, too, and positions start
        from that of the first term where there is one."""
        out: list[Stmt] = []
        for at, stmt in enumerate(body, 1):
            out.append(stmt)
            if not isinstance(stmt, Store) or stmt.access.node.id not in self.pairs:
                continue
            number = stmt.access.node.id
            pair = self.pairs[number]
            first = (
                _first_position(body[at:], number, bounds)
                if pair.is_unset and pair.is_single
                else None
            )
            if first is not None:
                self.started.add(number)
                out[-1] = replace(stmt, value=Position(first))
            if pair.is_unset:
                out.append(pair.neutral(stmt.span))
        return tuple(out)

    def straight(self, body: Body, outer: Loops) -> Body | None:
        """Return statements without loops or branches; None where that is impossible."""
        if not any(map(_is_guarded, body)):
            return body
        stmts: list[Stmt] = []
        for stmt in body:
            pair = _pair_of(stmt)
            if isinstance(stmt, Update) and pair is not None:
                if pair.access.node.id not in self.pairs:
                    return None
                stmts += self.select_pair(stmt, pair)
            else:
                stmts.append(stmt)
        branches = [stmt for stmt in stmts if isinstance(stmt, If)]
        guarded = (e for s in statements(branches) for e in expressions_of(s))
        if not branches:
            return tuple(stmts)
        if (
            not can_if_convert(tuple(stmts), (), ranges(outer))
            or sum(map(cost, guarded)) > thresholds.MAX_MASKED_COST
        ):
            return None
        return self.if_converted(tuple(stmts), ranges(outer), body, branches[0].span)

    def if_converted(
        self, stmts: Body, domain: tuple[Range, ...], before: Body, span: Span
    ) -> Body:
        """Return statements if-converted, with the new values of live scalars stored."""
        live = self.find_live(stmts, before)
        old: dict[int, Expr] = {node.id: Read(node, ()) for node in live}
        converted = if_convert(stmts, self.fresh, old, domain)
        out, new = list(converted.body), converted.values
        for node in live:
            if new[node.id] == old[node.id]:
                continue
            at = single_use_store(new[node.id], out, tuple(new.values()), node)
            source = None if at is None else out.pop(at)
            store = Store(Access(node, ()), new[node.id], span)
            if isinstance(source, Store):
                store = replace(store, value=source.value, span=source.span)
            out.insert(len(out) if at is None else at, store)
        return tuple(out)

    def find_live(self, stmts: Body, before: Body) -> tuple[Node, ...]:
        """Return the scalars that statements write and others access, or these statements in a
        later iteration; `before` is what they are in the loop."""
        inside, accesses = _count_touches(before), collect_accesses(stmts)
        return tuple(
            node for node in writes(stmts)
            if not node.rank and (
                inside.get(node.id, 0) < self.touches.get(node.id, 0)
                or accesses.is_read_before_written(node)
            )
        )  # fmt: skip

    def select_pair(self, update: Update, pair: Pair) -> Body:
        """Return an argmin or argmax as a test and a select for each of its two scalars."""
        best, place, span = update.access.node, pair.access.node, update.span
        candidate = self.fresh.scalar("candidate", best.dtype)
        is_better = self.fresh.scalar("is_better", dtypes.bool_)
        new, old, test = Read(candidate, ()), Read(best, ()), Read(is_better, ())
        better = _test("lt" if update.op.name == "argmin" else "gt", new, old)
        if best.dtype.kind == "f":
            is_first_nan = _test("and", _test("ne", new, new), _test("eq", old, old))
            better = _test("or", better, is_first_nan)
        if place.id not in self.started:
            is_first = _test("lt", Read(place, ()), Const(0, dtypes.int64))
            better = _test("or", is_first, better)
        position = Select(test, Position(pair.position), Read(place, ()))
        return (
            Store(Access(candidate, ()), update.value, span),
            Store(Access(is_better, ()), better, span),
            Store(update.access, Select(test, new, old), span),
            Store(pair.access, position, span),
        )


def _count_touches(body: Body) -> dict[int, int]:
    """Return how many statements access each node, by its id, nested ones included."""
    touches: dict[int, int] = {}
    for stmt in statements(body):
        for number in {node.id for node in (*direct_reads(stmt), *direct_writes(stmt))}:
            touches[number] = touches.get(number, 0) + 1
    return touches


def _first_position(body: Body, number: int, bounds: Bounds) -> Affine | None:
    """Return the position of the first term that statements compare, where they certainly compare
    one before they use the position; else None."""
    using = (stmt for stmt in body if number in summarize(stmt).touches)
    nest = next(using, None)
    if not isinstance(nest, For):
        return None
    loops, inside = perfect_nest(nest)
    update = next((s for s in inside if number in summarize(s).touches), None)
    pair = None if update is None else _pair_of(update)
    if pair is None:
        return None
    position = pair.position
    for loop in loops:
        trip_count = bounds.least(loop.hi - loop.lo)
        if loop.step != 1 or trip_count is None or trip_count < 1:
            return None
        bounds = bounds.inside(loop)
    for loop in reversed(loops):
        position = substitute_index(position, {loop.symbol: loop.lo})
    return position


def _test(name: str, left: Expr, right: Expr) -> Expr:
    return Apply(OPS[name], (left, right), dtypes.bool_)
