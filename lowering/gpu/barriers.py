"""Placement of barriers between the thread loops of a block, only where a dependence needs one.

A barrier separates two thread loops if one writes what the other reads or writes, and likewise a
thread loop from what all threads compute redundantly. The back edge of an enclosing loop counts as
adjacency. Existing barriers stay. `private` are the ids of the nodes of which each thread has its
own copy.

>>> program = lowered('''
... s[i] = x[i] * 2
... y[i] = s[7 - i]
... z[i] = x[i]
... ''', y="f32[8]", z="f32[8]", x="f32[8]", s="f32[8]")
>>> loops = [stmt for stmt in program.kernels[0].body if isinstance(stmt, For)]
>>> print_loops(insert_barriers(tuple(in_kind(loop, "thread") for loop in loops), frozenset()))
for i in 0..8 thread:
    s[i] = x[i] * 2.0
barrier
for i in 0..8 thread:
    y[i] = s[-i + 7]
for i in 0..8 thread:
    z[i] = x[i]
"""

from __future__ import annotations

from collections.abc import Iterable

from ...base.dataclass import dataclass
from ..ir.assignments import Break, Continue
from ..ir.loops import Barrier, For, If, LastBlock, Stmt, While
from ..ir.rewrite import with_bodies
from ..ir.walk import bodies, reads, statements, writes


@dataclass(frozen=True, slots=True)
class _Accesses:
    """The nodes accessed since the last barrier."""

    read: frozenset[int] = frozenset()
    written: frozenset[int] = frozenset()

    def __or__(self, other: _Accesses) -> _Accesses:
        return _Accesses(self.read | other.read, self.written | other.written)

    def conflicts_with(self, later: _Accesses) -> bool:
        """Whether a dependence of later accesses on these needs a barrier between them."""
        return bool(self.written & (later.read | later.written) or self.read & later.written)


def insert_barriers(
    body: tuple[Stmt, ...], private: frozenset[int], loops: bool = False
) -> tuple[Stmt, ...]:
    """Return a block's statements with barriers; `loops` says that they are executed repeatedly."""
    inserter = _BarrierInserter(private)
    result, pending = inserter.insert(body, _Accesses())
    if loops and pending.conflicts_with(inserter.accesses_of(body)):
        result = (*result, Barrier())
    return result


@dataclass(frozen=True, slots=True)
class _BarrierInserter:
    private: frozenset[int]

    def accesses_of(self, body: Iterable[Stmt]) -> _Accesses:
        """Return the accesses of statements, without those of thread-private nodes."""
        body = tuple(body)
        read = frozenset(node.id for node in reads(body)) - self.private
        return _Accesses(read, frozenset(node.id for node in writes(body)) - self.private)

    def insert(
        self, body: Iterable[Stmt], pending: _Accesses
    ) -> tuple[tuple[Stmt, ...], _Accesses]:
        """Return statements with barriers, and the accesses since the last of them."""
        out: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, Barrier):
                out.append(stmt)
                pending = _Accesses()
                continue
            if isinstance(stmt, While) and _is_block_wide(stmt):
                accesses = _Accesses()
            elif _is_block_wide(stmt):
                accesses = self.accesses_of((_without_body(stmt),))
            else:
                accesses = self.accesses_of((stmt,))
            if pending.conflicts_with(accesses) or (
                isinstance(stmt, Break | Continue) and pending != _Accesses()
            ):
                out.append(Barrier())
                pending = _Accesses()
            pending |= accesses
            if _is_block_wide(stmt):
                stmt, pending = self.insert_inside(stmt, pending)
            out.append(stmt)
        return tuple(out), pending

    def insert_inside(self, stmt: Stmt, pending: _Accesses) -> tuple[Stmt, _Accesses]:
        """Return a loop or branch that all threads execute, with barriers in its bodies.

        The exit of a `while` is after its test. A jump has no accesses of its own: see `insert`.
        """
        if isinstance(stmt, If | LastBlock):
            branches = [self.insert(part, pending) for part in bodies(stmt)]
            merged = pending
            for _, end in branches:
                merged |= end
            return with_bodies(stmt, tuple(part for part, _ in branches)), merged
        end, exits, parts = pending, pending, []
        for at, part in enumerate(bodies(stmt)):
            inner, end = self.insert(part, end)
            if isinstance(stmt, While) and at == 0:
                test = self.accesses_of((_without_body(stmt),))
                if end.conflicts_with(test):
                    inner, end = (*inner, Barrier()), _Accesses()
                end |= test
                exits |= end
            parts.append(inner)
        if end.conflicts_with(self.accesses_of((stmt,))):
            parts[-1] = (*parts[-1], Barrier())
            end = _Accesses()
        return with_bodies(stmt, tuple(parts)), exits | end


def has_jump(stmt: Stmt) -> bool:
    """Whether a statement is, or contains, a jump out of an enclosing loop."""
    if isinstance(stmt, Break | Continue):
        return True
    return isinstance(stmt, If) and any(has_jump(inner) for part in bodies(stmt) for inner in part)


def _without_body(stmt: Stmt) -> Stmt:
    """Return a statement without its bodies: its test."""
    return with_bodies(stmt, ((),) * len(bodies(stmt)))


def _is_block_wide(stmt: Stmt) -> bool:
    """Whether all threads execute a loop or branch, with thread loops or jumps inside."""
    if isinstance(stmt, If) and has_jump(stmt):
        return True
    if not isinstance(stmt, For | While | If | LastBlock) or getattr(stmt, "kind", "") == "thread":
        return False
    inside = [inner for part in bodies(stmt) for inner in statements(part)]
    return any(isinstance(inner, For) and inner.kind == "thread" for inner in inside)
