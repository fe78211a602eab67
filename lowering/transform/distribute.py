"""Rounds with much that is independent, and little that is not: first all of one, then the other.

    for i in 0..m: t = f(i); if t > best: best = t; at = i         where f has loops in it
    becomes
    for i in 0..m: t = f(i); t_rounds[i] = t
    for i in 0..m: if t_rounds[i] > best: best = t_rounds[i]; at = i

Needs a place in a round before which is all that has loops, independent of other rounds, and on one
side of which nothing may fail. What crosses it are scalars that each round has of its own, which
get an element for each round.

`fission` does it for devices; `split` uses the same parts for processors.

>>> program, _ = optimize(lowered('''
... for i in range(len(k)):
...     s = 0.0
...     for j in range(9):
...         s = s * 0.5 + x[i, j]
...     h[k[i]] += s
... ''', x="f64[900, 9]", h="f64[9]", k="i64[900]"), Target("cuda"))
>>> program = fission(program, facts_of(program), fresh_for(program))
>>> [len(stmt.body) for stmt in program.kernels[0].body if isinstance(stmt, For)]
[4, 4]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

from ..analysis.accesses import accesses
from ..analysis.accumulators import sums
from ..analysis.dependence import ends_early, overtakes
from ..analysis.parallel_band import Facts, fails, rounds_of, trips, with_loops
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
from ..ir.rewrite import over_kernels, with_bodies
from ..ir.walk import bodies, reads, statements, uses, writes
from ..thresholds import EXPANDED_BYTES
from .remap import Place, elsewhere

Body = tuple[Stmt, ...]
FEWEST = 32
"""Loops of fewer rounds are not worth it."""


def fission(program: Program, facts: Facts, fresh: Fresh) -> Program:
    """Return the program whose loops do first what is independent of other rounds, and is much."""

    def made(loop: For, outer: tuple[For, ...]) -> Body:
        own, known = facts.private(loop), ranges(outer)
        if not may_split(loop) or fresh.fits((rounds_of(loop),)) is False:
            return ()
        if facts.is_free(loop, own, known, facts.around(loop)) or sums(loop, own, facts):
            return ()
        at = cut(loop.body)
        crossing = crossing_of(loop, at, own) if at else None
        if crossing is None:
            return ()
        count = trips(loop) or 0
        if count * sum(node.dtype.itemsize for node in crossing) > EXPANDED_BYTES:
            return ()
        first = replace(loop, body=loop.body[:at])
        facts.tell((first,), facts.only_in(loop))
        own_first = facts.private(first) | {node.id for node in crossing}
        if not facts.is_free(first, own_first, known, facts.around(loop)):
            return ()
        one, other = halves(loop, at, crossing, rounds_of(loop), fresh)
        written = frozenset(node.id for node in writes(other.body))
        parts = one, replace(other, body=_unnamed(other.body, {}, written))
        facts.tell(parts, facts.only_in(loop))
        return parts

    return over_kernels(program, lambda body: with_loops(body, facts, made))


def may_split(loop: For) -> bool:
    """Whether something may be cut out of the iterations of a loop: none of them ends early."""
    if loop.kind != "serial" or loop.step not in (1, -1) or trips(loop) in range(FEWEST):
        return False
    halts = Alloc, Permute, Print
    held = any(isinstance(stmt, halts) for stmt in statements(loop.body))
    return not held and not ends_early(loop.body)


def cut(body: Body) -> int:
    """Return the place behind the last statement with loops, 0 where nothing is left behind."""
    long = [at for at, stmt in enumerate(body) if _has_loops(stmt)]
    at = long[-1] + 1 if long else 0
    behind = statements(body[at:])
    if fails(body[:at]) and fails(behind):
        return 0
    return at if any(not isinstance(stmt, Comment) for stmt in behind) else 0


def _has_loops(stmt: Stmt) -> bool:
    return any(isinstance(one, For | While) for one in statements((stmt,)))


def crossing_of(loop: For, at: int, own: frozenset[int]) -> list[Node] | None:
    """Return the scalars that a round needs behind a place of what it has found before; None where
    it needs more, or other rounds what it has changed."""
    first, second = loop.body[:at], loop.body[at:]
    named = {stmt.symbol for stmt in statements(first) if isinstance(stmt, Let)}
    if named & {symbol for stmt in statements(second) for symbol in uses(stmt)}:
        return None
    changed = {*writes(first), *writes(second)}
    both = {*reads(first), *writes(first)} & {*reads(second), *writes(second)} & changed
    found = accesses((loop,))
    crossing: list[Node] = []
    for node in both:
        if node.id in own and not node.rank:
            crossing.append(node)
            continue
        sites = found.of(node)
        early = [site for site in sites if site.route[1][0] < at]
        late = [site for site in sites if site.route[1][0] >= at]
        if not node.rank or node.id in own:
            return None
        for one, other in product(late, early):
            if (one.writes or other.writes) and overtakes(loop, one, other):
                return None
    return sorted(crossing, key=lambda node: node.id)


def halves(
    loop: For, at: int, crossing: Sequence[Node], size: Affine, fresh: Fresh,
    purpose: Purpose = "",
) -> tuple[For, For]:  # fmt: skip
    """Return the two loops, of at most so many iterations; what the first has found is read where
    nothing changes it."""
    here = (var(loop.symbol) - loop.lo) * loop.step
    rooms = {
        node.id: fresh.array(f"{node.label}_rounds", (size,), node.dtype, purpose)
        for node in crossing
    }
    second = loop.body[at:]
    changed = {node.id for node in writes(second)}
    kept = [node for node in crossing if node.id not in changed]
    copies = {node.id: fresh.like(node) for node in crossing if node.id in changed}

    def place(node: Node, index: tuple[Index, ...]) -> Place:
        if node.id in copies:
            return copies[node.id], index
        return (rooms[node.id], (here,)) if node in kept else (node, index)

    ends = (Store(Access(rooms[n.id], (here,)), Read(n, ())) for n in crossing)
    starts = (
        Store(Access(copies[n.id], ()), Read(rooms[n.id], (here,)))
        for n in crossing if n.id in copies
    )  # fmt: skip
    return (
        replace(loop, body=(*loop.body[:at], *ends)),
        replace(loop, body=(*starts, *elsewhere(second, place))),
    )


def _unnamed(body: Body, names: Mapping[Symbol, Expr], written: frozenset[int]) -> Body:
    """Return statements that store what has a name as what it is, where it reads nothing that they
    have `written`: a later iteration finds it anew."""
    names, out = dict(names), list[Stmt]()

    def value(expr: Expr) -> Expr:
        match expr:
            case Position(index) if index.symbol in names:
                return names[index.symbol]
            case Position(index):
                for symbol in index.symbols() & names.keys():
                    rest = index - var(symbol)
                    if index.coefficient(symbol) == 1 and symbol not in rest.symbols():
                        both = (value(Position(rest)), names[symbol])
                        return Apply(OPS["add"], both, dtypes.int64)
                return expr
            case _:
                return rebuild(expr, value, lambda index: index)

    for stmt in body:
        if isinstance(stmt, Let) and isinstance(stmt.value, Read):
            if written.isdisjoint(one.node.id for one in reads_of(stmt.value)):
                names[stmt.symbol] = stmt.value
        if isinstance(stmt, Store):
            stmt = replace(stmt, value=value(stmt.value))
        inside = (_unnamed(part, names, written) for part in bodies(stmt))
        out.append(with_bodies(stmt, tuple(inside)))
    return tuple(out)
