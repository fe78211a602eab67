"""Reads before all else: what a thread reads for several points is under way at once.

    for n in 0..4: y[n] = exp(x[n])
    becomes
    for n in 0..4: x_at[n] = x[n]
    for n in 0..4: y[n] = exp(x_at[n])

Where points only add and multiply, compilers do so by themselves. Divisions and functions branch,
and no read is moved over a branch. Only what is read anyhow is read before.

>>> program = lowered("y[i] = exp(x[i])", y="f32[4]", x="f32[4]")
>>> loop, fresh = program.kernels[0].body[-1], fresh_for(program)
>>> loads, body, made = early(loop.body, loop.symbol, 4, fresh)
>>> print_loops((*loads, *body))
x_at[i] = x[i]
y[i] = exp(x_at[i])
>>> [node.static_shape for node in made]
[(4,)]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..analysis.expression_cost import HEAVY, LIGHT
from ..ir.assignments import Access
from ..ir.expressions import Apply, Dynamic, Expr, Index, Read, Select, children, walk
from ..ir.fresh import Fresh
from ..ir.indexing import Symbol, var
from ..ir.loops import Stmt, Store
from ..ir.node import Node
from ..ir.walk import expressions_of, statements, writes
from ..transform.remap import Place, elsewhere

BYTES = 64
"""A thread reads so much before all else: 16 registers."""
WORD = 4
"""Bytes of a register."""

Early = tuple[tuple[Stmt, ...], tuple[Stmt, ...], tuple[Node, ...]]


def early(body: tuple[Stmt, ...], number: Symbol, each: int, fresh: Fresh) -> Early:
    """Return what is read before the points of a number, these, and the arrays between, of which
    each thread has its own."""
    written = writes(body)
    found = dict.fromkeys(
        Access(read.node, read.index) for read in sure_reads(body)
        if read.node.rank and read.node not in written and _is_apart(read.index, number)
    )  # fmt: skip
    room = sum(max(one.node.dtype.itemsize, WORD) for one in found) * each
    if not found or room > BYTES or not branches(body):
        return (), body, ()
    made = {one: fresh.array(f"{one.node.label}_at", (each,), one.node.dtype) for one in found}

    def moved(node: Node, index: tuple[Index, ...]) -> Place:
        held = made.get(Access(node, index))
        return (node, index) if held is None else (held, (var(number),))

    loads = tuple(
        Store(Access(held, (var(number),)), Read(one.node, one.index))
        for one, held in made.items()
    )  # fmt: skip
    return loads, elsewhere(body, moved), tuple(made.values())


def _is_apart(index: tuple[Index, ...], number: Symbol) -> bool:
    """Whether every point reads another element, whatever the data are."""
    plain = [at for at in index if not isinstance(at, Dynamic)]
    return len(plain) == len(index) and any(number in at.symbols() for at in plain)


def sure_reads(body: Iterable[Stmt]) -> Iterator[Read]:
    """Yield what statements read whatever the data are."""
    for stmt in body:
        for expr in expressions_of(stmt):
            yield from _sure(expr)


def _sure(expr: Expr) -> Iterator[Read]:
    if isinstance(expr, Read):
        yield expr
    for one in (expr.test,) if isinstance(expr, Select) else children(expr):
        yield from _sure(one)


def branches(body: Iterable[Stmt]) -> bool:
    """Whether statements compute what takes a device branches."""
    return any(
        isinstance(one, Apply)
        and (one.op.name in HEAVY or not (one.op.infix or one.op.name in LIGHT))
        for stmt in statements(body)
        for expr in expressions_of(stmt)
        for one in walk(expr)
    )
