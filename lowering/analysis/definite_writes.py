"""Definite writes: what loops surely do in their first iterations, however early they are left.

    for k in 0..30: s = f(k); if t(s): break
    writes `s`, whatever the test says; a loop that may have no iteration, or that may be left
    before, does not

>>> from plusequals.lowering.analysis.accesses import collect_accesses
>>> program = lowered('''
... for k in range(1, 4):
...     y[k + 2] = x[k]
...     if x[k] > 2: break
... ''', y="f32[8]", x="f32[8]")
>>> loop = program.kernels[0].body[0]
>>> index = collect_accesses((loop,)).of(program.parameters[0].node)[0].index
>>> in_first_iterations((loop,), (0,), index, ())
((), (3,))
>>> in_first_iterations((loop,), (4,), index, ()) is None  # after the jump
True
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..ir.assignments import Break, Continue
from ..ir.expressions import Index
from ..ir.indexing import Affine, Range, Symbol, substitute
from ..ir.loops import For, Stmt
from .effects import summarize
from .subscripts import is_nonnegative, ranges


def in_first_iterations(
    enclosing: Sequence[Stmt],
    positions: Sequence[int],
    index: Sequence[Index],
    domain: tuple[Range, ...],
) -> tuple[tuple[For, ...], tuple[Affine, ...]] | None:
    """Return the loops around an access and its index, both for the first iterations of those loops
    that may be left early or that the index does not use; None where these may not reach it.

    `positions` says of each loop how many statements of its body are before the access, `domain`
    are the ranges of the symbols around all of them.
    """
    loops = [stmt for stmt in enclosing if isinstance(stmt, For)]
    subscripts = [at for at in index if isinstance(at, Affine)]
    if not loops or len(loops) < len(enclosing) or len(subscripts) < len(index):
        return None
    bound = summarize(loops[0]).bound - {loop.symbol for loop in loops}
    used = {symbol for at in subscripts for symbol in at.symbols()}
    first_values: dict[Symbol, Affine] = {}
    remaining: list[For] = []
    for loop, position in zip(loops, positions, strict=True):
        current = replace(
            loop, lo=substitute(loop.lo, first_values), hi=substitute(loop.hi, first_values)
        )
        if loop.symbol in used and not _has_jump(loop):
            remaining.append(current)
        elif reaches_first_iteration(current, position, domain):
            first_values[loop.symbol] = current.lo
        else:
            return None
    subscripts = [substitute(at, first_values) for at in subscripts]
    ends = [end for loop in remaining for end in (loop.lo, loop.hi)]
    if not first_values or any(expr.symbols() & bound for expr in (*subscripts, *ends)):
        return None  # the symbol has another value in each iteration
    return tuple(remaining), tuple(subscripts)


def reaches_first_iteration(loop: For, count: int, domain: tuple[Range, ...]) -> bool:
    """Whether a loop surely has an iteration, the first of which reaches what follows its first
    `count` statements.

    `domain` are the ranges of the symbols around the loop.
    """
    (reach,) = ranges((loop,))
    return not any(map(_has_jump, loop.body[:count])) and is_nonnegative(
        reach.hi - reach.lo - 1, domain
    )


def _has_jump(stmt: Stmt) -> bool:
    """Whether there is a jump in a statement, of whichever loop."""
    return not summarize(stmt).kinds.isdisjoint((Break, Continue))
