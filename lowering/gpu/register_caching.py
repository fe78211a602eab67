"""Register caching of rows: what a thread loads or computes stays in registers for its next loop.

    for t in 0..256 thread: for j in t..n step 256: m max= x[j]
    for j in 0..n thread: e[j] = exp(x[j] - m)
    becomes
    for t in 0..256 thread:
        for q in 0..n/256: x_row[t, q] = x[t + 256*q]
        for q in 0..n/256: m max= x_row[t, q]
    for t in 0..256 thread:
        for q in 0..n/256: e_row[t, q] = exp(x_row[t, q] - m)

Cyclically distributed loops of a block with equal distributions give each thread the same elements
again. So memory is read once, ahead of all uses, and written once; a temporary that only such loops
use needs no memory. Each thread has a row of cached elements, indexed in fully unrolled loops so
that the row is in registers, at most `MAX_CACHED_ROW_BYTES` of rows at a time. Only unconditional
loads are hoisted.

>>> program = lowered('''
... e[i] = x[i] * x[i]
... y[i] = e[i] + x[i]
... ''', y="f32[40]", x="f32[40]", e="f32[40]")
>>> loops = [stmt for stmt in program.kernels[0].body if isinstance(stmt, For)]
>>> body = tuple(in_kind(loop, "thread") for loop in loops)
>>> (e,) = (p.node for p in program.parameters if p.node.label == "e")
>>> code = cache_rows(DeviceCode(body, {e.id: "shared"}), fresh_for(program))
>>> print_loops(code.body)
for i in 0..40 thread:
    x_row[i, 0] = x[i]
    e_row[i, 0] = x_row[i, 0] * x_row[i, 0]
for i in 0..40 thread:
    y[i] = e_row[i, 0] + x_row[i, 0]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ...base.dataclass import dataclass
from .. import thresholds
from ..analysis.parallel_band import array_accesses, count_uses, has_checks
from ..ir.assignments import Access
from ..ir.expressions import Dynamic, Index, Read
from ..ir.fresh import Fresh
from ..ir.indexing import Affine, Symbol, const, substitute, var
from ..ir.loops import For, If, LastBlock, Stmt, Store, While
from ..ir.node import Node
from ..ir.rewrite import map_statements, with_bodies
from ..ir.walk import bodies, direct_reads, direct_writes, parts, statements, writes
from ..transform.remap import Element, remap_accesses
from .barriers import has_jump
from .cyclic_distribution import CyclicLoop, build_cyclic_loop, find_cyclic_loop
from .load_hoisting import unconditional_reads
from .thread_points import DeviceCode, Space

WORD = 4
"""Bytes of a register."""

Key = tuple[int, tuple[Affine, ...], tuple[int, int]]
"""A node, the index of its element in an iteration, and the distribution of the iterations."""


def cache_rows(code: DeviceCode, fresh: Fresh) -> DeviceCode:
    """Return a block's statements with static trip counts, and rows of elements in registers."""
    if has_checks(code.body):
        return code
    cache = _RowCache(
        fresh, fresh.symbol("place"), count_uses(code.body),
        frozenset(node.id for node in writes(code.body)), dict(code.spaces),
    )  # fmt: skip
    return DeviceCode(cache.rewrite_body(code.body), cache.spaces)


@dataclass(frozen=True, slots=True)
class _Use:
    """How one loop uses the elements of a row."""

    index: tuple[Index, ...]
    """The index of its element, in terms of the loop variable."""
    count: int
    """How often it uses the node, 0 where it uses other elements of it, too."""
    is_unconditional: bool
    """Whether every iteration accesses its element."""
    stores_first: bool
    """Whether every iteration stores its element before it reads it."""
    writes: bool
    always_writes: bool
    """Whether every iteration writes its element."""


@dataclass(slots=True)
class _Row:
    """Elements that the same thread accesses in several loops, by the positions of these."""

    node: Node
    distribution: tuple[int, int]
    iterations: int
    uses: dict[int, _Use]
    is_local: bool
    """Whether only this block has the node."""
    is_joint: bool
    """Whether all of the loops are executed if one is."""
    registers: Node | None = None

    @property
    def first(self) -> int:
        return min(self.uses)

    @property
    def last(self) -> int:
        return max(self.uses)

    @property
    def bytes(self) -> int:
        """The bytes of registers that the row takes in a thread."""
        return self.iterations * max(self.node.dtype.itemsize, WORD)

    @property
    def storing_loops(self) -> frozenset[int]:
        """The loops that write their elements through to memory."""
        writing = sorted(at for at, use in self.uses.items() if use.writes)
        if self.is_local or not writing:
            return frozenset()
        is_last = self.is_joint and self.uses[writing[-1]].always_writes
        return frozenset(writing[-1:] if is_last else writing)


@dataclass(slots=True)
class _RowCache:
    fresh: Fresh
    iteration: Symbol
    """The number of an iteration, where indices of different loops are compared."""
    use_counts: Counter[int]
    """How often the block uses each node."""
    written: frozenset[int]
    spaces: dict[int, Space]

    def rewrite_body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Return statements with static trip counts, and rows cached from one loop to the next."""
        loops = {
            at: cyclic for at, stmt in enumerate(body)
            if isinstance(stmt, For) and (cyclic := find_cyclic_loop(stmt)) is not None
        }  # fmt: skip
        rows = self.select_rows(self.find_rows(loops, not any(map(has_jump, body))))
        for row in rows:
            size = min(extent for extent in row.distribution if extent)
            row.registers = self.fresh.array(
                f"{row.node.label}_row", (size, row.iterations), row.node.dtype
            )
            self.spaces[row.registers.id] = "registers"
            if self.spaces.get(row.node.id) == "shared":
                del self.spaces[row.node.id]
        out: list[Stmt] = []
        for at, stmt in enumerate(body):
            if at in loops:
                out.append(
                    self.rewrite_loop(loops[at], at, [row for row in rows if at in row.uses])
                )
            elif isinstance(stmt, If | While | LastBlock) or (
                isinstance(stmt, For) and stmt.kind != "thread"
            ):
                out.append(
                    with_bodies(stmt, tuple(self.rewrite_body(part) for part in bodies(stmt)))
                )
            else:
                out.append(stmt)
        return tuple(out)

    def find_rows(self, loops: Mapping[int, CyclicLoop], is_joint: bool) -> list[_Row]:
        """Return the rows of all loops whose elements each thread may cache; `is_joint` says that
        the loops are either all executed or none."""
        rows: dict[Key, _Row] = {}
        for at, loop in loops.items():
            for node, index in array_accesses(loop.body) if not loop.around else ():
                key = self.key_of(loop, node, index)
                if key is None:
                    continue
                is_local = self.spaces.get(node.id) == "shared"
                new = _Row(node, loop.dealing, loop.max_iterations, {}, is_local, is_joint)
                row = rows.setdefault(key, new)
                if at not in row.uses:
                    row.uses[at] = analyze_use(loop.body, node, index)
        return [row for row in rows.values() if self.is_cacheable(row)]

    def key_of(self, loop: CyclicLoop, node: Node, index: tuple[Index, ...]) -> Key | None:
        """Return the key of an iteration's element of a node; None where iterations share it."""
        symbol = loop.shared.symbol
        if self.spaces.get(node.id, "device") not in ("device", "shared"):
            return None
        positions: list[Affine] = []
        for subscript in index:
            if isinstance(subscript, Dynamic) or loop.loop.symbol in subscript.symbols() - {symbol}:
                return None
            if symbol in (subscript - var(symbol) * subscript.coefficient(symbol)).symbols():
                return None
            positions.append(substitute(subscript, {symbol: loop.at(var(self.iteration))}))
        is_distinct = any(self.iteration in subscript.symbols() for subscript in positions)
        return (node.id, tuple(positions), loop.dealing) if is_distinct else None

    def is_cacheable(self, row: _Row) -> bool:
        """Whether a row may be cached from loop to loop; loops before the first that accesses its
        elements unconditionally are removed from its uses."""
        if row.is_local or row.node.id in self.written:
            first, counts = row.uses[row.first], [use.count for use in row.uses.values()]
            has_all_uses = 0 not in counts and sum(counts) == self.use_counts[row.node.id]
            is_filled = first.stores_first or (first.is_unconditional and not row.is_local)
            return is_filled and has_all_uses and len(counts) > 1
        while row.uses and not row.uses[row.first].is_unconditional:
            del row.uses[row.first]
        return len(row.uses) > 1

    def select_rows(self, rows: Sequence[_Row]) -> list[_Row]:
        """Return the rows that fit the registers, those with the most uses first."""
        out: list[_Row] = []
        for row in sorted(rows, key=lambda row: -len(row.uses)):
            candidate = [*out, row]
            pressure = max(
                sum(
                    resident.bytes for resident in candidate if resident.first <= at < resident.last
                )
                for at in range(row.first, row.last)
            )
            if pressure <= thresholds.MAX_CACHED_ROW_BYTES:
                out = candidate
        return out

    def rewrite_loop(self, loop: CyclicLoop, at: int, rows: Sequence[_Row]) -> Stmt:
        """Return a loop with static trip counts, in which rows are accessed in registers."""
        if not rows:
            is_plain = loop.max_iterations == 1 and loop.inner is None
            return loop.loop if is_plain else build_cyclic_loop(loop, loop.body, self.fresh)
        symbol = self.fresh.symbol("q")
        iteration = const(0) if loop.max_iterations == 1 else var(symbol)
        thread = var(loop.loop.symbol)
        if loop.inner is None and loop.max_iterations == 1:
            thread -= loop.lo
        elif loop.inner is None:
            # the thread of an iteration, in terms of the loop that is to be distributed
            thread = var(loop.shared.symbol) - loop.lo - iteration * loop.size
        cached = {row.registers.id: row for row in rows if row.registers is not None}
        by_access = {(row.node.id, row.uses[at].index): row.registers for row in cached.values()}

        def redirect(node: Node, index: tuple[Index, ...]) -> Element:
            registers = by_access.get((node.id, index))
            return (node, index) if registers is None else (registers, (thread, iteration))

        def write_through(stmt: Stmt) -> Iterator[Stmt]:
            yield stmt
            for access in parts(stmt).targets:
                row = cached.get(access.node.id)
                if row is not None and at in row.storing_loops:
                    value = Read(access.node, access.index)
                    yield Store(Access(row.node, row.uses[at].index), value)

        body = map_statements(remap_accesses(loop.body, redirect), write_through)
        loads = tuple(
            Store(Access(row.registers, (thread, iteration)), Read(row.node, row.uses[at].index))
            for row in rows
            if row.registers is not None and at == row.first and not row.uses[at].stores_first
        )
        return build_cyclic_loop(loop, body, self.fresh, loads, symbol, "unrolled")


def analyze_use(body: tuple[Stmt, ...], node: Node, index: tuple[Index, ...]) -> _Use:
    """Return how an iteration uses an element."""
    is_single_element = all(
        at == index for accessed, at in array_accesses(body) if accessed == node
    )
    here = Access(node, index)
    is_read = any((read.node, read.index) == (node, index) for read in unconditional_reads(body))
    stored = [isinstance(stmt, Store) and stmt.access == here for stmt in body]
    is_written = any(here in parts(stmt).targets for stmt in body)
    first = next(at for at, stmt in enumerate(body) if node.id in count_uses((stmt,)))
    return _Use(
        index,
        count_uses(body)[node.id] if is_single_element else 0,
        is_read or is_written,
        stored[first] and node not in direct_reads(body[first]),
        any(node in direct_writes(stmt) for stmt in statements(body)),
        is_written,
    )
