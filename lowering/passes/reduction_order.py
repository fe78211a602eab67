"""Reassociable and order-preserving reductions: decided by the statement alone, before all passes.

Changes: an order-preserving accumulation loses the positions of its terms in their ranges
(`Update.over`). A reassociable one, whose terms are contiguous in memory, keeps them:
`vectorize_reductions` adds it in independent partial sums. Order-preserving, one term after the
other as written, are: products of matrices, where tiles keep many accumulators busy; sums down
columns, where neighbouring columns do, also in a `for` that was written; sums whose target cells
depend on the terms; sums in loops whose iterations do something that has to find the accumulator up
to date.

Precondition: the nests that `lower` builds. Postcondition: later passes reassociate no other sum,
so that static and run-time sizes, one thread and many, with a trace and without, are bit-identical.

>>> program = lowered("y[i] = sum(x[i, j])", y="f32[8]", x="f32[8, 99]")
>>> [update.over for update in find_updates(set_reduction_order(program))]
[(j,)]
>>> program = lowered("y[j] = sum(x[i, j])", y="f32[99]", x="f32[8, 99]")
>>> [update.over for update in find_updates(set_reduction_order(program))]
[()]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import inf

from ..analysis.reductions import NOT_REORDERABLE, can_reassociate, reduction_loop
from ..analysis.self_dependence import symbols_of
from ..ir import dtypes
from ..ir.expressions import Apply, Expr, Index, Read, reads
from ..ir.indexing import Affine, Symbol
from ..ir.loops import For, Program, Stmt, Update
from ..ir.ops import OPS
from ..ir.rewrite import map_kernels, with_bodies
from ..ir.walk import bodies, statements

Symbols = frozenset[Symbol]


def set_reduction_order(program: Program, fuses: bool = False) -> Program:
    """Return the program in which only reassociable sums have the positions of their terms.

    With `fuses`, terms that are products are flagged: they are rounded together with their sum
    (fused multiply-add).
    """
    return map_kernels(program, lambda body: _order_body(body, (), fuses))


def find_updates(program: Program) -> Iterator[Update]:
    """Yield the accumulations of a program, in order."""
    for kernel in program.kernels:
        for stmt in statements(kernel.body):
            if isinstance(stmt, Update):
                yield stmt


def _order_body(body: tuple[Stmt, ...], path: tuple[For, ...], fuses: bool) -> tuple[Stmt, ...]:
    return tuple(_order_statement(stmt, path, fuses) for stmt in body)


def _order_statement(stmt: Stmt, path: tuple[For, ...], fuses: bool) -> Stmt:
    if isinstance(stmt, Update):
        if not stmt.over:
            return stmt
        over = stmt.over if _is_reassociable(stmt, path) else ()
        return replace(stmt, over=over, value=_as_product(stmt) if fuses else stmt.value)
    if isinstance(stmt, For):
        path = (*path, stmt)
    return with_bodies(stmt, tuple(_order_body(nested, path, fuses) for nested in bodies(stmt)))


def _as_product(update: Update) -> Expr:
    """Return the term of a sum, as the operation `product` where it is one of floats."""
    match update.value:
        case Apply(op, args, dtypes.float32 | dtypes.float64 as dtype) if (
            op.name == "mul" and update.op.name == "add"
        ):
            return Apply(OPS["product"], args, dtype)
        case value:
            return value


def _is_reassociable(update: Update, path: tuple[For, ...]) -> bool:
    """Whether the terms of a sum are contiguous in memory, and used for no other sum."""
    if not can_reassociate(update) or _is_observed(update, path):
        return False
    bound, free, reduced, terms = _reduction_symbols(update, path)
    return not _is_product(terms, free) and not _is_columnwise(terms, free, reduced, bound)


def is_matrix_product(update: Update, path: tuple[For, ...]) -> bool:
    """Whether a reduction is a product of matrices (a tensor contraction of any rank)."""
    _, free, _, terms = _reduction_symbols(update, path)
    return _is_product(terms, free)


def _reduction_symbols(
    update: Update, path: tuple[For, ...]
) -> tuple[Symbols, Symbols, Symbols, list[Read]]:
    """Return the symbols of all enclosing loops, of the target, of the reduction alone, and the
    reads that differ from term to term."""
    bound = frozenset(loop.symbol for loop in path)
    free = symbols_of(Read(update.access.node, update.access.index)) & bound
    reduced = frozenset[Symbol]().union(*(at.symbols() for at in update.over)) & bound - free
    terms = [read for read in reads(update.value) if symbols_of(read) & reduced]
    return bound, free, reduced, terms


def _is_observed(update: Update, path: tuple[For, ...]) -> bool:
    """Whether the loop over the terms raises, prints or ends early: partial sums are observable
    then."""
    counting = (reduction_loop(at, path) for at in update.over)
    loop = next((loop for loop in counting if loop is not None), None)
    return loop is not None and any(
        isinstance(stmt, NOT_REORDERABLE) for stmt in statements((loop,))
    )


def _is_product(terms: list[Read], free: frozenset[Symbol]) -> bool:
    """Whether some index variables of the target are in one operand only, others in another one
    only."""
    operands = [frozenset(n for n, read in enumerate(terms) if s in symbols_of(read)) for s in free]
    pairs = ((left, right) for left in operands if left for right in operands if right)
    return any(not (left <= right or right <= left) for left, right in pairs)


def _is_columnwise(
    terms: list[Read], free: frozenset[Symbol], reduced: frozenset[Symbol], bound: frozenset[Symbol]
) -> bool:
    """Whether neighbours in the largest operands belong to different cells of the target, or to
    different iterations of the loops around the sum. Enclosing loops make no operand larger: each
    of their iterations has a sum of its own."""
    sizes = [len(symbols_of(read) & (free | reduced)) for read in terms]
    largest = [read for read, size in zip(terms, sizes, strict=True) if size == max(sizes)]
    lasts = [at.symbols() for at in map(_innermost_subscript, largest) if isinstance(at, Affine)]
    return any(last & free or (last & bound and not last & reduced) for last in lasts)


def _innermost_subscript(read: Read) -> Index:
    """Return the subscript of unit stride (the fastest-varying one), by the layout of the array
    given."""
    if read.node.nearest is not None:
        return read.index[read.node.nearest]
    strides = [abs(stride) or inf for stride in read.node.strides or ()]
    return read.index[strides.index(min(strides)) if strides else -1]
