"""What loops surely do in their first rounds, however early they are left.

    for k in 0..30: s = f(k); if t(s): break
    writes `s`, whatever the test says; a loop that may have no round, or that may be left before,
    does not

>>> from plusequals.lowering.analysis.accesses import accesses
>>> program = lowered('''
... for k in range(1, 4):
...     y[k + 2] = x[k]
...     if x[k] > 2: break
... ''', y="f32[8]", x="f32[8]")
>>> loop = program.kernels[0].body[0]
>>> index = accesses((loop,)).of(program.parameters[0].node)[0].index
>>> in_first_rounds((loop,), (0,), index, ())
((), (3,))
>>> in_first_rounds((loop,), (4,), index, ()) is None  # behind the jump
True
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..ir.assignments import Break, Continue
from ..ir.expressions import Index
from ..ir.indexing import Affine, Range, Symbol, substitute
from ..ir.loops import For, Stmt
from .effects import summary
from .subscripts import is_least, ranges


def in_first_rounds(
    around: Sequence[Stmt], places: Sequence[int], index: Sequence[Index], known: tuple[Range, ...]
) -> tuple[tuple[For, ...], tuple[Affine, ...]] | None:
    """Return the loops around an access and its index, both in the first rounds of those of the
    loops that may be left, or that the index says nothing of; None where they may not come to it.

    `places` says of each loop how many statements of its body are before the access, `known` is
    what is known of the symbols around all of them.
    """
    loops = [stmt for stmt in around if isinstance(stmt, For)]
    wanted = [at for at in index if isinstance(at, Affine)]
    if not loops or len(loops) < len(around) or len(wanted) < len(index):
        return None
    named = summary(loops[0]).bound - {loop.symbol for loop in loops}
    used = {symbol for at in wanted for symbol in at.symbols()}
    firsts: dict[Symbol, Affine] = {}
    left: list[For] = []
    for loop, place in zip(loops, places, strict=True):
        here = replace(loop, lo=substitute(loop.lo, firsts), hi=substitute(loop.hi, firsts))
        if loop.symbol in used and not _jumps(loop):
            left.append(here)
        elif begins(here, place, known):
            firsts[loop.symbol] = here.lo
        else:
            return None
    wanted = [substitute(at, firsts) for at in wanted]
    ends = [end for loop in left for end in (loop.lo, loop.hi)]
    if not firsts or any(one.symbols() & named for one in (*wanted, *ends)):
        return None  # a name has another value in each round
    return tuple(left), tuple(wanted)


def begins(loop: For, count: int, known: tuple[Range, ...]) -> bool:
    """Whether a loop surely has a round, the first of which does what follows so many statements.

    `known` is what is known of the symbols around the loop.
    """
    (reach,) = ranges((loop,))
    return not any(map(_jumps, loop.body[:count])) and is_least(reach.hi - reach.lo - 1, known)


def _jumps(stmt: Stmt) -> bool:
    """Whether there is a jump in a statement, whichever loop it is for."""
    return not summary(stmt).kinds.isdisjoint((Break, Continue))
