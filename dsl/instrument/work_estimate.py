"""How much a call computes: whether compiling its code soon saves more than running it fast.

>>> import numpy as np
>>> import plusequals as pe
>>> f = pe.cd_from_source('''
... def f(y, x):
...     for t in range(10):
...         y[i] += sum(x[i, k])
... ''')
>>> points(f.procedure(np.zeros(4), np.zeros((4, 5))).body)
240.0
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, prod

from ...lowering.ir.assignments import Assign, For, Procedure, While
from ...lowering.ir.expressions import Domain, Expr, Reduce, children
from ...lowering.ir.indexing import Affine
from ...lowering.ir.loops import AnyStatement
from ...lowering.ir.walk import bodies

FEW = 1 << 17
"""So many elements and terms take less time than a compiler that tries to make them take less."""


def is_quick(procedure: Procedure) -> bool:
    """Whether a call computes few elements and terms; not where only the run knows how many."""
    return points(procedure.body) <= FEW


def points(body: Iterable[AnyStatement]) -> float:
    """Return how many elements and terms statements compute, infinity where that is not known."""
    return sum(map(_points, body))


def _points(stmt: AnyStatement) -> float:
    match stmt:
        case Assign(value=value, free=free, reduced=reduced):
            return _size(free) * _size(reduced) * (1 + _terms(value))
        case For(lo=lo, hi=hi, step=step, body=body):
            return _rounds(lo, hi) / abs(step) * points(body)
        case While():
            return inf
        case _:
            return sum(map(points, bodies(stmt)))


def _terms(expr: Expr) -> float:
    """Return how many terms the reductions in an expression have."""
    inner = sum(map(_terms, children(expr)))
    return _size(expr.domain) * (1 + inner) if isinstance(expr, Reduce) else inner


def _size(domain: Domain) -> float:
    return prod(_rounds(one.lo, one.hi) for one in domain.ranges)


def _rounds(lo: Affine, hi: Affine) -> float:
    rounds = (hi - lo).constant
    return inf if rounds is None else abs(rounds)
