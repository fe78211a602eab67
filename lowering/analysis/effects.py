"""Summaries of the side effects of statements: what they read, write and bind, memoized.

A summary includes nested statements. It is computed from the summaries of these and kept with the
statement, so that a whole program takes one walk, however deep its loops are, and the next pass
looks only at what has changed.

>>> from plusequals.lowering.ir import dtypes, expressions, loops, node
>>> from plusequals.lowering.ir.assignments import Access
>>> x, y = (node.Node(n, "xy"[n], (), dtypes.float32) for n in (0, 1))
>>> store = loops.Store(Access(y, ()), expressions.Read(x, ()))
>>> found = summarize(store)
>>> sorted(found.reads), sorted(found.writes), [kind.__name__ for kind in found.kinds]
([0], [1], ['Store'])
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import NamedTuple

from ..ir.assignments import Alloc, Break, Continue, Print
from ..ir.indexing import Symbol
from ..ir.loops import Check, For, Program, Stmt, While
from ..ir.memo import memoize
from ..ir.walk import binds, bodies, direct_effects, statements


class Summary(NamedTuple):
    """What a statement accesses and binds, with all that is nested in it."""

    reads: frozenset[int]
    """Ids of nodes; an updated target is read."""
    writes: frozenset[int]
    """Ids of nodes that are written, allocated or permuted."""
    kinds: frozenset[type]
    bound: frozenset[Symbol]
    """The symbols that loops in it run over, and all others that it binds."""

    @property
    def touches(self) -> frozenset[int]:
        """The ids of the nodes that are read or written."""
        return self.reads | self.writes


def summarize(stmt: Stmt) -> Summary:
    """Return the summary of one statement; memoized."""
    try:
        memo: Summary = stmt.summary
    except AttributeError:
        memo = memoize(stmt, "summary", _summarize(stmt))
    return memo


def _summarize(stmt: Stmt) -> Summary:
    accessed = direct_effects(stmt)
    written = {node.id for node in accessed.writes}
    read = {node.id for node in accessed.reads}
    kinds: set[type] = {type(stmt)}
    bound = set(binds(stmt))
    for body in bodies(stmt):
        for nested in body:
            inner = summarize(nested)
            read |= inner.reads
            written |= inner.writes
            kinds |= inner.kinds
            bound |= inner.bound
    return Summary(frozenset(read), frozenset(written), frozenset(kinds), frozenset(bound))


def merged_summary(stmt: Stmt, first: Stmt, second: Stmt) -> Summary:
    """Return the summary of a statement that does what two statements of its kind do (for
    fusion)."""
    left, right = summarize(first), summarize(second)
    merged = Summary(
        left.reads | right.reads, left.writes | right.writes, left.kinds | right.kinds,
        left.bound | right.bound,
    )  # fmt: skip
    return memoize(stmt, "summary", merged)


def bound_symbols(body: Iterable[Stmt]) -> frozenset[Symbol]:
    """Return the symbols that statements bind."""
    return frozenset[Symbol]().union(*(summarize(stmt).bound for stmt in body))


def alloc_sizes_use(body: Iterable[Stmt], symbols: frozenset[Symbol]) -> bool:
    """Whether some statements allocate an array whose size uses one of these symbols.

    Sizes belong to arrays, not to statements: such a symbol cannot be substituted there.
    """
    return any(
        isinstance(stmt, Alloc) and any(symbols & extent.symbols() for extent in stmt.node.shape)
        for outer in body if Alloc in summarize(outer).kinds
        for stmt in statements((outer,))
    )  # fmt: skip


def change_touching(
    nodes: Collection[int], body: tuple[Stmt, ...],
    change: Callable[[tuple[Stmt, ...]], tuple[Stmt, ...]],
) -> tuple[Stmt, ...]:  # fmt: skip
    """Return statements with those replaced by `change` that access any of these nodes."""
    out: list[Stmt] = []
    for stmt in body:
        effects = summarize(stmt)
        is_disjoint = effects.reads.isdisjoint(nodes) and effects.writes.isdisjoint(nodes)
        out += (stmt,) if is_disjoint else change((stmt,))
    return tuple(out)


def has_jumps(stmt: Stmt) -> bool:
    """Whether a loop or an iteration of it may be left early by a `Break` or `Continue` inside."""
    return isinstance(stmt, For | While) and not summarize(stmt).kinds.isdisjoint((Break, Continue))


def has_effects(stmt: Stmt) -> bool:
    """Whether a statement may raise or print: effects that are visible besides the arrays."""
    return not summarize(stmt).kinds.isdisjoint((Check, Print))


def touched_nodes(body: Iterable[Stmt]) -> frozenset[int]:
    """Return the ids of the nodes that statements read or write."""
    return frozenset[int]().union(*(summarize(stmt).touches for stmt in body))


def remove_unused_scalars(program: Program) -> Program:
    """Return the program without the scalars that no statement accesses any more."""
    used = frozenset[int]().union(*(touched_nodes(kernel.body) for kernel in program.kernels))
    remaining = tuple(node for node in program.locals if node.rank or node.id in used)
    return program if len(remaining) == len(program.locals) else replace(program, locals=remaining)
