"""Hoisting of unconditional loads: what a thread reads for several points is in flight at once.

    for n in 0..4: y[n] = exp(x[n])
    becomes
    for n in 0..4: x_at[n] = x[n]
    for n in 0..4: y[n] = exp(x_at[n])

Where points only add and multiply, compilers schedule the loads themselves. Divisions and functions
branch, and compilers move no load over a branch. Only unconditional loads are hoisted, so no
address is read that the program does not read.

>>> program = lowered("y[i] = exp(x[i])", y="f32[4]", x="f32[4]")
>>> loop, fresh = program.kernels[0].body[-1], fresh_for(program)
>>> loads, body, made = hoist_loads(loop.body, loop.symbol, 4, fresh)
>>> print_loops((*loads, *body))
x_at[i] = x[i]
y[i] = exp(x_at[i])
>>> [node.static_shape for node in made]
[(4,)]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .. import thresholds
from ..analysis.expression_cost import HEAVY, LIGHT
from ..ir.assignments import Access
from ..ir.expressions import Apply, Dynamic, Expr, Index, Read, Select, children, walk
from ..ir.fresh import Fresh
from ..ir.indexing import Symbol, var
from ..ir.loops import Stmt, Store
from ..ir.node import Node
from ..ir.walk import expressions_of, statements, writes
from ..transform.remap import Element, remap_accesses

WORD = 4
"""Bytes of a register."""

HoistedLoads = tuple[tuple[Stmt, ...], tuple[Stmt, ...], tuple[Node, ...]]


def hoist_loads(body: tuple[Stmt, ...], point: Symbol, count: int, fresh: Fresh) -> HoistedLoads:
    """Return the hoisted loads of a thread's points, their body with these replaced, and the
    thread-private arrays between the two; no loads where hoisting gains nothing. `point` is the
    number of a point among the `count` of a thread."""
    written = writes(body)
    hoisted = dict.fromkeys(
        Access(read.node, read.index) for read in unconditional_reads(body)
        if read.node.rank and read.node not in written and _is_distinct(read.index, point)
    )  # fmt: skip
    bytes_held = sum(max(access.node.dtype.itemsize, WORD) for access in hoisted) * count
    if not hoisted or bytes_held > thresholds.MAX_HOISTED_BYTES or not has_branching_ops(body):
        return (), body, ()
    copies = {
        access: fresh.array(f"{access.node.label}_at", (count,), access.node.dtype)
        for access in hoisted
    }

    def redirect(node: Node, index: tuple[Index, ...]) -> Element:
        copy = copies.get(Access(node, index))
        return (node, index) if copy is None else (copy, (var(point),))

    loads = tuple(
        Store(Access(copy, (var(point),)), Read(access.node, access.index))
        for access, copy in copies.items()
    )  # fmt: skip
    return loads, remap_accesses(body, redirect), tuple(copies.values())


def _is_distinct(index: tuple[Index, ...], point: Symbol) -> bool:
    """Whether distinct points read distinct elements: affine subscripts that depend on the
    point."""
    affine = [subscript for subscript in index if not isinstance(subscript, Dynamic)]
    return len(affine) == len(index) and any(point in subscript.symbols() for subscript in affine)


def unconditional_reads(body: Iterable[Stmt]) -> Iterator[Read]:
    """Yield the reads that statements execute whatever the data are."""
    for stmt in body:
        for expr in expressions_of(stmt):
            yield from _walk_unconditional(expr)


def _walk_unconditional(expr: Expr) -> Iterator[Read]:
    if isinstance(expr, Read):
        yield expr
    for child in (expr.test,) if isinstance(expr, Select) else children(expr):
        yield from _walk_unconditional(child)


def has_branching_ops(body: Iterable[Stmt]) -> bool:
    """Whether statements compute operations that a device implements with branches."""
    return any(
        isinstance(operand, Apply)
        and (operand.op.name in HEAVY or not (operand.op.infix or operand.op.name in LIGHT))
        for stmt in statements(body)
        for expr in expressions_of(stmt)
        for operand in walk(expr)
    )
