"""Buffers: the memory of temporaries, laid out so that those never needed at once share bytes.

Small arrays live on the stack. All others get a place in one block, the arena: an array is needed
from its first use to its last, throughout every loop whose rounds may hand it to one another, and
two arrays overlap only where those spans do not. Arrays that rely on the zeros they start from
are needed from the start. A size that only the call knows leaves the places to the call: `layout`
takes the sizes. A size that only data knows cannot be planned: such an array grows as it is used.

>>> program = lowered('''
... t[i] = sum(x[i, j])
... u[i] = max(x[i, j] - t[i])
... v[i] = max(x[i, j] - u[i])
... y[i] = v[i]
... ''', y="f32[64]", x="f32[64, 9]")
>>> plan = memory(program, stack_bytes=0)
>>> for buffer in plan.arena:
...     print(buffer.node.label, buffer.first, buffer.last, plan.layout().offsets[buffer.node.id])
t 1 9 0
u 6 14 256
v 11 17 0
>>> peak(program, stack_bytes=0).heap
512
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

from ...base.dataclass import dataclass
from ..analysis.accesses import Accesses, Site, accesses
from ..analysis.self_dependence import extreme
from ..analysis.subscripts import ranges
from ..ir.bounds import Bounds, bounds_of
from ..ir.dynamic_sizes import Size, sizes_of
from ..ir.indexing import BUILDERS, Affine, Quasi, Range, Symbol, const, evaluate
from ..ir.loops import For, If, Program, Stmt, While
from ..ir.node import Node
from ..ir.walk import bodies, exchanged, statements

ALIGNMENT = 64
"""Every array of the arena starts at a multiple of this: a cache line, and any vector."""
STACK_SHARE = 16
"""All small arrays together may take this many times what one of them may."""
STACK_BYTES = 128 * 1024
"""And never more than that: threads have stacks of 256 KiB, some of it in use."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """An array of the arena, and the statements that need it, counted in program order."""

    node: Node
    room: tuple[Affine, ...]
    """Its extents, at most, in sizes that the call knows."""
    first: int
    last: int
    zeroed: bool
    """Whether it relies on being zeros at the start, or at its `Alloc`."""

    def bytes(self, sizes: Mapping[Symbol, int]) -> int:
        """Return how much memory it takes."""
        total = self.node.dtype.itemsize
        for extent in self.room:
            total *= max(0, evaluate(extent, sizes))
        return total

    def meets(self, other: Buffer) -> bool:
        """Whether both are needed at some moment."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True, slots=True)
class Layout:
    """Where each array of the arena starts, by node id, and the size of the arena in bytes."""

    offsets: Mapping[int, int]
    total: int


@dataclass(frozen=True, slots=True)
class Memory:
    """The temporaries of a program by where they live."""

    arena: tuple[Buffer, ...]
    stack: tuple[Node, ...]
    growing: tuple[Node, ...]
    """Arrays whose size only data knows: each takes memory of its own when it gets its size."""
    sizes: tuple[Size, ...]

    @property
    def is_static(self) -> bool:
        """Whether the places are known before any call."""
        return all(extent.constant is not None for b in self.arena for extent in b.room)

    def layout(self, sizes: Mapping[Symbol, int] | None = None) -> Layout:
        """Return the places of the arena for sizes, so that arrays needed at once are apart."""
        known = sizes or {}
        wanted = [(buffer, _rounded(buffer.bytes(known))) for buffer in self.arena]
        return min((_packed(sorted(wanted, key=order)) for order in _ORDERS), key=_total)

    def numbers(self, extents: Sequence[int]) -> list[int]:
        """Return what the code is passed for the values of `sizes`: those, the layout behind.

        The size of the arena comes first, then the places of its arrays; nothing where the code
        has them as constants.
        """
        if self.is_static:
            return list(extents)
        known = zip((size.symbol for size in self.sizes), extents, strict=True)
        layout = self.layout(dict(known))
        return [*extents, layout.total, *(layout.offsets[b.node.id] for b in self.arena)]

    def sharing(self) -> frozenset[int]:
        """Return the ids of the arrays whose bytes belong to others at other times, or may."""
        if not self.is_static:
            pairs = [(a, b) for a in self.arena for b in self.arena if not a.meets(b)]
            return frozenset(one.node.id for one, _ in pairs)
        return frozenset(self.overlapping(self.layout()))

    def said(self, node: Node, layout: Layout, others: Mapping[int, Sequence[Node]]) -> str:
        """Return how large a temporary is and where its bytes are, by the layout without sizes;
        `others` are those that it gives the same bytes, by `overlapping`."""
        if node.id not in layout.offsets:
            if node in self.stack:
                return f"its {node.bytes:,} bytes are on the stack"
            if not self.is_static:
                return "its size and its place in memory are known when it is called"
            return "it is not used"
        theirs = [f"`{other.label}`" for other in others.get(node.id, ())]
        shared = f"; at another time {' and '.join(theirs)} is there" if theirs else ""
        return f"its {node.bytes:,} bytes are allocated for the call{shared}"

    def overlapping(self, layout: Layout) -> Mapping[int, Sequence[Node]]:
        """Return, by the id of each array that shares bytes, the others that a layout gives some of
        them, in the order of the arena. Each is compared only with those that reach its start."""
        starts = [(layout.offsets[b.node.id], at) for at, b in enumerate(self.arena)]
        found = defaultdict[int, list[int]](list)
        reaching: list[tuple[int, int, int]] = []
        for lo, at in sorted(starts):
            hi = lo + self.arena[at].node.bytes
            reaching = [one for one in reaching if one[1] > lo]
            for low, _, other in reaching:
                if low < hi:
                    found[at].append(other)
                    found[other].append(at)
            reaching.append((lo, hi, at))
        return {
            self.arena[at].node.id: [self.arena[other].node for other in sorted(others)]
            for at, others in found.items()
        }


@dataclass(frozen=True, slots=True)
class Peak:
    """Bytes of temporaries that one call has at most at one time."""

    heap: int
    """What it allocates: the arena."""
    stack: int
    growing: tuple[Node, ...] = ()
    """Arrays that come on top: their sizes are data."""


def peak(
    program: Program, sizes: Mapping[Symbol, int] | None = None, stack_bytes: int = 4096
) -> Peak:
    """Return the memory that temporaries of an optimized program need, for sizes of its call."""
    plan = memory(program, stack_bytes)
    stack = sum(node.bytes for node in plan.stack)
    return Peak(plan.layout(sizes).total, stack, plan.growing)


def memory(
    program: Program, stack_bytes: int = 4096, apart: frozenset[int] = frozenset()
) -> Memory:
    """Return where the temporaries of a program live; arrays up to `stack_bytes` on the stack.

    Those whose ids are `apart` get their memory elsewhere.
    """
    body = tuple(stmt for kernel in program.kernels for stmt in kernel.body)
    found = accesses(body)
    moving = exchanged(program)
    sizes = sizes_of(program)
    known = frozenset(size.symbol for size in sizes)
    bounds = bounds_of(p.node for p in program.parameters)
    rooms = {node.id: _room(node, found.of(node), known, bounds) for node in program.locals}
    loose = any(rooms.get(number) is None for number in moving)
    arena: list[Buffer] = []
    stack: list[Node] = []
    growing: list[Node] = []
    left = min(STACK_SHARE * stack_bytes, STACK_BYTES)
    counts = _Counts({})
    for node in program.locals:
        sites = found.of(node)
        if not sites or node.id in apart or (node.rank == 0 and node.id not in moving):
            continue
        if node.purpose in ("lanes", "tile"):
            stack.append(node)
            continue
        room = rooms[node.id]
        if room is None or (loose and node.id in moving and _is_repeated(sites)):
            growing.append(node)
        elif node.static_shape is not None and node.bytes <= min(left, stack_bytes):
            left -= node.bytes
            stack.append(node)
        else:
            arena.append(_buffer(node, room, body, sites, node.id in moving, counts))
    arena += _homecoming(program, moving, len(statements(body)))
    return Memory(tuple(arena), tuple(stack), tuple(growing), sizes)


# ------------------------------------------------------------------------------- how long


@dataclass(frozen=True, slots=True)
class _Counts:
    """How many statements come before each in a list of them, with those inside; counted once."""

    found: dict[int, list[int]]
    """By the `id` of the list."""

    def before(self, body: Sequence[Stmt]) -> list[int]:
        """Return how many come before each statement, at the end how many there are."""
        if id(body) not in self.found:
            counts = (len(statements((stmt,))) for stmt in body)
            self.found[id(body)] = [0, *accumulate(counts)]
        return self.found[id(body)]


def _buffer(
    node: Node,
    room: tuple[Affine, ...],
    body: tuple[Stmt, ...],
    sites: tuple[Site, ...],
    is_moving: bool,
    counts: _Counts,
) -> Buffer:
    """Return the array with the statements that need it: all, where others may hold its bytes."""
    own = tuple(site for site in sites if not _is_alloc(site))
    zeroed = not node.purpose and Accesses({node.id: own}).read_before_written(node)
    if is_moving:
        return Buffer(node, room, 0, counts.before(body)[-1], zeroed)
    if zeroed and len(own) == len(sites):
        last = max(site.route[0][0] for site in sites)
        return Buffer(node, room, 0, counts.before(body)[last + 1] - 1, True)
    first, last = _span(node, body, sites, 0, 0, counts)
    return Buffer(node, room, first, last, zeroed)


def _room(
    node: Node, sites: tuple[Site, ...], known: frozenset[Symbol], bounds: Bounds
) -> tuple[Affine, ...] | None:
    """Return the greatest extents of a node in sizes that the call knows; None if data tells."""
    if node.static_shape is not None:
        return node.shape
    storage = [site for site in sites if _is_alloc(site)]
    if len(storage) != 1:
        return None
    (site,) = storage
    room = []
    for extent in node.shape:
        most = _most(extent, ranges(site.inside))
        if most is None or not most.symbols() <= known:
            inside = bounds
            for stmt in site.inside:
                inside = inside.inside(stmt) if isinstance(stmt, For) else inside
            limit = inside.most(extent)
            most = None if limit is None else const(max(0, limit))
        if most is None:
            return None
        room.append(most)
    return tuple(room)


def _span(
    node: Node, body: Sequence[Stmt], sites: tuple[Site, ...], depth: int, start: int,
    counts: _Counts,
) -> tuple[int, int]:  # fmt: skip
    """Return the numbers of the first and last statement that need a node.

    Where one loop has every use and no round sees what an earlier one left, it is the part of its
    body that counts; `start` is the number of the body's first statement, `depth` how deep it is.
    """
    places = [site.route[depth][0] for site in sites]
    first, last = min(places), max(places)
    numbers = counts.before(body)
    whole = start + numbers[first], start + numbers[last + 1] - 1
    if first != last or any(len(site.route) == depth + 1 for site in sites):
        return whole
    stmt, lists = body[first], {site.route[depth][1] for site in sites}
    if len(lists) > 1 or not (isinstance(stmt, If) or not _is_carried(node, stmt)):
        return whole
    (which,) = lists
    parts = bodies(stmt)
    before = start + numbers[first] + 1 + sum(counts.before(part)[-1] for part in parts[:which])
    return _span(node, parts[which], sites, depth + 1, before, counts)


def _is_carried(node: Node, stmt: Stmt) -> bool:
    """Whether a round of a loop may see what an earlier round left in the node."""
    return accesses(
        inner for part in bodies(stmt) for inner in part
    ).read_before_written(node)  # fmt: skip


def _most(extent: Affine, known: tuple[Range, ...]) -> Affine | None:
    """Return a bound of an extent without the symbols of the ranges, None where none is seen."""
    match extent.terms:
        case ((Quasi("min" | "max" as op, left, right), factor),) if factor > 0:
            one, other = _most(left, known), _most(right, known)
            if one is None or other is None:
                return None
            return BUILDERS[op](one, other) * factor + extent.offset
        case _:
            return extreme(extent, known, 1)


def _is_repeated(sites: tuple[Site, ...]) -> bool:
    """Whether an array gets new memory in each round of a loop, while others may have the old."""
    storage = (site for site in sites if _is_alloc(site))
    return any(isinstance(stmt, For | While) for site in storage for stmt in site.inside)


def _is_alloc(site: Site) -> bool:
    return site.index is None and site.kind == "write" and site.node.static_shape is None


def _homecoming(program: Program, moving: frozenset[int], end: int) -> list[Buffer]:
    """Return the places through which several arrays of the caller that moved come home."""
    mine = (*(p.node for p in program.parameters if p.returns), *program.results)
    moved = [n for n in mine if n.id in moving and n.static_shape is not None]
    if len(moved) < 2:
        return []
    lowest = min((node.id for node in (*program.locals, *moved)), default=0)
    copies = (
        replace(node, id=min(lowest, 0) - 1 - number, label=f"{node.label}_moved")
        for number, node in enumerate(moved)
    )
    return [Buffer(node, node.shape, end, end, False) for node in copies]


# ------------------------------------------------------------------------------- where


Wanted = tuple[Buffer, int]
_ORDERS: tuple[Callable[[Wanted], tuple[int, ...]], ...] = (
    lambda one: (-one[1], one[0].first, one[0].node.id),  # the largest first
    lambda one: (one[0].first, -one[1], one[0].node.id),  # as they are needed
    lambda one: (one[0].first - one[0].last, -one[1], one[0].node.id),  # the longest needed first
)
"""None of these is best for all programs: the best of the three is taken, the first of equals."""


def _total(layout: Layout) -> int:
    return layout.total


def _packed(wanted: Iterable[Wanted]) -> Layout:
    """Return places for arrays of given sizes, one after the other, each in the tightest gap.

    What is placed is found by the statements that need it: of arrays that a few statements need
    each, as in a chain, the time is that of sorting the few that meet.
    """
    alive = defaultdict[int, list[tuple[int, int]]](list)
    begun = defaultdict[int, list[tuple[int, int]]](list)
    offsets: dict[int, int] = {}
    total = 0
    for buffer, size in wanted:
        later = range(buffer.first + 1, buffer.last + 1)
        taken = [*alive[buffer.first], *(one for at in later for one in begun[at])]
        lo = _gap(sorted(taken), size)
        offsets[buffer.node.id], total = lo, max(total, lo + size)
        begun[buffer.first].append((lo, lo + size))
        for at in (buffer.first, *later):
            alive[at].append((lo, lo + size))
    return Layout(offsets, total)


def _gap(taken: list[tuple[int, int]], size: int) -> int:
    """Return the start of the smallest gap between intervals that has the size, else their end."""
    best: tuple[int, int] | None = None
    end = 0
    for lo, hi in taken:
        if lo - end >= size and (best is None or lo - end < best[0]):
            best = lo - end, end
        end = max(end, hi)
    return end if best is None else best[1]


def _rounded(size: int) -> int:
    """Return the size as a multiple of the alignment; empty arrays have an address, too."""
    return max(1, -(-size // ALIGNMENT)) * ALIGNMENT
