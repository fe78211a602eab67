"""Rollback of integer accumulations: checks in the loop they guard, which is undone on failure.

Changes: a loop that only checks, and after it one over the same iterations that only adds integers
to elements, are fused. Where a check fails, the updates of the earlier iterations are undone.

    for i: check 0 <= k[i] and k[i] < n        for i:
    for i: h[k[i]] += w[i]                         if not (0 <= k[i] and k[i] < n):
                                                       for before in 0..i: h[k[before]] -= w[before]
                                                       check False
                                                   h[k[i]] += w[i]

What is looked up is loaded from memory once, and a well-predicted branch costs next to nothing
beside an addition that waits for the one before.

Precondition: sums that wrap, so that undoing leaves no trace; subscripts, terms and checks that do
not read what is written. Postcondition: the check that fails is the first one, and nothing visible
is written before it.

>>> show(lambda program: fuse_with_rollback(program, Target(schedule=True)),
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
from ...ir.rewrite import map_bodies, map_kernels, substitute
from ...ir.walk import direct_effects, reads, writes
from ...target import Target
from .fused import checks_in_iteration, find_checked_loops

Body = tuple[Stmt, ...]
BACK = {"add": OPS["sub"], "sub": OPS["add"]}
"""The inverse of each operation, for integers that wrap."""


def fuse_with_rollback(program: Program, target: Target) -> Program:
    """Return the program with checks fused into the loops that accumulate integers."""
    del target
    return map_kernels(program, _RollbackFusion(fresh_for(program)).body)


def can_roll_back(loop: Stmt) -> bool:
    """Whether a loop does nothing but accumulate integers in elements that it does not read
    otherwise."""
    if not isinstance(loop, For):
        return False
    stmts = [stmt for stmt in loop.body if not isinstance(stmt, Comment)]
    written = {node.id for node in writes((loop,))}
    return bool(stmts) and all(
        isinstance(stmt, Update)
        and _is_invertible(stmt)
        and written.isdisjoint(read.node.id for read in direct_effects(stmt).all_reads)
        for stmt in stmts
    )


def _is_invertible(update: Update) -> bool:
    return update.access.node.dtype.kind in "iu" and update.op.name in BACK


@dataclass(frozen=True, slots=True)
class _RollbackFusion:
    """The fusion of the checks of one program."""

    fresh: Fresh

    def body(self, body: Body) -> Body:
        """Return a list of statements with checks in the loops that can be undone."""
        pairs = {
            position: check
            for check, position in find_checked_loops(body)
            if _can_fuse(check, body[position])
        }
        fused = [id(check) for check in pairs.values()]
        return tuple(
            self.fuse(pairs[number], stmt) if number in pairs else map_bodies(stmt, self.body)
            for number, stmt in enumerate(body) if id(stmt) not in fused
        )  # fmt: skip

    def fuse(self, check: Stmt, loop: Stmt) -> Stmt:
        """Return the loop with its checks, each after a test that undoes earlier iterations."""
        assert isinstance(check, For) and isinstance(loop, For)
        before, here = self.fresh.symbol("before"), var(loop.symbol)
        inverse = substitute(tuple(map(_invert, loop.body)), {loop.symbol: var(before)})
        rollback = For(before, loop.lo, here, 1, inverse, span=loop.span)
        guarded_checks = (
            _failing_branch(test, rollback) for test in checks_in_iteration(check, loop.symbol)
        )
        return replace(loop, body=(*guarded_checks, *loop.body))


def _can_fuse(check: For, loop: Stmt) -> bool:
    written = {node.id for node in writes((loop,))}
    return can_roll_back(loop) and written.isdisjoint(node.id for node in reads((check,)))


def _invert(stmt: Stmt) -> Stmt:
    return replace(stmt, op=BACK[stmt.op.name]) if isinstance(stmt, Update) else stmt


def _failing_branch(check: Check, rollback: For) -> Stmt:
    """Return a branch in which a check fails, after the loop that undoes earlier iterations."""
    fails = Apply(OPS["logical_not"], (check.test,), dtypes.bool_)
    failure = replace(check, test=FALSE)
    return If(fails, (rollback, failure), (), check.span)
