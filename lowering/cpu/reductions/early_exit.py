"""Questions whose answer may be known early: `any` and `all` look at some rounds at a time.

Changes: loops that do nothing but `or` or `and` into one cell take the rounds of one of them in
blocks, without a way out, of which compilers make vectors. Behind a block all of them are left
where the cell has its answer:

    for i: found or= test(i)
    for block: for i in the block: found or= test(i)
               if found: break

Needs: serial loops, one inside the other, that the cell does not move with; where their sizes are
known, enough rounds. Guarantees: not a bit changes, since what is left out could not change the
answer, and writes nothing else.

>>> show(lambda program: answered(program, Target(schedule=True)),
...      "y[0] = any(x[i] > 0)", y="b[1]", x="f32[9999]")
y[0] = False
for block in 0..9999 step 1024:
    for i in block..min(9999, block + 1024):
        y[0] or= x[i] > 0.0
    if y[0]:
        break
"""

from __future__ import annotations

from dataclasses import replace

from ...ir import dtypes
from ...ir.assignments import Break
from ...ir.decision import Decided, Decision, Reason
from ...ir.expressions import Apply, Expr, Read
from ...ir.indexing import Affine, minimum, var
from ...ir.loops import Comment, For, If, Program, Stmt, Update
from ...ir.ops import OPS
from ...target import Target
from ...transform.outermost import Body, Outermost

BLOCK = 1024
"""So many rounds, of all loops that are left together, are between two looks at the answer."""


class Early(Reason):
    """Why loops may be left."""

    KNOWN = "what is left to look at could not change it"


def answered(program: Program, target: Target) -> Program:
    """Return the program with questions that are left when they are answered."""
    return until_answered(program, target).program


def until_answered(program: Program, target: Target) -> Decided:
    """Return the program with questions that are left when they are answered, and which."""
    return _Work.on(program, target)


class _Work(Outermost):
    """The work on one program."""

    __slots__ = ()

    def nest(self, loop: For, outer: tuple[For, ...]) -> Body | None:
        """Return loops that are left early, None where they stay as they are."""
        loops, update = _question(loop)
        if update is None:
            return None
        at = _cut(loops)
        if at is None:
            return None
        self.decisions.append(
            Decision("answered", Early.KNOWN, update.access.node, span=update.span)
        )
        level, step = at
        leave = If(_known(update), (Break(),), (), update.span)
        made: Stmt = self.in_blocks(loops[level], step, leave)
        for one in loops[:level][::-1]:
            said = tuple(stmt for stmt in one.body if isinstance(stmt, Comment))
            made = replace(one, body=(*said, made, leave))
        return (made,)

    def in_blocks(self, loop: For, step: int, leave: Stmt) -> For:
        """Return a loop in blocks of so many rounds, left behind one of them."""
        block = self.fresh.symbol("block")
        end = var(block) + step
        rounds = (loop.hi - loop.lo).constant
        if rounds is None or rounds % step:
            end = minimum(loop.hi, end)
        part = replace(loop, lo=var(block), hi=end)
        return For(block, loop.lo, loop.hi, step, (part, leave), span=loop.span)


def _question(loop: For) -> tuple[tuple[For, ...], Update | None]:
    """Return loops, outermost first, that do nothing but ask one question, and the statement."""
    loops: list[For] = []
    stmt: Stmt = loop
    while isinstance(stmt, For) and stmt.kind == "serial" and stmt.step == 1:
        loops.append(stmt)
        inside = [one for one in stmt.body if not isinstance(one, Comment)]
        if len(inside) != 1:
            return (), None
        stmt = inside[0]
    if not isinstance(stmt, Update) or stmt.op.name not in ("or", "and") or stmt.pair is not None:
        return (), None
    index = stmt.access.index
    moved = {one.symbol for one in loops}
    fixed = all(isinstance(at, Affine) and moved.isdisjoint(at.symbols()) for at in index)
    return (tuple(loops), stmt) if fixed else ((), None)


def _cut(loops: tuple[For, ...]) -> tuple[int, int] | None:
    """Return which loop is taken in blocks, and of how many rounds; None where all are short."""
    inside = 1
    for level in range(len(loops) - 1, -1, -1):
        rounds = (loops[level].hi - loops[level].lo).constant
        if rounds is None or rounds * inside > BLOCK:
            return level, max(1, BLOCK // inside)
        inside *= max(1, rounds)
    return None


def _known(update: Update) -> Expr:
    """Return whether the cell has the answer that nothing changes."""
    found = Read(update.access.node, update.access.index, update.span)
    if update.op.name == "or":
        return found
    return Apply(OPS["logical_not"], (found,), dtypes.bool_)
