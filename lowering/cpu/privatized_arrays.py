"""Parallelization by chunks of an inner loop, or by private copies of accumulated arrays.

Changes: where an inner loop has independent iterations, whatever the enclosing iterations do, each
thread does all enclosing iterations for its own chunk of that loop:

    for i: for j: t[k[i], j] += x[i, j]    becomes    for piece: for i: for j in the piece: ...

A loop that only accumulates into an array, by an operation that is exact in any order, as integer
addition is, is split into as many chunks as there are threads. Each accumulates into a private copy
of the array that starts from the neutral element; then the copies are combined (array privatization
with a reduction).

    for i: h[k[i]] += w[i]    becomes    for piece: parts[piece, :] = 0
                                             for i in the piece: parts[piece, k[i]] += w[i]
                                         for e: for piece: h[e] += parts[piece, e]

Checks in a loop just before such a loop, over the same iterations, become part of it: a failing
check leaves only copies written.

Precondition: for copies an array of static size that the loop does not access otherwise, and that
is small in comparison with the loop's work; iterations with no other dependence, and without
checks, as elements written before a failing check would remain. Postcondition: bit-identical.

>>> from plusequals.lowering.passes.simplify import simplify
>>> target = Target(threads=2, parallel_from=10_000)
>>> show(lambda program: privatize_arrays(simplify(program), target),
...      "h[k[i]] += 1", h="i64[256]", k="u8[9000]")
for piece in 0..2:
    for at in 0..256:
        h_parts[piece, at] = 0
    for i in 4500*piece..min(4500*piece + 4500, 9000):
        h_parts[piece, i64(k[i])] += 1
for at in 0..256:
    for piece in 0..2:
        h[at] += h_parts[piece, at]
>>> show(lambda program: privatize_arrays(simplify(program), target),
...      "t[k[i], j] += x[i, j]", t="f32[256, 64]", k="u8[900]", x="f32[900, 64]")
for piece in 0..2:
    for i in 0..900:
        for j in 32*piece..min(32*piece + 32, 64):
            t[i64(k[i]), j] += x[i, j]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING

from ...base.dataclass import dataclass
from ...base.lazy_import import lazy_modules
from .. import thresholds
from ..analysis.cost import MAX_WORK, total_work
from ..analysis.dependence import find_dependence, find_privatizable, has_break
from ..analysis.effects import bound_symbols
from ..analysis.parallel_band import nest_loops
from ..analysis.subscripts import ranges
from ..ir import dtypes
from ..ir.assignments import Access, Let
from ..ir.decision import Decided, Decision, Reason
from ..ir.expressions import Apply, Const, Index, Position, Read
from ..ir.fresh import Fresh
from ..ir.indexing import Range, Symbol, const, var
from ..ir.loops import Comment, For, If, Program, Stmt, Store, Update
from ..ir.node import Node
from ..ir.ops import OPS, Op
from ..ir.walk import reads, writes
from ..target import Target
from ..transform.outermost import OutermostRewriter
from .checks.fused import checks_in_iteration, find_checked_loops
from .parallelize import is_worth_sharing

if TYPE_CHECKING:
    from ..analysis import accumulators
    from ..transform import remap, strip_mine
else:  # what few programs need
    accumulators, remap, strip_mine = lazy_modules(
        __package__, "..analysis.accumulators", "..transform.remap", "..transform.strip_mine"
    )

Body = tuple[Stmt, ...]


class PrivatizeReason(Reason):
    """Why threads have chunks or copies of their own."""

    EXACT = "nothing else keeps them from running on threads, and their order changes no bit"
    INSIDE = "they are independent, those of the loop around them are not"


def privatize_arrays(program: Program, target: Target) -> Decided:
    """Return the program with dependent loops in chunks for threads, and the decisions."""
    if target.threads < 2:
        return Decided(program, ())
    return _Privatization.on(program, target)


@dataclass(frozen=True, slots=True)
class _Privatization(OutermostRewriter):
    """The privatization of the arrays of one program."""

    checks: dict[int, For] = field(default_factory=dict)
    """The loops that only check for the loop right after them, by the `id` of the latter."""
    merged_checks: set[int] = field(default_factory=set)
    """The `id`s of checking loops that have become part of a chunked one."""

    def body(self, body: Body, outer: tuple[For, ...]) -> Body:
        """Return a list of statements with dependent loops in chunks."""
        self.checks.update(
            (id(body[position]), check) for check, position in find_checked_loops(body)
        )
        stmts = OutermostRewriter.body(self, body, outer)
        return tuple(stmt for stmt in stmts if id(stmt) not in self.merged_checks)

    def nest(self, loop: For, outer: tuple[For, ...]) -> Body | None:
        """Return a loop in chunks; the loop itself where it is parallel as it is; None where loops
        inside of it may be chunked."""
        if any(loop is checked for checked in self.checks.values()):
            return (loop,)
        if loop.kind != "serial" or not is_worth_sharing(loop, self.target.parallel_from):
            return None
        privates, domain = find_privatizable(loop, self.only()[id(loop)]), ranges(outer)
        if find_dependence(loop, privates, self.temporaries, domain) is None:
            return (loop,)
        chunked = self.chunk_inner(loop, domain)
        if chunked is not None:
            return chunked
        copies = self.find_copies(loop, privates)
        copied = frozenset(copy.node.id for copy in copies)
        if (
            not copies
            or find_dependence(loop, privates | copied, self.temporaries, domain) is not None
        ):
            return None
        least = (
            thresholds.MIN_COPIED_WORK_RATIO
            * thresholds.SCALAR_WORK
            * sum(copy.parts.bytes // copy.node.dtype.itemsize for copy in copies)
        )
        total = total_work(loop)
        if total.constant is not None and total.constant < least:
            return None
        for copy in copies:
            name = loop.symbol.name
            self.decisions.append(
                Decision(
                    "deferred", PrivatizeReason.EXACT, copy.node, span=loop.span, variable=name
                )
            )
        checks = self.take_checks(loop, copied)
        tests = [stmt for check in checks for stmt in checks_in_iteration(check, loop.symbol)]
        privatized = self.privatize(replace(loop, body=(*tests, *loop.body)), copies)
        if total.constant is not None:
            return privatized
        least = max(least, self.target.parallel_from)
        sides = Position(total), Const(least, dtypes.int64)
        return (If(Apply(OPS["ge"], sides, dtypes.bool_), privatized, (*checks, loop), loop.span),)

    def take_checks(self, loop: For, copied: frozenset[int]) -> tuple[For, ...]:
        """Return the loop that checks for a loop, which is to become part of it."""
        check = self.checks.get(id(loop))
        if check is None or any(node.id in copied for node in reads((check,))):
            return ()
        self.merged_checks.add(id(check))
        return (check,)

    def chunk_inner(self, loop: For, domain: tuple[Range, ...]) -> Body | None:
        """Return a loop over chunks of the outermost inner loop whose iterations are independent
        whatever the loops around it do; None where there is none."""
        if not is_worth_sharing(
            loop, thresholds.MIN_CHUNKED_WORK_FACTOR * self.target.parallel_from
        ):
            return None
        for inner in _chain(loop):
            count = self.chunk_count(inner)
            if not count or (inner.lo.symbols() | inner.hi.symbols()) & bound_symbols((loop,)):
                continue
            if self.is_large(loop):
                return None
            candidate = replace(inner, body=_splice(loop, inner, inner.body))
            privates = find_privatizable(candidate, self.only()[id(loop)])
            if find_dependence(candidate, privates, self.temporaries, domain) is not None:
                continue
            name, span = inner.symbol.name, inner.span
            self.decisions.append(
                Decision("parallel", PrivatizeReason.INSIDE, span=span, variable=name)
            )
            chunk_symbol = self.fresh.symbol("piece")
            part, body = strip_mine.chunk(inner, chunk_symbol, count, inner.body, self.fresh)
            nest = _splice(loop, inner, nest_loops((part,), body))
            return (For(chunk_symbol, const(0), const(count), 1, nest, span=loop.span),)
        return None

    def chunk_count(self, loop: For) -> int:
        """Return the number of chunks of a loop, 0 where it has too few iterations; several for
        each thread where it has many, which balances the load."""
        trip_count, threads = (loop.hi - loop.lo).constant, self.target.threads
        if (
            loop.step != 1
            or trip_count is None
            or trip_count < thresholds.MIN_CHUNK_ITERATIONS * threads
            or has_break(loop.body)
        ):
            return 0
        is_inner = not any(isinstance(stmt, For) for stmt in loop.body)
        least = (
            thresholds.MIN_INNERMOST_CHUNK_ITERATIONS
            if is_inner
            else thresholds.MIN_CHUNK_ITERATIONS
        )
        per_thread = max(1, trip_count // (least * threads))
        return threads * min(thresholds.MAX_CHUNKS_PER_THREAD, per_thread)

    def is_large(self, loop: For) -> bool:
        """Whether a loop writes more than caches hold, where other loops over its arrays pay."""
        nodes = (node for node in writes((loop,)) if node.rank)
        written = sum(MAX_WORK if node.static_shape is None else node.bytes for node in nodes)
        return written > 2 * self.target.threads * self.target.l2_bytes

    def find_copies(self, loop: For, privates: frozenset[int]) -> list[_PrivateCopy]:
        """Return the copies of the arrays that a loop accumulates into; none where one is too
        large."""
        arrays = accumulators.write_only_arrays(loop, privates)
        ops = [accumulators.accumulation_op(loop, node) for node in arrays]
        fits = all(
            node.static_shape is not None and 0 < node.bytes <= self.target.l2_bytes // 2
            for node in arrays
        )
        if not fits or None in ops:
            return []
        return [
            _PrivateCopy.of(node, op, self.target.threads, self.fresh)
            for node, op in zip(arrays, ops, strict=True) if op is not None
        ]  # fmt: skip

    def privatize(self, loop: For, copies: Sequence[_PrivateCopy]) -> Body:
        """Return the loop over chunks, and the loops that combine the copies."""
        chunk_symbol, by_id = self.fresh.symbol("piece"), {copy.node.id: copy for copy in copies}

        def redirect(node: Node, index: tuple[Index, ...]) -> remap.Element:
            copy = by_id.get(node.id)
            return (node, index) if copy is None else (copy.parts, (var(chunk_symbol), *index))

        part, body = strip_mine.chunk(
            loop, chunk_symbol, self.target.threads, loop.body, self.fresh
        )
        initial = (copy.initialize(chunk_symbol) for copy in copies)
        chunk = (*initial, *remap.remap_accesses(nest_loops((part,), body), redirect))
        end = const(self.target.threads)
        chunks = For(chunk_symbol, const(0), end, 1, chunk, span=loop.span)
        return (chunks, *(copy.combine() for copy in copies))


def _chain(loop: For) -> Iterator[For]:
    """Yield the inner loops of an almost perfect nest: before each there are only definitions of
    scalars, after it nothing."""
    while True:
        *before, inner = [stmt for stmt in loop.body if not isinstance(stmt, Comment)] or [loop]
        if inner is loop or not isinstance(inner, For) or inner.kind != "serial":
            return
        if any(not isinstance(stmt, Let) and not _defines_scalar(stmt) for stmt in before):
            return
        yield inner
        loop = inner


def _splice(loop: For, inner: For, body: Body) -> Body:
    """Return a loop with one of its chain replaced by statements."""
    stmts = (
        stmt for old in loop.body for stmt in (
            body if old is inner else _splice(old, inner, body) if isinstance(old, For) else (old,)
        )
    )  # fmt: skip
    return (replace(loop, body=tuple(stmts)),)


def _defines_scalar(stmt: Stmt) -> bool:
    """Whether a statement only defines a scalar."""
    return isinstance(stmt, Store) and not stmt.access.index


@dataclass(frozen=True, slots=True)
class _PrivateCopy:
    """An array, and the private copies that chunks accumulate into."""

    fresh: Fresh
    node: Node
    op: Op
    parts: Node

    @classmethod
    def of(cls, node: Node, op: Op, count: int, fresh: Fresh) -> _PrivateCopy:
        """Return the copies of an array for so many chunks."""
        shape = (count, *(node.static_shape or ()))
        return cls(fresh, node, op, fresh.array(f"{node.label}_parts", shape, node.dtype, "kept"))

    def axes(self) -> list[Symbol]:
        """Return new symbols for the axes of the array."""
        return [self.fresh.symbol("at") for _ in self.node.shape]

    def initialize(self, chunk_symbol: Symbol) -> Stmt:
        """Return the loops that initialize the copy of a chunk."""
        axes = self.axes()
        access = Access(self.parts, (var(chunk_symbol), *map(var, axes)))
        return self.loops(
            axes, Store(access, accumulators.neutral_element(self.op, self.node.dtype))
        )

    def combine(self) -> Stmt:
        """Return the loops that add the copies of all chunks to the array."""
        axes, chunk_symbol = self.axes(), self.fresh.symbol("piece")
        parts = Read(self.parts, (var(chunk_symbol), *map(var, axes)))
        update = Update(Access(self.node, tuple(map(var, axes))), self.op, parts)
        count = self.parts.shape[0]
        return self.loops(axes, For(chunk_symbol, const(0), count, 1, (update,)))

    def loops(self, axes: Sequence[Symbol], stmt: Stmt) -> Stmt:
        """Return a statement in loops over all elements of the array."""
        shape = zip(axes, self.node.shape, strict=True)
        (nest,) = nest_loops([For(at, const(0), extent, 1, ()) for at, extent in shape], (stmt,))
        return nest
