"""Recognition of contractions: bands that sum products of two factors, as tiled kernels need them.

    for i, j: total = start[i, j]; for k: total += a[i, k] * b[k, j]; rest
    rows (i), columns (j), terms (k), both (on which both factors depend), start, product, rest

Points may start from zero or from what they read, as in `c[i, j] += ...`. Products may be
accumulated in a wider type than their own, as those of int32 are. Loops of `both` are the batch
loops of a GEMM, `rest` is its epilogue.

>>> program = lowered("c[i, j] += a[i, k] * b[k, j]",
...     c="f32[64, 64]", a="f32[64, 64]", b="f32[64, 64]")
>>> program = optimize(program, Target("cuda"))[0]
>>> facts = facts_of(program)
>>> gemm = match_contraction(find_band(program.kernels[0].body[1], facts))
>>> [loop.symbol.name for loop in (*gemm.rows, *gemm.columns, *gemm.terms)], gemm.product.short
(['i', 'j', 'k'], 'f32')
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import prod

from ....base.dataclass import dataclass
from ... import thresholds
from ...analysis.accumulators import is_reduction_over
from ...analysis.parallel_band import Band, has_checks, perfect_nest, static_trip_count
from ...ir.dtypes import DType
from ...ir.expressions import Apply, Cast, Const, Dynamic, Expr, Read, Select
from ...ir.expressions import reads as reads_of
from ...ir.indexing import Affine, Symbol
from ...ir.loops import Comment, For, Stmt, Store, Update
from ...ir.node import Node
from ...ir.rewrite import substitute_expr
from ...ir.walk import free_symbols, reads, statements, writes
from .code_motion import move_sum_first


@dataclass(frozen=True, slots=True)
class Contraction:
    """The loops, factors and epilogue of a contraction."""

    rows: tuple[For, ...]
    """The parallel loops on which only the first factor depends."""
    columns: tuple[For, ...]
    both: tuple[For, ...]
    terms: tuple[For, ...]
    """The reduction loops."""
    total: Node
    """The accumulator, a scalar."""
    first: Expr
    second: Expr
    start: Expr
    """The initial value of each point's accumulator."""
    product: DType
    """The type of the products, before they are accumulated."""
    rest: tuple[Stmt, ...]
    """The epilogue: statements that use the sum."""
    private: frozenset[int]
    """The ids of the temporaries that are private to a point."""
    counted: bool
    """Whether the reduction loops only enumerate terms, none of them written as a loop: then
    rounding and order are unspecified."""
    comments: tuple[Comment, ...] = ()
    """The comments of the band."""


def match_contraction(nest: Band) -> Contraction | None:
    """Return the contraction of a band, None for other bands."""
    body = move_sum_first([stmt for stmt in nest.inner if not isinstance(stmt, Comment)], nest)
    if nest.serial or len(body) < 2 or has_checks(body):
        return None
    start, loop, *rest = body
    if not isinstance(start, Store) or not isinstance(loop, For) or start.access.node.rank:
        return None
    total = start.access.node
    terms, inner = perfect_nest(loop)
    stmts = [stmt for stmt in inner if not isinstance(stmt, Comment)]
    if len(stmts) != 1 or not isinstance(stmts[0], Update):
        return None
    if any(read.node.id in nest.private or _is_dynamic(read) for read in reads_of(start.value)):
        return None
    update = stmts[0]
    factors = _match_product(update, total)
    if factors is None or any(isinstance(s, For) for stmt in rest for s in statements((stmt,))):
        return None
    used = [node for node in (*reads(rest), *writes(rest)) if node.id in nest.private]
    if total.id not in nest.private or any(node.rank for node in used):
        return None
    is_reassociable = is_reduction_over(update, frozenset(term_loop.symbol for term_loop in terms))
    result = _classify_loops(nest, terms, start, factors, tuple(rest))
    comments = tuple(s for s in (*nest.inner, *inner) if isinstance(s, Comment))
    return None if result is None else replace(result, counted=is_reassociable, comments=comments)


def _match_product(update: Update, total: Node) -> tuple[Expr, Expr, DType] | None:
    """Return two factors and the type of their product, which may be accumulated in a wider one."""
    if update.access.node != total or update.op.name != "add" or update.pair is not None:
        return None
    value = update.value.value if isinstance(update.value, Cast) else update.value
    match value:
        case Apply(op, (first, second), dtype) if op.name == "mul":
            return first, second, dtype
        case _:
            return None


def _classify_loops(
    nest: Band, terms: tuple[For, ...], start: Store, factors: tuple[Expr, Expr, DType],
    rest: tuple[Stmt, ...],
) -> Contraction | None:  # fmt: skip
    """Return a contraction with its loops classified as rows, columns, terms and batch loops, None
    where that is ambiguous."""
    first, second, product = factors
    loops = (*nest.free, *terms)
    symbols = {loop.symbol for loop in loops}
    bounds = {s for loop in loops for s in (loop.lo - loop.hi).symbols()}
    if bounds & symbols or any(loop.step != 1 for loop in loops):
        return None
    sides = [free_symbols(factor) & symbols for factor in (first, second)]
    private = nest.private
    if any(
        r.node.id in private or _is_dynamic(r)
        for factor in (first, second)
        for r in reads_of(factor)
    ):
        return None
    rows = tuple(x for x in nest.free if x.symbol in sides[0] and x.symbol not in sides[1])
    columns = tuple(x for x in nest.free if x.symbol in sides[1] and x.symbol not in sides[0])
    both = tuple(x for x in nest.free if x not in rows and x not in columns)
    if rows and columns and nest.free.index(rows[-1]) > nest.free.index(columns[-1]):
        rows, columns, first, second = columns, rows, second, first
    if not rows or not columns:
        return None
    result = Contraction(
        rows, columns, both, terms, start.access.node, first, second, start.value, product, rest,
        private, False,
    )  # fmt: skip
    groups = (rows, columns, terms, both)
    is_collapsible = all(
        len(g) <= 1 or all(static_trip_count(x) is not None for x in g) for g in groups
    )
    return result if is_collapsible and _is_worth_tiling(result) else None


def _is_dynamic(read: Read) -> bool:
    return any(isinstance(index, Dynamic) for index in read.index)


def _is_worth_tiling(gemm: Contraction) -> bool:
    sizes = [iteration_count(group) for group in (gemm.rows, gemm.columns, gemm.terms)]
    assumed = [thresholds.TILE_SIDE if size is None else size for size in sizes]
    return (
        min(assumed) >= thresholds.TILE_DEPTH // 2
        and prod(assumed) >= thresholds.MIN_CONTRACTION_PRODUCTS
    )


def iteration_count(loops: Sequence[For]) -> int | None:
    """Return the number of iterations of nested loops, None where it is dynamic."""
    counts = [static_trip_count(loop) for loop in loops]
    return None if None in counts else prod(count or 0 for count in counts)


def initial_value(
    gemm: Contraction, values: Mapping[Symbol, Affine], tests: Iterable[Expr], nothing: Const
) -> Expr:
    """Return the initial value of an element's accumulator: `nothing` where a test fails."""
    value = substitute_expr(gemm.start, values)
    if isinstance(value, Const):
        return value
    for test in tests:
        value = Select(test, value, nothing)
    return value
