"""Blocked argmin and argmax: the best block by vectors, the position in it by a search.

Changes: nests that do nothing but argmin or argmax, of adjacent terms. The greatest term of each
block is computed, without its position; then the first block with the greatest of these; in that
block alone the first equal term is searched for, and the accumulator is updated with it:

    greatest[b] = max over the block b;  number = argmax[b](greatest[b])
    best, place argmax= term(i) at i         for the first i of block `number` that has the greatest

Precondition: terms whose loops have invariant trip counts and steps of one; short rows stay as they
are, and for dynamic sizes there are both versions. Postcondition: bit-identical, whatever the
accumulator had before: the first of equal terms is in the first block that has one, zeros are
equal, and the greatest term of a block with a NaN is NaN. So blocks may overlap: the last step of a
block starts earlier where terms are missing, on terms that were compared before.

>>> show(lambda program: block_arg_reductions(program),
...      "y[0] = argmax(x[i, j])", y="i64[1]", x="i32[8, 99]")
argmax = -1
number = -1
greatest = -2147483648
for i in 0..8:
    of_block = -2147483648
    for j in 0..99:
        of_block max= x[i, j]
    greatest, number argmax= of_block at i
let at = number
let i = at
for some in 0..99 step 32:
    is_here = False
    for lane in 0..32:
        is_here or= x[i, lane + min(67, some)] == greatest
    if is_here:
        for j in min(67, some)..min(67, some) + 32:
            if x[i, j] == greatest:
                best = x[i, j]
                argmax = 99*i + j
                break
        break
y[0] = argmax
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from typing import NamedTuple

from ....base.dataclass import dataclass
from ... import thresholds
from ...analysis.contraction import VECTOR_OPS
from ...analysis.parallel_band import nest_loops, perfect_nest
from ...analysis.reductions import upper_half
from ...analysis.subscripts import stride
from ...ir import dtypes
from ...ir.assignments import Access, Break, Let, Pair
from ...ir.bounds import Bounds, bounds_of
from ...ir.decision import Decided, Decision, Reason
from ...ir.expressions import Apply, Cast, Const, Expr, Position, Read, reads
from ...ir.fresh import Fresh, fresh_for
from ...ir.indexing import Affine, Symbol, const, floordiv, minimum, mod, multiply, var
from ...ir.loops import Comment, For, If, Program, Stmt, Store, Update
from ...ir.node import Node
from ...ir.ops import OPS, Op, neutral_of
from ...ir.rewrite import substitute, substitute_expr, with_bodies
from ...ir.walk import bodies

REALS = (dtypes.float32, dtypes.float64)
_WHOLE = frozenset(("add", "sub", "mul", "neg", "bitand", "bitor", "bitxor", "invert"))
_TESTS = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))


def is_vector_term(value: Expr, symbol: Symbol) -> bool:
    """Whether terms of consecutive iterations are vectors: of elements with stride 0 or 1, by
    vector operations."""
    if value.dtype is dtypes.bool_ and isinstance(value, Apply):
        return value.op.name in _TESTS and all(is_vector_term(arg, symbol) for arg in value.args)
    is_real = value.dtype in REALS
    if not is_real and value.dtype.kind not in "biu":
        return False
    match value:
        case Const():
            return True
        case Position(at):
            return symbol not in at.symbols()
        case Read(node, index):
            plain = all(isinstance(at, Affine) for at in index)
            return plain and stride(node, index, symbol) in (0, 1)
        case Apply(op, args):
            is_vector_op = op.name in (VECTOR_OPS if is_real else _WHOLE)
            return is_vector_op and all(is_vector_term(arg, symbol) for arg in args)
        case Cast(inner, dtype):
            is_widening = inner.dtype is dtypes.float32 or not is_real
            return is_widening and inner.dtype.kind == dtype.kind and is_vector_term(inner, symbol)
        case _:
            return False


Body = tuple[Stmt, ...]
Loops = tuple[For, ...]


class ArgReductionReason(Reason):
    """Why argmin and argmax are computed by blocks."""

    REST = "a block of terms of which none is better needs no search for a position"


def block_arg_reductions(program: Program) -> Decided:
    """Return the program with argmin and argmax by blocks, and the decisions."""
    temporaries = frozenset(node.id for node in program.locals)
    bounds = bounds_of(parameter.node for parameter in program.parameters)
    blocking = _ArgReductions(fresh_for(program), temporaries, [])
    kernels = tuple(replace(k, body=blocking.body(k.body, bounds)) for k in program.kernels)
    return Decided(
        blocking.fresh.declared(replace(program, kernels=kernels)), tuple(blocking.decisions)
    )


@dataclass(frozen=True, slots=True)
class _ArgReductions:
    """The blocking of the argmin and argmax of one program."""

    fresh: Fresh
    temporaries: frozenset[int]
    decisions: list[Decision]

    def body(self, body: Body, bounds: Bounds) -> Body:
        """Return statements with the nests among and inside them by blocks."""
        out: list[Stmt] = []
        for at, stmt in enumerate(body):
            out += self.statement(stmt, bounds, body[:at])
        return tuple(out)

    def statement(self, stmt: Stmt, bounds: Bounds, before: Body) -> Body:
        """Return the statements that replace one; `before` are those ahead of it."""
        inner = bounds
        if isinstance(stmt, For):
            inner = bounds.inside(stmt)
            loops, body = perfect_nest(stmt)
            updates = [nested for nested in body if isinstance(nested, Update)]
            others = [nested for nested in body if not isinstance(nested, Update | Comment)]
            inner_loops = () if others else self.term_loops(loops, updates, bounds)
            if inner_loops:
                rest = loops[: -len(inner_loops)]
                unset = frozenset[int]() if rest else _find_unset(before)
                bounds = reduce(Bounds.inside, rest, bounds)
                return nest_loops(rest, self.nest(inner_loops, updates, bounds, unset))
        lists = tuple(self.body(nested, inner) for nested in bodies(stmt))
        return (with_bodies(stmt, lists),)

    def term_loops(self, loops: Loops, updates: list[Update], bounds: Bounds) -> Loops:
        """Return the innermost loops over the terms of blocks; none where they stay."""
        nodes = [
            n
            for update in updates
            if update.pair
            for n in (update.access.node, update.pair.access.node)
        ]
        ids, inner = {node.id for node in nodes}, loops[-1].symbol
        if not updates or len(ids) < 2 * len(updates) or not ids <= self.temporaries:
            return ()
        values = [update.value for update in updates]
        if any(read.node.id in ids for value in values for read in reads(value)):
            return ()
        most = reduce(Bounds.inside, loops[:-1], bounds).most(_trip_count(loops[-1]))
        long = most is None or most >= thresholds.MIN_BLOCKED_ARG_TERMS
        strides = ([stride(r.node, r.index, inner) for r in reads(value)] for value in values)
        fits = (
            long
            and all(is_vector_term(value, inner) for value in values)
            and all(1 in m for m in strides)
        )
        rectangular = (
            loops[at:] for at in range(len(loops)) if _is_rectangular(loops[at:], updates)
        )
        return next(rectangular, ()) if fits else ()

    def nest(
        self, inner_loops: Loops, updates: list[Update], bounds: Bounds, unset: frozenset[int]
    ) -> Body:
        """Return the nest with one update after the other, each by blocks."""
        out, blocks = list[Stmt](), _layout_blocks(inner_loops[-1])
        for update in updates:
            assert update.pair is not None, "only argmin and argmax were taken"
            node = update.pair.access.node
            self.decisions.append(
                Decision("lanes", ArgReductionReason.REST, node, span=update.span)
            )
            is_first = node.id in unset
            out += _Search(
                self.fresh, inner_loops, update, update.pair, blocks, is_first
            ).statements()
        tests = [
            _test("ge", Position(_trip_count(loop)), Const(least, dtypes.int64))
            for loop, least in zip(inner_loops, _least_counts(inner_loops), strict=True)
            if (bounds.least(_trip_count(loop)) or 0) < least
        ]
        if not tests:
            return tuple(out)
        test = reduce(lambda left, right: Apply(OPS["and"], (left, right), dtypes.bool_), tests)
        return (If(test, tuple(out), (inner_loops[0],), updates[0].span),)


def _find_unset(before: Body) -> frozenset[int]:
    """Return the ids of the scalars that are -1 after some statements: no position yet."""
    last: dict[int, bool] = {}
    for stmt in before:
        if isinstance(stmt, Store) and not stmt.access.index:
            last[stmt.access.node.id] = stmt.value == Const(-1, dtypes.int64)
        elif not isinstance(stmt, Store | Comment):
            last.clear()
    return frozenset(number for number, is_nothing in last.items() if is_nothing)


def _is_rectangular(loops: Loops, updates: list[Update]) -> bool:
    """Whether loops run over terms of the same accumulators, have invariant trip counts, and are
    not short."""
    symbols = frozenset(loop.symbol for loop in loops)
    is_plain = all(loop.step == 1 and loop.kind == "serial" for loop in loops)
    bounds = [index for loop in loops for index in (loop.lo, loop.hi)]
    targets = [i for u in updates if u.pair for a in (u.access, u.pair.access) for i in a.index]
    counts = [_trip_count(loop).constant for loop in loops]
    pairs = zip(counts, _least_counts(loops), strict=True)
    is_long = all(count is None or count >= least for count, least in pairs)
    return is_plain and is_long and all(
        isinstance(index, Affine) and not index.symbols() & symbols for index in (*bounds, *targets)
    )  # fmt: skip


def _least_counts(loops: Loops) -> list[int]:
    """Return the least trip count of each loop for which there are blocks."""
    return [1] * (len(loops) - 1) + [thresholds.MIN_BLOCKED_ARG_TERMS]


def _trip_count(loop: For) -> Affine:
    return loop.hi - loop.lo


def _test(name: str, left: Expr, right: Expr) -> Expr:
    return Apply(OPS[name], (left, right), dtypes.bool_)


class _BlockLayout(NamedTuple):
    """The blocks of a row: `many` of them, of `size` terms, `step` terms apart."""

    many: Affine
    size: Affine
    step: int
    loop: For

    def start(self, number: Affine) -> Affine:
        """Return where a block begins: the last one where it still has all its terms."""
        loop = self.loop
        if self.many == const(1):
            return loop.lo
        return minimum(loop.lo + number * self.step, loop.hi - self.size)


def _layout_blocks(loop: For) -> _BlockLayout:
    """Return blocks of equal sizes, none of them short."""
    trip_count = _trip_count(loop)
    lanes, block = thresholds.ARG_LANES, thresholds.ARG_BLOCK_TERMS
    if trip_count.constant is None:
        count = floordiv(trip_count + (block - 1), const(block))
        return _BlockLayout(count, minimum(trip_count, const(block)), block, loop)
    number = -(-trip_count.constant // block)
    if number == 1:
        return _BlockLayout(const(1), trip_count, block, loop)
    size = -(-trip_count.constant // (number * lanes)) * lanes
    return _BlockLayout(const(number), const(size), size, loop)


@dataclass(frozen=True, slots=True)
class _Search:
    """One argmin or argmax, and the loops over its terms."""

    fresh: Fresh
    loops: Loops
    update: Update
    pair: Pair
    blocks: _BlockLayout
    is_first: bool
    """Whether the accumulator has no value yet, so that the result need not be compared."""

    @property
    def op(self) -> Op:
        """The operation that finds the best term of a block."""
        return OPS["max" if self.update.op.name == "argmax" else "min"]

    @property
    def value(self) -> Expr:
        """The term; booleans are compared as integers."""
        value = self.update.value
        return Cast(value, dtypes.uint8) if value.dtype is dtypes.bool_ else value

    @property
    def is_whole(self) -> bool:
        """Whether every step compares as many terms of a block as there are lanes."""
        size = self.blocks.size.constant
        return size is not None and size % thresholds.ARG_LANES == 0

    def statements(self) -> Body:
        """Return the search for the block, and the one in it."""
        dtype, span = self.value.dtype, self.update.span
        top = self.fresh.scalar("greatest" if self.op.name == "max" else "least", dtype)
        if len(self.loops) == 1 and self.blocks.many == const(1):
            inner = self.loops[0]
            symbol = self.fresh.symbol(inner.symbol.name)
            body, value = self.greatest(const(0), {inner.symbol: var(symbol)})
            return (
                *body,
                Store(Access(top, ()), value, span),
                self.search_block(top, const(0), {}),
            )
        number = self.fresh.scalar("number", dtypes.int64)
        first = Store(Access(number, ()), Const(-1, dtypes.int64), span)
        start = self.start(Access(top, ()))
        lets, block, values = self.locate(number)
        return (
            first,
            start,
            *self.block_loops(top, number),
            *lets,
            self.search_block(top, block, values),
        )

    def start(self, access: Access) -> Stmt:
        """Return the initialization of a best value."""
        dtype = access.node.dtype
        start = neutral_of(self.op, dtype.kind, dtype.bits)
        return Store(access, Const(start, dtype), self.update.span)

    def block_loops(self, top: Node, number: Node) -> Body:
        """Return the loops over all blocks, which leave the first best one and its number."""
        symbols = [self.fresh.symbol(loop.symbol.name) for loop in self.loops]
        values = {loop.symbol: var(s) for loop, s in zip(self.loops, symbols, strict=True)}
        at = const(0)
        for loop in self.loops[:-1]:
            at = multiply(at, _trip_count(loop)) + values[loop.symbol] - loop.lo
        block, is_single = self.fresh.symbol("block"), self.blocks.many == const(1)
        at = at if is_single else multiply(at, self.blocks.many) + var(block)
        body, value = self.greatest(var(block), values)
        pair, op = Pair(Access(number, ()), at), self.update.op
        body = (*body, Update(Access(top, ()), op, value, pair, self.update.span))
        if not is_single:
            span = self.loops[-1].span
            body = (For(block, const(0), self.blocks.many, 1, body, span=span),)
        renamed = zip(self.loops[:-1], symbols[:-1], strict=True)
        return nest_loops([replace(loop, symbol=symbol) for loop, symbol in renamed], body)

    def greatest(self, block: Affine, values: dict[Symbol, Affine]) -> tuple[Body, Expr]:
        """Return the statements that compute the best term of a block, and that term."""
        loop, span, dtype = self.loops[-1], self.update.span, self.value.dtype
        (at,) = values[loop.symbol].symbols()
        start, size = self.blocks.start(block), self.blocks.size
        if dtype not in REALS:  # compilers make vectors of that themselves
            target = Access(self.fresh.scalar("of_block", dtype), ())
            term = substitute_expr(self.value, values)
            body: Body = (Update(target, self.op, term, span=span),)
            body = (self.start(target), For(at, start, start + size, 1, body, span=loop.span))
            return body, Read(target.node, ())
        node = self.fresh.array("of_block", (thresholds.ARG_LANES,), dtype, "lanes")
        first = var(at) if self.is_whole else minimum(var(at), loop.hi - thresholds.ARG_LANES)

        def step(lane: Affine) -> Stmt:
            term = substitute_expr(self.value, {**values, loop.symbol: first + lane})
            return Update(Access(node, (lane,)), self.op, term, span=span)

        width = thresholds.ARG_LANES
        steps = For(at, start, start + size, width, (self.each(width, step),), span=loop.span)
        initialize = self.each(width, lambda lane: self.start(Access(node, (lane,))))
        return (initialize, steps, *self.fold(node)), Read(node, (const(0),))

    def fold(self, node: Node) -> Body:
        """Return the loops that leave the best of all lanes in the first one."""
        out: list[Stmt] = []
        width = thresholds.ARG_LANES
        while width > 1:
            half = upper_half(width)

            def fold(lane: Affine, half: int = half) -> Stmt:
                value = Read(node, (lane + half,))
                return Update(Access(node, (lane,)), self.op, value, span=self.update.span)

            out.append(self.each(half, fold))
            width = half
        return tuple(out)

    def each(self, width: int, build: Callable[[Affine], Stmt]) -> Stmt:
        """Return a vector loop over so many lanes, or a single lane's statement."""
        if width == 1:
            return build(const(0))
        lane = self.fresh.symbol("lane")
        body = (build(var(lane)),)
        return For(lane, const(0), const(width), 1, body, "vector", self.update.span)

    def locate(self, number: Node) -> tuple[Body, Affine, dict[Symbol, Affine]]:
        """Return the bindings for the best block's position, its number in the row, and the row's
        index variables."""
        at, span = self.fresh.symbol("at"), self.update.span
        out: list[Stmt] = [Let(at, Read(number, ()), span)]
        left = var(at)
        sizes = [*map(_trip_count, self.loops[:-1]), self.blocks.many]
        positions: list[Affine] = []
        for size in reversed(sizes[1:]):
            positions.append(mod(left, size))
            left = floordiv(left, size)
        block, *rows = [*positions, left]
        values: dict[Symbol, Affine] = {}
        for loop, row in zip(self.loops[:-1], reversed(rows), strict=True):
            symbol = self.fresh.symbol(loop.symbol.name)
            out.append(Let(symbol, Position(loop.lo + row), span))
            values[loop.symbol] = var(symbol)
        return tuple(out), block, values

    def search_block(self, top: Node, block: Affine, values: dict[Symbol, Affine]) -> Stmt:
        """Return the search for the first best term of the block: by vectors, then one by one in
        the vector that has it."""
        inner, span = self.loops[-1], self.update.span
        step, symbol = self.fresh.symbol("some"), self.fresh.symbol(inner.symbol.name)
        first = var(step) if self.is_whole else minimum(var(step), inner.hi - thresholds.ARG_LANES)
        has_best = Access(self.fresh.scalar("is_here", dtypes.bool_), ())

        def is_best(at: Affine) -> Expr:
            term = substitute_expr(self.value, {**values, inner.symbol: at})
            test = _test("eq", term, Read(top, ()))
            if term.dtype not in REALS:
                return test
            return Apply(OPS["or"], (test, _test("ne", term, term)), dtypes.bool_)

        lane = self.fresh.symbol("lane")
        update_flag = Update(has_best, OPS["or"], is_best(first + var(lane)), span=span)
        scan = For(lane, const(0), const(thresholds.ARG_LANES), 1, (update_flag,), span=inner.span)
        update = substitute(self.update_with(), {**values, inner.symbol: var(symbol)})
        take = If(is_best(var(symbol)), (*update, Break()), (), span)
        search = For(symbol, first, first + thresholds.ARG_LANES, 1, (take,), span=inner.span)
        body: Body = (
            Store(has_best, Const(False, dtypes.bool_), span), scan,
            If(Read(has_best.node, ()), (search, Break()), (), span),
        )  # fmt: skip
        start = self.blocks.start(block)
        return For(
            step, start, start + self.blocks.size, thresholds.ARG_LANES, body, span=inner.span
        )

    def update_with(self) -> Body:
        """Return the update of the accumulator with a term; where it has no value yet, a store."""
        if not self.is_first:
            return (self.update,)
        pair, span = self.pair, self.update.span
        value = Store(self.update.access, self.update.value, span)
        return value, Store(pair.access, Position(pair.position), span)
