"""Which loops a product of matrices is tiled over: what fusing must leave together.

In `c[M.., N..] += a[M.., K..] * b[N.., K..]` the symbols M and N each index the target and just one
of the factors; both sides are read again for every symbol of the other, which is why a large
product is computed in tiles. A symbol of both factors and the target only counts products.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from ..clash import symbols_of
from ..ir.expressions import Apply, Cast, Expr
from ..ir.indexing import Affine, Symbol
from ..ir.loops import For, Stmt, Update
from ..ir.walk import bodies
from .summary import summary

PRODUCTS = frozenset(("mul", "product"))
TILED = 4096
"""From how many points on a product of matrices is worth tiling over both of its outer axes."""


def tiled(nest: For) -> frozenset[Symbol]:
    """Return the symbols over which a large product of matrices in the nest is tiled.

    That is what indexes its target and just one of its factors.
    """
    return frozenset[Symbol]().union(*(found for found, _ in _products(nest)))


def tiled_depth(nest: For) -> int:
    """Return how many loops, from this one on, others need to be in to leave tiles whole.

    0 where no large product of matrices in the nest is tiled over this loop.
    """
    return max((_depth(found, loops) for found, loops in _products(nest)), default=0)


def _depth(found: frozenset[Symbol], loops: tuple[For, ...]) -> int:
    depths = [at for at, loop in enumerate(loops, 1) if loop.symbol in found]
    return depths[-1] if depths and depths[0] == 1 else 0


def _products(nest: For) -> Iterator[tuple[frozenset[Symbol], tuple[For, ...]]]:
    """Yield what the large products of matrices in a nest are tiled over, with their loops."""
    for update, loops in _updates((nest,), ()):
        match update.value:
            case Apply(op, (left, right), _) if update.op.name == "add" and op.name in PRODUCTS:
                yield _sides(update, _under(left), _under(right), loops), loops
            case _:
                pass


def _sides(update: Update, left: Expr, right: Expr, loops: tuple[For, ...]) -> frozenset[Symbol]:
    bound = {loop.symbol for loop in loops}
    target = {s for i in update.access.index if isinstance(i, Affine) for s in i.symbols()} & bound
    one, other = symbols_of(left), symbols_of(right)
    rows, columns = target & (one - other), target & (other - one)
    sizes = ((loop.hi - loop.lo).constant for loop in loops)
    points = prod(64 if size is None else size for size in sizes)
    if rows and columns and bound - target and points >= TILED:
        return frozenset(rows | columns)
    return frozenset()


def _under(expr: Expr) -> Expr:
    return _under(expr.value) if isinstance(expr, Cast) else expr


def _updates(
    body: tuple[Stmt, ...], loops: tuple[For, ...]
) -> Iterator[tuple[Update, tuple[For, ...]]]:
    for stmt in body:
        if isinstance(stmt, Update):
            yield stmt, loops
        elif Update in summary(stmt).kinds:
            inner = (*loops, stmt) if isinstance(stmt, For) else loops
            for one in bodies(stmt):
                yield from _updates(one, inner)
