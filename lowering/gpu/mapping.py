"""Mapping of programs to kernels, blocks and threads of a device.

    contractions                       tiles: `gemm.tensor_tiles`, `gemm.shared_tiles`; with few
                                       tiles the terms are split: `gemm.split_k`
    independent points                 one thread each: `thread_points`
    points that contain loops          one block each, cooperatively: `thread_block`
    long reductions                    partial results of many blocks: `reductions.split_reduction`,
                                       `reductions.segmented`; along columns of many threads:
                                       `reductions.column_reduction`; the last block to finish
                                       combines them: `reductions.last_block`
    scans                              in chunks: `reductions.scan`, `reductions.prefix`
    scatters                           owner computes, in chunks if exact: `owner_computes`; where
                                       asked for, atomic operations: `atomic_scatter`
    sequential loops                   on the host, if their iterations are worth kernels of their
                                       own, else in one block or one thread; by wavefronts where the
                                       points of these are independent: `recurrences.wavefront`

Allocations, prints and permutations between kernels are host code, too. A kernel is an outermost
loop of the kind `block`; everything around kernels runs on the host.

>>> mapped = map_program(lowered("y[i] = x[i] * 2", y="f32[900]", x="f32[900]"), Target("cuda"))
>>> print_loops(mapped.program.kernels[0].body)
# y[i] = x[i] * 2
for tile in 0..4 block:
    for thread in 0..min(-256*tile + 900, 256) thread:
        y[256*tile + thread] = x[256*tile + thread] * 2.0
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from math import prod

from ...base.dataclass import dataclass
from ...base.diagnostic import NOWHERE
from .. import thresholds
from ..analysis.accesses import collect_accesses
from ..analysis.accumulators import find_accumulators
from ..analysis.parallel_band import (
    Band,
    Facts,
    contiguity_score,
    count_uses,
    facts_of,
    find_band,
    static_trip_count,
)
from ..ir.bounds import Bounds
from ..ir.decision import Decision, Reason
from ..ir.fresh import Fresh, fresh_for
from ..ir.indexing import Symbol, const
from ..ir.loops import Check, Comment, For, If, Program, Stmt, While
from ..ir.node import Node
from ..ir.rewrite import with_bodies
from ..ir.walk import bodies, reads, statements, writes
from ..target import Target
from ..transform.split_index_set import distribute_statements
from .atomic_scatter import map_atomic_scatter
from .gemm.shared_tiles import map_shared_tiles
from .gemm.split_k import split_terms
from .gemm.tensor_tiles import map_tensor_tiles
from .host_code import has_many_iterations, is_host_only
from .nest_distribution import distribute_nests
from .owner_computes import map_owner_computes
from .passes import GPU_PASSES, Recomputed
from .reductions.column_reduction import split_columns
from .reductions.last_block import merge_last_blocks
from .reductions.prefix import map_prefix_sums
from .reductions.scan import build_scan, scan_rows
from .reductions.segmented import Segment, is_wide, split_segments
from .reductions.split_reduction import count_blocks, map_split_reduction
from .scalar_rematerialization import find_cheap_scalars, rematerialize_scalars
from .thread_block import contains_thread_loop, is_thread_loop, map_to_blocks, map_to_one_block
from .thread_points import DeviceCode, Space, map_to_threads


def prefers_host(nest: Band, loop: For, facts: Facts) -> bool:
    """Whether the host should run a sequential loop: few points, each with long parallel loops."""
    if not nest.serial or loop.symbol != nest.serial[0].symbol:
        return False
    many = thresholds.MIN_OCCUPYING_SEGMENTS
    count = prod(many if (one := static_trip_count(free)) is None else one for free in nest.free)
    return count < many and any(is_wide(stmt, facts) for stmt in statements(nest.inner))


def prefers_blocks(nest: Band, facts: Facts, nodes: Mapping[int, Node]) -> bool:
    """Whether the loops inside the points are worth distributing over the threads of a block."""
    inner = [
        stmt for stmt in statements(nest.inner)
        if isinstance(stmt, For)
        and static_trip_count(stmt) not in range(thresholds.MIN_BLOCK_LOOP_ITERATIONS)
        and is_thread_loop(stmt, facts)
    ]  # fmt: skip
    private = [nodes[number] for number in nest.private]
    if any(
        n.static_shape is None or (n.rank and n.bytes > thresholds.MAX_THREAD_PRIVATE_BYTES)
        for n in private
    ):
        return True
    if not inner:
        return False
    points = 1
    for loop in nest.free:
        count = static_trip_count(loop)
        points *= thresholds.MAX_SEQUENTIAL_POINTS if count is None else count
    if points < thresholds.MIN_OCCUPYING_POINTS:
        return True
    is_static = all(static_trip_count(loop) is not None for loop in inner)
    outer_score = max(
        contiguity_score(inner if is_static else nest.inner, loop.symbol) for loop in nest.free
    )
    return max(_locality_score(loop) for loop in inner) > outer_score


def _locality_score(loop: For) -> int:
    """Return how contiguous the accesses are if a loop, or one directly in it, is distributed."""
    loops = [stmt for stmt in statements((loop,)) if isinstance(stmt, For)]
    return max(contiguity_score(one.body, one.symbol) for one in loops)


class Mapped(Reason):
    """Why the iterations of a loop run as they do."""

    SEGMENTS = "it has few points with a long sum in each, whose terms many blocks share"
    SPLIT_K = "its product has few tiles and many terms, which blocks share"
    TENSOR_TILES = "tensor cores multiply such matrices, and each block computes a tile"
    TILES = "it is a product of matrices, and each block computes a tile from shared memory"
    ROWS_OF_SCANS = "each of its rows is a running total, whose chunks are summed first"
    NESTS = "its points do several nests, for which a block has no room"
    COLUMNS = "its points read neighbours and have long sums, whose terms threads share"
    POINTS = "its iterations are independent, and a thread computes each"
    BLOCKS = "its iterations are independent and have loops inside, and a block computes each"
    REDUCTION = "its iterations only accumulate: many blocks sum chunks, one sums those"
    SCAN = "it is a running total, whose chunks are summed first"
    PREFIX = "it carries totals, and each chunk finds what it starts from"
    ATOMIC = "it writes where data says, by the atomic operations that were asked for"
    OWNERS = "it writes where data says, and each thread writes the elements that it owns"
    STEPS = "its iterations need each other, and each is worth kernels of its own"
    ONE_BLOCK = "its iterations need each other, and one block does them in order"
    ONE_THREAD = "its iterations need each other, and one thread does them in order"


@dataclass(frozen=True, slots=True)
class MappedProgram:
    """A program whose outermost loops of the kind `block` are kernels."""

    program: Program
    spaces: Mapping[int, Space]
    """Memory spaces, by node id, of the temporaries that are not in device memory."""
    whole: Program
    """The loops before they were mapped."""
    decisions: tuple[Decision, ...]
    """What became of each nest, and why; of arrays, where passes removed them."""

    @property
    def computed(self) -> frozenset[int]:
        """The arrays, by node id, that were removed: contractions recompute their elements."""
        reason = Recomputed.IN_TILES
        return frozenset(d.node.id for d in self.decisions if d.node and d.reason is reason)


def map_program(program: Program, target: Target, exact: bool = False) -> MappedProgram:
    """Return a program as kernels, after the passes of devices; with `exact` sums keep their
    order."""
    target = replace(target, exact=exact)
    for stage in GPU_PASSES:
        program = stage.run(program, target).program
    return map_kernels(program, target)


def map_kernels(program: Program, target: Target) -> MappedProgram:
    """Return a program mapped to kernels.

    Precondition: it is as the passes of devices leave it, or nests stay in order that need not.
    """
    fresh = fresh_for(program)
    nodes = (*(p.node for p in program.parameters), *program.locals, *program.results)
    body = tuple(stmt for kernel in program.kernels for stmt in kernel.body)
    copied = find_cheap_scalars(body, program.locals)
    copied_ids = set(map(id, copied.values()))
    rest = tuple(stmt for stmt in body if id(stmt) not in copied_ids)
    builder = _KernelBuilder(
        facts_of(program, target.exact), fresh, {node.id: node for node in nodes}, count_uses(body),
        frozenset(node.id for node in program.locals), target,
        dict.fromkeys(copied, "private"),
    )  # fmt: skip
    kernels = rematerialize_scalars(
        merge_last_blocks(builder.map_body(rest), builder.spaces, fresh), copied
    )
    mapped = replace(program, kernels=(replace(program.kernels[0], body=kernels),))
    mapped = fresh.declared(mapped)
    used = {node.id for node in (*reads(kernels), *writes(kernels))}
    locals_ = tuple(n for n in mapped.locals if n.id in used)
    decisions = tuple(dict.fromkeys(builder.decisions))
    return MappedProgram(replace(mapped, locals=locals_), builder.spaces, program, decisions)


@dataclass(slots=True)
class _KernelBuilder:
    """Builds the kernels and the host code of a program."""

    facts: Facts
    fresh: Fresh
    nodes: dict[int, Node]
    uses: Counter[int]
    """How often each node is used in the whole program."""
    locals: frozenset[int]
    target: Target
    spaces: dict[int, Space] = field(default_factory=dict)
    bounds: Bounds = field(default_factory=lambda: Bounds({}))
    """Bounds of the variables of the enclosing host loops."""
    decisions: list[Decision] = field(default_factory=list)
    """What became of each nest, and why."""

    def note(self, loop: Stmt, reason: Mapped) -> None:
        """Note what a loop becomes; those that were made here are not the user's."""
        if isinstance(loop, For) and loop.span is not NOWHERE:
            decision = Decision("mapped", reason, span=loop.span, variable=loop.symbol.name)
            self.decisions.append(decision)

    def map_body(self, body: Iterable[Stmt]) -> tuple[Stmt, ...]:
        """Return statements with everything that is not host code inside kernels."""
        out: list[Stmt] = []
        pending: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, Comment):
                pending.append(stmt)
                continue
            mapped = None if is_host_only(stmt) else self.map_nest(stmt)
            if mapped is None and not is_host_only(stmt) and not self.is_host_loop(stmt):
                mapped = (stmt,)
            for lowered in self.map_host_code(stmt) if mapped is None else mapped:
                if _is_pending(lowered):
                    pending.append(lowered)
                    continue
                comments = _trailing_comments(pending)
                if not _is_kernel(lowered) or must_follow(pending, lowered):
                    out += self.group_kernels(pending)
                    pending = []
                elif comments:
                    pending, out = pending[: -len(comments)], [*out, *comments]
                out.append(lowered)
        return (*out, *self.group_kernels(pending))

    def map_host_code(self, stmt: Stmt) -> tuple[Stmt, ...]:
        """Return a loop or branch of the host, with kernels in it."""
        self.note(stmt, Mapped.STEPS)
        outer, self.bounds = self.bounds, self.bounds_inside(stmt)
        mapped = with_bodies(stmt, tuple(self.map_body(part) for part in bodies(stmt)))
        self.bounds = outer
        return (mapped,)

    def bounds_inside(self, stmt: Stmt) -> Bounds:
        """Return the bounds of variables inside a statement of the host."""
        return self.bounds.inside(stmt) if isinstance(stmt, For) else self.bounds

    def map_nest(self, stmt: Stmt) -> tuple[Stmt, ...] | None:
        """Return the kernels of a nest, None where it has none of its own.

        Statements between and after them are left: they may share a kernel with their neighbours.
        """
        if not isinstance(stmt, For):
            return None
        nest = find_band(stmt, self.facts)
        if nest is None:
            return self.map_dependent(stmt)
        if prefers_host(nest, stmt, self.facts):
            return None
        parts = split_segments(nest, self.facts, self.fresh, self.nodes)
        kernels = None if parts is None else self.map_segments(parts)
        if kernels is not None:
            self.note(stmt, Mapped.SEGMENTS)
            return kernels
        split = split_terms(nest, self.facts, self.fresh)
        if split is not None:
            self.note(stmt, Mapped.SPLIT_K)
            return self.map_in_order(split)
        return self.map_parallel(nest, stmt)

    def map_parallel(self, nest: Band, loop: For) -> tuple[Stmt, ...] | None:
        """Return the kernels of a band of independent iterations that stays one, None for none."""
        code = map_tensor_tiles(nest, self.facts, self.fresh, self.target)
        if code is not None:
            return self.finish(loop, Mapped.TENSOR_TILES, code)
        code = map_shared_tiles(nest, self.facts, self.fresh)
        if code is not None:
            return self.finish(loop, Mapped.TILES, code)
        phases = scan_rows(nest, self.fresh, self.facts.exact)
        if phases is not None:
            self.note(loop, Mapped.ROWS_OF_SCANS)
            return tuple(kernel for phase in phases for kernel in self.map_new_nest(phase))
        nests: Sequence[DeviceCode | For] | None = distribute_nests(
            nest, self.facts, self.fresh, self.nodes
        )
        if nests:
            self.note(loop, Mapped.NESTS)
            return self.map_in_order(nests)
        nests = split_columns(nest, self.facts, self.fresh, self.nodes)
        if nests is not None:
            self.note(loop, Mapped.COLUMNS)
            return self.map_in_order(nests)
        by_block = prefers_blocks(nest, self.facts, self.nodes)
        code = None if by_block else map_to_threads(nest, self.fresh, self.nodes)
        if code is not None:
            return self.finish(loop, Mapped.POINTS, code)
        code = map_to_blocks(nest, self.facts, self.fresh, self.nodes)
        if code is not None:
            return self.finish(loop, Mapped.BLOCKS, code)
        code = map_to_threads(nest, self.fresh, self.nodes) if by_block else None
        return None if code is None else self.finish(loop, Mapped.POINTS, code)

    def map_dependent(self, loop: For) -> tuple[Stmt, ...] | None:
        """Return the kernels of a loop whose iterations are not independent, None for none."""
        accumulators = find_accumulators(loop, self.facts.private(loop), self.facts)
        if accumulators:
            if count_blocks(loop, bounds=self.bounds) <= 1:
                return None
            code = map_split_reduction(loop, accumulators, self.facts, self.fresh, self.nodes)
            if code is None:
                return None
            self.note(loop, Mapped.REDUCTION)
            return self.map_partials(code)
        phases = build_scan(loop, self.fresh, self.facts.exact)
        if phases is not None:
            self.note(loop, Mapped.SCAN)
            return tuple(kernel for phase in phases for kernel in self.map_new_nest(phase))
        code = map_prefix_sums(loop, self.facts, self.fresh, self.nodes)
        if code is not None:
            self.note(loop, Mapped.PREFIX)
            return self.map_phases(code)
        reason = Mapped.ATOMIC
        if self.target.atomics:
            code = map_atomic_scatter(loop, self.facts, self.fresh, self.nodes)
        if code is None:
            code, reason = (
                map_owner_computes(loop, self.facts, self.fresh, self.nodes),
                Mapped.OWNERS,
            )
        if code is None:
            return self.map_index_sets(loop)
        if len(code.body) == 1:
            return self.finish(loop, reason, code)
        self.note(loop, reason)
        return self.map_partials(code)

    def finish(self, loop: For, reason: Mapped, code: DeviceCode) -> tuple[Stmt, ...]:
        """Return the kernels of a loop, noted with the reason for them."""
        self.note(loop, reason)
        self.spaces |= code.spaces
        return code.body

    def map_segments(self, parts: Sequence[Segment]) -> tuple[Stmt, ...] | None:
        """Return the kernels of a band's segments, None where none has one of its own; other
        statements wait for the combined sums."""
        out: list[Stmt] = []
        pending: list[Stmt] = []
        private = frozenset(n for part in parts for n in self.facts.temporaries_in(part.point))
        for part in parts:
            code = None
            if part.sums:
                nodes = self.nodes | self.new_nodes()
                code = map_split_reduction(
                    part.loop, part.sums, self.facts, self.fresh, nodes, part.point
                )
            if code is None and not part.wide:
                pending += part.point.body
                continue
            if must_follow(pending, part.point if code is None else code.body[0]):
                out += self.map_points(part.point, pending, private)
                pending = []
            if code is None:
                out += self.map_or_keep(part.point)
                continue
            self.spaces |= code.spaces
            out.append(code.body[0])
            pending += [stmt for loop in code.body[1:] for stmt in bodies(loop)[0]]
        if not out:  # else the same statements would be split again, without end
            return None
        return (*out, *self.map_points(parts[0].point, pending, private))

    def map_points(
        self, point: For, body: Sequence[Stmt], private: frozenset[int]
    ) -> tuple[Stmt, ...]:
        """Return the kernels of statements for each point; only these use the nodes `private`."""
        if all(isinstance(stmt, Comment) for stmt in body):
            return tuple(body)
        loop = replace(point, body=tuple(body))
        new_nodes = self.new_nodes()
        new = {
            number
            for number in count_uses(body)
            if number in new_nodes and not new_nodes[number].rank
        }
        self.nodes |= new_nodes
        self.facts.tell((loop,), private | new)
        return self.map_or_keep(loop)

    def map_index_sets(self, loop: For) -> tuple[Stmt, ...] | None:
        """Return the kernels of a loop distributed into index sets; None where these have none."""
        parts = distribute_statements(loop, self.facts) or ()
        mapped = [self.map_nest(part) for part in parts]
        if all(kernels is None for kernels in mapped):
            return None
        return tuple(
            stmt for part, kernels in zip(parts, mapped, strict=True) for stmt in kernels or (part,)
        )

    def map_partials(self, code: DeviceCode, count: int = 1) -> tuple[Stmt, ...]:
        """Return `count` kernels of partial results, and what combines these."""
        self.spaces |= code.spaces
        last = code.body[count:]
        mapped = [self.map_nest(stmt) for stmt in last]
        rest = [stmt for stmt, kernels in zip(last, mapped, strict=True) if kernels is None]
        return (*code.body[:count], *(stmt for kernels in mapped for stmt in kernels or ()), *rest)

    def map_phases(self, code: DeviceCode) -> tuple[Stmt, ...]:
        """Return kernels, and those of the nests between and after them."""
        self.spaces |= code.spaces
        parts = [
            self.map_new_nest(stmt) if isinstance(stmt, For) and not _is_kernel(stmt) else (stmt,)
            for stmt in code.body
        ]
        return tuple(stmt for part in parts for stmt in part)

    def map_or_keep(self, stmt: Stmt) -> tuple[Stmt, ...]:
        """Return the kernels of a nest, or the nest itself where it has none."""
        kernels = self.map_nest(stmt)
        return (stmt,) if kernels is None else kernels

    def map_new_nest(self, stmt: For) -> tuple[Stmt, ...]:
        """Return the kernels of a nest that was built here, with private scalars."""
        new_nodes = self.new_nodes()
        self.nodes |= new_nodes
        used = count_uses((stmt,)).keys() & new_nodes.keys()
        self.facts.tell((stmt,), frozenset(n for n in used if not new_nodes[n].rank))
        return self.map_or_keep(stmt)

    def map_in_order(self, nests: Sequence[DeviceCode | For]) -> tuple[Stmt, ...]:
        """Return the kernels of nests, some of which are mapped already."""
        out: list[Stmt] = []
        self.nodes |= self.new_nodes()
        for nest in nests:
            if isinstance(nest, DeviceCode):
                self.spaces |= nest.spaces
                out += nest.body
            else:
                out += self.map_or_keep(nest)
        return tuple(out)

    def is_host_loop(self, stmt: Stmt) -> bool:
        """Whether the host should run a sequential loop, whose body is worth kernels of its own."""
        if not isinstance(stmt, For | While | If) or not contains_thread_loop(stmt, self.facts):
            return False
        return any(
            has_many_iterations(nested, self.bounds_inside(stmt))
            for part in bodies(stmt)
            for nested in part
        )

    def group_kernels(self, pending: Sequence[Stmt]) -> tuple[Stmt, ...]:
        """Return statements as kernels of one block or thread, each of few enough arrays."""
        out: list[Stmt] = []
        part: list[Stmt] = []
        used: set[int] = set()
        for stmt in pending:
            nodes = {node.id for node in (*reads((stmt,)), *writes((stmt,)))}
            if len(used | nodes) > thresholds.MAX_SPLIT_KERNEL_ARRAYS and used:
                out += self.build_kernel(part)
                part, used = [], set()
            part.append(stmt)
            used |= nodes
        return (*out, *self.build_kernel(part))

    def build_kernel(self, part: Sequence[Stmt]) -> tuple[Stmt, ...]:
        """Return statements as one kernel."""
        body = tuple(part)
        if all(isinstance(stmt, Comment) for stmt in body):
            return body
        private, facts = self.find_private(body), self.facts
        if any(
            contains_thread_loop(s, facts) or (isinstance(s, For) and is_thread_loop(s, facts))
            for s in body
        ):
            code = map_to_one_block(
                body, private, self.facts, self.fresh, self.nodes | self.new_nodes()
            )
            if code is not None:
                for stmt in body:
                    self.note(stmt, Mapped.ONE_BLOCK)
                self.spaces |= code.spaces
                return code.body
        for stmt in body:
            self.note(stmt, Mapped.ONE_THREAD)
        for number in private:
            node = (self.nodes | self.new_nodes())[number]
            if not node.rank or node.bytes <= thresholds.MAX_THREAD_PRIVATE_BYTES:
                self.spaces[number] = "private"
        return (single_thread_kernel(body),)

    def new_nodes(self) -> dict[int, Node]:
        """Return the nodes that were created here, by id."""
        return {node.id: node for node in self.fresh.nodes}

    def find_private(self, body: tuple[Stmt, ...]) -> frozenset[int]:
        """Return the temporaries that only these statements use, and write before they read."""
        here, sites = count_uses(body), collect_accesses(body)
        return frozenset(
            number for number, times in here.items()
            if number in self.locals and times == self.uses[number]
            and self.nodes[number].static_shape is not None
            and not sites.is_read_before_written(self.nodes[number])
        )  # fmt: skip


def _trailing_comments(run: Sequence[Stmt]) -> Sequence[Stmt]:
    """Return the trailing comments of statements: they describe the statement that follows."""
    last = next((at for at in range(len(run), 0, -1) if not isinstance(run[at - 1], Comment)), 0)
    return run[last:]


def _is_kernel(stmt: Stmt) -> bool:
    return isinstance(stmt, For) and stmt.kind == "block"


def _is_pending(stmt: Stmt) -> bool:
    """Whether a statement is neither a kernel nor host code."""
    return not _is_kernel(stmt) and not (
        is_host_only(stmt) or any(_is_kernel(inner) for inner in statements((stmt,)))
    )


def must_follow(run: Sequence[Stmt], kernel: Stmt) -> bool:
    """Whether a kernel has to stay after the statements before it.

    Where a check may fail, on either side, all that precedes it is executed, and no more.
    """
    if any(isinstance(stmt, Check) for stmt in statements((*run, kernel))):
        return True
    written, outputs = {n.id for n in writes(run)}, {n.id for n in writes((kernel,))}
    used, inputs = {n.id for n in reads((kernel,))}, {n.id for n in reads(run)}
    return bool(written & (outputs | used) or outputs & inputs)


def single_thread_kernel(body: tuple[Stmt, ...]) -> For:
    """Return statements as a kernel of one thread."""
    thread = For(Symbol("thread", -(2**20)), const(0), const(1), 1, body, "thread")
    return For(Symbol("block", -(2**20) - 1), const(0), const(1), 1, (thread,), "block")
