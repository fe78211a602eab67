"""Checks done with the counting they are for, which is undone where one fails.

Changes: a loop that only checks, and behind it one of the same rounds that only adds whole numbers
to elements, are one loop. Where a check fails, it takes back what the rounds before added.

    for i: check 0 <= k[i] and k[i] < n        for i:
    for i: h[k[i]] += w[i]                         if not (0 <= k[i] and k[i] < n):
                                                       for before in 0..i: h[k[before]] -= w[before]
                                                       check False
                                                   h[k[i]] += w[i]

What is looked up comes from memory once, and a test that always goes the same way costs next to
nothing beside an addition that waits for the one before.

Needs: sums that wrap, so that what is taken back leaves no trace; places, numbers and checks that
do not look at what is written. Guarantees: the check that fails is the first one, and nothing that
anybody sees is written before it.

>>> show(lambda program: undo(program, Target(schedule=True)),
...      "h[k[i]] += w[i]", h="i32[9]", k="i64[8]", w="i32[8]")
for i in 0..8:
    if not (0 <= k[i] and k[i] < 9):
        for before in 0..i:
            h[k[before]] -= w[before]
        check False else CdIndexError('CD0601',
                'index {0} is out of range for axis 0 of `h` with size {1}, at i = {2}',
                k[i], 9, i)
    h[k[i]] += w[i]
"""

from __future__ import annotations

from dataclasses import replace

from ....base.dataclass import dataclass
from ...ir import dtypes
from ...ir.algebra import FALSE
from ...ir.expressions import Apply
from ...ir.fresh import Fresh, fresh_for
from ...ir.indexing import var
from ...ir.loops import Check, Comment, For, If, Program, Stmt, Update
from ...ir.ops import OPS
from ...ir.rewrite import map_bodies, over_kernels, substitute
from ...ir.walk import own, reads, writes
from ...target import Target
from .fused import checked, round_of

Body = tuple[Stmt, ...]
BACK = {"add": OPS["sub"], "sub": OPS["add"]}
"""What takes back what an operation did, for numbers that wrap."""


def undo(program: Program, target: Target) -> Program:
    """Return the program with checks in the loops that add up whole numbers."""
    del target
    return over_kernels(program, _Work(fresh_for(program)).body)


def is_undone(loop: Stmt) -> bool:
    """Whether a loop does nothing but add whole numbers that it does not look at itself."""
    if not isinstance(loop, For):
        return False
    done = [stmt for stmt in loop.body if not isinstance(stmt, Comment)]
    changed = {node.id for node in writes((loop,))}
    return bool(done) and all(
        isinstance(stmt, Update)
        and _wraps(stmt)
        and changed.isdisjoint(read.node.id for read in own(stmt).found)
        for stmt in done
    )


def _wraps(update: Update) -> bool:
    return update.access.node.dtype.kind in "iu" and update.op.name in BACK


@dataclass(frozen=True, slots=True)
class _Work:
    """The work on one program."""

    fresh: Fresh

    def body(self, body: Body) -> Body:
        """Return a list of statements with checks in what can be undone."""
        pairs = {two: check for check, two in checked(body) if _can(check, body[two])}
        gone = [id(check) for check in pairs.values()]
        return tuple(
            self.joined(pairs[number], stmt) if number in pairs else map_bodies(stmt, self.body)
            for number, stmt in enumerate(body) if id(stmt) not in gone
        )  # fmt: skip

    def joined(self, check: Stmt, loop: Stmt) -> Stmt:
        """Return the loop with its checks, before which it takes back what it did."""
        assert isinstance(check, For) and isinstance(loop, For)
        before, here = self.fresh.symbol("before"), var(loop.symbol)
        back = substitute(tuple(map(_back, loop.body)), {loop.symbol: var(before)})
        undone = For(before, loop.lo, here, 1, back, span=loop.span)
        failing = (_failing(test, undone) for test in round_of(check, loop.symbol))
        return replace(loop, body=(*failing, *loop.body))


def _can(check: For, loop: Stmt) -> bool:
    changed = {node.id for node in writes((loop,))}
    return is_undone(loop) and changed.isdisjoint(node.id for node in reads((check,)))


def _back(stmt: Stmt) -> Stmt:
    return replace(stmt, op=BACK[stmt.op.name]) if isinstance(stmt, Update) else stmt


def _failing(check: Check, undone: For) -> Stmt:
    """Return a check behind what is to be undone where it fails."""
    fails = Apply(OPS["logical_not"], (check.test,), dtypes.bool_)
    failure = replace(check, test=FALSE)
    return If(fails, (undone, failure), (), check.span)
