"""Statements of a reduction in SIMD lanes: lane counters, masked tails, folds.

Counts of integers beside other reductions get lanes as well: their result is the same in any order,
and a scalar that every lane adds to would prevent vectorization. The functions build statements and
change no program.

>>> from plusequals.lowering.pipeline import optimize
>>> program = lowered("y[0] = x[x > 0.5].mean()", y="f32[1]", x="f32[9]")
>>> program, _ = optimize(program, Target(schedule=True), stop_after="mask_lanes")
>>> (loop,) = [stmt for stmt in program.kernels[0].body if isinstance(stmt, For)]
>>> [update.access.node.dtype.name for update in find_counters(loop)]
['int64']
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from ... import thresholds
from ...analysis.carried_scalars import stores_carried
from ...analysis.expression_cost import cost
from ...analysis.reductions import predicate_update
from ...analysis.subscripts import stride
from ...ir import dtypes
from ...ir.assignments import Access
from ...ir.expressions import Apply, Cast, Const, Expr, Position, Read, Select, reads, walk
from ...ir.indexing import Affine, Symbol
from ...ir.loops import Comment, For, If, LoopKind, Stmt, Store, Update
from ...ir.node import Node
from ...ir.ops import OPS
from ...ir.rewrite import map_statements
from ...ir.walk import direct_writes, expressions_of, statements

Body = tuple[Stmt, ...]
WIDEST = 512
"""The bits of the widest vectors."""
_PLAIN = frozenset(("add", "sub", "mul", "neg", "product"))
"""Operations that are safe in lanes after the last term."""


def find_counters(loop: For) -> list[Update]:
    """Return the counters of a loop, which only count where tests hold and are not used otherwise;
    none where the loop does more than that and accumulate."""
    inside = [stmt for stmt in loop.body if not isinstance(stmt, Comment)]
    counters = [stmt for stmt in inside if isinstance(stmt, Update) and _is_count(stmt)]
    others = [stmt for stmt in inside if not any(stmt is counter for counter in counters)]
    used = {node.id for stmt in statements(tuple(others)) for node in direct_writes(stmt)}
    used |= {
        r.node.id for stmt in statements(loop.body) for e in expressions_of(stmt) for r in reads(e)
    }
    nodes = [stmt.access.node.id for stmt in counters]
    return [] if used & {*nodes} or len({*nodes}) < len(nodes) else counters


def _is_count(stmt: Update) -> bool:
    """Whether an update adds one to an integer scalar where a test holds."""
    return (
        not stmt.access.index
        and stmt.op.name == "add"
        and stmt.access.node.dtype.kind in "iu"
        and isinstance(stmt.value, Cast)
        and stmt.value.value.dtype is dtypes.bool_
    )


def is_small_tail(loop: For, count: int) -> bool:
    """Whether the code of the remaining terms may be there once for each power of two."""
    is_plain = all(isinstance(stmt, Comment | Store | Update) for stmt in loop.body)
    values = [stmt.value for stmt in loop.body if isinstance(stmt, Store | Update)]
    return (
        is_plain
        and sum(map(cost, values)) * count.bit_count() <= thresholds.MAX_WRITTEN_OUT_OPERATIONS
    )


def can_pad(loop: For, updates: Iterable[Update], carried: frozenset[int]) -> bool:
    """Whether lanes after the last term can be updated, too, with neutral elements; `carried` are
    the scalars that more than an iteration sees."""
    if stores_carried(loop.body, carried):
        return False
    ids, reals = {id(update) for update in updates}, (dtypes.float32, dtypes.float64)
    for stmt in loop.body:
        match stmt:
            case Comment():
                continue
            case Store(Access(node, ()), value) if node.dtype in reals:
                pass
            case Update(_, _, value) if id(stmt) in ids:
                pass
            case _:
                return False
        if not all(_is_plain(part, loop.symbol) for part in walk(value)):
            return False
    return True


def _is_plain(expr: Expr, symbol: Symbol) -> bool:
    """Whether an operation can be vectorized, with reads in the lanes of the last terms only."""
    is_real = expr.dtype in (dtypes.float32, dtypes.float64)
    match expr:
        case Const() | Cast():
            return is_real
        case Read(_, ()):
            return is_real
        case Read(node, index):
            affine = all(isinstance(at, Affine) for at in index)
            return is_real and affine and stride(node, index, symbol) in (0, 1)
        case Apply(op):
            return is_real and op.name in _PLAIN
        case _:
            return False


def mask_tail(body: Body, lane: Affine, terms: Expr) -> Body:
    """Return a lane's statements, predicated on its number being less than that of terms."""
    test = Apply(OPS["lt"], (Position(lane), terms), dtypes.bool_)
    out: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, Update):
            stmt = predicate_update(stmt, test)
        elif isinstance(stmt, Store):
            stmt = replace(stmt, value=Select(test, stmt.value, Const(0.0, stmt.value.dtype)))
        out.append(stmt)
    return tuple(out)


def add_lane(update: Update, node: Node, lane: Affine, source: Node, source_lane: Affine) -> Stmt:
    """Return the addition of one lane to another one."""
    value = Read(source, (source_lane,))
    return Update(Access(node, (lane,)), update.op, value, span=update.span)


def fold_lane(update: Update, node: Node, half: int, lane: Affine) -> Stmt:
    """Return the addition of a lane of the upper half to one of the lower half."""
    return add_lane(update, node, lane, node, lane + half)


def redirect_to_lanes(
    body: Body, arrays: dict[int, Node], lane: Callable[[Update], Affine]
) -> Body:
    """Return a body whose reductions update a lane instead of the accumulator."""

    def change(stmt: Stmt) -> Body:
        if isinstance(stmt, Update) and id(stmt) in arrays:
            return (replace(stmt, access=Access(arrays[id(stmt)], (lane(stmt),)), over=()),)
        return (stmt,)

    return map_statements(body, change)


def lane_loop_kind(body: Body, arrays: dict[int, Node], carried: frozenset[int]) -> LoopKind:
    """Return `vector` where lanes only accumulate and define scalars that are not `carried`, else
    `serial`."""
    if stores_carried(body, carried):
        return "serial"
    lanes = {node.id for node in arrays.values()}
    is_vector = all(
        isinstance(stmt, Comment | If)
        or (isinstance(stmt, Store) and not stmt.access.index)
        or (isinstance(stmt, Update) and stmt.access.node.id in lanes)
        for stmt in statements(body)
    )
    return "vector" if is_vector else "serial"


def lane_count(node: Node) -> int:
    """Return the number of lanes of an array."""
    shape = node.static_shape
    assert shape is not None, "lanes have a fixed number"
    return shape[0]
