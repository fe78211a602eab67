"""What the host has to do for a device, and what it had better do: loops with much in their rounds.

It changes nothing.

>>> program = lowered('''
... for t in range(9):
...     y[i] = y[i] * x[i]
... ''', y="f32[9000]", x="f32[9000]")
>>> (loop,) = program.kernels[0].body
>>> is_hosts(loop), is_large(loop)
(False, True)
"""

from __future__ import annotations

from ..ir.assignments import Alloc, Let, Permute, Print
from ..ir.loops import For, Stmt, While
from ..ir.walk import statements
from .meet import leaves
from .nests import trips, within

SMALL = 4096
"""A loop in the order of the program stays in one block if its rounds have so little to do."""


def is_hosts(stmt: Stmt) -> bool:
    """Whether the host has to do a statement, or part of it."""
    if isinstance(stmt, Let) or leaves(stmt):
        return True
    return any(isinstance(inner, Alloc | Permute | Print) for inner in statements((stmt,)))


def is_large(stmt: Stmt) -> bool:
    """Whether a statement has much to do in each of its rounds."""
    total = 1
    for inner in statements((stmt,)):
        if isinstance(inner, While):
            return True
        if isinstance(inner, For):
            count = trips(inner)
            if count is None:
                return True
            total = max(total, count * within(inner.body))
    return total > SMALL
