"""How much work a loop is, as an index expression: a number, or what a call computes from sizes.

The unit is an addition of one lane of a vector. What `cost` counts is worth `SCALAR` of these, but
in innermost loops that compilers make vectors of: stores side by side, of cheap operations. Bounds
that depend on a loop inside are taken in its middle, what data decides is taken to be `UNKNOWN`: it
is a guess, and nothing but speed may depend on it. It changes nothing.

>>> program = lowered("y[i] = sum(x[i, j] * x[i, j])", y="f32[9]", x="f32[9, 50]")
>>> rounds_of(program.kernels[0].body[-1]), work_of(program.kernels[0].body[-1])
(9, 2416)
>>> program = lowered("y[i, j] = x[i, j] * x[i, j]", y="f32[9, 50]", x="f32[9, 50]")
>>> work_of(program.kernels[0].body[-1])
208
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from ..ir.assignments import Alloc, Break, Continue, Let, Permute, Print
from ..ir.indexing import Affine, Symbol, const, floordiv, multiply, substitute
from ..ir.loops import Barrier, Check, Comment, Fill, For, If, Stmt, Store, Update, While
from ..ir.node import Node
from ..ir.walk import expressions_of
from ..passes.cost import READ, UNKNOWN, cost

WRITE = 1
"""What a store of an element costs, while it is computed anyway."""
PRINTED = 1000
"""What a print is taken to cost."""
SCALAR = 8
"""What an operation costs that is none of a vector."""
DEAR = 16
"""What `cost` says of a call of the C library, of which no vectors are made."""
MOST = 1 << 40
"""No number is larger than that, so that products with sizes stay numbers."""
Values = Mapping[Symbol, Affine]


def rounds_of(loop: For) -> Affine:
    """Return how many rounds a loop has; less than zero may stand for none."""
    gap = loop.hi - loop.lo if loop.step > 0 else loop.lo - loop.hi
    step = abs(loop.step)
    return gap if step == 1 else floordiv(gap + (step - 1), const(step))


def work_of(loop: For | While) -> Affine:
    """Return about how much work a round is, in symbols that are known at the loop."""
    if isinstance(loop, While):
        return _work(loop.prelude + loop.body, {}, SCALAR) + cost(loop.test) * SCALAR
    return _work(loop.body, {loop.symbol: _middle(loop, {})}, _scale(loop))


def total_of(loop: For) -> Affine:
    """Return about how much work all rounds together are."""
    return _product(rounds_of(loop), work_of(loop))


def _scale(loop: For) -> int:
    """Return what an operation in a loop costs."""
    return 1 if loop.kind == "vector" or _is_vector(loop) else SCALAR


def _is_vector(loop: For) -> bool:
    """Whether compilers make vectors of an innermost loop: neighbours are stored, by cheap work."""
    return all(
        isinstance(stmt, Comment)
        or (
            isinstance(stmt, Store | Update)
            and _is_beside(stmt, loop.symbol)
            and cost(stmt.value) < DEAR
        )
        for stmt in loop.body
    )


def _is_beside(stmt: Store | Update, symbol: Symbol) -> bool:
    """Whether the next round writes the next element, or the one before."""
    node, index = stmt.access.node, stmt.access.index
    if not index or node.strides is not None or not isinstance(index[-1], Affine):
        return False
    return index[-1].coefficient(symbol) in (1, -1)


def _work(body: tuple[Stmt, ...], values: Values, scale: int) -> Affine:
    total = const(0)
    for stmt in body:
        total += _one(stmt, values, scale)
        if isinstance(stmt, Let):
            values = {**values, stmt.symbol: const(UNKNOWN)}
    return _limited(total)


def _one(stmt: Stmt, values: Values, scale: int) -> Affine:
    own = const(sum(map(cost, expressions_of(stmt))) * scale)
    match stmt:
        case For():
            rounds = substitute(rounds_of(stmt), values)
            inside = {**values, stmt.symbol: _middle(stmt, values)}
            return _product(rounds, _work(stmt.body, inside, _scale(stmt))) + SCALAR
        case While(prelude, _, body):
            return (own + _work(prelude + body, values, SCALAR)) * UNKNOWN
        case If(_, then, other):
            return own + _larger(_work(then, values, scale), _work(other, values, scale))
        case Store(access):
            return own + (WRITE * scale if access.node.rank else 0)
        case Update(access):
            return own + (1 + READ + WRITE if access.node.rank else 1) * scale
        case Fill(node) | Alloc(node):
            return _size(node, values)
        case Print():
            return own + PRINTED * scale
        case Let() | Check() | Permute() | Comment() | Barrier() | Break() | Continue():
            return own
        case _:
            assert_never(stmt)


def _size(node: Node, values: Values) -> Affine:
    size = const(1)
    for extent in node.shape:
        size = _product(substitute(extent, values), size)
    return size


def _middle(loop: For, values: Values) -> Affine:
    """Return the value that the variable of a loop has in its middle round."""
    return floordiv(substitute(loop.lo + loop.hi, values), const(2))


def _larger(one: Affine, other: Affine) -> Affine:
    """Return the greater of two; both together where that is not known before the call."""
    if one.constant is None or other.constant is None:
        return one + other
    return const(max(one.constant, other.constant))


def _product(rounds: Affine, work: Affine) -> Affine:
    if rounds.constant is not None:
        rounds = const(min(max(0, rounds.constant), MOST))
    return _limited(multiply(rounds, work))


def _limited(work: Affine) -> Affine:
    return work if work.constant is None else const(min(work.constant, MOST))
