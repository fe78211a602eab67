"""Prefix sums inside loops: accumulators that iterations also read, in chunks with known starts.

    for r in 0..n: if f(r): y[count] = x[r]; count += 1
    becomes
    for g in 0..G: part = 0; for r of chunk g: if f(r): part += 1; parts[g] = part        threads
    for g in 0..G: own = count; for p in 0..g: own += parts[p]                            threads
                   for r of chunk g: if f(r): y[own] = x[r]; own += 1
    for g in 0..G: count += parts[g]

Precondition: accumulators of exactly reassociable operations (integer sums, minima and maxima),
whose terms depend on no accumulator; no other loop-carried dependence. An element whose subscript
is an accumulator belongs to one iteration alone where the accumulator then grows, by one or more.
The number of chunks depends on the number of iterations only; with more than 1,024 of them the
partial results are scanned between the two kernels, see `scan`.

Source: Blelloch, Prefix sums and their applications, 1990.

>>> program = lowered('''
... n = 0
... for i in range(len(x)):
...     n ^= x[i]
...     y[i] = n
... ''', y="i64[900]", x="i64[900]")
>>> find_running_totals(program.kernels[0].body[-1], frozenset())
{}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil

from ....base.dataclass import dataclass
from ... import thresholds
from ...analysis.accesses import collect_accesses
from ...analysis.accumulators import is_reassociable, neutral_element
from ...analysis.parallel_band import Facts, nest_loops, static_trip_count
from ...ir import dtypes
from ...ir.assignments import Access, Break, Continue, Let
from ...ir.expressions import Const, Expr, Index, Read, reads
from ...ir.fresh import Fresh
from ...ir.indexing import Symbol, const, maximum, var
from ...ir.loops import For, Stmt, Store, Update, While
from ...ir.node import Node
from ...ir.ops import Op
from ...ir.rewrite import with_bodies
from ...ir.walk import bodies, direct_writes, expressions_of, statements, uses, writes
from ...transform.remap import Element, remap_accesses
from ...transform.strip_mine import chunk
from ..thread_points import DeviceCode, tile_over_threads
from .scan import scan_in_place


@dataclass(frozen=True, slots=True)
class _Accumulator:
    """A scalar accumulator, and its partial and running values in chunks."""

    node: Node
    op: Op
    part: Node
    partials: Node
    running: Node

    @classmethod
    def of(cls, node: Node, op: Op, chunks: int, fresh: Fresh) -> _Accumulator:
        """Return an accumulator with the nodes that chunks need."""
        part, running = (
            fresh.scalar(f"{node.label}_{name}", node.dtype) for name in ("part", "own")
        )
        return cls(
            node, op, part, fresh.array(f"{node.label}_parts", (chunks,), node.dtype), running
        )


def map_prefix_sums(
    loop: For, facts: Facts, fresh: Fresh, nodes: Mapping[int, Node]
) -> DeviceCode | None:
    """Return the kernels of a loop with running accumulators, and their combination; else None."""
    count, private = static_trip_count(loop), facts.private(loop)
    ops = find_running_totals(loop, private)
    if not ops or (count is not None and count < 2 * thresholds.MIN_SCAN_CHUNK_ITERATIONS):
        return None
    if any(
        nodes[n].static_shape is None or nodes[n].bytes > thresholds.MAX_THREAD_PRIVATE_BYTES
        for n in private
    ):
        return None
    carried = frozenset(node.id for node in ops)
    updates = slice_updates(loop.body, carried, private)
    if updates is None or not facts.is_free(
        loop, private | carried | find_unique_writes(loop, carried)
    ):
        return None
    chunks = (
        thresholds.MAX_SCAN_CHUNKS
        if count is None
        else ceil(count / thresholds.MIN_SCAN_CHUNK_ITERATIONS)
    )
    totals = tuple(_Accumulator.of(node, op, chunks, fresh) for node, op in ops.items())
    builder = _KernelBuilder(loop, chunks, totals, fresh)
    private_ids = private | {node.id for total in totals for node in (total.part, total.running)}
    body = (
        builder.partial_kernel(updates),
        *builder.scan_partials(),
        builder.main_kernel(),
        *builder.combine(),
    )
    return DeviceCode(body, dict.fromkeys(private_ids, "private"))


def find_running_totals(loop: For, private: frozenset[int]) -> dict[Node, Op]:
    """Return the scalars that iterations only accumulate into, exactly reassociable."""
    stmts = statements(loop.body)
    ops_by_node: dict[Node, Op] = {}
    for node in writes(loop.body):
        if node.rank or node.id in private:
            continue
        updates = [stmt for stmt in stmts if node in direct_writes(stmt)]
        ops = {stmt.op if isinstance(stmt, Update) and not stmt.pair else None for stmt in updates}
        op = ops.pop()
        if ops or op is None or not is_reassociable(op, node.dtype, exact=True):
            return {}
        ops_by_node[node] = op
    return ops_by_node


def slice_updates(
    body: Sequence[Stmt], carried: frozenset[int], private: frozenset[int]
) -> tuple[Stmt, ...] | None:
    """Return the slice of an iteration that accumulates; None where it depends on anything that
    other iterations change, or on a check."""
    needed = carried
    while True:
        updates = _without_last_jumps(_slice(body, needed))
        read = {read.node.id for stmt in statements(updates) for read in _value_reads(stmt)}
        if read & private <= needed:
            break
        needed |= read & private
    written = {n.id for n in writes(body)} - private
    defined = {stmt.symbol for stmt in statements(body) if isinstance(stmt, Let)}
    symbols = {symbol for stmt in statements(updates) for symbol in uses(stmt)}
    has_while = any(isinstance(stmt, While) for stmt in statements(updates))
    return None if has_while or read & (written | carried) or symbols & defined else updates


def _value_reads(stmt: Stmt) -> list[Read]:
    """Return the reads of a statement's operands: not that of its accumulator."""
    return [read for expr in expressions_of(stmt) for read in reads(expr)]


def _slice(body: Sequence[Stmt], needed: frozenset[int]) -> tuple[Stmt, ...]:
    """Return the statements of a loop's iteration that write nodes, with the loops and branches
    around them, and the jumps that may skip them."""
    out: list[Stmt] = []
    for stmt in body:
        lists = tuple(_slice(nested, needed) for nested in bodies(stmt))
        if isinstance(stmt, Break | Continue):
            out.append(stmt)
        elif isinstance(stmt, Store | Update) and stmt.access.node.id in needed:
            out.append(stmt)
        elif any(map(_has_writes if isinstance(stmt, For | While) else bool, lists)):
            out.append(with_bodies(stmt, lists))
    return tuple(out)


def _has_writes(body: Sequence[Stmt]) -> bool:
    """Whether there is more than jumps and the tests around them."""
    return any(isinstance(stmt, Store | Update) for stmt in statements(tuple(body)))


def _without_last_jumps(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Return the slice of an iteration without the jumps after its last write."""
    last = max((at for at, stmt in enumerate(body, 1) if _has_writes((stmt,))), default=0)
    return body[:last]


def find_unique_writes(loop: For, carried: frozenset[int]) -> frozenset[int]:
    """Return the arrays of which each iteration writes elements of its own: their subscript is an
    accumulator that then grows, by one or more."""
    stmts = statements(loop.body)
    if any(isinstance(stmt, Break | Continue) for stmt in stmts):
        return frozenset()
    lists = [loop.body, *(nested for stmt in stmts for nested in bodies(stmt))]
    values: list[set[Index]] = [  # of each accumulator: two of them may have the same value
        {var(name) for body in lists for name in _unique_symbols(body, number)}
        for number in carried if _is_monotonic(stmts, number)
    ]  # fmt: skip
    return frozenset(
        number for number, sites in collect_accesses((loop,)).sites.items()
        if sites[0].node.rank and any(
            all(site.index is not None and site.index[axis] in of_one for site in sites)
            for axis in range(sites[0].node.rank) for of_one in values
        )
    )  # fmt: skip


def _is_monotonic(inside: Sequence[Stmt], number: int) -> bool:
    """Whether an accumulator is non-decreasing, and cannot overflow."""
    updates = [s for s in inside if isinstance(s, Update) and s.access.node.id == number]
    return all(
        s.op.name == "add" and s.access.node.dtype is dtypes.int64 and _constant_step(s.value) >= 0
        for s in updates
    )


def _constant_step(value: Expr) -> int:
    """Return a small integer constant, -1 for other expressions."""
    match value:
        case Const(int() as number) if number < 2**16:
            return number
        case _:
            return -1


def _unique_symbols(body: Sequence[Stmt], number: int) -> set[Symbol]:
    """Return the symbols in a list of statements that hold an accumulator that grows in it before
    it is read again."""
    out: set[Symbol] = set()
    pending: set[Symbol] = set()
    for stmt in body:
        if isinstance(stmt, Let) and isinstance(stmt.value, Read) and stmt.value.node.id == number:
            pending.add(stmt.symbol)
        elif isinstance(stmt, Update) and stmt.access.node.id == number:
            out |= pending if _constant_step(stmt.value) > 0 else set()
        elif number in {node.id for node in writes((stmt,))}:
            pending = set()
    return out


# -------------------------------------------------------------------------------- the kernels


@dataclass(frozen=True, slots=True)
class _KernelBuilder:
    """Builds the kernels of a loop in chunks."""

    loop: For
    count: int
    totals: tuple[_Accumulator, ...]
    fresh: Fresh

    def partial_kernel(self, body: tuple[Stmt, ...]) -> For:
        """Return the kernel that computes the partial results of chunks."""
        chunk_symbol = self.fresh.symbol("piece")
        starts = [
            Store(Access(t.part, ()), neutral_element(t.op, t.node.dtype)) for t in self.totals
        ]
        ends = [
            Store(Access(t.partials, (var(chunk_symbol),)), Read(t.part, ())) for t in self.totals
        ]
        return self.chunk_kernel(
            chunk_symbol, starts, body, {t.node.id: t.part for t in self.totals}, ends
        )

    def scan_partials(self) -> tuple[For, ...]:
        """Return the nests that scan the partial results, none for few of them."""
        if self.count <= thresholds.MAX_SCAN_CHUNKS:
            return ()
        return tuple(
            nest for t in self.totals for nest in scan_in_place(t.partials, t.op, self.fresh)
        )

    def main_kernel(self) -> For:
        """Return the kernel that executes the iterations, each chunk from its prefix."""
        chunk_symbol, before = self.fresh.symbol("piece"), self.fresh.symbol("before")
        starts = [Store(Access(t.running, ()), Read(t.node, ())) for t in self.totals]
        updates = tuple(
            Update(Access(t.running, ()), t.op, Read(t.partials, (var(before),)))
            for t in self.totals
        )
        start = (
            const(0)
            if self.count <= thresholds.MAX_SCAN_CHUNKS
            else maximum(var(chunk_symbol) - 1, const(0))
        )
        prefix_loop = For(before, start, var(chunk_symbol), 1, updates)
        copies = {t.node.id: t.running for t in self.totals}
        return self.chunk_kernel(chunk_symbol, [*starts, prefix_loop], self.loop.body, copies, ())

    def chunk_kernel(
        self, chunk_symbol: Symbol, starts: Sequence[Stmt], body: tuple[Stmt, ...],
        copies: Mapping[int, Node], ends: Sequence[Stmt],
    ) -> For:  # fmt: skip
        """Return the kernel in which each thread executes a chunk."""

        def redirect(node: Node, index: tuple[Index, ...]) -> Element:
            return copies.get(node.id, node), index

        chunk_loop, inner = chunk(self.loop, chunk_symbol, self.count, body, self.fresh)
        iterations = nest_loops((chunk_loop,), remap_accesses(inner, redirect))
        outer = For(chunk_symbol, const(0), const(self.count), 1, (), "serial", self.loop.span)
        return tile_over_threads([outer], (*starts, *iterations, *ends), self.fresh)

    def combine(self) -> tuple[For, ...]:
        """Return the loops that add the partial results to the accumulators."""
        out = []
        for total in self.totals:
            chunk_symbol = self.fresh.symbol("piece")
            update = Update(
                Access(total.node, ()), total.op, Read(total.partials, (var(chunk_symbol),))
            )
            first = 0 if self.count <= thresholds.MAX_SCAN_CHUNKS else self.count - 1
            out.append(For(chunk_symbol, const(first), const(self.count), 1, (update,)))
        return tuple(out)
