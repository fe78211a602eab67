"""What the rounds of a loop do to the rows of arrays, where each needs only rows nearby.

A loop of sweeps: each statement of a round is a loop over rows, or works on one row; arrays that
change in it are used at the row itself, or a few rows from it; at the end arrays may trade places.
It changes nothing.

>>> program = lowered('''
... for t in range(10):
...     y[1:-1] = x[:-2] + x[2:]
...     x[1:-1] = y[1:-1]
... ''', y="f32[100]", x="f32[100]")
>>> found = sweeps_of(program.kernels[0].body[0], {}, frozenset(), ())
>>> [str(one.loop.hi) for one in found.stages], found.reach, found.period
(['98', '98'], 1, 1)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ...base.dataclass import dataclass
from ..ir.assignments import Permute
from ..ir.fresh import Fresh
from ..ir.indexing import Affine, Range, Symbol, const, var
from ..ir.loops import Comment, For, If, Stmt, Store, Update
from ..ir.node import Node
from ..ir.rewrite import rename, substitute
from ..ir.walk import own_reads, own_writes, statements
from .accesses import Site, accesses
from .dependence import independent, private
from .subscripts import ranges

Body = tuple[Stmt, ...]
Names = Mapping[int, Node]
ROOM = 64 << 10
"""A row may have so many bytes for itself, of which each thread has its own."""
MOST_PERIOD = 4
"""After so many rounds at most arrays have to be back in their places."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One statement of a round: what it does for each row."""

    comments: tuple[Comment, ...]
    loop: For
    """The loop over rows."""
    mine: tuple[Node, ...]
    """What each row has for itself."""


@dataclass(frozen=True, slots=True)
class Sweeps:
    """A loop each of whose rounds sweeps over rows."""

    loop: For
    stages: tuple[Stage, ...]
    names: tuple[Names, ...]
    """For each round of a period which arrays stand for which, by their ids."""
    reach: int
    """So many rows from its own a row may need, or be needed, within a round."""
    nodes: tuple[Node, ...]
    """The arrays of rows, those that change and those that do not."""

    @property
    def period(self) -> int:
        """After so many rounds the arrays are back in their places."""
        return len(self.names)

    def stage(self, fresh: Fresh, number: int, time: Affine) -> For:
        """Return a stage of a period, of the round `time`, with temporaries of its own."""
        at, which = divmod(number, len(self.stages))
        stage = self.stages[which]
        names = dict(self.names[at])
        names |= {node.id: _copy(fresh, node) for node in stage.mine}
        (made,) = rename((stage.loop,), {}, names)
        (made,) = substitute((made,), {self.loop.symbol: time})
        assert isinstance(made, For), "a loop stays one"
        return made


def sweeps_of(
    loop: For,
    only: Mapping[int, frozenset[int]],
    own: frozenset[int],
    outer: tuple[Range, ...],
) -> Sweeps | None:
    """Return what the rounds of a loop do to rows; None where they do anything else.

    `only` says which temporaries each loop has for itself, `own` are all temporaries, `outer` is
    what is known around the loop.
    """
    names = _names(loop)
    if names is None or not all(_is_plain(stmt) for stmt in loop.body):
        return None
    alike = _alike(loop)
    stages: list[Stage] = []
    sites: list[tuple[Site, int]] = []
    comments: list[Comment] = []
    known = (*outer, *ranges((loop,)))
    for stmt in (one for whole in loop.body for one in _parts(whole, own, known)):
        if isinstance(stmt, Comment):
            comments.append(stmt)
        elif not isinstance(stmt, Permute):
            row = _row(stmt)
            mine = private(stmt, only.get(id(stmt), frozenset())) if row is stmt else frozenset()
            if row is None or independent(row, mine, own, known) is not None:
                return None
            kept = _used(row, mine)
            if any(node.static_shape is None or node.bytes > ROOM for node in kept):
                return None
            stages.append(Stage(tuple(comments), row, kept))
            sites += ((site, len(stages) - 1) for site in _sites(row, mine))
            comments.clear()
    return _reaching(loop, stages, names, sites, alike)


def _reaching(
    loop: For, stages: list[Stage], names: tuple[Names, ...], sites: list[tuple[Site, int]],
    alike: Mapping[int, int],
) -> Sweeps | None:  # fmt: skip
    """Return the sweeps with how far they reach; None where that is not a few rows."""
    changed = {alike.get(site.node.id, site.node.id) for site, _ in sites if site.writes}
    offsets: dict[int, set[int]] = {}
    written: dict[int, set[int]] = {}
    nodes: dict[int, Node] = {}
    for site, number in sites:
        which = alike.get(site.node.id, site.node.id)
        offset = _offset(site, stages[number].loop)
        if offset is not None:
            nodes[site.node.id] = site.node
        if which not in changed:
            continue
        if offset is None:
            return None
        offsets.setdefault(which, set()).add(offset)
        if site.writes:
            written.setdefault(which, set()).add(offset)
    reach = max((abs(w - o) for n, some in written.items() for w in some for o in offsets[n]),
                default=0)  # fmt: skip
    if not stages or not changed:
        return None
    return Sweeps(loop, tuple(stages), names, reach, tuple(nodes.values()))


def _names(loop: For) -> tuple[Names, ...] | None:
    """Return which arrays stand for which in each round of a period; None where it has no end."""
    found = [stmt for stmt in loop.body if isinstance(stmt, Permute)]
    if not found:
        return ({},)
    behind = loop.body[loop.body.index(found[0]) :]
    if any(not isinstance(stmt, Permute | Comment) for stmt in behind) or len(found) > 1:
        return None
    first = {node.id: node for node in found[0].nodes}
    names: list[Names] = [first]
    while len(names) <= MOST_PERIOD:
        last = names[-1]
        pairs = zip(found[0].nodes, found[0].sources, strict=True)
        after = {node.id: last.get(source.id, source) for node, source in pairs}
        if after == first:
            return tuple(names)
        names.append(after)
    return None


def _alike(loop: For) -> Mapping[int, int]:
    """Return one number for all arrays that trade places."""
    found = [stmt for stmt in loop.body if isinstance(stmt, Permute)]
    return {node.id: stmt.nodes[0].id for stmt in found for node in stmt.nodes}


def _is_plain(stmt: Stmt) -> bool:
    if isinstance(stmt, Permute):
        return True
    return all(
        isinstance(one, Store | Update | Comment | If)
        or (isinstance(one, For) and one.kind == "serial")
        for one in statements((stmt,))
    )


def _parts(stmt: Stmt, own: frozenset[int], known: tuple[Range, ...]) -> tuple[Stmt, ...]:
    """Return a statement, or what a loop does to single rows as a loop for each of them."""
    if not isinstance(stmt, For) or not all(isinstance(s, Store | Comment) for s in stmt.body):
        return (stmt,)
    rows = [s.access.index[0] for s in stmt.body if isinstance(s, Store) and s.access.index]
    fixed = len(rows) > 1 and all(isinstance(at, Affine) and not at.terms for at in rows)
    if not fixed or independent(stmt, frozenset(), own, known) is not None:
        return (stmt,)
    return tuple(s if isinstance(s, Comment) else replace(stmt, body=(s,)) for s in stmt.body)


def _row(stmt: Stmt) -> For | None:
    """Return the loop over rows that a statement is, or stands for where it works on one row."""
    if isinstance(stmt, For):
        fixed = stmt.lo.constant is not None and stmt.hi.constant is not None
        if any(stmt.symbol in symbols for symbols in _first_symbols(stmt)):
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
"""What counts the one row of a statement that has no loop over rows."""


def _first_symbols(stmt: Stmt) -> Iterator[frozenset[Symbol]]:
    """Yield the symbols of the rows that a statement writes."""
    for site in _sites_of(stmt):
        if site.writes and site.index and isinstance(site.index[0], Affine):
            yield site.index[0].symbols()


def _sites_of(stmt: Stmt) -> Iterator[Site]:
    for some in accesses((stmt,)).sites.values():
        yield from some


def _sites(row: For, mine: frozenset[int]) -> Iterator[Site]:
    return (site for site in _sites_of(row) if site.node.id not in mine)


def _offset(site: Site, row: For) -> int | None:
    """Return how far from the row of its round a site is; None where that differs."""
    if not site.index or not isinstance(site.index[0], Affine):
        return None
    first = site.index[0]
    at = var(row.symbol) if row.symbol in first.symbols() else row.lo
    if any(isinstance(i, Affine) and row.symbol in i.symbols() for i in site.index[1:]):
        return None
    if at is row.lo and (row.hi - row.lo).constant != 1:
        return None
    return (first - at).constant


def _copy(fresh: Fresh, node: Node) -> Node:
    shape = node.static_shape or ()
    if not node.rank:
        return fresh.scalar(node.label, node.dtype)
    return fresh.array(node.label, shape, node.dtype, node.purpose)


def _used(row: For, mine: frozenset[int]) -> tuple[Node, ...]:
    used = {n.id: n for s in statements(row.body) for n in (*own_reads(s), *own_writes(s))}
    return tuple(used[number] for number in sorted(mine) if number in used)
