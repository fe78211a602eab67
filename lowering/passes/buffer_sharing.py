"""Buffer sharing: temporaries with disjoint live ranges overlap in one arena, by offset assignment.

Small arrays are on the stack. All others get an offset in one block, the arena: an array is live
from its first use to its last, throughout every loop whose iterations may carry its values, and two
arrays overlap only where their live ranges do not. Arrays that rely on the zeros they start from
are live from the start. With run-time sizes the offsets are computed by the call: `layout` takes
the sizes. A data-dependent size cannot be planned: such an array grows as it is used.

>>> program = lowered('''
... t[i] = sum(x[i, j])
... u[i] = max(x[i, j] - t[i])
... v[i] = max(x[i, j] - u[i])
... y[i] = v[i]
... ''', y="f32[64]", x="f32[64, 9]")
>>> plan = plan_memory(program, stack_bytes=0)
>>> for buffer in plan.arena:
...     print(buffer.node.label, buffer.first, buffer.last, plan.layout().offsets[buffer.node.id])
t 1 9 0
u 6 14 256
v 11 17 0
>>> peak_memory(program, stack_bytes=0).heap
512
"""

from __future__ import annotations

from bisect import insort
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

from ...base.dataclass import dataclass
from .. import thresholds
from ..analysis.accesses import Accesses, Site, collect_accesses
from ..analysis.self_dependence import bound_over
from ..analysis.subscripts import ranges
from ..ir.bounds import Bounds, bounds_of
from ..ir.dynamic_sizes import Size, run_time_sizes
from ..ir.indexing import QUASI_BUILDERS, Affine, Quasi, Range, Symbol, const, evaluate
from ..ir.loops import For, If, Program, Stmt, While
from ..ir.node import Node
from ..ir.walk import bodies, permuted_nodes, statements

ALIGNMENT = 64
"""Every array of the arena starts at a multiple of this: a cache line, and any vector."""
STACK_BYTES = 128 * 1024
"""The limit for all of them: threads have stacks of 256 KiB, some of it in use."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """An array of the arena and its live range: statements, counted in program order."""

    node: Node
    extent_bounds: tuple[Affine, ...]
    """Upper bounds of its extents, in run-time sizes."""
    first: int
    last: int
    zeroed: bool
    """Whether it relies on being zeros at the start, or at its `Alloc`."""

    def bytes(self, sizes: Mapping[Symbol, int]) -> int:
        """Return its size in bytes, for values of the run-time sizes."""
        total = self.node.dtype.itemsize
        for extent in self.extent_bounds:
            total *= max(0, evaluate(extent, sizes))
        return total

    def meets(self, buffer: Buffer) -> bool:
        """Whether the live ranges intersect."""
        return self.first <= buffer.last and buffer.first <= self.last


@dataclass(frozen=True, slots=True)
class Layout:
    """The offset of each array of the arena, by node id, and the size of the arena in bytes."""

    offsets: Mapping[int, int]
    total: int


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """The temporaries of a program by storage class."""

    arena: tuple[Buffer, ...]
    stack: tuple[Node, ...]
    growing: tuple[Node, ...]
    """Arrays of data-dependent size: each allocates its memory when the size is known."""
    sizes: tuple[Size, ...]

    @property
    def is_static(self) -> bool:
        """Whether the offsets are compile-time constants."""
        return all(extent.constant is not None for b in self.arena for extent in b.extent_bounds)

    def layout(self, sizes: Mapping[Symbol, int] | None = None) -> Layout:
        """Return the offsets of the arena for sizes: arrays live at the same time are disjoint."""
        values = sizes or {}
        sized = [(buffer, _align_size(buffer.bytes(values))) for buffer in self.arena]
        return min(
            (_assign_offsets(sorted(sized, key=order)) for order in _PLACEMENT_ORDERS),
            key=_arena_bytes,
        )

    def numbers(self, extents: Sequence[int]) -> list[int]:
        """Return the arguments of the code for values of `sizes`: those, followed by the layout.

        The size of the arena comes first, then the offsets of its arrays; nothing where the code
        has them as constants.
        """
        if self.is_static:
            return list(extents)
        values = zip((size.symbol for size in self.sizes), extents, strict=True)
        layout = self.layout(dict(values))
        return [*extents, layout.total, *(layout.offsets[b.node.id] for b in self.arena)]

    def sharing(self) -> frozenset[int]:
        """Return the ids of the arrays whose bytes belong, or may belong, to others at other
        times."""
        if not self.is_static:
            pairs = [(a, b) for a in self.arena for b in self.arena if not a.meets(b)]
            return frozenset(buffer.node.id for buffer, _ in pairs)
        return frozenset(self.overlapping(self.layout()))

    def said(self, node: Node, layout: Layout, others: Mapping[int, Sequence[Node]]) -> str:
        """Return the sentence on the size and the place of a temporary, by the layout without
        sizes; `others` are the arrays that overlap it, by `overlapping`."""
        if node.id not in layout.offsets:
            if node in self.stack:
                return f"its {node.bytes:,} bytes are on the stack"
            if not self.is_static:
                return "its size and its place in memory are known when it is called"
            return "it is not used"
        sharers = [f"`{sharer.label}`" for sharer in others.get(node.id, ())]
        shared = f"; at another time {' and '.join(sharers)} is there" if sharers else ""
        return f"its {node.bytes:,} bytes are allocated for the call{shared}"

    def overlapping(self, layout: Layout) -> Mapping[int, Sequence[Node]]:
        """Return, by the id of each array that shares bytes, the others that overlap it in a
        layout, in the order of the arena. A sweep over the offsets compares each only with those
        that reach its start."""
        starts = [(layout.offsets[b.node.id], at) for at, b in enumerate(self.arena)]
        overlaps = defaultdict[int, list[int]](list)
        active: list[tuple[int, int, int]] = []
        for lo, at in sorted(starts):
            hi = lo + self.arena[at].node.bytes
            active = [interval for interval in active if interval[1] > lo]
            for low, _, peer in active:
                if low < hi:
                    overlaps[at].append(peer)
                    overlaps[peer].append(at)
            active.append((lo, hi, at))
        return {
            self.arena[at].node.id: [self.arena[peer].node for peer in sorted(others)]
            for at, others in overlaps.items()
        }


@dataclass(frozen=True, slots=True)
class PeakMemory:
    """Peak bytes of the temporaries of one call."""

    heap: int
    """The size of the arena."""
    stack: int
    growing: tuple[Node, ...] = ()
    """Arrays not included: their sizes depend on data."""


def peak_memory(
    program: Program, sizes: Mapping[Symbol, int] | None = None, stack_bytes: int = 4096
) -> PeakMemory:
    """Return the peak memory of the temporaries of an optimized program, for sizes of its call."""
    plan = plan_memory(program, stack_bytes)
    stack = sum(node.bytes for node in plan.stack)
    return PeakMemory(plan.layout(sizes).total, stack, plan.growing)


def plan_memory(
    program: Program, stack_bytes: int = 4096, excluded: frozenset[int] = frozenset()
) -> MemoryPlan:
    """Return the storage class of each temporary of a program; arrays up to `stack_bytes` are on
    the stack.

    Those whose ids are `excluded` are stored elsewhere.
    """
    body = tuple(stmt for kernel in program.kernels for stmt in kernel.body)
    uses = collect_accesses(body)
    exchanged_ids = permuted_nodes(program)
    sizes = run_time_sizes(program)
    run_time = frozenset(size.symbol for size in sizes)
    bounds = bounds_of(p.node for p in program.parameters)
    extents = {
        node.id: _max_extents(node, uses.of(node), run_time, bounds) for node in program.locals
    }
    any_unbounded = any(extents.get(node_id) is None for node_id in exchanged_ids)
    arena: list[Buffer] = []
    stack: list[Node] = []
    growing: list[Node] = []
    stack_left = min(thresholds.STACK_LIMIT_MULTIPLE * stack_bytes, STACK_BYTES)
    counts = _StatementCounts({})
    for node in program.locals:
        sites = uses.of(node)
        if not sites or node.id in excluded or (node.rank == 0 and node.id not in exchanged_ids):
            continue
        if node.purpose in ("lanes", "tile"):
            stack.append(node)
            continue
        shape = extents[node.id]
        if shape is None or (any_unbounded and node.id in exchanged_ids and _is_reallocated(sites)):
            growing.append(node)
        elif node.static_shape is not None and node.bytes <= min(stack_left, stack_bytes):
            stack_left -= node.bytes
            stack.append(node)
        else:
            arena.append(_live_buffer(node, shape, body, sites, node.id in exchanged_ids, counts))
    arena += _return_buffers(program, exchanged_ids, len(statements(body)))
    return MemoryPlan(tuple(arena), tuple(stack), tuple(growing), sizes)


# ---------------------------------------------------------------------------- live ranges


@dataclass(frozen=True, slots=True)
class _StatementCounts:
    """How many statements, nested ones included, precede each in a list; memoized."""

    memo: dict[int, list[int]]
    """By the `id` of the list."""

    def before(self, body: Sequence[Stmt]) -> list[int]:
        """Return how many precede each statement, and at the end how many there are."""
        if id(body) not in self.memo:
            counts = (len(statements((stmt,))) for stmt in body)
            self.memo[id(body)] = [0, *accumulate(counts)]
        return self.memo[id(body)]


def _live_buffer(
    node: Node,
    shape: tuple[Affine, ...],
    body: tuple[Stmt, ...],
    sites: tuple[Site, ...],
    is_moving: bool,
    counts: _StatementCounts,
) -> Buffer:
    """Return the array with its live range: the whole program, where buffers are exchanged."""
    accessed = tuple(site for site in sites if not _is_allocation(site))
    zeroed = not node.purpose and Accesses({node.id: accessed}).is_read_before_written(node)
    if is_moving:
        return Buffer(node, shape, 0, counts.before(body)[-1], zeroed)
    if zeroed and len(accessed) == len(sites):
        last = max(site.route[0][0] for site in sites)
        return Buffer(node, shape, 0, counts.before(body)[last + 1] - 1, True)
    first, last = _live_range(node, body, sites, 0, 0, counts)
    return Buffer(node, shape, first, last, zeroed)


def _max_extents(
    node: Node, sites: tuple[Site, ...], run_time: frozenset[Symbol], bounds: Bounds
) -> tuple[Affine, ...] | None:
    """Return upper bounds of the extents of a node in run-time sizes; None if they depend on
    data."""
    if node.static_shape is not None:
        return node.shape
    allocations = [site for site in sites if _is_allocation(site)]
    if len(allocations) != 1:
        return None
    (site,) = allocations
    result = []
    for extent in node.shape:
        bound = _upper_bound(extent, ranges(site.inside))
        if bound is None or not bound.symbols() <= run_time:
            inside = bounds
            for stmt in site.inside:
                inside = inside.inside(stmt) if isinstance(stmt, For) else inside
            limit = inside.most(extent)
            bound = None if limit is None else const(max(0, limit))
        if bound is None:
            return None
        result.append(bound)
    return tuple(result)


def _live_range(
    node: Node, body: Sequence[Stmt], sites: tuple[Site, ...], depth: int, start: int,
    counts: _StatementCounts,
) -> tuple[int, int]:  # fmt: skip
    """Return the live range of a node: the numbers of the first and last statement that need it.

    Where one loop contains every use and carries no value of the node, only a part of its body
    counts; `start` is the number of the body's first statement, `depth` its nesting depth.
    """
    positions = [site.route[depth][0] for site in sites]
    first, last = min(positions), max(positions)
    counted = counts.before(body)
    whole = start + counted[first], start + counted[last + 1] - 1
    if first != last or any(len(site.route) == depth + 1 for site in sites):
        return whole
    stmt, lists = body[first], {site.route[depth][1] for site in sites}
    if len(lists) > 1 or not (isinstance(stmt, If) or not _is_loop_carried(node, stmt)):
        return whole
    (which,) = lists
    parts = bodies(stmt)
    before = start + counted[first] + 1 + sum(counts.before(part)[-1] for part in parts[:which])
    return _live_range(node, parts[which], sites, depth + 1, before, counts)


def _is_loop_carried(node: Node, stmt: Stmt) -> bool:
    """Whether an iteration of a loop may see a value that an earlier one left in the node."""
    return collect_accesses(
        inner for part in bodies(stmt) for inner in part
    ).is_read_before_written(node)  # fmt: skip


def _upper_bound(extent: Affine, domain: tuple[Range, ...]) -> Affine | None:
    """Return an upper bound of an extent without the symbols of the ranges, None if none is
    found."""
    match extent.terms:
        case ((Quasi("min" | "max" as op, left, right), factor),) if factor > 0:
            left_bound, right_bound = _upper_bound(left, domain), _upper_bound(right, domain)
            if left_bound is None or right_bound is None:
                return None
            return QUASI_BUILDERS[op](left_bound, right_bound) * factor + extent.offset
        case _:
            return bound_over(extent, domain, 1)


def _is_reallocated(sites: tuple[Site, ...]) -> bool:
    """Whether an array is allocated in each iteration of a loop, where others may hold the old
    memory."""
    storage = (site for site in sites if _is_allocation(site))
    return any(isinstance(stmt, For | While) for site in storage for stmt in site.inside)


def _is_allocation(site: Site) -> bool:
    return site.index is None and site.kind == "write" and site.node.static_shape is None


def _return_buffers(program: Program, moving: frozenset[int], end: int) -> list[Buffer]:
    """Return staging buffers through which several permuted arrays of the caller are copied
    back."""
    outputs = (*(p.node for p in program.parameters if p.returns), *program.results)
    moved = [n for n in outputs if n.id in moving and n.static_shape is not None]
    if len(moved) < 2:
        return []
    lowest = min((node.id for node in (*program.locals, *moved)), default=0)
    copies = (
        replace(node, id=min(lowest, 0) - 1 - index, label=f"{node.label}_moved")
        for index, node in enumerate(moved)
    )
    return [Buffer(node, node.shape, end, end, False) for node in copies]


# ---------------------------------------------------------------------- offset assignment


SizedBuffer = tuple[Buffer, int]
_PLACEMENT_ORDERS: tuple[Callable[[SizedBuffer], tuple[int, ...]], ...] = (
    lambda one: (-one[1], one[0].first, one[0].node.id),  # the largest first
    lambda one: (one[0].first, -one[1], one[0].node.id),  # by the start of the live range
    lambda one: (one[0].first - one[0].last, -one[1], one[0].node.id),  # the longest of them first
)
"""None of these is best for all programs: the best of the three is taken, the first of equals."""


def _arena_bytes(layout: Layout) -> int:
    return layout.total


def _assign_offsets(wanted: Iterable[SizedBuffer]) -> Layout:
    """Return offsets for arrays of given sizes, assigned one after the other, best fit.

    Placed arrays are found by the statements where they are live: with short live ranges, as in a
    chain, the time is that of sorting the few that intersect. With long ones all are looked at, in
    order.
    """
    buffers = list(wanted)
    if sum(buffer.last - buffer.first for buffer, _ in buffers) > thresholds.LONG_LIVE_RANGE * len(
        buffers
    ):
        return _assign_long_ranges(buffers)
    live = defaultdict[int, list[tuple[int, int]]](list)
    started = defaultdict[int, list[tuple[int, int]]](list)
    offsets: dict[int, int] = {}
    total = 0
    for buffer, size in buffers:
        later = range(buffer.first + 1, buffer.last + 1)
        occupied = [*live[buffer.first], *(interval for at in later for interval in started[at])]
        lo = _best_fit(sorted(occupied), size)
        offsets[buffer.node.id], total = lo, max(total, lo + size)
        started[buffer.first].append((lo, lo + size))
        for at in (buffer.first, *later):
            live[at].append((lo, lo + size))
    return Layout(offsets, total)


def _assign_long_ranges(wanted: Sequence[SizedBuffer]) -> Layout:
    """Return the same offsets, by looking at all placed arrays, which are kept in order."""
    placed: list[tuple[int, int, int, int]] = []
    offsets: dict[int, int] = {}
    total = 0
    for buffer, size in wanted:
        first, last = buffer.first, buffer.last
        occupied = [(lo, hi) for lo, hi, start, end in placed if start <= last and end >= first]
        lo = _best_fit(occupied, size)
        offsets[buffer.node.id], total = lo, max(total, lo + size)
        insort(placed, (lo, lo + size, first, last))
    return Layout(offsets, total)


def _best_fit(occupied: list[tuple[int, int]], size: int) -> int:
    """Return the start of the smallest gap between intervals that has the size, else their end."""
    best: tuple[int, int] | None = None
    end = 0
    for lo, hi in occupied:
        if lo - end >= size and (best is None or lo - end < best[0]):
            best = lo - end, end
        end = max(end, hi)
    return end if best is None else best[1]


def _align_size(size: int) -> int:
    """Return the size rounded up to the alignment; empty arrays have an address, too."""
    return max(1, -(-size // ALIGNMENT)) * ALIGNMENT
