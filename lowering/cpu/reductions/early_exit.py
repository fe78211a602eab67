"""Early exits of `any` and `all`: a test of the result between blocks of iterations.

Changes: loops that do nothing but `or` or `and` into one accumulator are strip-mined. Blocks have
no exit, so that compilers vectorize them; after a block all loops are left where the result is
final:

    for i: found or= test(i)
    for block: for i in the block: found or= test(i)
               if found: break

Precondition: serial, perfectly nested loops of which the accumulator's subscripts are invariant;
with static sizes, enough iterations. Postcondition: bit-identical, since the iterations left out
could not change the result, and write nothing else.

>>> show(lambda program: insert_early_exits(program, Target(schedule=True)),
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

from ... import thresholds
from ...ir import dtypes
from ...ir.assignments import Break
from ...ir.decision import Decided, Decision, Reason
from ...ir.expressions import Apply, Expr, Read
from ...ir.indexing import Affine, minimum, var
from ...ir.loops import Comment, For, If, Program, Stmt, Update
from ...ir.ops import OPS
from ...target import Target
from ...transform.outermost import Body, OutermostRewriter


class EarlyExitReason(Reason):
    """Why loops may be left early."""

    KNOWN = "no later term can change it"


def insert_early_exits(program: Program, target: Target) -> Decided:
    """Return the program with early exits from `any` and `all`, and the decisions."""
    return _EarlyExits.on(program, target)


class _EarlyExits(OutermostRewriter):
    """The insertion of early exits in one program."""

    __slots__ = ()

    def nest(self, loop: For, outer: tuple[For, ...]) -> Body | None:
        """Return loops with early exits; None where they stay as they are."""
        loops, update = _match_reduction(loop)
        if update is None:
            return None
        block = _choose_block(loops)
        if block is None:
            return None
        self.decisions.append(
            Decision("answered", EarlyExitReason.KNOWN, update.access.node, span=update.span)
        )
        level, step = block
        leave = If(_is_final(update), (Break(),), (), update.span)
        nest: Stmt = self.in_blocks(loops[level], step, leave)
        for enclosing in loops[:level][::-1]:
            comments = tuple(stmt for stmt in enclosing.body if isinstance(stmt, Comment))
            nest = replace(enclosing, body=(*comments, nest, leave))
        return (nest,)

    def in_blocks(self, loop: For, step: int, leave: Stmt) -> For:
        """Return a loop in blocks of so many iterations, with an exit after each."""
        block = self.fresh.symbol("block")
        end = var(block) + step
        trip_count = (loop.hi - loop.lo).constant
        if trip_count is None or trip_count % step:
            end = minimum(loop.hi, end)
        part = replace(loop, lo=var(block), hi=end)
        return For(block, loop.lo, loop.hi, step, (part, leave), span=loop.span)


def _match_reduction(loop: For) -> tuple[tuple[For, ...], Update | None]:
    """Return perfectly nested loops, outermost first, around one logical reduction, and its
    update."""
    loops: list[For] = []
    stmt: Stmt = loop
    while isinstance(stmt, For) and stmt.kind == "serial" and stmt.step == 1:
        loops.append(stmt)
        inside = [nested for nested in stmt.body if not isinstance(nested, Comment)]
        if len(inside) != 1:
            return (), None
        stmt = inside[0]
    if not isinstance(stmt, Update) or stmt.op.name not in ("or", "and") or stmt.pair is not None:
        return (), None
    index = stmt.access.index
    symbols = {level.symbol for level in loops}
    is_invariant = all(isinstance(at, Affine) and symbols.isdisjoint(at.symbols()) for at in index)
    return (tuple(loops), stmt) if is_invariant else ((), None)


def _choose_block(loops: tuple[For, ...]) -> tuple[int, int] | None:
    """Return which loop is strip-mined, and its block size; None where all are short."""
    inside = 1
    for level in range(len(loops) - 1, -1, -1):
        trip_count = (loops[level].hi - loops[level].lo).constant
        if trip_count is None or trip_count * inside > thresholds.EARLY_EXIT_BLOCK_ITERATIONS:
            return level, max(1, thresholds.EARLY_EXIT_BLOCK_ITERATIONS // inside)
        inside *= max(1, trip_count)
    return None


def _is_final(update: Update) -> Expr:
    """Return whether the accumulator has its final value."""
    result = Read(update.access.node, update.access.index, update.span)
    if update.op.name == "or":
        return result
    return Apply(OPS["logical_not"], (result,), dtypes.bool_)
