"""Accumulators of loops whose iterations are otherwise independent, and their neutral elements.

Recognizes scalar and array reductions; what may be reassociated follows from operation and type.
Analysis only.

>>> program = lowered("s[0] += x[i]", s="f32[1]", x="f32[100]")
>>> loop, facts = program.kernels[0].body[-1], facts_of(program)
>>> [one.op.name for one in find_accumulators(loop, frozenset(), facts)]
['add']
>>> from plusequals.lowering.ir import dtypes
>>> from plusequals.lowering.ir.ops import OPS
>>> neutral_element(OPS["add"], dtypes.float32), neutral_element(OPS["max"], dtypes.int8)
(Const(value=-0.0, dtype=float32), Const(value=-128, dtype=int8))
"""

from __future__ import annotations

from collections.abc import Sequence

from ...base.dataclass import dataclass
from ..ir.assignments import Access, Pair
from ..ir.bounds import Bounds
from ..ir.dtypes import DType
from ..ir.expressions import Const, Dynamic, Index
from ..ir.indexing import Affine, Symbol
from ..ir.loops import For, If, Stmt, Store, Update
from ..ir.node import Node
from ..ir.ops import Op, neutral_of
from ..ir.walk import binds, statements
from .accesses import Accesses, collect_accesses
from .parallel_band import Facts, perfect_nest, trip_count


@dataclass(frozen=True, slots=True)
class Accumulator:
    """An accumulator of a loop: always this element, updated by this operation."""

    access: Access
    op: Op
    pair: Pair | None

    @property
    def dtype(self) -> DType:
        """The type of the accumulator."""
        return self.access.node.dtype

    @property
    def accesses(self) -> tuple[Access, ...]:
        """The elements that it writes: the value and, of an argmin or argmax, the position."""
        return (self.access,) if self.pair is None else (self.access, self.pair.access)


def find_accumulators(loop: For, private: frozenset[int], facts: Facts) -> tuple[Accumulator, ...]:
    """Return the accumulators of a loop whose iterations are independent but for those; else none.

    `private` are the ids of the privatizable temporaries.
    """
    inside = statements(_tuple(loop))
    bound = {symbol for stmt in inside for symbol in binds(stmt)}
    updates = [stmt for stmt in inside if isinstance(stmt, Update)]
    accumulators: dict[int, Accumulator] = {}
    for stmt in updates:
        accumulator = Accumulator(stmt.access, stmt.op, stmt.pair)
        subscripts = [i for access in accumulator.accesses for i in access.index]
        if stmt.access.node.id not in private and all(_is_fixed(i, bound) for i in subscripts):
            accumulators.setdefault(stmt.access.node.id, accumulator)
    sites = collect_accesses((loop,))
    symbols = frozenset(level.symbol for level in perfect_nest(loop)[0])
    for accumulator in accumulators.values():
        reduced = all(
            is_reduction_over(s, symbols)
            for s in updates
            if s.access.node == accumulator.access.node
        )
        reassociable = is_reassociable(
            accumulator.op, accumulator.dtype, facts.exact or not reduced
        )
        if not reassociable or not _is_only_updated(accumulator, updates, sites):
            return ()
        if accumulator.pair is not None and not _has_ascending_positions(loop, updates):
            return ()
    updated = frozenset(
        access.node.id for accumulator in accumulators.values() for access in accumulator.accesses
    )
    return (
        tuple(accumulators.values())
        if accumulators and facts.is_free(loop, private | updated)
        else ()
    )


def is_reassociable(op: Op, dtype: DType, exact: bool) -> bool:
    """Whether a reduction is reassociable, so that partial results may be combined: floating-point
    sums only where order-preserving (`exact`) is not asked for."""
    if op.name in ("argmin", "argmax"):
        return True
    is_inexact = dtype.kind in "fc" and op.name not in ("max", "min")
    return op.side == "both" and op.neutral is not None and not (exact and is_inexact)


def is_reduction_over(update: Update, letters: frozenset[Symbol]) -> bool:
    """Whether loops over these symbols are reduction axes of an update; loops that were written as
    such do more."""
    return letters <= {symbol for at in update.over for symbol in at.symbols()}


def _is_fixed(index: Index, bound: set[Symbol]) -> bool:
    return not isinstance(index, Dynamic) and not index.symbols() & bound


def _is_only_updated(accumulator: Accumulator, updates: Sequence[Update], sites: Accesses) -> bool:
    """Whether a loop accesses an accumulator only by such updates."""
    for access in accumulator.accesses:
        for site in sites.of(access.node):
            if site.kind != "update" or site.index != access.index:
                return False
    matching = [stmt for stmt in updates if stmt.access.node == accumulator.access.node]
    return all(
        stmt.op == accumulator.op
        and (stmt.pair is None) == (accumulator.pair is None)
        and (
            stmt.pair is None
            or accumulator.pair is None
            or stmt.pair.access == accumulator.pair.access
        )
        for stmt in matching
    )


def _has_ascending_positions(loop: For, updates: Sequence[Update]) -> bool:
    """Whether positions grow in program order, so that the least one is the first found."""
    loops, body = perfect_nest(loop)
    pairs = [(stmt, stmt.pair) for stmt in updates if stmt.pair is not None]
    straight = {id(stmt) for stmt in _unconditional(body)}
    if len({pair.access for _, pair in pairs}) < len(pairs) or any(
        id(stmt) not in straight for stmt, _ in pairs
    ):
        return False
    bounds, trip_counts = Bounds(), list[int | None]()
    for level in loops:
        trip_counts.append(bounds.most(trip_count(level)))
        bounds = bounds.inside(level)
    bound = {symbol for stmt in statements(body) for symbol in binds(stmt)}
    counted_loops = list(zip(loops, trip_counts, strict=True))
    return all(_is_increasing(pair.position, counted_loops, bound) for _, pair in pairs)


def _is_increasing(
    position: Affine, loops: Sequence[tuple[For, int | None]], bound: set[Symbol]
) -> bool:
    """Whether a position grows from iteration to iteration of loops with these trip counts; it may
    not depend on symbols `bound` inside."""
    below = 0
    for loop, count in reversed(loops):
        step = position.coefficient(loop.symbol) * loop.step
        if step <= below or (count is None and loop is not loops[0][0]):
            return False
        below += step * max((count or 1) - 1, 0)
    return not (position.symbols() - {loop.symbol for loop, _ in loops}) & bound


def _unconditional(body: tuple[Stmt, ...]) -> list[Stmt]:
    """Return the statements that run at most once in each iteration."""
    out = [*body]
    for stmt in body:
        if isinstance(stmt, If):
            out += _unconditional(stmt.then) + _unconditional(stmt.orelse)
    return out


def neutral_element(op: Op, dtype: DType) -> Const:
    """Return the neutral element of an operation, which keeps even the sign of a zero."""
    if op.name == "add" and dtype.kind == "f":
        return Const(-0.0, dtype)
    if op.name == "add" and dtype.kind == "c":
        return Const(complex(-0.0, -0.0), dtype)
    return Const(neutral_of(op, dtype.kind, dtype.bits), dtype)


def zero_of(dtype: DType) -> bool | int | float:
    """Return the zero of a type."""
    return False if dtype.kind == "b" else 0 if dtype.kind in "iu" else 0.0


def _tuple(loop: For) -> tuple[Stmt, ...]:
    return (loop,)


def accumulation_op(loop: For, node: Node) -> Op | None:
    """Return the reassociable operation by which a loop accumulates into an array; None where there
    is none or the order matters."""
    ops = {
        stmt.op if isinstance(stmt, Update) else None for stmt in statements(loop.body)
        if isinstance(stmt, Store | Update) and stmt.access.node == node
    }  # fmt: skip
    op = ops.pop() if len(ops) == 1 else None
    return op if op is not None and is_reassociable(op, node.dtype, exact=True) else None


def write_only_arrays(loop: For, private: frozenset[int]) -> list[Node]:
    """Return the arrays that a loop writes and never reads; none where it reads one of them."""
    arrays: list[Node] = []
    for sites in collect_accesses((loop,)).sites.values():
        node = sites[0].node
        if node.id in private or not any(site.writes for site in sites):
            continue
        if not node.rank or any(site.kind == "read" or site.index is None for site in sites):
            return []
        arrays.append(node)
    paired = any(isinstance(s, Update) and s.pair is not None for s in statements(loop.body))
    return [] if paired else arrays
