"""What the host has to do for a device, and what it had better do: loops with much in their rounds.

It changes nothing.

>>> program = lowered('''
... for t in range(9):
...     y[i] = y[i] * x[i]
... ''', y="f32[9000]", x="f32[9000]")
>>> (loop,) = program.kernels[0].body
>>> is_hosts(loop), is_large(loop, Bounds({}))
(False, True)
"""

from __future__ import annotations

from ..analysis.parallel_band import rounds_of
from ..ir.assignments import Alloc, Let, Permute, Print
from ..ir.bounds import Bounds
from ..ir.loops import For, Stmt, While
from ..ir.walk import bodies, statements
from .barriers import leaves

SMALL = 4096
"""A loop in the order of the program stays in one block if its rounds have so little to do."""


def is_hosts(stmt: Stmt) -> bool:
    """Whether the host has to do a statement, or part of it."""
    if isinstance(stmt, Let) or leaves(stmt):
        return True
    return any(isinstance(inner, Alloc | Permute | Print) for inner in statements((stmt,)))


def is_large(stmt: Stmt, known: Bounds) -> bool:
    """Whether a statement has much to do in each of its rounds, as far as that is `known` of the
    numbers in it."""
    most = _rounds(stmt, known)
    return most is None or most > SMALL


def _rounds(stmt: Stmt, known: Bounds) -> int | None:
    """Return how many rounds the largest nest in a statement has at most, 1 where there is none,
    None where that is not known."""
    if isinstance(stmt, While):
        return None
    count = 1
    if isinstance(stmt, For):
        most = known.most(rounds_of(stmt))
        if most is None:
            return None
        count, known = max(most, 0), known.inside(stmt)
    inside = [_rounds(inner, known) for part in bodies(stmt) for inner in part]
    if None in inside:
        return None
    return count * max((one or 0 for one in inside), default=1)
