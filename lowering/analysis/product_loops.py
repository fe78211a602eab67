"""Loops over which products of matrices are tiled, which fusion must keep together.

In `c[M.., N..] += a[M.., K..] * b[N.., K..]` the symbols M and N each index the target and just one
of the factors; both factors are read again for every value of the other's symbol, which is why a
large product is tiled. A symbol of both factors and the target only counts products (a batch).
Other arithmetic than a multiplication may combine the two, as in sums of squared differences: what
`contraction` finds and `tile_products` tiles. Analysis only.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import NamedTuple

from .. import thresholds
from ..ir.expressions import Apply, Cast, Expr
from ..ir.indexing import Affine, Symbol
from ..ir.loops import For, Stmt, Update
from ..ir.walk import bodies
from .contraction import VECTOR_OPS
from .effects import summarize
from .self_dependence import symbols_of


def tiled_symbols(nest: For) -> frozenset[Symbol]:
    """Return the symbols over which a large product of matrices in the nest is tiled.

    They index its target and operands of one side only.
    """
    return frozenset[Symbol]().union(
        *(product.rows | product.columns for product in _products(nest))
    )


class Depth(NamedTuple):
    """How many outer loops another nest has to share for tiles to stay whole."""

    loops: int
    """0 where there are no tiles."""
    is_tiled_inside: bool
    """Whether the product inside of them is tiled by itself: else that is one element."""


def tiled_depth(nest: For) -> Depth:
    """Return how many loops, from this one on, another nest has to share for tiles to stay whole.

    It is none where no large product of matrices in the nest is tiled over this loop.
    """
    return max(map(_depth, _products(nest)), default=Depth(0, False))


def _depth(product: _Product) -> Depth:
    rows, columns, target, loops = product
    depths = [at for at, loop in enumerate(loops, 1) if loop.symbol in rows | columns]
    if not depths or depths[0] != 1:
        return Depth(0, False)
    sufficient = next((at for at in depths if _is_tileable(rows, columns, loops[at:])), None)
    if sufficient is not None:
        return Depth(sufficient, True)
    return Depth(max(at for at, loop in enumerate(loops, 1) if loop.symbol in target), False)


def _is_tileable(
    rows: frozenset[Symbol], columns: frozenset[Symbol], loops: tuple[For, ...]
) -> bool:
    """Whether loops have enough rows and columns for tiles."""
    row_count, column_count = (_trip_count(symbols, loops) for symbols in (rows, columns))
    return (
        min(row_count, column_count) >= thresholds.MIN_TILE_SIDE
        and row_count * column_count >= thresholds.MIN_TILED_POINTS
    )


def _trip_count(symbols: frozenset[Symbol], loops: tuple[For, ...]) -> int:
    """Return the product of trip counts of loops with these symbols; 0 where there is none, or
    unknown."""
    sizes = [(loop.hi - loop.lo).constant or 0 for loop in loops if loop.symbol in symbols]
    return prod(sizes) if sizes else 0


class _Product(NamedTuple):
    """A product of matrices: the symbols of its rows, columns and target, and all loops.

    It has neither rows nor columns where it is not large.
    """

    rows: frozenset[Symbol]
    columns: frozenset[Symbol]
    target: frozenset[Symbol]
    loops: tuple[For, ...]


def _products(nest: For) -> Iterator[_Product]:
    """Yield the products of matrices in a nest."""
    for update, loops in _updates((nest,), ()):
        if update.op.name == "add":
            yield _product(update, loops)


def _product(update: Update, loops: tuple[For, ...]) -> _Product:
    bound = {loop.symbol for loop in loops}
    indices = (at.symbols() for at in update.access.index if isinstance(at, Affine))
    target = frozenset[Symbol]().union(*indices) & bound
    sizes = ((loop.hi - loop.lo).constant for loop in loops)
    points = prod(64 if size is None else size for size in sizes)
    if bound - target and points >= thresholds.MIN_TILED_POINTS:
        rows, *others = _sides(update.value, target) or (frozenset[Symbol](),)
        if others:
            return _Product(rows, others[0].union(*others), target, loops)
    return _Product(frozenset(), frozenset(), target, loops)


def _sides(term: Expr, target: frozenset[Symbol]) -> list[frozenset[Symbol]]:
    """Return sets of symbols of the target such that no operand of the term has symbols of two.

    Those that all operands have are in none.
    """
    operands = [used for operand in _operands(term) if (used := symbols_of(operand) & target)]
    shared = operands[0].intersection(*operands) if operands else frozenset()
    sides: list[frozenset[Symbol]] = []
    for used in operands:
        joined = [side for side in sides if side & used]
        rest = [side for side in sides if not side & used]
        sides = [*rest, (used - shared).union(*joined)] if used - shared else sides
    return sides


def _operands(term: Expr) -> Iterator[Expr]:
    """Yield what arithmetic on vectors combines to a term."""
    match term:
        case Apply(op, args, _) if op.name in VECTOR_OPS:
            for arg in args:
                yield from _operands(arg)
        case Cast(value):
            yield from _operands(value)
        case _:
            yield term


def _updates(
    body: tuple[Stmt, ...], loops: tuple[For, ...]
) -> Iterator[tuple[Update, tuple[For, ...]]]:
    for stmt in body:
        if isinstance(stmt, Update):
            yield stmt, loops
        elif Update in summarize(stmt).kinds:
            inner = (*loops, stmt) if isinstance(stmt, For) else loops
            for nested in bodies(stmt):
                yield from _updates(nested, inner)
