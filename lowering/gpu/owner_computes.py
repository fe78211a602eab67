"""Scatter updates by the owner-computes rule: each thread writes the elements that it owns.

    for i in 0..n: h[k[i]] += w[i]
    becomes
    for p in 0..P:                                        threads
        for i in 0..n: if k[i] % P == p: h[k[i]] += w[i]

Each thread executes all iterations in order, under a guard for the elements that it owns, so
results are bit-identical to the program's. Precondition: the loop only writes what it does not read
otherwise.

Where everything written is an accumulator of an exactly reassociable operation, such as integer
addition, the iterations are split into chunks, each with partial results of its own:

    for g in 0..G: for p in 0..P: parts[g, e] = 0, for e of p                          threads
                                  for i in chunk g: if k[i] % P == p: parts[g, k[i]] += w[i]
    for e: for g in 0..G: h[e] += parts[g, e]                                          threads

Owner computes: Callahan and Kennedy, Compiling programs for distributed-memory multiprocessors,
1988.

>>> program = lowered("h[k[i]] += x[i]", h="f32[9]", x="f32[8]", k="i64[8]")
>>> loop, facts = program.kernels[0].body[-1], facts_of(program)
>>> kernel = map_owner_computes(loop, facts, fresh_for(program), {})
>>> print_loops(kernel.body)
for tile in 0..1 block:
    for owner in 0..9 thread:
        for i in 0..8:
            if k[i] % 9 == owner:
                h[k[i]] += x[i]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from .. import thresholds
from ..analysis.accesses import collect_accesses
from ..analysis.accumulators import accumulation_op, neutral_element, write_only_arrays
from ..analysis.effects import touched_nodes
from ..analysis.parallel_band import Facts, largest_trip_count, nest_loops, static_trip_count
from ..analysis.self_dependence import symbols_of
from ..ir import dtypes
from ..ir.assignments import Access, Let
from ..ir.expressions import Apply, Dynamic, Expr, Index, Position, Read, reads
from ..ir.fresh import Fresh
from ..ir.indexing import Symbol, const, multiply, var
from ..ir.loops import Check, For, If, Stmt, Store, Update
from ..ir.node import Node
from ..ir.ops import OPS
from ..ir.rewrite import map_statements, with_bodies
from ..ir.walk import binds, bodies, direct_reads, statements, uses, writes
from ..transform.remap import Element, remap_accesses
from ..transform.strip_mine import chunk
from .thread_points import DeviceCode, tile_over_threads


def map_owner_computes(
    loop: For, facts: Facts, fresh: Fresh, nodes: Mapping[int, Node]
) -> DeviceCode | None:
    """Return the kernel of a loop that only writes at data-dependent locations, else None."""
    private = facts.private(loop)
    is_small = all(
        nodes[n].static_shape is not None
        and (not nodes[n].rank or nodes[n].bytes <= thresholds.MAX_THREAD_PRIVATE_BYTES)
        for n in private
    )
    arrays = write_only_arrays(loop, private)
    targets = frozenset(node.id for node in arrays)
    if not arrays:
        return _map_read_writes(loop, facts, private, fresh) if is_small else None
    if not is_small or not facts.is_free(loop, private | targets):
        return None
    sizes = [_element_count(node) for node in arrays]
    most = thresholds.MAX_OWNERS
    owner_count = most if None in sizes else min(most, max(max(s or 0 for s in sizes), 1))
    chunks = _count_chunks(loop, arrays)
    if chunks:
        limit = max(thresholds.COMBINING_THREADS, thresholds.MAX_OWNER_THREADS // chunks)
        thread_count = 1 << limit.bit_length() - 1
        return _map_chunks(loop, arrays, chunks, min(owner_count, thread_count), private, fresh)
    body: tuple[Stmt, ...] = (loop,)
    owner_loop = _build_owner_loop(body, targets, owner_count, fresh)
    return DeviceCode(
        (tile_over_threads([owner_loop], owner_loop.body, fresh),),
        dict.fromkeys(private, "private"),
    )


def _build_owner_loop(
    body: tuple[Stmt, ...], targets: frozenset[int], count: int, fresh: Fresh
) -> For:
    """Return the loop over owners, each of which guards the writes of its elements."""
    owner = fresh.symbol("owner")

    def guard(stmt: Stmt) -> tuple[Stmt, ...]:
        if isinstance(stmt, Store | Update) and stmt.access.node.id in targets:
            return (If(_is_owned(stmt.access, owner, count), (stmt,), (), stmt.span),)
        return (stmt,)

    return For(owner, const(0), const(count), 1, map_statements(body, guard), "serial")


# ------------------------------------------------------------------------ read-write accesses


def _map_read_writes(
    loop: For, facts: Facts, private: frozenset[int], fresh: Fresh
) -> DeviceCode | None:
    """Return the kernel of a loop each iteration of which updates one element of an array that it
    may also read; None for others. The owner of the element executes all its accesses."""
    written = {n.id: n for n in writes((loop,)) if n.id not in private}
    if len(written) != 1 or has_dependent_check(loop, written):
        return None
    (node,) = written.values()
    indices = {site.index for site in collect_accesses((loop,)).of(node)}
    index = indices.pop() if node.rank else None
    if indices or index is None or not facts.is_free(loop, private | {node.id}):
        return None
    size = _element_count(node)
    count = thresholds.MAX_OWNERS if size is None else min(thresholds.MAX_OWNERS, max(size, 1))
    owner = fresh.symbol("owner")
    test = _is_owned(Access(node, index), owner, count)
    if symbols_of(test).isdisjoint(s for stmt in statements((loop,)) for s in binds(stmt)):
        return None
    body = _guard_accesses(loop.body, node, test, {loop.symbol})
    if body is None:
        return None
    owner_loop = For(owner, const(0), const(count), 1, (replace(loop, body=body),))
    return DeviceCode(
        (tile_over_threads([owner_loop], owner_loop.body, fresh),),
        dict.fromkeys(private, "private"),
    )


def has_dependent_check(loop: For, written: Mapping[int, Node]) -> bool:
    """Whether a check in a loop reads what the loop writes: then only the owner can evaluate it."""
    return any(
        isinstance(stmt, Check) and any(node.id in written for node in direct_reads(stmt))
        for stmt in statements(loop.body)
    )


def _guard_accesses(
    body: tuple[Stmt, ...], node: Node, test: Expr, bound: set[Symbol]
) -> tuple[Stmt, ...] | None:
    """Return statements with the accesses of an array under a test, None where a symbol or node
    that the guarded part defines is used outside it."""
    needed = symbols_of(test)
    bound_inside = {s for stmt in statements(body) for s in binds(stmt)} | bound
    users = [at for at, stmt in enumerate(body) if node.id in touched_nodes((stmt,))]
    lo, hi = users[0], users[-1] + 1
    visible = bound | {s for stmt in body[:lo] for s in binds(stmt) if isinstance(stmt, Let)}
    if needed & bound_inside <= visible:
        part, rest = body[lo:hi], (*body[:lo], *body[hi:])
        names = {s for stmt in part for s in binds(stmt)}
        used = {s for stmt in statements(rest) for s in uses(stmt)}
        others = {n.id for n in writes(part)} - {node.id}
        if names & used or others & (touched_nodes(rest) | {read.node.id for read in reads(test)}):
            return None
        return (*body[:lo], If(test, part), *body[hi:])
    if hi > lo + 1 or not isinstance(body[lo], For | If):
        return None
    branches = []
    for nested in bodies(body[lo]):
        symbols = visible | set(binds(body[lo]))
        branch = (
            _guard_accesses(nested, node, test, symbols)
            if node.id in touched_nodes(nested)
            else nested
        )
        if branch is None:
            return None
        branches.append(branch)
    return (*body[:lo], with_bodies(body[lo], tuple(branches)), *body[hi:])


# ------------------------------------------------------------------------------- in chunks


def _count_chunks(loop: For, written: Sequence[Node]) -> int:
    """Return the number of chunks, 0 where the iterations are not split."""
    sizes = [_element_count(node) for node in written]
    if None in sizes or any(accumulation_op(loop, node) is None for node in written):
        return 0
    count, elements = static_trip_count(loop), max(sum(size or 0 for size in sizes), 1)
    most = min(
        thresholds.MAX_OWNED_CHUNKS,
        thresholds.MAX_CHUNK_COPIES_BYTES // max(sum(node.bytes for node in written), 1),
    )
    outer = thresholds.ASSUMED_OWNED_ITERATIONS if count is None else count
    iterations = outer * largest_trip_count(loop.body)
    most = min(
        most, outer, iterations // thresholds.MIN_OWNED_CHUNK_ITERATIONS, 4 * iterations // elements
    )
    return most if most >= thresholds.MIN_OWNED_CHUNKS else 0


def _map_chunks(
    loop: For,
    written: Sequence[Node],
    chunks: int,
    count: int,
    private: frozenset[int],
    fresh: Fresh,
) -> DeviceCode:
    """Return the kernel of all chunks, and the loops that combine their partial results."""
    partials = [_Partials(loop, node, chunks, fresh) for node in written]
    chunk_symbol = fresh.symbol("piece")
    chunk_loop, body = chunk(loop, chunk_symbol, chunks, loop.body, fresh)
    owner_loop = _build_owner_loop(
        nest_loops((chunk_loop,), body), frozenset(node.id for node in written), count, fresh
    )
    by_id = {partial.node.id: partial for partial in partials}

    def redirect(node: Node, index: tuple[Index, ...]) -> Element:
        return by_id[node.id].locate(chunk_symbol, index) if node.id in by_id else (node, index)

    starts = tuple(partial.initialize(chunk_symbol, owner_loop) for partial in partials)
    outer = For(chunk_symbol, const(0), const(chunks), 1, ())
    kernel = tile_over_threads(
        [outer, owner_loop], (*starts, *remap_accesses(owner_loop.body, redirect)), fresh
    )
    return DeviceCode(
        (kernel, *(partial.combine() for partial in partials)), dict.fromkeys(private, "private")
    )


class _Partials:
    """The partial results of all chunks for one array, flattened, by chunk."""

    def __init__(self, loop: For, node: Node, chunks: int, fresh: Fresh) -> None:
        op = accumulation_op(loop, node)
        assert op is not None, "what is not accumulated is not taken apart"
        self.node, self.op, self.fresh, self.chunks = node, op, fresh, chunks
        self.size = _element_count(node) or 0
        self.partials = fresh.array(f"{node.label}_parts", (chunks, max(self.size, 1)), node.dtype)

    def locate(self, chunk_symbol: Symbol, index: tuple[Index, ...]) -> Element:
        """Return the location of a chunk's partial result for an element."""
        flat = _flat_position(Access(self.node, index))
        at: Index = flat.index if isinstance(flat, Position) else Dynamic(flat)
        return self.partials, (var(chunk_symbol), at)

    def initialize(self, chunk_symbol: Symbol, owner_loop: For) -> Stmt:
        """Return the loop in which an owner initializes its partial results of a chunk."""
        at, count = self.fresh.symbol("element"), owner_loop.hi.constant
        target = Access(self.partials, (var(chunk_symbol), var(at)))
        store = Store(target, neutral_element(self.op, self.node.dtype))
        return For(at, var(owner_loop.symbol), const(self.size), count or 1, (store,))

    def combine(self) -> Stmt:
        """Return the loops that add the partial results of all chunks to the array."""
        chunk_symbol, axes = (
            self.fresh.symbol("piece"),
            [self.fresh.symbol("at") for _ in self.node.shape],
        )
        index = tuple(map(var, axes))
        values = Read(*self.locate(chunk_symbol, index))
        update = Update(Access(self.node, index), self.op, values, over=(var(chunk_symbol),))
        extents = [*self.node.shape, const(self.chunks)]
        loops = [
            For(symbol, const(0), extent, 1, ())
            for symbol, extent in zip((*axes, chunk_symbol), extents, strict=True)
        ]
        (nest,) = nest_loops(loops, (update,))
        return nest


def _element_count(node: Node) -> int | None:
    return None if node.static_shape is None else prod(node.static_shape)


def _is_owned(access: Access, owner: Symbol, count: int) -> Expr:
    """Return the test whether a thread owns an element: by its flat position in the array."""
    rest = Apply(OPS["mod"], (_flat_position(access), Position(const(count))), dtypes.int64)
    return Apply(OPS["eq"], (rest, Position(var(owner))), dtypes.bool_)


def _flat_position(access: Access) -> Expr:
    """Return the flat (row-major) position of an element in its array."""
    total: Expr | None = None
    for at, stride in zip(access.index, access.node.element_strides, strict=True):
        term: Expr = at.value if isinstance(at, Dynamic) else Position(at)
        if stride != const(1):
            term = _combine("mul", term, Position(stride))
        total = term if total is None else _combine("add", total, term)
    assert total is not None, "scalars are not shared out"
    return total


def _combine(op: str, first: Expr, second: Expr) -> Expr:
    """Return an integer operation on two operands; an index expression where both are."""
    if isinstance(first, Position) and isinstance(second, Position):
        index = multiply(first.index, second.index) if op == "mul" else first.index + second.index
        return Position(index)
    return Apply(OPS[op], (first, second), dtypes.int64)
