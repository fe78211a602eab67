"""Static estimates of how much work a loop is, as an index expression: constant, or of sizes.

The unit is an addition of one SIMD lane. A unit of `expression_cost.cost` is worth `SCALAR_WORK` of
these, except in innermost loops that compilers vectorize: contiguous stores of cheap operations. A
tile in registers is only computed, `REGISTER_TILE_BYTES_PER_UNIT` bytes for a unit: each read
serves many elements. Bounds that depend on a loop inside are taken at its middle, what depends on
data is taken to be `ASSUMED_SIZE`: it is a guess, and nothing but speed may depend on it. Analysis
only.

>>> program = lowered("y[i] = sum(x[i, j] * x[i, j])", y="f32[9]", x="f32[9, 50]")
>>> iteration_count(program.kernels[0].body[-1]), work_per_iteration(program.kernels[0].body[-1])
(9, 2416)
>>> program = lowered("y[i, j] = x[i, j] * x[i, j]", y="f32[9, 50]", x="f32[9, 50]")
>>> work_per_iteration(program.kernels[0].body[-1])
208
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import assert_never

from ...base.dataclass import dataclass
from .. import thresholds
from ..ir.algebra import FALSE
from ..ir.assignments import Alloc, Break, Continue, Let, Permute, Print
from ..ir.expressions import reads, walk
from ..ir.indexing import (
    Affine,
    Symbol,
    const,
    extremum_operands,
    floordiv,
    maximum,
    multiply,
    substitute,
)
from ..ir.instructions import AwaitProducts, CopyVector, MatMul, StoreVector
from ..ir.loops import Barrier, Check, Comment, Fill, For, If, LastBlock, Stmt, Store, Update, While
from ..ir.memo import memoize
from ..ir.node import Node
from ..ir.walk import bodies, expressions_of, statements
from .expression_cost import cost

MAX_WORK = 1 << 40
"""Upper limit of all estimates, so that products with sizes stay numbers."""


@dataclass(frozen=True, slots=True)
class _Assumptions:
    """Assumptions about symbols: the values of some, and which are sizes, never negative."""

    sizes: frozenset[Symbol] | None
    """None: all are."""
    values: Mapping[Symbol, Affine] = field(default_factory=dict)

    def inside(self, symbol: Symbol, value: Affine) -> _Assumptions:
        """Return the assumptions where a symbol is taken to be a value."""
        return _Assumptions(self.sizes, {**self.values, symbol: value})

    def trip_count(self, loop: For) -> Affine:
        """Return the trip count of a loop, at least 0."""
        count = _full_trip_count(loop, self.values)
        return count if self.is_size(count) else maximum(count, const(0))

    def is_size(self, number: Affine) -> bool:
        """Whether an index expression is a sum of sizes."""
        sizes = number.symbols() if self.sizes is None else self.sizes
        plain = all(factor > 0 and atom in sizes for atom, factor in number.terms)
        return plain and number.offset >= 0


def _full_trip_count(loop: For, values: Mapping[Symbol, Affine]) -> Affine:
    """Return the trip count of a loop; of a tile that may be partial, that of a full one."""
    if loop.step > 0:
        if not loop.lo.terms and not loop.hi.terms:  # as most have
            return const(-((loop.lo.offset - loop.hi.offset) // loop.step))
        lower_bounds, upper_bounds = (
            extremum_operands(substitute(loop.lo, values), "max"),
            extremum_operands(loop.hi, "min"),
        )
        gaps = [
            (substitute(hi, values) - lo).constant for hi in upper_bounds for lo in lower_bounds
        ]
        constants = [gap for gap in gaps if gap is not None]
        if constants:
            return const(-(-min(constants) // loop.step))
    return substitute(iteration_count(loop), values)


def iteration_count(loop: For) -> Affine:
    """Return the trip count of a loop; a negative one stands for none."""
    gap = loop.hi - loop.lo if loop.step > 0 else loop.lo - loop.hi
    step = abs(loop.step)
    return gap if step == 1 else floordiv(gap + (step - 1), const(step))


def work_per_iteration(loop: For | While, sizes: frozenset[Symbol] | None = None) -> Affine:
    """Return about how much work an iteration is, in symbols that are known at the loop.

    It is non-negative where the symbols in `sizes` are; None stands for all symbols not bound
    inside.
    """
    assumed = _Assumptions(sizes)
    if isinstance(loop, While):
        scalar = thresholds.SCALAR_WORK
        return _body_work(loop.prelude + loop.body, assumed, scalar) + cost(loop.test) * scalar
    return _iteration_work(loop, assumed)


def _iteration_work(loop: For, assumed: _Assumptions) -> Affine:
    """Return the work of an iteration of a loop; memoized with the loop where no assumed value is
    in its extents."""
    if not assumed.values.keys().isdisjoint(_extents(loop)):
        return _compute_iteration_work(loop, assumed)
    try:
        memo: dict[frozenset[Symbol] | None, Affine] = loop.work
    except AttributeError:
        memo = memoize(loop, "work", {})
    work = memo.get(assumed.sizes)
    if work is None:
        work = memo[assumed.sizes] = _compute_iteration_work(loop, assumed)
    return work


def _compute_iteration_work(loop: For, assumed: _Assumptions) -> Affine:
    middle = _middle_value(loop, assumed, assumed.trip_count(loop))
    return _body_work(loop.body, assumed.inside(loop.symbol, middle), _scale(loop))


def _extents(stmt: Stmt) -> frozenset[Symbol]:
    """Return the symbols in ranges and sizes of arrays in a statement, except those that it
    binds."""
    try:
        memo: frozenset[Symbol] = stmt.extents
    except AttributeError:
        used = {symbol for body in bodies(stmt) for nested in body for symbol in _extents(nested)}
        match stmt:
            case For():
                used.discard(stmt.symbol)
                used |= stmt.lo.symbols() | stmt.hi.symbols()
            case Fill(node) | Alloc(node):
                used.update(*(extent.symbols() for extent in node.shape))
            case _:
                pass
        memo = memoize(stmt, "extents", frozenset(used))
    return memo


def _direct_cost(stmt: Stmt) -> int:
    """Return the cost of the expressions of a statement itself, without nested statements;
    memoized."""
    try:
        memo: int = stmt.cost
    except AttributeError:
        memo = memoize(stmt, "cost", sum(map(cost, expressions_of(stmt))))
    return memo


def total_work(loop: For, sizes: frozenset[Symbol] | None = None) -> Affine:
    """Return about how much work all iterations together are, see `work_per_iteration`."""
    return _bounded_product(_Assumptions(sizes).trip_count(loop), work_per_iteration(loop, sizes))


def _scale(loop: For) -> int:
    """Return the cost of an operation in a loop."""
    return 1 if loop.kind == "vector" or _is_vectorizable(loop) else thresholds.SCALAR_WORK


def _register_trip_count(loop: For, trip_count: Affine) -> Affine:
    """Return the trip count of a loop, or the number of units in which a row of a register tile is
    computed."""
    if loop.kind != "vector" or len(loop.body) != 1:
        return trip_count
    match loop.body[0]:
        case Store(access) | Update(access) if _is_tile(access.node):
            per_unit = max(1, thresholds.REGISTER_TILE_BYTES_PER_UNIT // access.node.dtype.itemsize)
            return floordiv(trip_count + (per_unit - 1), const(per_unit))
        case _:
            return trip_count


def _is_tile(node: Node) -> bool:
    """Whether a node is a two-dimensional register tile."""
    return node.purpose == "tile" and node.rank > 1


def _is_vectorizable(loop: For) -> bool:
    """Whether compilers vectorize an innermost loop: contiguous stores of cheap operations."""
    return all(
        isinstance(stmt, Comment)
        or (
            isinstance(stmt, Store | Update)
            and is_contiguous_store(stmt, loop.symbol)
            and cost(stmt.value) < thresholds.LIBRARY_CALL_COST
        )
        for stmt in loop.body
    )


def is_contiguous_store(stmt: Store | Update, symbol: Symbol) -> bool:
    """Whether stores of neighbouring iterations are contiguous, or the statement is an integer
    reduction."""
    node, index = stmt.access.node, stmt.access.index
    if not index and isinstance(stmt, Update):
        return node.dtype.kind in "iu" and stmt.pair is None
    if not index or node.strides is not None or not isinstance(index[-1], Affine):
        return False
    return index[-1].coefficient(symbol) in (1, -1)


def _body_work(body: tuple[Stmt, ...], assumed: _Assumptions, scale: int) -> Affine:
    total = const(0)
    for stmt in body:
        total += _statement_work(stmt, assumed, scale)
        if isinstance(stmt, Let):
            assumed = assumed.inside(stmt.symbol, const(thresholds.ASSUMED_SIZE))
    return _clip(total)


def _statement_work(stmt: Stmt, assumed: _Assumptions, scale: int) -> Affine:
    if isinstance(stmt, For):
        trip_count = _register_trip_count(stmt, assumed.trip_count(stmt))
        return _bounded_product(trip_count, _iteration_work(stmt, assumed)) + thresholds.SCALAR_WORK
    direct = const(_direct_cost(stmt) * scale)
    match stmt:
        case While(prelude, _, body):
            return (
                direct + _body_work(prelude + body, assumed, thresholds.SCALAR_WORK)
            ) * thresholds.ASSUMED_SIZE
        case If(_, then, ()) if _only_checks(then) or ends_in_failure(then):
            return direct
        case If(_, then, orelse):
            return direct + _maximum_or_sum(
                _body_work(then, assumed, scale), _body_work(orelse, assumed, scale)
            )
        case Store(access, value) if _is_tile(access.node):
            return const(max(1, cost(value) - thresholds.READ_COST * len(reads(value))) * scale)
        case Store(access):
            return direct + (thresholds.STORE_WORK * scale if access.node.rank else 0)
        case Update(access, _, value) if access.node.purpose == "tile":
            return const(max(1, cost(value) - thresholds.READ_COST * len(reads(value))) * scale)
        case Update(access):
            return (
                direct
                + (1 + thresholds.READ_COST + thresholds.STORE_WORK if access.node.rank else 1)
                * scale
            )
        case CopyVector(count=count):
            return (direct + thresholds.STORE_WORK * scale) * count
        case StoreVector(values=values):
            return direct + thresholds.STORE_WORK * scale * len(values)
        case MatMul():
            work = direct + (1 + thresholds.READ_COST + thresholds.STORE_WORK) * scale
            for one in stmt.over:
                work = _bounded_product(substitute(one.hi - one.lo, assumed.values), work)
            return work
        case Fill(node) | Alloc(node):
            return _fill_work(node, assumed)
        case Print():
            return direct + thresholds.PRINT_COST * scale
        case Let() | Check() | Permute() | Comment() | Break() | Continue():
            return direct
        case Barrier() | AwaitProducts():
            return direct
        case LastBlock(body):
            return _body_work(body, assumed, scale)
        case _:
            assert_never(stmt)


def ends_in_failure(body: tuple[Stmt, ...]) -> bool:
    """Whether the last statement is a check that surely fails: what is before it runs only once."""
    return bool(body) and isinstance(body[-1], Check) and surely_fails(body[-1])


def surely_fails(check: Check) -> bool:
    """Whether a check fails whenever it is reached."""
    return check.test == FALSE


def without_failures(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Return the statements without the branches that end in failure."""
    return tuple(s for s in body if not (isinstance(s, If) and ends_in_failure(s.then)))


def _only_checks(body: tuple[Stmt, ...]) -> bool:
    """Whether statements do nothing but check, and compute what checks need: they run only where
    one fails."""
    inside = [stmt for stmt in statements(body) if not isinstance(stmt, For | Let | Comment)]
    return any(isinstance(stmt, Check) for stmt in inside) and all(
        isinstance(stmt, Check) or (isinstance(stmt, Store) and not stmt.access.index)
        for stmt in inside
    )


def _fill_work(node: Node, assumed: _Assumptions) -> Affine:
    size = const(1)
    for extent in node.shape:
        size = _bounded_product(substitute(extent, assumed.values), size)
    return size


def _middle_value(loop: For, assumed: _Assumptions, trip_count: Affine) -> Affine:
    """Return the value of a loop's variable in its middle iteration."""
    if trip_count.constant is not None and loop.step == 1:
        return substitute(loop.lo, assumed.values) + trip_count.constant // 2
    return floordiv(substitute(loop.lo + loop.hi, assumed.values), const(2))


def _maximum_or_sum(left: Affine, right: Affine) -> Affine:
    """Return the maximum of two; their sum where that is not known before the call."""
    if left.constant is None or right.constant is None:
        return left + right
    return const(max(left.constant, right.constant))


def _bounded_product(trip_count: Affine, work: Affine) -> Affine:
    if trip_count.constant is not None:
        trip_count = const(min(max(0, trip_count.constant), MAX_WORK))
    return _clip(multiply(trip_count, work))


def _clip(work: Affine) -> Affine:
    return work if work.constant is None else const(min(work.constant, MAX_WORK))


def is_large(loop: For) -> bool:
    """Whether a loop is too long to be written three times."""
    inside = statements(loop.body)
    return (
        sum(len(walk(expr)) for stmt in inside for expr in expressions_of(stmt))
        > thresholds.MAX_VERSIONED_SUBEXPRESSIONS
    )
