"""Scans of an array: chunks are reduced, then scanned from the prefix of their partial results.

    for r in 0..n: y[r] = y[r - 1] + f(r)
    becomes
    for g in 0..G: parts[g] = f(g*C) + ... + f(g*C + C - 1)           threads
    for g in 0..G: own = y[-1]; for p in 0..g: own += parts[p]        threads
                   for r in g*C..: own += f(r); y[r] = own

With more than 1,024 chunks the partial results are scanned in the same way, in place, and a chunk
starts from the one before it. Points of a band that are scans each have chunks of their own.

Precondition: a loop of one statement, whose operation is exactly reassociable: integer and Boolean
operations, minima, maxima; or reassociable floating-point sums, of a loop that only enumerates
terms. The number of chunks depends on the number of iterations only. Every thread sums the partial
results before its chunk by itself, in the same order: all read the same few numbers. Other
floating-point sums are order-preserving, in one thread.

Source: Blelloch, Prefix sums and their applications, 1990.

>>> program = lowered("y[:] = np.cumsum(x)", y="i64[9000]", x="i64[9000]")
>>> loop = program.kernels[0].body[2]
>>> print_loops(build_scan(loop, fresh_for(program), True)[1:])
for piece in 0..282:
    running_own = running[0]
    for before in 0..piece:
        running_own = running_own + running_parts[before]
    for i in 32*piece..min(32*piece + 32, 8999):
        running_own = running_own + x[i + 1]
        running[i + 1] = running_own
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import ceil, prod

from ....base.dataclass import dataclass
from ... import thresholds
from ...analysis.accumulators import is_reassociable, neutral_element
from ...analysis.parallel_band import (
    Band,
    contiguity_score,
    has_checks,
    nest_loops,
    normalize,
    static_trip_count,
    trip_count,
)
from ...ir.assignments import Access
from ...ir.expressions import Apply, Const, Dynamic, Expr, Index, Read, reads
from ...ir.fresh import Fresh
from ...ir.indexing import (
    Affine,
    Symbol,
    const,
    floordiv,
    maximum,
    minimum,
    multiply,
    substitute,
    var,
)
from ...ir.loops import Comment, For, Stmt, Store, Update
from ...ir.node import Node
from ...ir.ops import Op
from ...ir.rewrite import substitute_expr


@dataclass(frozen=True, slots=True)
class ScanRecurrence:
    """The recurrence of a scan: `node[here] = op(node[before], value)`."""

    node: Node
    here: tuple[Affine, ...]
    before: tuple[Affine, ...]
    op: Op
    value: Expr


def build_scan(
    loop: For, fresh: Fresh, exact: bool, points: tuple[For, ...] = ()
) -> tuple[For, ...] | None:
    """Return the nests that replace a scan loop, None for other loops.

    With `exact` all sums are order-preserving. `points` are loops around it with independent
    iterations, whose numbers are static.
    """
    count = static_trip_count(loop)
    recurrence = match_scan(loop, exact)
    if (
        recurrence is None
        or (count is not None and count < 2 * thresholds.MIN_SCAN_CHUNK_ITERATIONS)
        or (points and count is None)
    ):
        return None
    normalized, loop_value = normalize(loop, fresh.symbol(loop.symbol.name))
    chunks = (
        thresholds.MAX_SCAN_CHUNKS
        if count is None
        else ceil(count / thresholds.MIN_SCAN_CHUNK_ITERATIONS)
    )
    return _ScanBuilder(recurrence, loop, normalized, loop_value, chunks, fresh, points).build()


def scan_rows(nest: Band, fresh: Fresh, exact: bool) -> tuple[For, ...] | None:
    """Return the nests of points that are scans, None where the points alone are enough."""
    inner = [stmt for stmt in nest.inner if not isinstance(stmt, Comment)]
    counts = [static_trip_count(loop) for loop in nest.free]
    if len(inner) != 1 or not isinstance(inner[0], For) or nest.private or None in counts:
        return None
    if prod(count or 0 for count in counts) >= thresholds.MIN_SERIAL_SCAN_ROWS or has_checks(inner):
        return None
    return build_scan(inner[0], fresh, exact, nest.free)


def scan_in_place(parts: Node, op: Op, fresh: Fresh) -> tuple[For, ...]:
    """Return the nests that scan an array in place, with an exactly reassociable operation."""
    (size,) = parts.static_shape or ()
    loop = _build_serial_scan(parts, op, size, lambda chunk: (chunk,), fresh)
    return build_scan(loop, fresh, True) or (loop,)


def _build_serial_scan(
    parts: Node, op: Op, count: int, locate: Callable[[Affine], tuple[Affine, ...]], fresh: Fresh
) -> For:
    """Return the serial loop that scans partial results."""
    chunk_symbol = fresh.symbol("piece")
    here, before = locate(var(chunk_symbol)), locate(var(chunk_symbol) - 1)
    both = (Read(parts, before), Read(parts, here))
    add = Store(Access(parts, here), Apply(op, both, parts.dtype))
    return For(chunk_symbol, const(1), const(count), 1, (add,))


def match_scan(loop: For, exact: bool) -> ScanRecurrence | None:
    """Return the recurrence of a scan loop, None for other loops."""
    body = [stmt for stmt in loop.body if not isinstance(stmt, Comment)]
    if len(body) != 1 or not isinstance(body[0], Store | Update) or not body[0].access.node.rank:
        return None
    access, value = body[0].access, _new_value(body[0])
    index = _affine(access.index)
    if index is None or not isinstance(value, Apply) or len(value.args) != 2:
        return None
    if not all(_is_linear(subscript, loop.symbol) for subscript in index):
        return None
    previous = tuple(substitute(i, {loop.symbol: var(loop.symbol) - loop.step}) for i in index)
    old = [arg for arg in value.args if _is_at(arg, access.node, previous)]
    terms = [arg for arg in value.args if arg not in old]
    if len(old) != 1 or len(terms) != 1 or previous == index:
        return None
    is_open = loop.counts and not exact and value.op.name == "add"
    fits = is_open or is_reassociable(value.op, access.node.dtype, exact=True)
    if (
        not fits
        or value.dtype is not access.node.dtype
        or any(read.node == access.node and read.index != index for read in reads(terms[0]))
    ):
        return None
    return ScanRecurrence(access.node, index, previous, value.op, terms[0])


def _new_value(stmt: Store | Update) -> Expr | None:
    """Return the value that a statement puts into its element, None for paired updates."""
    if isinstance(stmt, Store):
        return stmt.value
    if stmt.pair is not None:
        return None
    old = Read(stmt.access.node, stmt.access.index)
    return Apply(stmt.op, (old, stmt.value), stmt.access.node.dtype)


def _is_linear(index: Affine, symbol: Symbol) -> bool:
    """Whether an index moves by the same distance in every iteration."""
    return symbol not in (index - var(symbol) * index.coefficient(symbol)).symbols()


def _is_at(value: Expr, node: Node, index: tuple[Affine, ...]) -> bool:
    return isinstance(value, Read) and value.node == node and value.index == index


def _affine(index: tuple[Index, ...]) -> tuple[Affine, ...] | None:
    affine = tuple(subscript for subscript in index if not isinstance(subscript, Dynamic))
    return affine if len(affine) == len(index) else None


@dataclass(frozen=True, slots=True)
class _ScanBuilder:
    """Builds the nests of a scan."""

    recurrence: ScanRecurrence
    loop: For
    normalized: For
    """The loop, normalized to count from zero."""
    loop_value: Affine
    """The variable of the loop in these iterations."""
    chunks: int
    fresh: Fresh
    points: tuple[For, ...]

    def build(self) -> tuple[For, ...]:
        """Return the reduction of chunks, the scan of their partial results if these are many, and
        the scan of all iterations."""
        label, dtype = self.recurrence.node.label, self.recurrence.node.dtype
        sizes = [static_trip_count(loop) or 0 for loop in self.points]
        shape = (self.chunks, *sizes) if self.is_point_major() else (*sizes, self.chunks)
        partials = self.fresh.array(f"{label}_parts", shape, dtype)
        partial, running_total = (
            Access(self.fresh.scalar(f"{label}_{name}", dtype), ()) for name in ("part", "own")
        )
        first_chunk, second_chunk, earlier = (
            self.fresh.symbol(name) for name in ("piece", "piece", "before")
        )
        partial_body = (
            Store(partial, self.neutral_value()),
            self.chunk_loop(first_chunk, (self.accumulate(partial, self.term()),)),
            Store(Access(partials, self.locate(var(first_chunk))), Read(partial.node, ())),
        )
        first = substitute_all(self.recurrence.before, {self.loop.symbol: self.loop.lo})
        index = substitute_all(self.recurrence.here, {self.loop.symbol: self.loop_value})
        store = Store(Access(self.recurrence.node, index), Read(running_total.node, ()))
        add_partial = self.accumulate(running_total, Read(partials, self.locate(var(earlier))))
        middle, start_chunk = self.scan_partials(partials), const(0)
        if middle:
            start_chunk = maximum(var(second_chunk) - 1, const(0))
        main_body: tuple[Stmt, ...] = (
            Store(running_total, Read(self.recurrence.node, first)),
            For(earlier, start_chunk, var(second_chunk), 1, (add_partial,)),
            self.chunk_loop(second_chunk, (self.accumulate(running_total, self.term()), store)),
        )
        if static_trip_count(self.loop) is None:
            once = minimum(const(1), self.trip_count())
            main_body = (For(self.fresh.symbol("first"), const(0), once, 1, main_body),)
        return (
            self.chunk_nest(first_chunk, partial_body),
            *middle,
            self.chunk_nest(second_chunk, main_body),
        )

    def scan_partials(self, partials: Node) -> tuple[For, ...]:
        """Return the nests that scan partial results, none for few of them."""
        if self.chunks <= thresholds.MAX_SCAN_CHUNKS:
            return ()
        loop = _build_serial_scan(
            partials, self.recurrence.op, self.chunks, self.locate, self.fresh
        )
        loop = replace(loop, counts=self.loop.counts)
        nests = build_scan(loop, self.fresh, not self.loop.counts, self.points)
        return (self.wrap_points(loop),) if nests is None else nests

    def wrap_points(self, loop: For) -> For:
        """Return a loop inside the loops over points."""
        (nest,) = nest_loops(self.points, (loop,))
        assert isinstance(nest, For)
        return nest

    def is_point_major(self) -> bool:
        """Whether points rather than iterations are contiguous in memory."""
        inside = contiguity_score(self.loop.body, self.loop.symbol)
        return any(contiguity_score(self.loop.body, axis.symbol) > inside for axis in self.points)

    def locate(self, chunk: Affine) -> tuple[Affine, ...]:
        """Return the location of a chunk's partial result."""
        point = tuple(var(axis.symbol) - axis.lo for axis in self.points)
        return (chunk, *point) if self.is_point_major() else (*point, chunk)

    def trip_count(self) -> Affine:
        return trip_count(self.loop)

    def neutral_value(self) -> Const:
        """Return the neutral element of the operation."""
        return neutral_element(self.recurrence.op, self.recurrence.node.dtype)

    def term(self) -> Expr:
        """Return the term of an iteration."""
        return substitute_expr(self.recurrence.value, {self.loop.symbol: self.loop_value})

    def accumulate(self, target: Access, value: Expr) -> Store:
        """Return the accumulation of a value into a scalar."""
        total = Read(target.node, target.index)
        return Store(target, Apply(self.recurrence.op, (total, value), self.recurrence.node.dtype))

    def chunk_nest(self, chunk: Symbol, body: tuple[Stmt, ...]) -> For:
        """Return the loop over chunks."""
        loop = For(chunk, const(0), const(self.chunks), 1, body, "serial", self.loop.span)
        return self.wrap_points(loop)

    def chunk_loop(self, chunk: Symbol, body: tuple[Stmt, ...]) -> For:
        """Return the loop over the iterations of a chunk."""
        size = floordiv(self.normalized.hi + (self.chunks - 1), const(self.chunks))
        lo = multiply(var(chunk), size)
        return replace(self.normalized, lo=lo, hi=minimum(self.normalized.hi, lo + size), body=body)


def substitute_all(index: tuple[Affine, ...], values: dict[Symbol, Affine]) -> tuple[Affine, ...]:
    """Return index expressions with symbols replaced."""
    return tuple(substitute(subscript, values) for subscript in index)
