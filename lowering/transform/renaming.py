"""Loops with temporaries of their own, apart from those of other statements of their list.

A temporary that a loop writes before it reads it, and whose last value is not needed behind it, may
be another one there: no loop had a value from another.

>>> program = shared(lowered('''
... for i in range(9):
...     t = x[i] * 2
...     y[i] = t + t * t
... for i in range(9, 18):
...     t = x[i] - 1
...     y[i] += t * t
... ''', y="f32[18]", x="f32[18]"))
>>> made = with_own(program, lambda loop: True)
>>> sorted(node.label for node in made.locals), sorted(node.label for node in program.locals)
(['t', 't'], ['t'])
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..analysis.accesses import accesses
from ..analysis.dependence import Uses, uses_of
from ..ir.assignments import Break, Continue
from ..ir.fresh import Fresh, fresh_for
from ..ir.loops import For, Program, Stmt, Store, While
from ..ir.node import Node
from ..ir.rewrite import over_kernels, rename, with_bodies
from ..ir.walk import bodies, own_reads, own_writes, statements

Body = tuple[Stmt, ...]


def with_own(program: Program, is_asked: Callable[[For], bool]) -> Program:
    """Return the program in which loops that are asked for have temporaries of their own; what has
    become another loop's is not looked into."""
    total, inside = uses_of(program)
    fresh = fresh_for(program)

    def body(stmts: Body, around: bool) -> Body:
        worth = [
            stmt for stmt in stmts
            if isinstance(stmt, For) and inside[id(stmt)] and is_asked(stmt)
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
