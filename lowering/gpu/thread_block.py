"""Cooperative execution of statements by a thread block: a sequence of thread loops.

    for i in 0..n: body    becomes    for i in 0..n:                   blocks
                                          uniform code: tests, loops, scalars
                                          thread loops, barriers between them

A loop of independent iterations is distributed over the threads; a reduction is split, see
`reductions.block_reduction`; a write of an array in no such loop is executed by one thread. Scalars
that all threads compute redundantly are private to each, other temporaries are in shared memory,
unless each thread needs only the elements that it computes: see `register_caching`.

>>> program = lowered('''
... m[i] = max(x[i, j])
... y[i, j] = x[i, j] - m[i]
... ''', y="f32[8, 40]", x="f32[8, 40]", m="f32[8]")
>>> facts = facts_of(program)
>>> nest = find_band(program.kernels[0].body[1], facts)
>>> map_to_blocks(nest, facts, fresh_for(program), {}) is not None
True
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace

from ...base.dataclass import dataclass
from .. import thresholds
from ..analysis.accumulators import find_accumulators
from ..analysis.parallel_band import (
    Band,
    Facts,
    contiguity_score,
    find_band,
    has_checks,
    nest_loops,
    perfect_nest,
    producer_loops,
    static_trip_count,
)
from ..ir.assignments import Break, Continue, Let
from ..ir.fresh import Fresh
from ..ir.indexing import const
from ..ir.loops import Check, Comment, Fill, For, If, Stmt, Store, Update, While
from ..ir.node import Node
from ..ir.rewrite import with_bodies
from ..ir.walk import bodies, parts, statements, writes
from ..transform.remap import fill_loops
from .barriers import has_jump, insert_barriers
from .reductions.block_reduction import build_block_reduction
from .register_caching import cache_rows
from .thread_points import DeviceCode, Space, normalize_band


def map_to_blocks(
    nest: Band, facts: Facts, fresh: Fresh, nodes: Mapping[int, Node]
) -> DeviceCode | None:
    """Return the kernel with a block for each point; None if its arrays exceed shared memory."""
    code = build_block_code(nest.inner, nest.private, facts, fresh, nodes)
    if code is None:
        return None
    blocks = [replace(loop, kind="block") for loop in nest.free[:3]]
    body = nest_loops(nest.free[3:], code.body)
    return DeviceCode(
        nest_loops(blocks, insert_barriers(body, code.threads, loops=True)), code.spaces
    )


def map_to_one_block(
    body: tuple[Stmt, ...], private: frozenset[int], facts: Facts, fresh: Fresh,
    nodes: Mapping[int, Node],
) -> DeviceCode | None:  # fmt: skip
    """Return the kernel of one block that executes statements; None if it exceeds shared memory."""
    code = build_block_code(body, private, facts, fresh, nodes)
    if code is None:
        return None
    inside = insert_barriers(code.body, code.threads)
    block = For(fresh.symbol("block"), const(0), const(1), 1, inside, "block")
    return DeviceCode((block,), code.spaces)


def build_block_code(
    body: tuple[Stmt, ...], private: frozenset[int], facts: Facts, fresh: Fresh,
    nodes: Mapping[int, Node],
) -> DeviceCode | None:  # fmt: skip
    """Return the code of a block, without barriers; `private` are the ids of the temporaries that
    it may privatize. None if it exceeds shared memory.

    Scalars that only one thread computes are in shared memory; the build is repeated until no more
    of these are found.
    """
    shared: frozenset[int] = frozenset()
    while True:
        scalars = frozenset(n for n in private if not nodes[n].rank) - shared
        builder = _BlockBuilder(facts, fresh, nodes, private, scalars)
        stmts = builder.build_body(body)
        if builder.undefined <= shared:
            break
        shared |= builder.undefined
    for number in private:
        if number not in builder.spaces:
            space: Space = "private" if number in scalars else "shared"
            builder.spaces[number] = space
    code = cache_rows(DeviceCode(stmts, builder.spaces), fresh)
    all_nodes = {**nodes, **{node.id: node for node in fresh.nodes}}
    shared_nodes = [all_nodes[number] for number, space in code.spaces.items() if space == "shared"]
    return code if fits_block(shared_nodes) else None


def fits_block(nodes: Sequence[Node]) -> bool:
    """Whether arrays have static sizes and fit into the shared memory of a block."""
    is_static = all(node.static_shape is not None for node in nodes)
    return is_static and sum(node.bytes for node in nodes) <= thresholds.MAX_BLOCK_SHARED_BYTES


@dataclass(slots=True)
class _BlockBuilder:
    """Builds the thread loops of a block's statements."""

    facts: Facts
    fresh: Fresh
    nodes: Mapping[int, Node]
    private: frozenset[int]
    scalars: frozenset[int]
    """Those of the private temporaries that every thread computes redundantly."""
    spaces: dict[int, Space] = field(default_factory=dict)
    undefined: frozenset[int] = frozenset()
    """Scalars that only one thread computes, and that should be shared."""

    def build_body(self, body: Iterable[Stmt]) -> tuple[Stmt, ...]:
        """Return uniform code and thread loops; consecutive single-thread statements are merged."""
        out: list[Stmt] = []
        single: list[Stmt] = []
        for stmt in body:
            for built, is_alone in self.build_statement(stmt):
                if is_alone:
                    single.append(built)
                    continue
                if single and not isinstance(built, Comment):
                    out.append(self.run_on_one_thread(single))
                    single = []
                out.append(built)
        return (*out, *([self.run_on_one_thread(single)] if single else []))

    def run_on_one_thread(self, body: Sequence[Stmt]) -> Stmt:
        """Return a thread loop of one iteration: only the first thread executes the body."""
        self.undefined |= {n.id for n in writes(body) if n.id in self.scalars}
        return For(self.fresh.symbol("thread"), const(0), const(1), 1, tuple(body), "thread")

    def build_statement(self, stmt: Stmt) -> Iterable[tuple[Stmt, bool]]:
        """Yield the lowered statements, each with whether only one thread executes it."""
        match stmt:
            case Comment() | Let() | Check() | Break() | Continue():
                yield stmt, False
            case Store() | Update():
                targets = [access.node.id for access in parts(stmt).targets]
                yield stmt, not self.scalars.issuperset(targets)
            case Fill():
                for loop in fill_loops(stmt):
                    yield from self.build_statement(loop)
            case For():
                yield from self.build_loop(stmt)
            case While() | If():
                yield from self.build_inside(stmt)
            case _:
                raise AssertionError(f"a {type(stmt).__name__} is the host's")

    def build_inside(self, stmt: For | While | If) -> Iterable[tuple[Stmt, bool]]:
        """Yield a loop or branch that all threads execute, or that one thread executes."""
        if contains_thread_loop(stmt, self.facts) or has_jump(stmt):
            yield with_bodies(stmt, tuple(self.build_body(part) for part in bodies(stmt))), False
        else:
            only_scalars = all(node.id in self.scalars for node in writes((stmt,)))
            yield stmt, not only_scalars

    def build_loop(self, loop: For) -> Iterable[tuple[Stmt, bool]]:
        """Yield a loop distributed over threads, as a split reduction, or as it is."""
        nest = find_band(loop, self.facts)
        distributed = (
            None
            if nest is None or not has_enough_iterations(nest.free)
            else self.distribute_band(nest)
        )
        if distributed is not None:
            yield distributed, False
            return
        private = self.facts.private(loop)
        accumulators = (
            find_accumulators(loop, private, self.facts) if has_enough_iterations((loop,)) else ()
        )
        prefers_inner = contains_thread_loop(loop, self.facts) and prefers_inner_loops(
            loop, self.facts
        )
        if accumulators and not prefers_inner and self.make_private(private):
            reduction = build_block_reduction(
                loop, accumulators, self.facts, self.fresh, self.spaces
            )
            for stmt in reduction.threads:
                yield stmt, False
            private = self.scalars | {n for n, space in self.spaces.items() if space == "private"}
            for stmt in reduction.all:
                yield stmt, not private.issuperset(node.id for node in writes((stmt,)))
            return
        yield from self.build_inside(loop)

    def make_private(self, private: frozenset[int]) -> bool:
        """Whether temporaries fit into private memory; if so each thread has its own from now
        on."""
        for number in private:
            node = self.nodes[number]
            if node.static_shape is None or (
                node.rank and node.bytes > thresholds.MAX_THREAD_PRIVATE_BYTES
            ):
                return False
        self.spaces |= dict.fromkeys(private, "private")
        return True

    def distribute_band(self, nest: Band) -> Stmt | None:
        """Return a thread loop; None where its temporaries are too large for a thread."""
        if not self.make_private(nest.private):
            return None
        free, body = normalize_band(nest, self.fresh)
        at = 0 if has_checks(body) else select_thread_loop(free)
        others = (*free[:at], *free[at + 1 :])
        (loop,) = nest_loops((replace(free[at], kind="thread"), *others), body)
        return loop


def select_thread_loop(free: Sequence[For]) -> int:
    """Return the position of the loop to distribute, among those whose bounds depend on no other:
    the last of all loops, unless its bounds do, or it is short and another one is longer."""
    names, last = {loop.symbol for loop in free}, len(free) - 1
    ends = [loop.lo.symbols() | loop.hi.symbols() for loop in free]
    rectangular = [at for at, used in enumerate(ends) if not names & used]
    if last in rectangular and static_trip_count(free[last]) not in range(
        thresholds.MIN_BLOCK_LOOP_ITERATIONS
    ):
        return last
    first = [last] if last in rectangular else []
    return max(
        first + rectangular,
        key=lambda at: 2**40 if (n := static_trip_count(free[at])) is None else n,
    )


def has_enough_iterations(loops: Sequence[For]) -> bool:
    """Whether loops have enough iterations in all to be distributed over threads."""
    total = 1
    for loop in loops:
        count = static_trip_count(loop)
        if count is None:
            return True
        total *= count
    return total >= thresholds.MIN_DISTRIBUTED_ITERATIONS


def contains_thread_loop(stmt: Stmt, facts: Facts) -> bool:
    """Whether a statement contains a loop that is distributed over threads."""
    return any(
        isinstance(inner, For) and is_thread_loop(inner, facts)
        for part in bodies(stmt)
        for inner in statements(part)
    )


def prefers_inner_loops(loop: For, facts: Facts) -> bool:
    """Whether accesses are contiguous in long loops inside a nest's body, which compute the terms
    of its reduction, rather than in the nest itself."""
    loops, body = perfect_nest(loop)
    inner = [
        stmt for stmt in statements(producer_loops(body))
        if isinstance(stmt, For)
        and static_trip_count(stmt) not in range(thresholds.MIN_BLOCK_LOOP_ITERATIONS)
        and is_thread_loop(stmt, facts)
    ]  # fmt: skip
    if not inner:
        return False
    outer_score = max(contiguity_score(inner, level.symbol) for level in loops)
    return max(contiguity_score(level.body, level.symbol) for level in inner) > outer_score


def is_thread_loop(loop: For, facts: Facts) -> bool:
    """Whether a loop is distributed over threads: as independent iterations or as a reduction."""
    nest = find_band(loop, facts)
    if nest is not None and has_enough_iterations(nest.free):
        return True
    return has_enough_iterations((loop,)) and bool(
        find_accumulators(loop, facts.private(loop), facts)
    )
