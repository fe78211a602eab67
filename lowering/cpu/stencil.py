"""Stencil sweeps: iterations of a time loop as sweeps over rows, each using only nearby rows.

Each statement of an iteration is a loop over rows, or works on one row; arrays that change in it
are accessed at the row itself, or a few rows from it; at the end arrays may be exchanged (double
buffering). Analysis only.

>>> program = lowered('''
... for t in range(10):
...     y[1:-1] = x[:-2] + x[2:]
...     x[1:-1] = y[1:-1]
... ''', y="f32[100]", x="f32[100]")
>>> found = find_sweeps(program.kernels[0].body[0], {}, frozenset(), ())
>>> [str(one.loop.hi) for one in found.stages], found.reach, found.period
(['98', '98'], 1, 1)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ...base.dataclass import dataclass
from .. import thresholds
from ..analysis.accesses import Site, collect_accesses
from ..analysis.dependence import find_dependence, find_privatizable
from ..analysis.subscripts import ranges
from ..ir.assignments import Permute
from ..ir.fresh import Fresh
from ..ir.indexing import Affine, Range, Symbol, const, var
from ..ir.loops import Comment, For, If, Stmt, Store, Update
from ..ir.node import Node
from ..ir.rewrite import rename, substitute
from ..ir.walk import direct_reads, direct_writes, statements

Body = tuple[Stmt, ...]
Names = Mapping[int, Node]


@dataclass(frozen=True, slots=True)
class Stage:
    """One statement of an iteration: what it does for each row."""

    comments: tuple[Comment, ...]
    loop: For
    """The loop over rows."""
    private: tuple[Node, ...]
    """The temporaries that are private to each row."""


@dataclass(frozen=True, slots=True)
class Sweeps:
    """A loop each of whose iterations sweeps over rows."""

    loop: For
    stages: tuple[Stage, ...]
    names: tuple[Names, ...]
    """For each iteration of a period the arrays that stand for arrays, by their ids."""
    reach: int
    """The greatest distance in rows of a dependence within an iteration."""
    nodes: tuple[Node, ...]
    """The arrays of rows, written or only read."""

    @property
    def period(self) -> int:
        """After so many iterations the arrays are back in their places."""
        return len(self.names)

    def stage(self, fresh: Fresh, number: int, time: Affine) -> For:
        """Return a stage of a period, of the iteration `time`, with its temporaries renamed."""
        at, which = divmod(number, len(self.stages))
        stage = self.stages[which]
        names = dict(self.names[at])
        names |= {node.id: _fresh_copy(fresh, node) for node in stage.private}
        (renamed,) = rename((stage.loop,), {}, names)
        (renamed,) = substitute((renamed,), {self.loop.symbol: time})
        assert isinstance(renamed, For), "a loop stays one"
        return renamed


def find_sweeps(
    loop: For,
    only: Mapping[int, frozenset[int]],
    temporaries: frozenset[int],
    outer: tuple[Range, ...],
) -> Sweeps | None:
    """Return the sweeps of a loop; None where it does anything else.

    `only` says which temporaries only each loop accesses, `temporaries` are all of them, `outer` is
    what is known around the loop.
    """
    names = _exchange_period(loop)
    if names is None or not all(_is_supported(stmt) for stmt in loop.body):
        return None
    aliases = _exchange_classes(loop)
    stages: list[Stage] = []
    sites: list[tuple[Site, int]] = []
    comments: list[Comment] = []
    outer_ranges = (*outer, *ranges((loop,)))
    for stmt in (
        part for whole in loop.body for part in _distribute_rows(whole, temporaries, outer_ranges)
    ):
        if isinstance(stmt, Comment):
            comments.append(stmt)
        elif not isinstance(stmt, Permute):
            row = _row_loop(stmt)
            private_ids = (
                find_privatizable(stmt, only.get(id(stmt), frozenset()))
                if row is stmt
                else frozenset()
            )
            if (
                row is None
                or find_dependence(row, private_ids, temporaries, outer_ranges) is not None
            ):
                return None
            private_nodes = _private_nodes(row, private_ids)
            if any(
                node.static_shape is None or node.bytes > thresholds.MAX_STENCIL_ROW_BYTES
                for node in private_nodes
            ):
                return None
            stages.append(Stage(tuple(comments), row, private_nodes))
            sites += ((site, len(stages) - 1) for site in _shared_sites(row, private_ids))
            comments.clear()
    return _measure_reach(loop, stages, names, sites, aliases)


def _measure_reach(
    loop: For, stages: list[Stage], names: tuple[Names, ...], sites: list[tuple[Site, int]],
    aliases: Mapping[int, int],
) -> Sweeps | None:  # fmt: skip
    """Return the sweeps with their reach; None where that is not constant."""
    changed = {aliases.get(site.node.id, site.node.id) for site, _ in sites if site.writes}
    offsets: dict[int, set[int]] = {}
    written: dict[int, set[int]] = {}
    nodes: dict[int, Node] = {}
    for site, number in sites:
        array = aliases.get(site.node.id, site.node.id)
        offset = _row_offset(site, stages[number].loop)
        if offset is not None:
            nodes[site.node.id] = site.node
        if array not in changed:
            continue
        if offset is None:
            return None
        offsets.setdefault(array, set()).add(offset)
        if site.writes:
            written.setdefault(array, set()).add(offset)
    reach = max((abs(w - o) for n, writes in written.items() for w in writes for o in offsets[n]),
                default=0)  # fmt: skip
    if not stages or not changed:
        return None
    return Sweeps(loop, tuple(stages), names, reach, tuple(nodes.values()))


def _exchange_period(loop: For) -> tuple[Names, ...] | None:
    """Return the arrays that stand for arrays in each iteration of a period; None where the period
    is too long."""
    exchanges = [stmt for stmt in loop.body if isinstance(stmt, Permute)]
    if not exchanges:
        return ({},)
    later = loop.body[loop.body.index(exchanges[0]) :]
    if any(not isinstance(stmt, Permute | Comment) for stmt in later) or len(exchanges) > 1:
        return None
    first = {node.id: node for node in exchanges[0].nodes}
    names: list[Names] = [first]
    while len(names) <= thresholds.MAX_STENCIL_PERIOD:
        last = names[-1]
        pairs = zip(exchanges[0].nodes, exchanges[0].sources, strict=True)
        after = {node.id: last.get(source.id, source) for node, source in pairs}
        if after == first:
            return tuple(names)
        names.append(after)
    return None


def _exchange_classes(loop: For) -> Mapping[int, int]:
    """Return one number for all arrays that are exchanged, by their ids."""
    exchanges = [stmt for stmt in loop.body if isinstance(stmt, Permute)]
    return {node.id: stmt.nodes[0].id for stmt in exchanges for node in stmt.nodes}


def _is_supported(stmt: Stmt) -> bool:
    if isinstance(stmt, Permute):
        return True
    return all(
        isinstance(nested, Store | Update | Comment | If)
        or (isinstance(nested, For) and nested.kind == "serial")
        for nested in statements((stmt,))
    )


def _distribute_rows(
    stmt: Stmt, temporaries: frozenset[int], outer_ranges: tuple[Range, ...]
) -> tuple[Stmt, ...]:
    """Return a statement, or a loop over updates of single rows distributed into one loop for
    each."""
    if not isinstance(stmt, For) or not all(isinstance(s, Store | Comment) for s in stmt.body):
        return (stmt,)
    rows = [s.access.index[0] for s in stmt.body if isinstance(s, Store) and s.access.index]
    are_constant = len(rows) > 1 and all(isinstance(at, Affine) and not at.terms for at in rows)
    if (
        not are_constant
        or find_dependence(stmt, frozenset(), temporaries, outer_ranges) is not None
    ):
        return (stmt,)
    return tuple(s if isinstance(s, Comment) else replace(stmt, body=(s,)) for s in stmt.body)


def _row_loop(stmt: Stmt) -> For | None:
    """Return the loop over rows that a statement is, or a loop of one iteration around a statement
    on one row."""
    if isinstance(stmt, For):
        fixed = stmt.lo.constant is not None and stmt.hi.constant is not None
        if any(stmt.symbol in symbols for symbols in _written_row_symbols(stmt)):
            return stmt if fixed and stmt.step == 1 else None
    rows = {
        index.constant
        for site in _sites_of(stmt) if site.writes
        for index in (site.index or ())[:1] if isinstance(index, Affine)
    }  # fmt: skip
    row = rows.pop() if len(rows) == 1 else None
    if row is None or not isinstance(stmt, For | Store | Update | If):
        return None
    return For(_ROW, const(row), const(row + 1), 1, (stmt,), span=stmt.span)


_ROW = Symbol("row", -(2**31))
"""The variable of the loop around a statement on one row."""


def _written_row_symbols(stmt: Stmt) -> Iterator[frozenset[Symbol]]:
    """Yield the symbols of the rows that a statement writes."""
    for site in _sites_of(stmt):
        if site.writes and site.index and isinstance(site.index[0], Affine):
            yield site.index[0].symbols()


def _sites_of(stmt: Stmt) -> Iterator[Site]:
    for sites in collect_accesses((stmt,)).sites.values():
        yield from sites


def _shared_sites(row: For, private_ids: frozenset[int]) -> Iterator[Site]:
    return (site for site in _sites_of(row) if site.node.id not in private_ids)


def _row_offset(site: Site, row: For) -> int | None:
    """Return the distance in rows of a site from the row of its iteration; None where it varies."""
    if not site.index or not isinstance(site.index[0], Affine):
        return None
    subscript = site.index[0]
    at = var(row.symbol) if row.symbol in subscript.symbols() else row.lo
    if any(isinstance(i, Affine) and row.symbol in i.symbols() for i in site.index[1:]):
        return None
    if at is row.lo and (row.hi - row.lo).constant != 1:
        return None
    return (subscript - at).constant


def _fresh_copy(fresh: Fresh, node: Node) -> Node:
    shape = node.static_shape or ()
    if not node.rank:
        return fresh.scalar(node.label, node.dtype)
    return fresh.array(node.label, shape, node.dtype, node.purpose)


def _private_nodes(row: For, private_ids: frozenset[int]) -> tuple[Node, ...]:
    used = {n.id: n for s in statements(row.body) for n in (*direct_reads(s), *direct_writes(s))}
    return tuple(used[number] for number in sorted(private_ids) if number in used)
