"""Decide which sums may be added up in another order: by the statement alone, before all passes.

Changes: an accumulation forgets where its terms stand in their ranges (`Update.over`), unless they
lie side by side: then `lanes` adds them in independent partial sums. What was forgotten is added
one term after the other, as it was written: products of matrices, where tiles keep many such sums
busy; sums down columns, where neighbouring columns do, also in a `for` that was written; sums whose
cells depend on the terms; sums whose rounds do something that has to find them up to date.

Needs: the nests that `lower` makes. Guarantees: what passes do later changes no sum, so that fixed
and run-time sizes, one thread and many, with a trace and without, give the same bits.

>>> program = lowered("y[i] = sum(x[i, j])", y="f32[8]", x="f32[8, 99]")
>>> [update.over for update in updates(order(program))]
[(j,)]
>>> program = lowered("y[j] = sum(x[i, j])", y="f32[99]", x="f32[8, 99]")
>>> [update.over for update in updates(order(program))]
[()]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import inf

from ..analysis.reductions import STAYS, counting_loop, is_regrouped
from ..analysis.self_dependence import symbols_of
from ..ir import dtypes
from ..ir.expressions import Apply, Expr, Index, Read, reads
from ..ir.indexing import Affine, Symbol
from ..ir.loops import For, Program, Stmt, Update
from ..ir.ops import OPS
from ..ir.rewrite import over_kernels, with_bodies
from ..ir.walk import bodies, statements

Symbols = frozenset[Symbol]


def order(program: Program, fuses: bool = False) -> Program:
    """Return the program in which only sums for `lanes` know where their terms stand.

    With `fuses`, terms that are products are marked: they are rounded together with their sum.
    """
    return over_kernels(program, lambda body: _body(body, (), fuses))


def updates(program: Program) -> Iterator[Update]:
    """Yield the accumulations of a program, in order."""
    for kernel in program.kernels:
        for stmt in statements(kernel.body):
            if isinstance(stmt, Update):
                yield stmt


def _body(body: tuple[Stmt, ...], path: tuple[For, ...], fuses: bool) -> tuple[Stmt, ...]:
    return tuple(_statement(stmt, path, fuses) for stmt in body)


def _statement(stmt: Stmt, path: tuple[For, ...], fuses: bool) -> Stmt:
    if isinstance(stmt, Update):
        if not stmt.over:
            return stmt
        over = stmt.over if _stays(stmt, path) else ()
        return replace(stmt, over=over, value=_marked(stmt) if fuses else stmt.value)
    if isinstance(stmt, For):
        path = (*path, stmt)
    return with_bodies(stmt, tuple(_body(one, path, fuses) for one in bodies(stmt)))


def _marked(update: Update) -> Expr:
    """Return the term of a sum, as a `product` where it is one of floats."""
    match update.value:
        case Apply(op, args, dtypes.float32 | dtypes.float64 as dtype) if (
            op.name == "mul" and update.op.name == "add"
        ):
            return Apply(OPS["product"], args, dtype)
        case value:
            return value


def _stays(update: Update, path: tuple[For, ...]) -> bool:
    """Whether the terms of a sum lie side by side, and are used for no other sum."""
    if not is_regrouped(update) or _is_looked_at(update, path):
        return False
    bound, free, letters, terms = _parted(update, path)
    return not _is_product(terms, free) and not _runs_down(terms, free, letters, bound)


def is_of_matrices(update: Update, path: tuple[For, ...]) -> bool:
    """Whether a sum over letters is that of a product of matrices, of any number of axes."""
    _, free, _, terms = _parted(update, path)
    return _is_product(terms, free)


def _parted(update: Update, path: tuple[For, ...]) -> tuple[Symbols, Symbols, Symbols, list[Read]]:
    """Return the symbols of all loops around a sum, of its target, of its terms alone, and those
    elements that differ from term to term."""
    bound = frozenset(loop.symbol for loop in path)
    free = symbols_of(Read(update.access.node, update.access.index)) & bound
    letters = frozenset[Symbol]().union(*(at.symbols() for at in update.over)) & bound - free
    terms = [read for read in reads(update.value) if symbols_of(read) & letters]
    return bound, free, letters, terms


def _is_looked_at(update: Update, path: tuple[For, ...]) -> bool:
    """Whether rounds that count terms raise, print or end: what was added has to be there then."""
    counting = (counting_loop(at, path) for at in update.over)
    loop = next((loop for loop in counting if loop is not None), None)
    return loop is not None and any(isinstance(stmt, STAYS) for stmt in statements((loop,)))


def _is_product(terms: list[Read], free: frozenset[Symbol]) -> bool:
    """Whether some letters of the target are in one operand only, others in another one only."""
    where = [frozenset(n for n, read in enumerate(terms) if s in symbols_of(read)) for s in free]
    pairs = ((one, other) for one in where if one for other in where if other)
    return any(not (one <= other or other <= one) for one, other in pairs)


def _runs_down(
    terms: list[Read], free: frozenset[Symbol], letters: frozenset[Symbol], bound: frozenset[Symbol]
) -> bool:
    """Whether neighbours in the largest operands belong to different cells of the target, or to
    different rounds of the loops around the sum. Loops around make no operand larger: in each of
    their rounds there is a sum of its own."""
    sizes = [len(symbols_of(read) & (free | letters)) for read in terms]
    largest = [read for read, size in zip(terms, sizes, strict=True) if size == max(sizes)]
    lasts = [at.symbols() for at in map(_nearest, largest) if isinstance(at, Affine)]
    return any(last & free or (last & bound and not last & letters) for last in lasts)


def _nearest(read: Read) -> Index:
    """Return the subscript that moves to a neighbour in memory, in that of the array given."""
    if read.node.nearest is not None:
        return read.index[read.node.nearest]
    strides = [abs(stride) or inf for stride in read.node.strides or ()]
    return read.index[strides.index(min(strides)) if strides else -1]
