"""Wavefronts: loop skewing of tables whose elements depend on those beside and above them.

    for i in a..b: for j in c..d: u[i, j] = f(u[i - 1, j], u[i, j - 1])
    becomes
    for front in a + c..b + d - 1:
        for i in max(a, front - d + 1)..min(b, front - c + 1): u[i, front - i] = ...

The points of a front, which share the number `skew * i + j`, are independent; the fronts are
sequential. Precondition: two perfectly nested loops, neither of them parallel, and a skew that
reverses no dependence and has none within a front: that is decided over integers, see
`is_legal_front`. All points are bit-identical; only independent points are reordered, and terms of
exactly reassociable sums. Statements beside the inner loop are distributed, where that is legal.

>>> program = lowered('''
... for i in range(1, 40):
...     for j in range(1, 50):
...         u[i, j] = u[i - 1, j] + u[i, j - 1]
... ''', u="i64[40, 50]")
>>> rewritten = skew_to_wavefronts(program, facts_of(program), fresh_for(program))
>>> print_loops(rewritten.kernels[0].body)
for front in 2..89:
    for i in max(1, front - 49)..min(40, front):
        # u[i, j] = u[i - 1, j] + u[i, j - 1]
        u[i, -i + front] = u[i - 1, -i + front] + u[i, -i + front - 1]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from ....base.dataclass import dataclass
from ... import thresholds
from ...analysis.accesses import collect_accesses
from ...analysis.accumulators import is_reassociable, write_only_arrays
from ...analysis.dependence import has_break, has_carried_dependence
from ...analysis.parallel_band import (
    Facts,
    nest_loops,
    normalize,
    perfect_nest,
    replace_loops,
    static_trip_count,
    substitute_symbol,
)
from ...analysis.self_dependence import symbols_of
from ...analysis.subscripts import ranges
from ...ir.assignments import Alloc, Permute, Print
from ...ir.expressions import Read
from ...ir.fresh import Fresh
from ...ir.indexing import Affine, Range, Symbol, var
from ...ir.loops import Check, For, Program, Stmt, Update
from ...ir.rewrite import map_kernels
from ...ir.walk import binds, parts, statements
from ...transform.skew import is_linear, skew_loops
from ...transform.split_index_set import distribute_inner_loop, distribute_statements
from ..thread_block import is_thread_loop


def skew_to_wavefronts(program: Program, facts: Facts, fresh: Fresh) -> Program:
    """Return the program with wavefronts of nests that have no parallel loop."""
    rewriter = _Rewriter(facts, fresh)
    return map_kernels(program, lambda body: replace_loops(body, facts, rewriter.rewrite_loop))


@dataclass(frozen=True, slots=True)
class _Rewriter:
    """The rewriting of one program."""

    facts: Facts
    fresh: Fresh

    def rewrite_loop(self, loop: For, outer: tuple[For, ...]) -> tuple[Stmt, ...]:
        """Return the wavefronts that replace a loop, nothing where it stays."""
        return self.rewrite_nest(loop, outer) or self.rewrite_parts(loop, outer)

    def rewrite_parts(self, loop: For, outer: tuple[For, ...]) -> tuple[Stmt, ...]:
        """Return the parts of a distributed loop, some of them as wavefronts, if any is one."""
        if is_thread_loop(loop, self.facts):
            return ()
        index_sets = (
            distribute_statements(loop, self.facts) or distribute_inner_loop(loop, self.facts) or ()
        )
        rewritten = [self.rewrite_nest(part, outer) for part in index_sets]
        if not any(rewritten):
            return ()
        return tuple(
            s for nest, part in zip(rewritten, index_sets, strict=True) for s in nest or (part,)
        )

    def rewrite_nest(self, stmt: For, outer: tuple[For, ...]) -> tuple[Stmt, ...]:
        """Return a nest of which two loops are skewed; nothing where none can be."""
        if write_only_arrays(stmt, self.facts.private(stmt)):
            return ()
        loops, body = perfect_nest(stmt)
        for at in find_candidates(loops, body, self.facts):
            front_loop = self.skew_pair(loops[at], loops[at + 1], (*outer, *loops[:at]))
            if front_loop is not None:
                nest = nest_loops(loops[:at], (front_loop,))
                self.facts.tell(nest, self.facts.temporaries_in(stmt))
                return nest
        return ()

    def skew_pair(self, outer_loop: For, inner: For, outer: tuple[For, ...]) -> For | None:
        """Return the skewed loops, None where no skew is legal."""
        private, outer_ranges = self.facts.private(inner), ranges(outer)
        rows, columns = self.normalize_pair(outer_loop, inner)
        if not is_linear(rows, columns):
            return None
        pair = replace(rows, body=(columns,))
        for skew in thresholds.WAVEFRONT_SKEWS:
            front = var(columns.symbol) + var(rows.symbol) * skew
            if is_legal_front(pair, front, private, outer_ranges):
                return skew_loops(rows, columns, skew, self.fresh.symbol("front"))
        return None

    def normalize_pair(self, outer_loop: For, inner: For) -> tuple[For, For]:
        """Return two loops with unit steps."""
        if outer_loop.step != 1:
            old = outer_loop.symbol
            outer_loop, value = normalize(outer_loop, self.fresh.symbol(old.name))
            (new_inner,) = substitute_symbol((inner,), old, value)
            assert isinstance(new_inner, For), "a loop stays one"
            inner = new_inner
        if inner.step != 1:
            old = inner.symbol
            inner, value = normalize(inner, self.fresh.symbol(old.name))
            inner = replace(inner, body=substitute_symbol(inner.body, old, value))
        return outer_loop, inner


def find_candidates(loops: Sequence[For], body: tuple[Stmt, ...], facts: Facts) -> list[int]:
    """Return the positions of loops that may be skewed with their inner loop, the best first: those
    whose variables index a written element, then those with many iterations."""
    ranked: list[tuple[bool, int, int]] = []
    written = [_written_symbols(stmt) for stmt in statements(body)]
    for at, (outer, inner) in enumerate(zip(loops, loops[1:], strict=False)):
        if any(is_thread_loop(loop, facts) for loop in (loops[0], outer, inner)):
            break
        trip_counts = [
            2**40 if (n := static_trip_count(loop)) is None else n for loop in (outer, inner)
        ]
        if (
            min(trip_counts) >= thresholds.MIN_WAVEFRONT_ITERATIONS
            and can_reorder(outer)
            and can_reorder(inner)
        ):
            is_unused = not any({outer.symbol, inner.symbol} <= symbols for symbols in written)
            ranked.append((is_unused, -min(trip_counts), at))
    return [at for _, _, at in sorted(ranked)]


def _written_symbols(stmt: Stmt) -> frozenset[Symbol]:
    """Return the symbols of the subscripts that a statement writes."""
    reads = (Read(access.node, access.index) for access in parts(stmt).targets)
    return frozenset[Symbol]().union(*map(symbols_of, reads))


def can_reorder(loop: For) -> bool:
    """Whether a loop is serial and has no checks, exits or host statements."""
    halts = Check, Print, Permute, Alloc
    stmts = statements(loop.body)
    return loop.kind == "serial" and not (
        has_break(loop.body) or any(isinstance(stmt, halts) for stmt in stmts)
    )


def is_legal_front(
    loop: For, front: Affine, private: frozenset[int], outer: tuple[Range, ...]
) -> bool:
    """Whether of two conflicting accesses of an element the later one is in a later front; the
    `private` nodes are those of each point."""
    unordered = private | find_accumulators(loop)
    for number, sites in collect_accesses((loop,)).sites.items():
        if number in unordered or not any(site.writes for site in sites):
            continue
        if not sites[0].node.rank:
            return False
        for source, sink in product(sites, repeat=2):
            if (source.writes or sink.writes) and has_carried_dependence(
                loop, source, sink, outer, (front, front)
            ):
                return False
    return True


def find_accumulators(loop: For) -> frozenset[int]:
    """Return the accumulators of a loop, always one element each, of exactly reassociable
    operations: these are split, see `reductions.block_reduction`."""
    stmts = statements(loop.body)
    bound = {loop.symbol, *(symbol for stmt in stmts for symbol in binds(stmt))}
    out = set()
    for number, sites in collect_accesses((loop,)).sites.items():
        node, index = sites[0].node, sites[0].index
        if any(site.kind != "update" or site.index != index for site in sites) or index is None:
            continue
        updates = [s for s in stmts if isinstance(s, Update) and s.access.node == node]
        ops = {update.op if update.pair is None else None for update in updates}
        op = ops.pop() if len(ops) == 1 else None
        is_invariant = all(isinstance(at, Affine) and not at.symbols() & bound for at in index)
        if op is not None and is_invariant and is_reassociable(op, node.dtype, exact=True):
            out.add(number)
    return frozenset(out)
