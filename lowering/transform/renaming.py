"""Renaming of temporaries that several loops reuse, so that each loop has one of its own.

A temporary that a loop writes before it reads it, and whose last value is not needed after it, may
be another one there: no value flows between loops, only output and anti-dependences do.

>>> program = shared(lowered('''
... for i in range(9):
...     t = x[i] * 2
...     y[i] = t + t * t
... for i in range(9, 18):
...     t = x[i] - 1
...     y[i] += t * t
... ''', y="f32[18]", x="f32[18]"))
>>> made = rename_temporaries(program, lambda loop: True)
>>> sorted(node.label for node in made.locals), sorted(node.label for node in program.locals)
(['t', 't'], ['t'])
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..analysis.accesses import collect_accesses
from ..analysis.dependence import UseCounts, count_uses
from ..ir.assignments import Break, Continue
from ..ir.fresh import Fresh, fresh_for
from ..ir.loops import For, Program, Stmt, Store, While
from ..ir.node import Node
from ..ir.rewrite import map_kernels, rename, with_bodies
from ..ir.walk import bodies, direct_reads, direct_writes, statements

Body = tuple[Stmt, ...]


def rename_temporaries(
    program: Program, is_asked: Callable[[For], bool], first_keeps: bool = False
) -> Program:
    """Return the program in which loops that are asked for have their temporaries renamed; renamed
    loops are not looked into. Of several that share one the last keeps it, or the first."""
    total, inside = count_uses(program)
    fresh = fresh_for(program)

    def body(stmts: Body, in_loop: bool) -> Body:
        candidates = [
            stmt for stmt in stmts
            if isinstance(stmt, For) and inside[id(stmt)] and is_asked(stmt)
        ]  # fmt: skip
        if first_keeps:
            candidates.reverse()
        changed = (
            dict(_rename_loops(_StatementUses(stmts, total, in_loop), candidates, fresh))
            if candidates
            else {}
        )
        return tuple(changed.get(id(stmt)) or deeper(stmt, in_loop) for stmt in stmts)

    def deeper(stmt: Stmt, in_loop: bool) -> Stmt:
        lists = bodies(stmt)
        in_loop = in_loop or isinstance(stmt, For | While)
        return (
            with_bodies(stmt, tuple(body(nested, in_loop) for nested in lists)) if lists else stmt
        )

    return fresh.declared(map_kernels(program, lambda stmts: body(stmts, False)))


def _rename_loops(
    uses: _StatementUses, candidates: list[For], fresh: Fresh
) -> Iterator[tuple[int, Stmt]]:
    """Yield loops with renamed temporaries, by the `id` of those that they replace."""
    for loop in candidates:
        nodes = {
            n.id: n for s in statements((loop,)) for n in (*direct_reads(s), *direct_writes(s))
        }
        ids = [number for number in sorted(nodes) if uses.is_free(nodes[number], loop)]
        copies = {number: fresh.like(nodes[number]) for number in ids}
        for number in ids:
            uses.users[number] = [user for user in uses.users[number] if user is not loop]
        if copies:
            (renamed,) = rename((loop,), {}, copies)
            yield id(loop), renamed


class _StatementUses:
    """The statements of a list that use each temporary, for those that nothing else uses."""

    def __init__(self, stmts: Body, total: UseCounts, in_loop: bool) -> None:
        """Take the statements, the number of uses of each temporary in the program, and whether
        there is a loop around them."""
        self.in_loop = in_loop
        self.users: dict[int, list[Stmt]] = {}
        uses: UseCounts = {}
        for stmt in stmts:
            for nested in statements((stmt,)):
                for node in (*direct_reads(nested), *direct_writes(nested)):
                    uses[node.id] = uses.get(node.id, 0) + 1
                    users = self.users.setdefault(node.id, [])
                    if not users or users[-1] is not stmt:
                        users.append(stmt)
        self.jumps = any(isinstance(nested, Break | Continue) for nested in statements(stmts))
        self.alone = {number for number, times in uses.items() if times == total.get(number)}

    def is_free(self, node: Node, loop: For) -> bool:
        """Whether a loop may have a temporary renamed that other statements use, too: it reads no
        value of theirs, and leaves none that they read."""
        users = self.users[node.id]
        is_plain = node.request is None and node.static_shape is not None
        if (
            len(users) < 2
            or node.id not in self.alone
            or not is_plain
            or not _writes_before_reading(node, loop)
        ):
            return False
        if node.rank:
            return all(_writes_before_reading(node, user) for user in users)
        at = next(n for n, user in enumerate(users) if user is loop)
        for stmt in (*users[at + 1 :], *(users[:at] if self.in_loop else ())):
            overwrites = isinstance(stmt, Store) and node not in direct_reads(stmt)
            if overwrites and not self.jumps:
                return True
            if not overwrites and not _writes_before_reading(node, stmt):
                return False
        return True


def _writes_before_reading(node: Node, stmt: Stmt) -> bool:
    """Whether a loop writes what it reads of a temporary before, in the same iteration."""
    return isinstance(stmt, For) and not collect_accesses((stmt,)).is_read_before_written(node)
