"""Reductions by the threads of a block: a partial result of each thread, combined as a tree.

    for j in 0..n: total += f(j)
    becomes
    for t in 0..256:                              threads
        part = 0; for j in t..n step 256: part += f(j); parts[t] = part
    for t in 0..32:                               threads
        for m in t+32..256 step 32: parts[t] += parts[m]
    for t in 0..8:                                threads
        for m in t+8..32 step 8: parts[t] += parts[m]
    whole = 0; for m in 0..8: whole += parts[m]
    total += whole

The order of the sum depends on the number of iterations only where it is static, so results are
bit-identical on every device and in every launch. Precondition: iterations that are independent but
for the accumulators. A loop that was written is order-preserving, and so are all sums on request:
then only exactly reassociable operations are split. Barriers have to separate these loops.

>>> from plusequals.lowering.analysis.accumulators import find_accumulators
>>> program = lowered("s[0] += x[i]", s="f32[1]", x="f32[100]")
>>> loop, facts, fresh = program.kernels[0].body[-1], facts_of(program), fresh_for(program)
>>> accumulators = find_accumulators(loop, frozenset(), facts)
>>> code = build_block_reduction(loop, accumulators, facts, fresh, {})
>>> print_loops(code.threads[:1])
for thread in 0..128 thread:
    s_part = -0.0
    for i in thread..100 step 128:
        s_part += x[i]
    s_parts[thread] = s_part
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil

from ....base.dataclass import dataclass
from ... import thresholds
from ...analysis.accumulators import Accumulator, neutral_element, zero_of
from ...analysis.parallel_band import (
    Facts,
    collapse,
    contiguity_score,
    nest_loops,
    perfect_nest,
    static_trip_count,
)
from ...analysis.subscripts import ranges
from ...ir import dtypes
from ...ir.assignments import Access, Let, Pair
from ...ir.expressions import Apply, Const, Expr, Index, Read
from ...ir.fresh import Fresh
from ...ir.indexing import Symbol, const, var
from ...ir.loops import For, If, Stmt, Store, Update
from ...ir.node import Node
from ...ir.ops import OPS, Op
from ...transform.remap import Element, remap_accesses
from ..thread_points import Space


@dataclass(frozen=True, slots=True)
class PartialResult:
    """The partial results of threads, with the positions of an argmin or argmax."""

    sum: Accumulator
    value: Node
    position: Node | None
    values: Node
    positions: Node | None


def find_parallel_loops(
    loop: For, accumulators: Sequence[Accumulator], facts: Facts
) -> tuple[tuple[For, ...], tuple[Stmt, ...]]:
    """Return the loops of a nest that are parallel but for accumulators, and the body.

    Iterations of the outermost loop are; inner loops with dependent iterations stay in the body.
    """
    loops, body = perfect_nest(loop)
    targets = frozenset(
        access.node.id for accumulator in accumulators for access in accumulator.accesses
    )
    for at in range(1, len(loops)):
        fact_loop = loops[at] if id(loops[at]) in facts.only else loop
        if not facts.is_free(loops[at], facts.private(fact_loop) | targets, ranges(loops[:at])):
            return loops[:at], loops[at - 1].body
    return loops, body


def build_block_reduction(
    loop: For,
    accumulators: Sequence[Accumulator],
    facts: Facts,
    fresh: Fresh,
    spaces: dict[int, Space],
) -> BlockReduction:
    """Return a loop as thread loops, and the code that adds their result to the accumulators.

    The loop of the nest with contiguous accesses is distributed over threads; where it is short,
    the collapsed nest.
    """
    loops, body = find_parallel_loops(loop, accumulators, facts)
    at = max(range(len(loops)), key=lambda k: (contiguity_score(body, loops[k].symbol), k))
    count = static_trip_count(loops[at])
    is_short = count is not None and count < thresholds.BLOCK_THREADS
    collapsed = (
        collapse(loops, body, fresh, any(accumulator.pair for accumulator in accumulators))
        if is_short
        else None
    )
    if collapsed is not None:
        loops, body, at = (collapsed[0],), collapsed[1], 0
        count = static_trip_count(loops[at])
    elif count is not None and count < thresholds.COMBINING_THREADS:
        at = max(range(len(loops)), key=lambda k: _count_or_huge(loops[k]))
        count = static_trip_count(loops[at])
    size, warp = thresholds.BLOCK_THREADS, thresholds.COMBINING_THREADS
    if count is not None:
        size = min(size, ceil(max(count, 1) / warp) * warp)
    partials = [_build_partial(accumulator, size, fresh, spaces) for accumulator in accumulators]
    thread = fresh.symbol("thread")
    cyclic = replace(
        loops[at], lo=loops[at].lo + var(thread) * loops[at].step, step=loops[at].step * size
    )
    private_body = remap_accesses(body, _RedirectToPartials(partials))
    inner = nest_loops((*loops[:at], cyclic, *loops[at + 1 :]), private_body)
    starts = tuple(stmt for partial in partials for stmt in _initialize(partial))
    ends = tuple(stmt for partial in partials for stmt in _store_partial(partial, thread))
    each = For(thread, const(0), const(size), 1, (*starts, *inner, *ends), "thread", loop.span)
    tree = tuple(
        _build_tree_level(partials, few, many, fresh)
        for few, many in ((warp, size), (thresholds.MAX_FINAL_PARTIALS, warp))
        if many > few
    )
    combination = tuple(
        stmt
        for partial in partials
        for stmt in _combine_last(partial, thresholds.MAX_FINAL_PARTIALS, fresh, spaces)
    )
    return BlockReduction((each, *tree), combination)


@dataclass(frozen=True, slots=True)
class BlockReduction:
    """Thread loops, then uniform code that all threads execute redundantly."""

    threads: tuple[Stmt, ...]
    all: tuple[Stmt, ...]


def _count_or_huge(loop: For) -> int:
    count = static_trip_count(loop)
    return 2**40 if count is None else count


def _build_partial(
    accumulator: Accumulator, size: int, fresh: Fresh, spaces: dict[int, Space]
) -> PartialResult:
    label = accumulator.access.node.label
    value = fresh.scalar(f"{label}_part", accumulator.dtype)
    values = fresh.array(f"{label}_parts", (size,), accumulator.dtype)
    spaces |= {value.id: "private", values.id: "shared"}
    if accumulator.pair is None:
        return PartialResult(accumulator, value, None, values, None)
    label = accumulator.pair.access.node.label
    position = fresh.scalar(f"{label}_part", dtypes.int64)
    positions = fresh.array(f"{label}_parts", (size,), dtypes.int64)
    spaces |= {position.id: "private", positions.id: "shared"}
    return PartialResult(accumulator, value, position, values, positions)


class _RedirectToPartials:
    """Redirects accesses of accumulators to the partial results of a thread."""

    def __init__(self, partials: Sequence[PartialResult]) -> None:
        self.nodes: dict[int, Node] = {}
        for partial in partials:
            self.nodes[partial.sum.access.node.id] = partial.value
            if partial.sum.pair is not None and partial.position is not None:
                self.nodes[partial.sum.pair.access.node.id] = partial.position

    def __call__(self, node: Node, index: tuple[Index, ...]) -> Element:
        target = self.nodes.get(node.id)
        return (node, index) if target is None else (target, ())


def _initialize(partial: PartialResult) -> tuple[Stmt, ...]:
    value = Access(partial.value, ())
    if partial.position is None:
        return (Store(value, neutral_element(partial.sum.op, partial.sum.dtype)),)
    nothing = Store(Access(partial.position, ()), Const(-1, dtypes.int64))
    return Store(value, Const(zero_of(partial.sum.dtype), partial.sum.dtype)), nothing


def _store_partial(partial: PartialResult, thread: Symbol) -> tuple[Stmt, ...]:
    out: tuple[Stmt, ...] = (
        Store(Access(partial.values, (var(thread),)), Read(partial.value, ())),
    )
    if partial.position is not None and partial.positions is not None:
        out += (Store(Access(partial.positions, (var(thread),)), Read(partial.position, ())),)
    return out


def _build_tree_level(partials: Sequence[PartialResult], few: int, size: int, fresh: Fresh) -> Stmt:
    """Return the loop in which few threads combine all other partial results with theirs."""
    thread, partner = fresh.symbol("thread"), fresh.symbol("other")
    updates: tuple[Stmt, ...] = ()
    for partial in partials:
        here, there = (var(thread),), (var(partner),)
        if partial.positions is None:
            target = Access(partial.values, here)
            updates += (Update(target, partial.sum.op, Read(partial.values, there)),)
        else:
            target_pair = Access(partial.values, here), Access(partial.positions, here)
            source_pair = Read(partial.values, there), Read(partial.positions, there)
            updates += (_take_better(partial.sum.op, target_pair, source_pair),)
    loop = For(partner, var(thread) + few, const(size), few, updates)
    return For(thread, const(0), const(few), 1, (loop,), "thread")


def _combine_last(
    partial: PartialResult, few: int, fresh: Fresh, spaces: dict[int, Space]
) -> tuple[Stmt, ...]:
    """Return the code that adds the remaining partial results to an accumulator, in all threads."""
    at = fresh.symbol("thread")
    accumulator = partial.sum
    whole = fresh.scalar(f"{accumulator.access.node.label}_whole", accumulator.dtype)
    spaces[whole.id] = "private"
    there = Read(partial.values, (var(at),))
    if partial.positions is None or accumulator.pair is None:
        start = Store(Access(whole, ()), neutral_element(accumulator.op, accumulator.dtype))
        loop = For(at, const(0), const(few), 1, (Update(Access(whole, ()), accumulator.op, there),))
        return start, loop, Update(accumulator.access, accumulator.op, Read(whole, ()))
    position = fresh.scalar(f"{accumulator.pair.access.node.label}_whole", dtypes.int64)
    spaces[position.id] = "private"
    target = Access(whole, ()), Access(position, ())
    starts = (
        Store(target[0], Const(zero_of(accumulator.dtype), accumulator.dtype)),
        Store(target[1], Const(-1, dtypes.int64)),
    )
    better = _take_better(accumulator.op, target, (there, Read(partial.positions, (var(at),))))
    symbol = fresh.symbol("at")
    update = (
        Let(symbol, Read(position, ())),
        Update(
            accumulator.access,
            accumulator.op,
            Read(whole, ()),
            Pair(accumulator.pair.access, var(symbol)),
        ),
    )
    guarded_update = If(_build_test("ge", Read(position, ()), Const(0, dtypes.int64)), update)
    return (*starts, For(at, const(0), const(few), 1, (better,)), guarded_update)


def _take_better(op: Op, target: tuple[Access, Access], source: tuple[Read, Read]) -> Stmt:
    """Return the update of an extreme; of equal ones the first in program order wins."""
    value, position = (Read(access.node, access.index) for access in target)
    new_value, new_position = source
    is_better = _build_test("lt" if op.name == "argmin" else "gt", new_value, value)
    is_equal = _build_test("eq", new_value, value)
    if value.dtype.kind == "f":
        is_nan, was_nan = _build_test("isnan", new_value), _build_test("isnan", value)
        is_better = _build_test(
            "or", is_better, _build_test("and", is_nan, _build_test("logical_not", was_nan))
        )
        is_equal = _build_test("or", is_equal, _build_test("and", is_nan, was_nan))
    wins = _build_test(
        "or", is_better, _build_test("and", is_equal, _build_test("lt", new_position, position))
    )
    is_empty = _build_test("lt", position, Const(0, dtypes.int64))
    has_position = _build_test("ge", new_position, Const(0, dtypes.int64))
    test = _build_test("and", has_position, _build_test("or", is_empty, wins))
    return If(test, (Store(target[0], new_value), Store(target[1], new_position)))


def _build_test(name: str, *args: Expr) -> Apply:
    """Return a test on operands."""
    return Apply(OPS[name], args, dtypes.bool_)
