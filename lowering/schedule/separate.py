"""Loops that threads might share have temporaries of their own, apart from those beside them.

    for j step 32: t = f(j); y[j] = t         for j step 32: u = f(j); y[j] = u
    for j: t = f(j); y[j] = t                 for j: t = f(j); y[j] = t

Changes: a temporary that a loop worth sharing writes before it reads it, and whose last value is
not needed behind it, is another one there than in other statements of its list. Schedules that cut
a loop leave such ones, and threads share a loop only if no other one has its temporaries.

Needs: loops that are finished but for that. Guarantees: not a bit changes, for no loop had a value
from another.

>>> show(lambda program: separate(program, Target(threads=2, parallel_from=9000)), '''
... for i in range(8000):
...     t = x[i] * 2
...     y[i] = t + t * t
... for i in range(8000, 8009):
...     t = x[i] - 1
...     y[i] += t * t
... ''', y="f32[8009]", x="f32[8009]")
for i in 0..8000:
    t_2 = x[i] * 2.0
    y[i] = t_2 + t_2 * t_2
for i in 8000..8009:
    t = x[i] - 1.0
    y[i] += t * t
"""

from __future__ import annotations

from collections.abc import Iterator

from ..ir.assignments import Break, Continue
from ..ir.fresh import Fresh, fresh_for
from ..ir.loops import For, Program, Stmt, Store, While
from ..ir.node import Node
from ..ir.rewrite import over_kernels, rename, with_bodies
from ..ir.walk import bodies, own_reads, own_writes, statements
from ..passes.access import accesses
from ..target import Target
from .kinds import is_worth
from .legal import Uses, uses_of

Body = tuple[Stmt, ...]


def separate(program: Program, target: Target) -> Program:
    """Return the program in which loops worth sharing have no temporary in common with others of
    their list that they need not have."""
    if target.threads < 2:
        return program
    total, inside = uses_of(program)
    fresh = fresh_for(program)

    def body(stmts: Body, around: bool) -> Body:
        worth = [
            stmt for stmt in stmts
            if isinstance(stmt, For) and inside[id(stmt)] and is_worth(stmt, target.parallel_from)
        ]  # fmt: skip
        changed = dict(_changed(_List(stmts, total, around), worth, fresh)) if worth else {}
        return tuple(changed.get(id(stmt)) or deeper(stmt, around) for stmt in stmts)

    def deeper(stmt: Stmt, around: bool) -> Stmt:
        lists = bodies(stmt)
        around = around or isinstance(stmt, For | While)
        return with_bodies(stmt, tuple(body(one, around) for one in lists)) if lists else stmt

    return fresh.declared(over_kernels(program, lambda stmts: body(stmts, False)))


def _changed(found: _List, worth: list[For], fresh: Fresh) -> Iterator[tuple[int, Stmt]]:
    """Yield loops with temporaries of their own, by the `id` of those they take the place of."""
    for loop in worth:
        nodes = {n.id: n for s in statements((loop,)) for n in (*own_reads(s), *own_writes(s))}
        mine = [number for number in sorted(nodes) if found.is_free(nodes[number], loop)]
        copies = {number: fresh.like(nodes[number]) for number in mine}
        for number in mine:
            found.users[number] = [one for one in found.users[number] if one is not loop]
        if copies:
            (made,) = rename((loop,), {}, copies)
            yield id(loop), made


class _List:
    """The statements of a list by the temporaries that nothing else uses."""

    def __init__(self, stmts: Body, total: Uses, around: bool) -> None:
        """Take the statements, how often each temporary is used in all, and whether there is a loop
        around them."""
        self.around = around
        self.users: dict[int, list[Stmt]] = {}
        uses: Uses = {}
        for stmt in stmts:
            for one in statements((stmt,)):
                for node in (*own_reads(one), *own_writes(one)):
                    uses[node.id] = uses.get(node.id, 0) + 1
                    users = self.users.setdefault(node.id, [])
                    if not users or users[-1] is not stmt:
                        users.append(stmt)
        self.jumps = any(isinstance(one, Break | Continue) for one in statements(stmts))
        self.alone = {number for number, times in uses.items() if times == total.get(number)}

    def is_free(self, node: Node, loop: For) -> bool:
        """Whether a loop may have another temporary in place of one that others have, too: it needs
        no value of it, and leaves none that is needed."""
        users = self.users[node.id]
        plain = node.request is None and node.static_shape is not None
        if len(users) < 2 or node.id not in self.alone or not plain or not _is_filled(node, loop):
            return False
        if node.rank:
            return all(_is_filled(node, one) for one in users)
        at = next(n for n, one in enumerate(users) if one is loop)
        for stmt in (*users[at + 1 :], *(users[:at] if self.around else ())):
            starts = isinstance(stmt, Store) and node not in own_reads(stmt)
            if starts and not self.jumps:
                return True
            if not starts and not _is_filled(node, stmt):
                return False
        return True


def _is_filled(node: Node, stmt: Stmt) -> bool:
    """Whether a loop writes what it reads of a temporary before, in the same round."""
    return isinstance(stmt, For) and not accesses((stmt,)).read_before_written(node)
