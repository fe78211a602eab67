"""Overwritten: what is replaced before anybody sees it is not stored.

Removes a nest that fills an array, where the next statement that touches the array surely writes
all of it without needing what was there: the zeros of `np.zeros` before the loop that computes
every element; and one that fills a temporary, where all that is read of it is written behind, in
whatever rounds. `zeros` removes the zeros that a result starts from anyway.

Needs: nothing. Guarantees: the same values, faults and prints; an array of the caller keeps its
fill where a check or a print stands before what overwrites it.

>>> show(overwritten, '''
... y[...] = 0.0
... for i in range(8):
...     y[i] = x[i] + 1
... ''', y="f32[8]", x="f32[8]")
for i in 0..8:
    y[i] = x[i] + 1.0
"""

from __future__ import annotations

from bisect import bisect_right

from ..analysis.accesses import Accesses, accesses
from ..analysis.effects import summary
from ..ir.assignments import Break, Continue, Permute, Print
from ..ir.comments import headed
from ..ir.expressions import Const
from ..ir.loops import Check, Comment, Fill, For, If, Program, Stmt, Store, Update
from ..ir.rewrite import map_bodies, over_kernels
from ..ir.walk import statements

Body = tuple[Stmt, ...]


def overwritten(program: Program) -> Program:
    """Return the program without nests whose array is overwritten before it is read."""
    own = frozenset(node.id for node in program.locals)
    is_all = len(program.kernels) == 1
    return over_kernels(program, lambda body: _body(body, own, is_all))


def zeros(program: Program) -> Program:
    """Return the program without statements that fill untouched results with zeros."""
    fresh = {node.id for node in program.results if node.static_shape is not None and node.rank}

    if not fresh:
        return program

    def change(body: Body) -> Body:
        left: list[Stmt | None] = []
        for stmt in body:
            target = _fills(stmt)
            is_needless = target is not None and target in fresh and _stores_zero(stmt)
            left.append(None if is_needless else stmt)
            fresh.difference_update(summary(stmt).touches)
        return headed(left)

    return over_kernels(program, change)


def _body(body: Body, own: frozenset[int], is_all: bool) -> Body:
    """Return statements without such nests; `is_all` says that they are the whole program."""
    here = _List(body, own)
    left: list[Stmt | None] = []
    for at in reversed(range(len(body))):
        target = _fills(body[at])
        is_needless = target is not None and (
            here.is_lost(target, at) or (is_all and here.is_written_first(target, at))
        )
        left.append(None if is_needless else body[at])
    kept = (None if stmt is None else map_bodies(stmt, lambda one: _body(one, own, False))
            for stmt in reversed(left))  # fmt: skip
    return headed(list(kept))


_KINDS = frozenset((For, If, Store, Update, Fill, Comment))


def _fills(stmt: Stmt) -> int | None:
    """Return the only node that a statement writes, if it is a nest that does nothing else."""
    found = summary(stmt)
    return next(iter(found.writes)) if found.kinds <= _KINDS and len(found.writes) == 1 else None


class _List:
    """A list of statements, with where each node is touched in it, found once.

    Questions are asked from the last statement to the first: a read that what stands behind a
    statement covers is covered by what stands behind an earlier one, too.
    """

    def __init__(self, body: Body, own: frozenset[int]) -> None:
        self.body, self.own = body, own
        self.touched: dict[int, list[int]] = {}
        """The places of the statements that touch a node, in order."""
        self.leaves: list[int] = []
        """The places of what may leave the list early."""
        self.shows: list[int] = []
        """The places of what may raise or print."""
        self.read: dict[int, int] = {}
        """The last place where a node is read."""
        self.moved: dict[int, int] = {}
        """The last place where a node may be permuted."""
        self.covered: dict[int, set[int]] = {}
        """Which sites of a node were found to be covered by what stands before them."""
        self._found: Accesses | None = None
        for at, stmt in enumerate(body):
            known = summary(stmt)
            for node in known.touches:
                self.touched.setdefault(node, []).append(at)
            self.read |= dict.fromkeys(known.reads, at)
            if Permute in known.kinds:
                self.moved |= dict.fromkeys(known.touches, at)
            if not known.kinds.isdisjoint((Break, Continue)):
                self.leaves.append(at)
            if not known.kinds.isdisjoint((Check, Print)):
                self.shows.append(at)

    def is_lost(self, node: int, at: int) -> bool:
        """Whether the first statement behind one that touches a node overwrites it, unseen until
        then."""
        places = self.touched[node]
        after = bisect_right(places, at)
        if after == len(places):
            return False
        place = places[after]
        if _is_any(self.leaves, at, place):
            return False
        if node not in self.own and _is_any(self.shows, at, place):
            return False
        if node not in summary(self.body[place]).writes:
            return False
        inside = accesses((self.body[place],))
        whole = inside.sites[node][0].node
        return inside.is_overwritten(whole) and not inside.read_before_written(whole)

    def is_written_first(self, node: int, at: int) -> bool:
        """Whether all that is read of a node of ours behind a statement was written behind it, as
        an array that each iteration of a loop fills as far as it reads it."""
        if node not in self.own or self.read.get(node, -1) <= at or self.moved.get(node, -1) > at:
            return False
        if self._found is None:
            self._found = accesses(self.body)
        sites = self._found.sites[node]
        start = bisect_right(sites, at, key=lambda site: site.route[0][0])
        found = self._found.only(sites[0].node, sites[start:])
        covered = self.covered.setdefault(node, set())
        for number in range(start, len(sites)):
            if sites[number].reads and number not in covered:
                if not found.is_covered(sites[number]):
                    return False
                covered.add(number)
        return True


def _is_any(places: list[int], after: int, last: int) -> bool:
    """Whether one of some places in order is behind the first place and not behind the last."""
    return bisect_right(places, last) > bisect_right(places, after)


def _stores_zero(stmt: Stmt) -> bool:
    """Whether all that a nest stores is zero, and no zero of the other sign."""
    values = [s.value for s in statements((stmt,)) if isinstance(s, Store | Fill)]
    updates = any(isinstance(s, Update) for s in statements((stmt,)))
    return not updates and all(
        isinstance(value, Const) and repr(value.value) in ("0", "0.0", "False", "0j")
        for value in values
    )
