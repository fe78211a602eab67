"""Loop distribution (fission) with scalar expansion: the independent part of iterations by itself.

    for i in 0..m: t = f(i); if t > best: best = t; at = i         where f has loops in it
    becomes
    for i in 0..m: t = f(i); t_expanded[i] = t
    for i in 0..m: if t_expanded[i] > best: best = t_expanded[i]; at = i

Precondition: a point in the body before which all inner loops are, free of loop-carried
dependences, and on one side of which no check may fail. Values that cross it are privatizable
scalars, which are expanded to an element for each iteration.

`distribute_loops` does it for devices; `lowering/cpu/distribute_columns` uses the same functions
for processors.

>>> program, _ = optimize(lowered('''
... for i in range(len(k)):
...     s = 0.0
...     for j in range(9):
...         s = s * 0.5 + x[i, j]
...     h[k[i]] += s
... ''', x="f64[900, 9]", h="f64[9]", k="i64[900]"), Target("cuda"))
>>> program = distribute_loops(program, facts_of(program), fresh_for(program))
>>> [len(stmt.body) for stmt in program.kernels[0].body if isinstance(stmt, For)]
[4, 4]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

from .. import thresholds
from ..analysis.accesses import collect_accesses
from ..analysis.accumulators import find_accumulators
from ..analysis.dependence import has_carried_dependence, has_early_exit
from ..analysis.parallel_band import Facts, has_checks, replace_loops, static_trip_count, trip_count
from ..analysis.subscripts import ranges
from ..ir import dtypes
from ..ir.assignments import Access, Alloc, Let, Permute, Print
from ..ir.expressions import Apply, Expr, Index, Position, Read, rebuild
from ..ir.expressions import reads as reads_of
from ..ir.fresh import Fresh
from ..ir.indexing import Affine, Symbol, var
from ..ir.loops import Comment, For, Program, Stmt, Store, While
from ..ir.node import Node, Purpose
from ..ir.ops import OPS
from ..ir.rewrite import map_kernels, with_bodies
from ..ir.walk import bodies, reads, statements, uses, writes
from .remap import Element, remap_accesses

Body = tuple[Stmt, ...]


def distribute_loops(program: Program, facts: Facts, fresh: Fresh) -> Program:
    """Return the program with loops distributed whose first part has inner loops and is
    independent."""

    def distribute(loop: For, outer: tuple[For, ...]) -> Body:
        private, domain = facts.private(loop), ranges(outer)
        if not can_distribute(loop) or fresh.fits((trip_count(loop),)) is False:
            return ()
        if facts.is_free(loop, private, domain, facts.bounds_outside(loop)) or find_accumulators(
            loop, private, facts
        ):
            return ()
        position = distribution_point(loop.body)
        crossing = find_crossing(loop, position, private) if position else None
        if crossing is None:
            return ()
        count = static_trip_count(loop) or 0
        if count * sum(node.dtype.itemsize for node in crossing) > thresholds.MAX_EXPANDED_BYTES:
            return ()
        first = replace(loop, body=loop.body[:position])
        facts.tell((first,), facts.temporaries_in(loop))
        privatized = facts.private(first) | {node.id for node in crossing}
        if not facts.is_free(first, privatized, domain, facts.bounds_outside(loop)):
            return ()
        head, tail = distribute_at(loop, position, crossing, trip_count(loop), fresh)
        written = frozenset(node.id for node in writes(tail.body))
        distributed = head, replace(tail, body=_inline_symbols(tail.body, {}, written))
        facts.tell(distributed, facts.temporaries_in(loop))
        return distributed

    return map_kernels(program, lambda body: replace_loops(body, facts, distribute))


def can_distribute(loop: For) -> bool:
    """Whether a loop may be distributed: none of its iterations ends early, allocates or prints."""
    if (
        loop.kind != "serial"
        or loop.step not in (1, -1)
        or static_trip_count(loop) in range(thresholds.MIN_FISSION_ITERATIONS)
    ):
        return False
    halts = Alloc, Permute, Print
    is_pinned = any(isinstance(stmt, halts) for stmt in statements(loop.body))
    return not is_pinned and not has_early_exit(loop.body)


def distribution_point(body: Body) -> int:
    """Return the position after the last statement with loops, 0 where nothing but comments
    follows."""
    nests = [at for at, stmt in enumerate(body) if _has_loops(stmt)]
    at = nests[-1] + 1 if nests else 0
    rest = statements(body[at:])
    if has_checks(body[:at]) and has_checks(rest):
        return 0
    return at if any(not isinstance(stmt, Comment) for stmt in rest) else 0


def _has_loops(stmt: Stmt) -> bool:
    return any(isinstance(nested, For | While) for nested in statements((stmt,)))


def find_crossing(loop: For, position: int, private: frozenset[int]) -> list[Node] | None:
    """Return the scalars that an iteration reads after a position and computes before it; None
    where it needs more, or distribution would reverse a dependence."""
    first, second = loop.body[:position], loop.body[position:]
    bound = {stmt.symbol for stmt in statements(first) if isinstance(stmt, Let)}
    if bound & {symbol for stmt in statements(second) for symbol in uses(stmt)}:
        return None
    changed = {*writes(first), *writes(second)}
    shared = {*reads(first), *writes(first)} & {*reads(second), *writes(second)} & changed
    touched = collect_accesses((loop,))
    crossing: list[Node] = []
    for node in shared:
        if node.id in private and not node.rank:
            crossing.append(node)
            continue
        sites = touched.of(node)
        early = [site for site in sites if site.route[1][0] < position]
        late = [site for site in sites if site.route[1][0] >= position]
        if not node.rank or node.id in private:
            return None
        for source, sink in product(late, early):
            if (source.writes or sink.writes) and has_carried_dependence(loop, source, sink):
                return None
    return sorted(crossing, key=lambda node: node.id)


def distribute_at(
    loop: For, position: int, crossing: Sequence[Node], size: Affine, fresh: Fresh,
    purpose: Purpose = "",
) -> tuple[For, For]:  # fmt: skip
    """Return the two distributed loops, of at most `size` iterations; expanded scalars are read in
    place where the second does not change them."""
    here = (var(loop.symbol) - loop.lo) * loop.step
    expanded = {
        node.id: fresh.array(f"{node.label}_expanded", (size,), node.dtype, purpose)
        for node in crossing
    }
    second = loop.body[position:]
    changed = {node.id for node in writes(second)}
    unchanged = [node for node in crossing if node.id not in changed]
    copies = {node.id: fresh.like(node) for node in crossing if node.id in changed}

    def expand(node: Node, index: tuple[Index, ...]) -> Element:
        if node.id in copies:
            return copies[node.id], index
        return (expanded[node.id], (here,)) if node in unchanged else (node, index)

    ends = (Store(Access(expanded[n.id], (here,)), Read(n, ())) for n in crossing)
    starts = (
        Store(Access(copies[n.id], ()), Read(expanded[n.id], (here,)))
        for n in crossing if n.id in copies
    )  # fmt: skip
    return (
        replace(loop, body=(*loop.body[:position], *ends)),
        replace(loop, body=(*starts, *remap_accesses(second, expand))),
    )


def _inline_symbols(body: Body, values: Mapping[Symbol, Expr], written: frozenset[int]) -> Body:
    """Return statements that store the loaded value of a symbol in place of the symbol, where it
    reads nothing `written`: a later iteration loads it again."""
    values, out = dict(values), list[Stmt]()

    def value(expr: Expr) -> Expr:
        match expr:
            case Position(index) if index.symbol in values:
                return values[index.symbol]
            case Position(index):
                for symbol in index.symbols() & values.keys():
                    rest = index - var(symbol)
                    if index.coefficient(symbol) == 1 and symbol not in rest.symbols():
                        operands = (value(Position(rest)), values[symbol])
                        return Apply(OPS["add"], operands, dtypes.int64)
                return expr
            case _:
                return rebuild(expr, value, lambda index: index)

    for stmt in body:
        if isinstance(stmt, Let) and isinstance(stmt.value, Read):
            if written.isdisjoint(read.node.id for read in reads_of(stmt.value)):
                values[stmt.symbol] = stmt.value
        if isinstance(stmt, Store):
            stmt = replace(stmt, value=value(stmt.value))
        inside = (_inline_symbols(part, values, written) for part in bodies(stmt))
        out.append(with_bodies(stmt, tuple(inside)))
    return tuple(out)
