"""Reassociated reductions in SIMD lanes: independent partial results, combined at the end.

Changes: of n terms, term p goes to lane p % L. Lanes are added up in blocks of 32 L terms, blocks
in blocks of 32, whose sums are added one after the other; of the lanes the upper half is added to
the lower one until one is left, and that is added to the target:

    lane[l] = x[l] + x[l + L] + x[l + 2 L] + ...           0 <= l < L, in every block
    lane[l] = lane[l] + lane[l + w]                        0 <= l < w, for w = L/2, ..., 2, 1
    y = y + lane[0]

Terms after the last whole step are added as vectors, whose lanes after the last term get -0.0; a
row of dynamic size takes the loops over blocks only where it has more terms than one block.

Extremes of cheap terms that are computed beside other results are distributed to a loop of their
own first.

Precondition: reductions whose terms have positions (`Update.over`), as `set_reduction_order` left
them. Postcondition: the order of a sum depends on the number of its terms alone, not on the shape
of loops: a short sum is written out, a loop that does more than accumulate keeps its shape and
computes the lane of each term, and both are bit-identical to the loop in lanes.

>>> show(vectorize_reductions, "y[i] = sum(x[i, j])", y="f32[8]", x="f32[8, 4]")
for i in 0..8:
    y[i] = 0.0
    y[i] += x[i, 0] + x[i, 2] + (x[i, 1] + x[i, 3])
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from functools import partial
from typing import cast

from ....base.dataclass import dataclass
from ... import thresholds
from ...analysis.carried_scalars import carried_scalars, stores_carried
from ...analysis.reductions import (
    Reduction,
    combine_lanes,
    find_reductions,
    is_min_max,
    split_min_max,
    upper_half,
)
from ...ir import dtypes
from ...ir.assignments import Access
from ...ir.bounds import Bounds, bounds_of
from ...ir.decision import Decided, Decision, Reason
from ...ir.expressions import Apply, Const, Expr, Position, Read, walk
from ...ir.fresh import Fresh, fresh_for
from ...ir.indexing import Affine, const, floordiv, maximum, minimum, mod, var
from ...ir.loops import Comment, For, If, Program, Stmt, Store, Update
from ...ir.node import Node
from ...ir.ops import OPS
from ...ir.rewrite import map_kernels, map_statements, substitute, substitute_expr, with_bodies
from ...ir.walk import bodies
from .lane_statements import (
    WIDEST,
    can_pad,
    find_counters,
    is_small_tail,
    lane_count,
    lane_loop_kind,
    mask_tail,
    redirect_to_lanes,
)
from .min_max import combine_extremes, vectorize_extremes
from .partials import Partials

Body = tuple[Stmt, ...]


class LaneReason(Reason):
    """Why a reduction is computed in lanes."""

    INDEPENDENT = "its terms are independent, and may be combined in any order"


def vectorize_reductions(program: Program) -> Decided:
    """Return the program with reassociable reductions in lanes, and the decisions."""
    program = map_kernels(program, lambda body: map_statements(body, _distribute_extremes))
    vectorizer = _LaneReductions(fresh_for(program), carried_scalars(program))
    bounds = bounds_of(parameter.node for parameter in program.parameters)
    kernels = tuple(replace(k, body=vectorizer.body(k.body, (), bounds)) for k in program.kernels)
    return Decided(
        vectorizer.fresh.declared(replace(program, kernels=kernels)), tuple(vectorizer.decisions)
    )


def _distribute_extremes(stmt: Stmt) -> Body:
    return split_min_max(stmt) if isinstance(stmt, For) else (stmt,)


@dataclass(slots=True)
class _LaneReductions:
    """The vectorization of the reductions of one program; keeps the decisions."""

    fresh: Fresh
    carried: frozenset[int]
    """The scalars that more than one iteration, or what comes after a loop, sees."""
    decisions: list[Decision] = field(default_factory=list)

    def body(
        self, body: Body, outer: tuple[For, ...], bounds: Bounds, open_: _OpenReductions = ()
    ) -> Body:
        """Return statements with the reductions of their loops, and the `open_` ones, in lanes."""
        return tuple(new for stmt in body for new in self.statement(stmt, outer, bounds, open_))

    def statement(
        self, stmt: Stmt, outer: tuple[For, ...], bounds: Bounds, open_: _OpenReductions
    ) -> Body:
        """Return the statements that replace one."""
        if not isinstance(stmt, For):
            lists = (self.body(nested, outer, bounds, open_) for nested in bodies(stmt))
            return (with_bodies(stmt, tuple(lists)),)
        starting = tuple(_OpenReduction(reduction) for reduction in find_reductions(stmt, outer))
        for reduction in starting:
            node, span = reduction.update.access.node, reduction.update.span
            self.decisions.append(Decision("lanes", LaneReason.INDEPENDENT, node, span=span))
        open_ = (*open_, *starting)
        innermost = [reduction for reduction in open_ if reduction.sum.innermost is stmt]
        if innermost and all(reduction.sum.is_plain for reduction in innermost):
            stmts = self.builder(stmt, innermost).vectorize(bounds)
        else:
            body = self.body(stmt.body, (*outer, stmt), bounds.inside(stmt), open_)
            stmt = with_bodies(stmt, (body,))
            stmts = (self.builder(stmt, innermost).add_in_place() if innermost else stmt,)
        before = (first for reduction in starting for first in reduction.before)
        return (*before, *stmts, *(last for reduction in starting for last in reduction.after))

    def builder(self, loop: For, reductions: list[_OpenReduction]) -> _LaneBuilder:
        """Return what computes the reductions of a loop in lanes."""
        return _LaneBuilder(Partials(self.fresh), loop, reductions, self.carried)


@dataclass(frozen=True, slots=True, eq=False)
class _OpenReduction:
    """A reduction whose lanes are being built."""

    sum: Reduction
    before: list[Stmt] = field(default_factory=list)
    """The initialization of its lanes, before the outermost loop over its terms."""
    after: list[Stmt] = field(default_factory=list)
    """The combination of its lanes, after that loop."""

    @property
    def update(self) -> Update:
        """The update."""
        return self.sum.update

    @property
    def has_one_loop(self) -> bool:
        """Whether one loop counts all terms."""
        return len(self.sum.letters) == 1


_OpenReductions = tuple[_OpenReduction, ...]


@dataclass(frozen=True, slots=True)
class _Range:
    """A range of a loop's iterations, and where the remainder after whole steps begins."""

    start: Affine
    first: Affine
    whole: Affine
    end: Affine
    size: int | None
    """The number of iterations; None: all of them."""

    def until(self, end: Affine) -> Affine:
        """Return the end of the range in a loop up to `end`, without a minimum where all blocks are
        whole."""
        if self.size is None:
            return end
        stop, trip_count = self.start + self.size, (self.end - self.first).constant
        return minimum(stop, end) if trip_count is None or trip_count % self.size else stop


@dataclass(frozen=True, slots=True)
class _LaneBuilder:
    """The reductions whose last range one loop runs over, and that loop in lanes."""

    partials: Partials
    loop: For
    reductions: list[_OpenReduction]
    carried: frozenset[int]
    """The scalars that more than one iteration, or what comes after the loop, sees."""

    @property
    def updates(self) -> list[Update]:
        """The updates of the reductions."""
        return [reduction.update for reduction in self.reductions]

    # ------------------------------------------------------------------------------ in steps

    def vectorize(self, bounds: Bounds) -> Body:
        """Return a loop in steps of all lanes, and one over the remaining terms."""
        loop, reductions = self.loop, self.reductions
        trip_count = loop.hi - loop.lo
        least, most = bounds.interval(trip_count)
        if least is None or least < 0:
            trip_count = maximum(loop.hi, loop.lo) - loop.lo  # `hi - lo` itself may overflow
        count = trip_count.constant
        updates, is_of_extremes = self.updates, is_min_max(reductions[0].update)
        if is_of_extremes and stores_carried(loop.body, self.carried):
            return (loop,)
        lanes = thresholds.SUM_LANES
        if is_of_extremes and (loops := vectorize_extremes(self.partials, loop, updates, lanes)):
            return loops
        if (
            count is not None
            and count <= thresholds.MAX_WRITTEN_OUT_TERMS
            and _is_short(loop, reductions)
        ):
            return self.unroll(count)
        if is_of_extremes and count is not None:
            return (loop,)
        width = thresholds.SUM_LANES if count is None else max(1, min(thresholds.SUM_LANES, count))
        if can_pad(loop, updates, self.carried):
            width = 1 << (width - 1).bit_length()
        sizes = thresholds.SUM_BLOCK_TERMS, thresholds.SUM_SUPERBLOCK_TERMS
        levels = [size for size in sizes if most is None or most > size]
        if is_of_extremes:
            levels = []
        number = len(levels) + 1
        nodes = {
            id(reduction.update): self.partials.arrays(
                reduction.update, number, width if reduction.has_one_loop else thresholds.SUM_LANES
            )
            for reduction in reductions
        }
        if (
            count is None
            and levels
            and can_pad(loop, updates, self.carried)
            and all(o.has_one_loop for o in reductions)
        ):
            return self.short_or_long(trip_count, levels)
        out = list(self.blocks(trip_count, levels, nodes))
        if is_of_extremes:
            ends = (
                combine_extremes(self.partials, loop, update, nodes[id(update)][0])
                for update in updates
            )
            return (*out, *(stmt for body in ends for stmt in body))
        for reduction in reductions:
            last = nodes[id(reduction.update)][-1]
            if not reduction.has_one_loop:
                (total,) = self.partials.arrays(reduction.update, 1, thresholds.SUM_LANES)
                reduction.before.append(self.partials.initialize(reduction.update, total))
                out.append(self.partials.add_arrays(reduction.update, total, last))
                last = total
            reduction.after.extend(self.partials.fold_lanes(reduction.update, last))
        return tuple(out)

    def short_or_long(self, trip_count: Affine, levels: list[int]) -> Body:
        """Return a branch for dynamic sizes of one block, which takes no more steps than it has to.
        It is bit-identical, for nothing is added to the lanes of blocks."""

        def side(levels: list[int]) -> Body:
            nodes: dict[int, list[Node]] = {}
            for reduction in self.reductions:
                arrays = self.partials.arrays(
                    reduction.update, len(levels) + 1, thresholds.SUM_LANES
                )
                nodes[id(reduction.update)] = arrays
            ends = (
                self.partials.fold_lanes(o.update, nodes[id(o.update)][-1]) for o in self.reductions
            )
            return (
                *self.blocks(trip_count, levels, nodes),
                *(stmt for end in ends for stmt in end),
            )

        block = Const(thresholds.SUM_BLOCK_TERMS, dtypes.int64)
        test = Apply(OPS["le"], (Position(trip_count), block), dtypes.bool_)
        return (If(test, side([]), side(levels), self.loop.span),)

    def blocks(self, trip_count: Affine, levels: list[int], nodes: dict[int, list[Node]]) -> Body:
        """Return the loops that leave the result of all terms in the last lanes of each
        reduction."""
        loop, reductions = self.loop, self.reductions
        tail = loop.lo + floordiv(trip_count, const(thresholds.SUM_LANES)) * thresholds.SUM_LANES
        end = loop.lo + trip_count

        def level(number: int, start: Affine, size: int | None) -> Body:
            """Return the loops that leave the result of the terms from `start` in the lanes of a
            level."""
            arrays = {key: by_level[number] for key, by_level in nodes.items()}
            cleared = tuple(
                self.partials.initialize(reduction.update, arrays[id(reduction.update)])
                for reduction in reductions
            )
            part = _Range(start, loop.lo, tail, end, size)
            if number == 0:
                return (*cleared, *self.steps_and_counts(arrays, part))
            block = self.partials.fresh.symbol("block")
            body = level(number - 1, var(block), levels[number - 1])
            below = {key: by_level[number - 1] for key, by_level in nodes.items()}
            combine = (
                self.partials.add_arrays(o.update, arrays[id(o.update)], below[id(o.update)])
                for o in reductions
            )
            step = levels[number - 1]
            return (
                *cleared,
                For(block, start, part.until(end), step, (*body, *combine), span=loop.span),
            )

        return level(len(levels), loop.lo, None)

    def steps_and_counts(self, arrays: dict[int, Node], part: _Range) -> Body:
        """Return the loops over steps, with lanes for counters as well."""
        counters = [
            _OpenReduction(Reduction(update, (self.loop,), False))
            for update in find_counters(self.loop)
        ]
        width = lane_count(next(iter(arrays.values())))
        nodes = [self.partials.arrays(counter.update, 2, width) for counter in counters]
        before: list[Stmt] = []
        after: list[Stmt] = []
        for counter, (step_lanes, total) in zip(counters, nodes, strict=True):
            before += (
                self.partials.initialize(counter.update, step_lanes),
                self.partials.initialize(counter.update, total),
            )
            after += (
                self.partials.add_arrays(counter.update, total, step_lanes),
                *self.partials.fold_lanes(counter.update, total),
            )
        counter_arrays = {
            id(counter.update): node for counter, (node, _) in zip(counters, nodes, strict=True)
        }
        return (*before, *self.steps({**arrays, **counter_arrays}, part), *after)

    def steps(self, arrays: dict[int, Node], part: _Range) -> Body:
        """Return the loop over steps of all lanes, and the loop over the remainder."""
        loop = self.loop
        out: list[Stmt] = []
        lane, at, left = (
            self.partials.fresh.symbol(name) for name in ("lane", loop.symbol.name, "rest")
        )
        steps, stop = part.until(part.whole), part.until(part.end)
        if (steps - part.start).constant != 0:
            body = redirect_to_lanes(loop.body, arrays, lambda _: var(lane))
            body = substitute(body, {loop.symbol: var(at) + var(lane)})
            inner = For(
                lane,
                const(0),
                const(thresholds.SUM_LANES),
                1,
                body,
                lane_loop_kind(body, arrays, self.carried),
                loop.span,
            )
            out.append(For(at, part.start, steps, thresholds.SUM_LANES, (inner,), span=loop.span))
        count = (part.end - part.whole).constant
        if count is not None and part.size is None and is_small_tail(loop, count):
            return (*out, *self.static_tail(arrays, part.whole, count))
        if count is None and can_pad(loop, self.updates, self.carried):
            return (*out, *self.dynamic_tail(arrays, part.whole, stop - part.whole))
        if 0 not in (count, (stop - part.whole).constant):
            body = redirect_to_lanes(loop.body, arrays, lambda _: var(left) - part.whole)
            body = substitute(body, {loop.symbol: var(left)})
            out.append(For(left, part.whole, stop, 1, body, span=loop.span))
        return tuple(out)

    def static_tail(self, arrays: dict[int, Node], whole: Affine, count: int) -> Iterator[Stmt]:
        """Yield loops over the first lanes, one for each term after whole steps: each of a power
        of two, as vectors are, or of a whole vector with predicated lanes."""
        loop, first = self.loop, 0
        unit = _vector_lanes(arrays) if can_pad(loop, self.updates, self.carried) else 1
        while first < count:
            left = count - first
            size = max(unit, upper_half(left + 1))
            lane = self.partials.fresh.symbol("lane")
            body = redirect_to_lanes(loop.body, arrays, partial(_at, var(lane) + first))
            body = substitute(body, {loop.symbol: whole + var(lane) + first})
            if left < size:
                body = mask_tail(body, var(lane), Const(left, dtypes.int64))
            if size == 1:
                yield from substitute(body, {lane: const(0)})
            else:
                yield For(
                    lane,
                    const(0),
                    const(size),
                    1,
                    body,
                    lane_loop_kind(body, arrays, self.carried),
                    loop.span,
                )
            first += size

    def dynamic_tail(self, arrays: dict[int, Node], whole: Affine, count: Affine) -> Iterator[Stmt]:
        """Yield loops over the lanes of a vector for a dynamic number of terms after whole steps:
        lanes after the last term get neutral elements."""
        loop, unit = self.loop, _vector_lanes(arrays)
        rest = self.partials.fresh.scalar("rest", dtypes.int64)
        yield Store(Access(rest, ()), Position(count), loop.span)
        for first in range(0, thresholds.SUM_LANES, unit):
            lane = self.partials.fresh.symbol("lane")
            body = redirect_to_lanes(loop.body, arrays, partial(_at, var(lane) + first))
            body = substitute(body, {loop.symbol: whole + var(lane) + first})
            body = mask_tail(body, var(lane) + first, Read(rest, ()))
            step = For(
                lane,
                const(0),
                const(unit),
                1,
                body,
                lane_loop_kind(body, arrays, self.carried),
                loop.span,
            )
            test = Apply(OPS["gt"], (Read(rest, ()), Const(first, dtypes.int64)), dtypes.bool_)
            yield If(test, (step,), (), loop.span)

    # ------------------------------------------------------------------------------ otherwise

    def unroll(self, count: int) -> Body:
        """Return the terms one by one, and their sum."""
        loop, reductions = self.loop, self.reductions
        out: list[Stmt] = []
        terms: dict[int, list[Expr]] = {id(reduction.update): [] for reduction in reductions}
        is_plain = all(isinstance(stmt, Comment | Update) for stmt in loop.body)
        for number in range(count):
            values = {loop.symbol: loop.lo + number}
            for stmt in loop.body:
                if isinstance(stmt, Update):
                    term = substitute_expr(stmt.value, values)
                    if not is_plain:
                        name = self.partials.fresh.scalar(
                            f"{stmt.access.node.label}_term", term.dtype
                        )
                        out.append(Store(Access(name, ()), term, stmt.span))
                        term = Read(name, ())
                    terms[id(stmt)].append(term)
                elif isinstance(stmt, Store):
                    out += substitute((cast(Stmt, stmt),), values)
        for reduction in reductions:
            if terms[id(reduction.update)]:
                value = combine_lanes(reduction.update.op, terms[id(reduction.update)])
                out.append(replace(reduction.update, value=value, over=()))
        return tuple(out)

    def add_in_place(self) -> Stmt:
        """Return the loop as it is, with the lane of each term computed and blocks ended in it."""
        loop, reductions = self.loop, self.reductions
        arrays: dict[int, Node] = {}
        heads: list[Stmt] = []
        for reduction in reductions:
            partials, update = self.partials, reduction.update
            term_lanes, blocks, total = nodes = partials.arrays(update, 3, thresholds.SUM_LANES)
            arrays[id(update)] = term_lanes
            reduction.before.extend(partials.initialize(update, node) for node in nodes)
            end_blocks = (
                partials.add_arrays(update, total, blocks),
                partials.initialize(update, blocks),
            )
            block = (
                partials.add_arrays(update, blocks, term_lanes),
                partials.initialize(update, term_lanes),
            )
            heads.append(
                _at_block_start(
                    reduction,
                    thresholds.SUM_BLOCK_TERMS,
                    *block,
                    _at_block_start(reduction, thresholds.SUM_SUPERBLOCK_TERMS, *end_blocks),
                )
            )
            combine = (
                partials.add_arrays(update, blocks, term_lanes),
                partials.add_arrays(update, total, blocks),
            )
            reduction.after.extend((*combine, *partials.fold_lanes(update, total)))
        body = redirect_to_lanes(
            loop.body, arrays, lambda update: mod(update.over[-1], const(thresholds.SUM_LANES))
        )
        return replace(loop, body=(*heads, *body))


def _vector_lanes(arrays: dict[int, Node]) -> int:
    """Return the lanes of the widest vector, at most as many as there are."""
    widest = WIDEST // max(node.dtype.bits for node in arrays.values())
    return min(widest, *map(lane_count, arrays.values()))


def _at(lane: Affine, _: Update) -> Affine:
    return lane


def _is_short(loop: For, reductions: list[_OpenReduction]) -> bool:
    """Whether a loop of few iterations may as well be written out."""
    if not all(reduction.has_one_loop for reduction in reductions):
        return False
    updates = [id(reduction.update) for reduction in reductions]
    for stmt in loop.body:
        scalar = isinstance(stmt, Store) and not stmt.access.index
        if not (isinstance(stmt, Comment) or scalar or id(stmt) in updates):
            return False
    parts = sum(len(walk(s.value)) for s in loop.body if isinstance(s, Store | Update))
    return parts * thresholds.MAX_WRITTEN_OUT_TERMS <= thresholds.MAX_WRITTEN_OUT_OPERATIONS


def _at_block_start(reduction: _OpenReduction, size: int, *body: Stmt) -> Stmt:
    """Return a branch for the iterations in which a block starts."""
    at = mod(reduction.update.over[-1], const(size))
    test = Apply(OPS["eq"], (Position(at), Const(0, dtypes.int64)), dtypes.bool_)
    return If(test, body, (), reduction.update.span)
