"""Bands that contract two factors, as a device computes them by tiles: what they sum, over what.

    for i, j: total = start[i, j]; for k: total += a[i, k] * b[k, j]; rest
    rows (i), columns (j), terms (k), both (on which both factors depend), start, product, rest

Points may start from zero or from what they read, as in `c[i, j] += ...`. Products may be added in
a wider type than their own, as those of int32 are.

>>> program = lowered("c[i, j] += a[i, k] * b[k, j]",
...     c="f32[64, 64]", a="f32[64, 64]", b="f32[64, 64]")
>>> program = optimize(program, Target("cuda"))[0]
>>> facts = facts_of(program)
>>> found = contraction(band(program.kernels[0].body[1], facts))
>>> [loop.symbol.name for loop in (*found.rows, *found.columns, *found.terms)], found.product.short
(['i', 'j', 'k'], 'f32')
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import prod

from ....base.dataclass import dataclass
from ...analysis.accumulators import is_counted
from ...analysis.parallel_band import Band, fails, nest_of, trips
from ...ir.dtypes import DType
from ...ir.expressions import Apply, Cast, Const, Dynamic, Expr, Read, Select
from ...ir.expressions import reads as reads_of
from ...ir.indexing import Affine, Symbol
from ...ir.loops import Comment, For, Stmt, Store, Update
from ...ir.node import Node
from ...ir.rewrite import substitute_expr
from ...ir.walk import free_symbols, reads, statements, writes
from .code_motion import bared

SIDE = 64
"""Rows and columns of a tile."""
DEPTH = 16
"""Terms that are staged at once."""
LEAST = 16 * 16 * 16
"""A contraction with fewer products is left to other kernels."""


@dataclass(frozen=True, slots=True)
class Contraction:
    """What a band contracts."""

    rows: tuple[For, ...]
    """The loops on which only the first factor depends, of those that may be dealt out."""
    columns: tuple[For, ...]
    both: tuple[For, ...]
    terms: tuple[For, ...]
    """The loops of the sum."""
    total: Node
    """The scalar that is summed."""
    first: Expr
    second: Expr
    start: Expr
    """What each point starts its sum from."""
    product: DType
    """The type of the products, before they are added."""
    rest: tuple[Stmt, ...]
    """What is done with the sum."""
    own: frozenset[int]
    """The temporaries that each point has of its own."""
    counted: bool
    """Whether the terms are only counted: then it is left open how they are rounded."""
    told: tuple[Comment, ...] = ()
    """The statements that the band comes from."""


def contraction(found: Band) -> Contraction | None:
    """Return what a band contracts, None where it does something else."""
    body = bared([stmt for stmt in found.inner if not isinstance(stmt, Comment)], found)
    if found.serial or len(body) < 2 or fails(body):
        return None
    start, loop, *rest = body
    if not isinstance(start, Store) or not isinstance(loop, For) or start.access.node.rank:
        return None
    total = start.access.node
    terms, inner = nest_of(loop)
    inside = [stmt for stmt in inner if not isinstance(stmt, Comment)]
    if len(inside) != 1 or not isinstance(inside[0], Update):
        return None
    if any(read.node.id in found.private or _is_dynamic(read) for read in reads_of(start.value)):
        return None
    update = inside[0]
    factors = _factors(update, total)
    if factors is None or any(isinstance(s, For) for stmt in rest for s in statements((stmt,))):
        return None
    used = [node for node in (*reads(rest), *writes(rest)) if node.id in found.private]
    if total.id not in found.private or any(node.rank for node in used):
        return None
    counted = is_counted(update, frozenset(one.symbol for one in terms))
    made = _sided(found, terms, start, factors, tuple(rest))
    told = tuple(s for s in (*found.inner, *inner) if isinstance(s, Comment))
    return None if made is None else replace(made, counted=counted, told=told)


def _factors(update: Update, total: Node) -> tuple[Expr, Expr, DType] | None:
    """Return two factors and the type of their product, which may be added in a wider one."""
    if update.access.node != total or update.op.name != "add" or update.pair is not None:
        return None
    value = update.value.value if isinstance(update.value, Cast) else update.value
    match value:
        case Apply(op, (first, second), dtype) if op.name == "mul":
            return first, second, dtype
        case _:
            return None


def _sided(
    found: Band, terms: tuple[For, ...], start: Store, factors: tuple[Expr, Expr, DType],
    rest: tuple[Stmt, ...],
) -> Contraction | None:  # fmt: skip
    """Return a contraction with each loop where it belongs, None where that is not clear."""
    first, second, product = factors
    loops = (*found.free, *terms)
    symbols = {loop.symbol for loop in loops}
    bounds = {s for loop in loops for s in (loop.lo - loop.hi).symbols()}
    if bounds & symbols or any(loop.step != 1 for loop in loops):
        return None
    sides = [free_symbols(one) & symbols for one in (first, second)]
    own = found.private
    if any(r.node.id in own or _is_dynamic(r) for one in (first, second) for r in reads_of(one)):
        return None
    rows = tuple(x for x in found.free if x.symbol in sides[0] and x.symbol not in sides[1])
    columns = tuple(x for x in found.free if x.symbol in sides[1] and x.symbol not in sides[0])
    both = tuple(x for x in found.free if x not in rows and x not in columns)
    if rows and columns and found.free.index(rows[-1]) > found.free.index(columns[-1]):
        rows, columns, first, second = columns, rows, second, first
    if not rows or not columns:
        return None
    made = Contraction(
        rows, columns, both, terms, start.access.node, first, second, start.value, product, rest,
        own, False,
    )  # fmt: skip
    groups = (rows, columns, terms, both)
    flat = all(len(g) <= 1 or all(trips(x) is not None for x in g) for g in groups)
    return made if flat and _is_large(made) else None


def _is_dynamic(read: Read) -> bool:
    return any(isinstance(index, Dynamic) for index in read.index)


def _is_large(made: Contraction) -> bool:
    sizes = [points_of(group) for group in (made.rows, made.columns, made.terms)]
    known = [SIDE if size is None else size for size in sizes]
    return min(known) >= DEPTH // 2 and prod(known) >= LEAST


def points_of(loops: Sequence[For]) -> int | None:
    """Return how many rounds loops have together, None where that is only known in the run."""
    counts = [trips(loop) for loop in loops]
    return None if None in counts else prod(count or 0 for count in counts)


def started(
    what: Contraction, values: Mapping[Symbol, Affine], tests: Iterable[Expr], nothing: Const
) -> Expr:
    """Return what an element's sum starts from: nothing where there is no such element."""
    value = substitute_expr(what.start, values)
    if isinstance(value, Const):
        return value
    for test in tests:
        value = Select(test, value, nothing)
    return value
