"""Loops over arrays that lie across one another, in tiles whose lines stay in a cache (tiling).

Changes: a nest whose innermost loop goes along the rows of one array and down the columns of
another one, as in `y[i, j] = x[j, i]`, runs over square tiles. Of a line of memory that has
neighbours along `i` all are used while it is in the cache, and as many along `j`. Other loops of
the nest go around.

    for i: for j: y[i, j] = x[j, i]

    for i0 step T: for j0 step T:
        for i in i0..i0 + T: for j in j0..j0 + T: y[i, j] = x[j, i]

Precondition: a perfect nest of independent iterations, whose ends do not depend on each other, and
which only stores. Postcondition: bit-identical.

>>> show(lambda program: tile_transposed(program, Target(schedule=True)),
...      "y[i, j] = x[j, i]", y="f64[300, 300]", x="f64[300, 300]")
for i_tile in 0..300 step 16:
    for j_tile in 0..300 step 16:
        for i in i_tile..min(300, i_tile + 16):
            for j in j_tile..min(300, j_tile + 16):
                y[i, j] = x[j, i]
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from ...base.diagnostic import Span
from .. import thresholds
from ..analysis.parallel_band import array_accesses, trip_count
from ..analysis.subscripts import stride
from ..ir.bounds import Bounds
from ..ir.decision import Decided, Decision, Reason
from ..ir.expressions import Index
from ..ir.indexing import Affine, Symbol, minimum, var
from ..ir.loops import Comment, For, If, Program, Stmt, Store
from ..ir.node import Node
from ..ir.walk import statements
from ..target import Target
from ..transform.outermost import Body, OutermostRewriter


class Across(Reason):
    """Why a nest is in tiles."""

    LINES = "it goes through arrays along different axes, and a tile uses all of what is loaded"


def tile_transposed(program: Program, target: Target) -> Decided:
    """Return the program with such nests in tiles, and which these are."""
    return _Work.on(program, target)


class _Work(OutermostRewriter):
    """The work on one program."""

    __slots__ = ()

    def nest(self, loop: For, outer: tuple[For, ...]) -> Body | None:
        """Return a nest in tiles, None where it is none or has to stay."""
        chain, heads, body = _perfect(loop)
        moved = _along(chain, body)
        if moved is None or not self.is_free(chain, outer):
            return None
        *rest, last = (level for level in chain if level is not moved)
        itemsize = min(node.dtype.itemsize for node, _ in array_accesses(body))
        side = thresholds.TRANSPOSED_TILE_BYTES // itemsize
        tiled = body
        for level in reversed((*rest, *self.tiles(moved, last, side))):
            tiled = (replace(level, body=tiled),)
        detail, span = f"{side} by {side} elements", _span(body, last)
        name = last.symbol.name
        self.decisions.append(Decision("tiles", Across.LINES, None, detail, span, variable=name))
        return (*heads, *tiled)

    def tiles(self, first: For, second: For, size: int) -> tuple[For, ...]:
        """Return two loops as those over tiles, and those inside of a tile."""
        tiles: list[For] = []
        inside: list[For] = []
        for loop in (first, second):
            start = self.fresh.symbol(f"{loop.symbol.name}_tile")
            tiles.append(replace(loop, symbol=start, step=size))
            end = minimum(loop.hi, var(start) + size)
            inside.append(replace(loop, lo=var(start), hi=end))
        return (*tiles, *inside)


def _perfect(loop: For) -> tuple[tuple[For, ...], Body, Body]:
    """Return the loops of a perfect nest, comments between them, and what the last one does."""
    chain: list[For] = []
    heads: list[Stmt] = []
    body: Body = (loop,)
    while len(inner := [stmt for stmt in body if not isinstance(stmt, Comment)]) == 1:
        (nested,) = inner
        if not isinstance(nested, For) or nested.step != 1 or nested.kind != "serial":
            break
        heads += [comment for comment in body if comment is not nested]
        chain.append(nested)
        body = nested.body
    return tuple(chain), tuple(heads), body


def _span(body: Body, last: For) -> Span:
    return next((stmt.span for stmt in statements(body) if isinstance(stmt, Store)), last.span)


def _along(chain: tuple[For, ...], body: Body) -> For | None:
    """Return the loop along neighbours of what the innermost one goes across, None for none that
    is worth it, or can be moved."""
    bound = {loop.symbol for loop in chain}
    if len(chain) < 2 or any((loop.lo.symbols() | loop.hi.symbols()) & bound for loop in chain):
        return None
    if not all(isinstance(stmt, Store | If | Comment) for stmt in statements(body)):
        return None
    last = chain[-1].symbol
    far = [access for access in array_accesses(body) if _is_across(*access, last)]
    for at in range(len(chain) - 2, -1, -1):
        if any(_step(*access, chain[at].symbol) == 1 for access in far):
            counts = [Bounds().most(trip_count(loop)) for loop in chain[at + 1 :]]
            iterations = prod(count for count in counts if count is not None)
            return (
                chain[at]
                if None in counts or iterations > thresholds.MAX_UNTILED_ITERATIONS
                else None
            )
    return None


def _step(node: Node, index: tuple[Index, ...], symbol: Symbol) -> int | None:
    """Return by how many elements, whichever way, neighbouring iterations are apart."""
    step = stride(node, index, symbol)
    return None if step is None else abs(step)


def _is_across(node: Node, index: tuple[Index, ...], symbol: Symbol) -> bool:
    """Whether each iteration of a loop is in another line of memory."""
    if not all(isinstance(at, Affine) for at in index):
        return False
    step = _step(node, index, symbol)
    return step is None or step * node.dtype.itemsize >= thresholds.MIN_STRIDE_BYTES
