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

from ..ir.assignments import Break, Continue, Permute, Print
from ..ir.expressions import Const
from ..ir.loops import Check, Comment, Fill, For, If, Program, Stmt, Store, Update
from ..ir.rewrite import map_bodies, over_kernels
from ..ir.walk import statements
from .access import accesses
from .comments import headed
from .summary import summary

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
    left: list[Stmt | None] = []
    for at, stmt in enumerate(body):
        target, behind = _fills(stmt), body[at + 1 :]
        is_seen = target is None or not (
            _is_lost(target, behind, own)
            or (is_all and target in own and _is_written_first(target, behind))
        )
        left.append(map_bodies(stmt, lambda one: _body(one, own, False)) if is_seen else None)
    return headed(left)


_KINDS = frozenset((For, If, Store, Update, Fill, Comment))


def _fills(stmt: Stmt) -> int | None:
    """Return the only node that a statement writes, if it is a nest that does nothing else."""
    found = summary(stmt)
    return next(iter(found.writes)) if found.kinds <= _KINDS and len(found.writes) == 1 else None


def _is_lost(node: int, behind: Body, own: frozenset[int]) -> bool:
    """Whether the first statement behind that touches a node overwrites it, unseen until then."""
    for stmt in behind:
        found = summary(stmt)
        if not found.kinds.isdisjoint((Break, Continue)):
            return False
        if node not in own and not found.kinds.isdisjoint((Check, Print)):
            return False
        if node in found.writes:
            inside = accesses((stmt,))
            whole = inside.sites[node][0].node
            return inside.is_overwritten(whole) and not inside.read_before_written(whole)
        if node in found.reads:
            return False
    return False


def _is_written_first(node: int, behind: Body) -> bool:
    """Whether all that is read of a node behind was written behind, as an array that each round of
    a loop fills as far as it reads it."""
    uses = [stmt for stmt in behind if node in summary(stmt).touches]
    if not any(node in summary(stmt).reads for stmt in uses):
        return False
    if any(Permute in summary(stmt).kinds for stmt in uses):
        return False
    inside = accesses(uses)
    return not inside.read_before_written(inside.sites[node][0].node)


def _stores_zero(stmt: Stmt) -> bool:
    """Whether all that a nest stores is zero, and no zero of the other sign."""
    values = [s.value for s in statements((stmt,)) if isinstance(s, Store | Fill)]
    updates = any(isinstance(s, Update) for s in statements((stmt,)))
    return not updates and all(
        isinstance(value, Const) and repr(value.value) in ("0", "0.0", "False", "0j")
        for value in values
    )
