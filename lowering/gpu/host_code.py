"""Statements that only the host can execute, and loops that are better launched by the host.

Analysis only.

>>> program = lowered('''
... for t in range(9):
...     y[i] = y[i] * x[i]
... ''', y="f32[9000]", x="f32[9000]")
>>> (loop,) = program.kernels[0].body
>>> is_host_only(loop), has_many_iterations(loop, Bounds({}))
(False, True)
"""

from __future__ import annotations

from .. import thresholds
from ..analysis.parallel_band import trip_count
from ..ir.assignments import Alloc, Let, Permute, Print
from ..ir.bounds import Bounds
from ..ir.loops import For, Stmt, While
from ..ir.walk import bodies, statements
from .barriers import has_jump


def is_host_only(stmt: Stmt) -> bool:
    """Whether a statement, or one in it, can only be executed by the host."""
    if isinstance(stmt, Let) or has_jump(stmt):
        return True
    return any(isinstance(inner, Alloc | Permute | Print) for inner in statements((stmt,)))


def has_many_iterations(stmt: Stmt, bounds: Bounds) -> bool:
    """Whether the largest nest of a statement may have many iterations, within `bounds`."""
    count = _max_iterations(stmt, bounds)
    return count is None or count > thresholds.MAX_SEQUENTIAL_POINTS


def _max_iterations(stmt: Stmt, bounds: Bounds) -> int | None:
    """Return the most iterations of a nest in a statement, 1 without a nest; None if unbounded."""
    if isinstance(stmt, While):
        return None
    count = 1
    if isinstance(stmt, For):
        most = bounds.most(trip_count(stmt))
        if most is None:
            return None
        count, bounds = max(most, 0), bounds.inside(stmt)
    nested = [_max_iterations(inner, bounds) for body in bodies(stmt) for inner in body]
    if None in nested:
        return None
    return count * max((iterations or 0 for iterations in nested), default=1)
