"""Left-looking recurrences made right-looking: each iteration updates all later ones.

    for i in a..b: before(i); for j in a..i: adds(i, j); after(i)
    becomes
    for i in a..b: before(i)
    for j in a..b: after(j); for i in j+1..b: adds(i, j)

The updates of later iterations are independent, whereas none of the loops were. Precondition: no
element is accessed otherwise in between; each receives the updates of the same iterations as
before, in their order, so results are bit-identical. Scalars that an iteration carries meanwhile
are expanded.

>>> program = lowered('''
... for i in range(900):
...     s = b[i]
...     for j in range(i):
...         s -= m[i, j] * x[j]
...     x[i] = s / m[i, i]
... ''', x="f32[900]", b="f32[900]", m="f32[900, 900]")
>>> rewritten = rewrite_right_looking(program, facts_of(program), fresh_for(program))
>>> print_loops(rewritten.kernels[0].body)
for i in 0..900:
    # s = b[i]
    s = b[i]
    # for j in range(i)
    s_expanded[i] = s
for j in 0..900:
    # x[i] = s / m[i, i]
    x[j] = s_expanded[j] / m[j, j]
    for i in j + 1..900:
        # s -= m[i, j] * x[j]
        s_expanded[i] = s_expanded[i] - m[i, j] * x[j]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from ....base.dataclass import dataclass
from ... import thresholds
from ...analysis.accesses import Site, collect_accesses
from ...analysis.dependence import Ranks, has_carried_dependence, has_early_exit
from ...analysis.parallel_band import Facts, replace_loops, static_trip_count, substitute_symbol
from ...analysis.subscripts import ranges
from ...ir.assignments import Let
from ...ir.expressions import Index
from ...ir.fresh import Fresh
from ...ir.indexing import Range, Symbol, const, var
from ...ir.loops import Comment, For, Program, Stmt
from ...ir.node import Node
from ...ir.rewrite import map_kernels
from ...ir.walk import reads, statements, writes
from ...transform.remap import Element, remap_accesses
from ..thread_block import is_thread_loop
from .wavefront import can_reorder

Body = tuple[Stmt, ...]


def rewrite_right_looking(program: Program, facts: Facts, fresh: Fresh) -> Program:
    """Return the program whose iterations update later ones, where that has more parallelism."""
    rewriter = _Rewriter(facts, fresh)
    return map_kernels(program, lambda body: replace_loops(body, facts, rewriter.rewrite_loop))


@dataclass(frozen=True, slots=True)
class _Rewriter:
    """The rewriting of one program."""

    facts: Facts
    fresh: Fresh

    def rewrite_loop(self, loop: For, outer_loops: tuple[For, ...]) -> Body:
        """Return the loops that replace one, none where it stays."""
        outer = ranges(outer_loops)
        at = find_inner_loop(loop)
        if at is None or is_thread_loop(loop, self.facts) or not can_reorder(loop):
            return ()
        inner = loop.body[at]
        assert isinstance(inner, For), "that is what was looked for"
        if is_thread_loop(inner, self.facts):
            return ()
        private, inner_private = self.facts.private(loop), self.facts.private(inner)
        before, after = loop.body[:at], loop.body[at + 1 :]
        carried = _find_carried_scalars(before, inner, after, private - inner_private)
        if carried is None or not _keeps_order(loop, at, private | inner_private, outer):
            return ()
        expanded = self.expand_scalars(loop, carried)
        if expanded is None:
            return ()
        return self.build_loops(loop, inner, (before, after), expanded, inner_private)

    def expand_scalars(self, loop: For, carried: Sequence[Node]) -> dict[int, Node] | None:
        """Return the expanded arrays of scalars, None where the trip count is dynamic."""
        count = static_trip_count(loop)
        if count is None:
            return None if carried else {}
        return {
            node.id: self.fresh.array(f"{node.label}_expanded", (count,), node.dtype)
            for node in carried
        }

    def build_loops(
        self, loop: For, inner: For, parts: tuple[Body, Body], expanded: dict[int, Node],
        inner_private: frozenset[int],
    ) -> Body:  # fmt: skip
        """Return the loops, none where the updates go to iterations that are not independent.

        `expanded` are the arrays of the carried scalars, `inner_private` the private nodes of the
        inner loop.
        """

        def redirect(node: Node, index: tuple[Index, ...]) -> Element:
            array = expanded.get(node.id)
            return (node, index) if array is None else (array, (var(loop.symbol) - loop.lo,))

        before, after, updates = (remap_accesses(part, redirect) for part in (*parts, inner.body))
        first = self.fresh.symbol(loop.symbol.name)
        first_loop = replace(
            loop, symbol=first, body=substitute_symbol(before, loop.symbol, var(first))
        )
        update_loop = replace(loop, lo=var(inner.symbol) + 1, body=updates)
        body = substitute_symbol(after, loop.symbol, var(inner.symbol))
        main_loop = replace(inner, hi=loop.hi, body=(*body, update_loop), span=loop.span)
        is_empty = all(isinstance(stmt, Comment) for stmt in before)
        loops: Body = (*before, main_loop) if is_empty else (first_loop, main_loop)
        self.facts.tell(loops, self.facts.temporaries_in(loop) - expanded.keys())
        return loops if self.facts.is_free(update_loop, inner_private, ranges((main_loop,))) else ()


def find_inner_loop(loop: For) -> int | None:
    """Return the position of a loop's inner loop over all earlier iterations, else None."""
    if loop.step != 1 or static_trip_count(loop) in range(thresholds.MIN_WAVEFRONT_ITERATIONS):
        return None
    if has_early_exit(loop.body):
        return None  # what comes after in an iteration would not know
    for at, stmt in enumerate(loop.body):
        if isinstance(stmt, For) and (stmt.lo, stmt.hi) == (loop.lo, var(loop.symbol)):
            return at if stmt.step == 1 else None
    return None


def _find_carried_scalars(
    before: Body, inner: For, after: Body, private: frozenset[int]
) -> list[Node] | None:
    """Return the private scalars that an iteration carries while others update them; None where it
    carries more than scalars."""
    used = [{*reads(part), *writes(part)} for part in (before, inner.body, after)]
    defined = {stmt.symbol for stmt in statements(before) if isinstance(stmt, Let)}
    carried = [n for n in used[1] | used[0] & used[2] if n.id in private]
    if defined or any(node.rank for node in carried):
        return None
    return sorted(carried, key=lambda node: node.id)


def _keeps_order(loop: For, at: int, private: frozenset[int], outer: tuple[Range, ...]) -> bool:
    """Whether no two conflicting accesses of an element change their order."""
    inner = loop.body[at]
    assert isinstance(inner, For), "that is what was looked for"
    for number, sites in collect_accesses((loop,)).sites.items():
        if number in private or not any(site.writes for site in sites):
            continue
        if not sites[0].node.rank:
            return False
        for source, sink in product(sites, repeat=2):
            if not (source.writes or sink.writes):
                continue
            keys = _order_keys(source, sink, at, loop.symbol, inner.symbol)
            if keys is not None and has_carried_dependence(loop, source, sink, outer, keys):
                return False
    return True


def _order_keys(
    source: Site, sink: Site, at: int, outer_symbol: Symbol, inner_symbol: Symbol
) -> Ranks | None:
    """Return keys of an access and one of a later iteration: now the second comes first where its
    key is smaller. None where their order does not change."""
    here, there = source.route[1][0], sink.route[1][0]
    if here < at or there > at:
        return None
    if there < at:
        return const(0), const(0)
    symbol = inner_symbol if here == at else outer_symbol
    return var(symbol) - 1, var(inner_symbol)
