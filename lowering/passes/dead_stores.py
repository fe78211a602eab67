"""Dead store elimination for whole arrays: stores that are overwritten before anything reads them.

Removes a nest that fills an array, where the next statement that accesses the array surely
overwrites all of it without reading it: the zeros of `np.zeros` before the loop that computes every
element; and one that fills a temporary, where every later read is covered by a later write, in
whatever iterations. `eliminate_zero_fills` removes the zeros that a result starts from anyway.

Precondition: none. Postcondition: the same values, faults and prints; an array of the caller keeps
its fill where a check or a print precedes what overwrites it.

>>> show(eliminate_dead_stores, '''
... y[...] = 0.0
... for i in range(8):
...     y[i] = x[i] + 1
... ''', y="f32[8]", x="f32[8]")
for i in 0..8:
    y[i] = x[i] + 1.0
"""

from __future__ import annotations

from bisect import bisect_right

from ..analysis.accesses import Accesses, collect_accesses
from ..analysis.effects import summarize
from ..ir.assignments import Break, Continue, Permute, Print
from ..ir.comments import drop_removed
from ..ir.expressions import Const
from ..ir.loops import Check, Comment, Fill, For, If, Program, Stmt, Store, Update
from ..ir.rewrite import map_bodies, map_kernels
from ..ir.walk import statements

Body = tuple[Stmt, ...]


def eliminate_dead_stores(program: Program) -> Program:
    """Return the program without nests whose array is overwritten before it is read."""
    locals_ = frozenset(node.id for node in program.locals)
    is_all = len(program.kernels) == 1
    return map_kernels(program, lambda body: _eliminate_in(body, locals_, is_all))


def eliminate_zero_fills(program: Program) -> Program:
    """Return the program without statements that fill untouched results with zeros."""
    untouched = {node.id for node in program.results if node.static_shape is not None and node.rank}

    if not untouched:
        return program

    def change(body: Body) -> Body:
        remaining: list[Stmt | None] = []
        for stmt in body:
            target = _filled_node(stmt)
            is_needless = target is not None and target in untouched and _stores_zero(stmt)
            remaining.append(None if is_needless else stmt)
            untouched.difference_update(summarize(stmt).touches)
        return drop_removed(remaining)

    return map_kernels(program, change)


def _eliminate_in(body: Body, locals_: frozenset[int], is_all: bool) -> Body:
    """Return statements without dead stores; `is_all` says that they are the whole program."""
    index = _AccessIndex(body, locals_)
    remaining: list[Stmt | None] = []
    for at in reversed(range(len(body))):
        target = _filled_node(body[at])
        is_needless = target is not None and (
            index.is_lost(target, at) or (is_all and index.is_written_first(target, at))
        )
        remaining.append(None if is_needless else body[at])
    result = (
        None
        if stmt is None
        else map_bodies(stmt, lambda nested: _eliminate_in(nested, locals_, False))
        for stmt in reversed(remaining)
    )
    return drop_removed(list(result))


_KINDS = frozenset((For, If, Store, Update, Fill, Comment))


def _filled_node(stmt: Stmt) -> int | None:
    """Return the only node that a statement writes, if it is a nest that does nothing else."""
    effects = summarize(stmt)
    return (
        next(iter(effects.writes)) if effects.kinds <= _KINDS and len(effects.writes) == 1 else None
    )


class _AccessIndex:
    """A list of statements, indexed by the positions where each node is accessed.

    Queries run from the last statement to the first: a read that the statements after one cover is
    covered by those after an earlier one, too.
    """

    def __init__(self, body: Body, locals_: frozenset[int]) -> None:
        self.body, self.locals_ = body, locals_
        self.touched: dict[int, list[int]] = {}
        """The positions of the statements that access a node, in order."""
        self.jumps: list[int] = []
        """The positions of jumps out of the list."""
        self.observable: list[int] = []
        """The positions of what may raise or print."""
        self.last_read: dict[int, int] = {}
        """The last position where a node is read."""
        self.last_permuted: dict[int, int] = {}
        """The last position where a node may be permuted."""
        self.covered: dict[int, set[int]] = {}
        """The sites of a node that earlier writes cover, as found so far."""
        self._accesses: Accesses | None = None
        for at, stmt in enumerate(body):
            effects = summarize(stmt)
            for node in effects.touches:
                self.touched.setdefault(node, []).append(at)
            self.last_read |= dict.fromkeys(effects.reads, at)
            if Permute in effects.kinds:
                self.last_permuted |= dict.fromkeys(effects.touches, at)
            if not effects.kinds.isdisjoint((Break, Continue)):
                self.jumps.append(at)
            if not effects.kinds.isdisjoint((Check, Print)):
                self.observable.append(at)

    def is_lost(self, node: int, at: int) -> bool:
        """Whether the next statement that accesses a node overwrites it before it can be
        observed."""
        positions = self.touched[node]
        after = bisect_right(positions, at)
        if after == len(positions):
            return False
        next_access = positions[after]
        if _has_position_between(self.jumps, at, next_access):
            return False
        if node not in self.locals_ and _has_position_between(self.observable, at, next_access):
            return False
        if node not in summarize(self.body[next_access]).writes:
            return False
        inside = collect_accesses((self.body[next_access],))
        whole = inside.sites[node][0].node
        return inside.is_overwritten(whole) and not inside.is_read_before_written(whole)

    def is_written_first(self, node: int, at: int) -> bool:
        """Whether every later read of a local node is covered by a later write, as in an array that
        each iteration of a loop fills as far as it reads it."""
        if (
            node not in self.locals_
            or self.last_read.get(node, -1) <= at
            or self.last_permuted.get(node, -1) > at
        ):
            return False
        if self._accesses is None:
            self._accesses = collect_accesses(self.body)
        sites = self._accesses.sites[node]
        start = bisect_right(sites, at, key=lambda site: site.route[0][0])
        later = self._accesses.only(sites[0].node, sites[start:])
        covered = self.covered.setdefault(node, set())
        for number in range(start, len(sites)):
            if sites[number].reads and number not in covered:
                if not later.is_covered(sites[number]):
                    return False
                covered.add(number)
        return True


def _has_position_between(positions: list[int], after: int, last: int) -> bool:
    """Whether one of the sorted positions is after the first position and not after the last."""
    return bisect_right(positions, last) > bisect_right(positions, after)


def _stores_zero(stmt: Stmt) -> bool:
    """Whether all that a nest stores is zero, and no zero of the other sign."""
    values = [s.value for s in statements((stmt,)) if isinstance(s, Store | Fill)]
    updates = any(isinstance(s, Update) for s in statements((stmt,)))
    return not updates and all(
        isinstance(value, Const) and repr(value.value) in ("0", "0.0", "False", "0j")
        for value in values
    )
