"""Where the threads of a block have to wait for each other, and nowhere else.

Between two loops of threads stands a barrier if one writes what the other reads or writes; so it
does between what all threads read alike and a loop that writes it. A loop around them counts as
its own neighbour. Barriers that are there already stay. `private` are the nodes that each thread
has of its own.

>>> program = lowered('''
... s[i] = x[i] * 2
... y[i] = s[7 - i]
... z[i] = x[i]
... ''', y="f32[8]", z="f32[8]", x="f32[8]", s="f32[8]")
>>> loops = [stmt for stmt in program.kernels[0].body if isinstance(stmt, For)]
>>> print_loops(met(tuple(in_kind(loop, "thread") for loop in loops), frozenset()))
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
from ..ir.loops import Barrier, For, If, Stmt, While
from ..ir.rewrite import with_bodies
from ..ir.walk import bodies, reads, statements, writes


@dataclass(frozen=True, slots=True)
class _Since:
    """What was used since the last barrier."""

    read: frozenset[int] = frozenset()
    written: frozenset[int] = frozenset()

    def __or__(self, other: _Since) -> _Since:
        return _Since(self.read | other.read, self.written | other.written)

    def clashes(self, other: _Since) -> bool:
        """Whether a barrier has to stand between this and what comes next."""
        return bool(self.written & (other.read | other.written) or self.read & other.written)


def met(body: tuple[Stmt, ...], private: frozenset[int], loops: bool = False) -> tuple[Stmt, ...]:
    """Return what a block does with barriers in it; `loops` says that it is done repeatedly."""
    work = _Work(private)
    made, since = work.body(body, _Since())
    if loops and since.clashes(work.uses(body)):
        made = (*made, Barrier())
    return made


@dataclass(frozen=True, slots=True)
class _Work:
    private: frozenset[int]

    def uses(self, body: Iterable[Stmt]) -> _Since:
        """Return what statements use, but for what each thread has of its own."""
        body = tuple(body)
        read = frozenset(node.id for node in reads(body)) - self.private
        return _Since(read, frozenset(node.id for node in writes(body)) - self.private)

    def body(self, body: Iterable[Stmt], since: _Since) -> tuple[tuple[Stmt, ...], _Since]:
        """Return statements with barriers, and what was used since the last of them."""
        out: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, Barrier):
                out.append(stmt)
                since = _Since()
                continue
            if isinstance(stmt, While) and _is_shared(stmt):
                own = _Since()
            elif _is_shared(stmt):
                own = self.uses((_alone(stmt),))
            else:
                own = self.uses((stmt,))
            if since.clashes(own) or (isinstance(stmt, Break | Continue) and since != _Since()):
                out.append(Barrier())
                since = _Since()
            since |= own
            if _is_shared(stmt):
                stmt, since = self.inside(stmt, since)
            out.append(stmt)
        return tuple(out), since

    def inside(self, stmt: Stmt, since: _Since) -> tuple[Stmt, _Since]:
        """Return a loop or a branch that all threads go through together, with barriers in it.

        A `while` ends behind its test. What jumps has nothing to wait for: see `body`.
        """
        if isinstance(stmt, If):
            made = [self.body(part, since) for part in bodies(stmt)]
            after = since
            for _, end in made:
                after |= end
            return with_bodies(stmt, tuple(part for part, _ in made)), after
        end, over, parts = since, since, []
        for at, part in enumerate(bodies(stmt)):
            inner, end = self.body(part, end)
            if isinstance(stmt, While) and at == 0:
                test = self.uses((_alone(stmt),))
                if end.clashes(test):
                    inner, end = (*inner, Barrier()), _Since()
                end |= test
                over |= end
            parts.append(inner)
        if end.clashes(self.uses((stmt,))):
            parts[-1] = (*parts[-1], Barrier())
            end = _Since()
        return with_bodies(stmt, tuple(parts)), over | end


def leaves(stmt: Stmt) -> bool:
    """Whether a statement is, or has in it, a jump that belongs to a loop around it."""
    if isinstance(stmt, Break | Continue):
        return True
    return isinstance(stmt, If) and any(leaves(inner) for part in bodies(stmt) for inner in part)


def _alone(stmt: Stmt) -> Stmt:
    """Return a statement without those inside of it: its test."""
    return with_bodies(stmt, ((),) * len(bodies(stmt)))


def _is_shared(stmt: Stmt) -> bool:
    """Whether a loop or branch is all threads', with loops of threads or jumps in it."""
    if isinstance(stmt, If) and leaves(stmt):
        return True
    if not isinstance(stmt, For | While | If) or getattr(stmt, "kind", "") == "thread":
        return False
    inside = [inner for part in bodies(stmt) for inner in statements(part)]
    return any(isinstance(inner, For) and inner.kind == "thread" for inner in inside)
