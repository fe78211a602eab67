"""Work estimate of a call: whether fast compilation saves more time than fast code.

>>> import numpy as np
>>> import plusequals as pe
>>> f = pe.cd_from_source('''
... def f(y, x):
...     for t in range(10):
...         y[i] += sum(x[i, k])
... ''')
>>> count_points(f.procedure(np.zeros(4), np.zeros((4, 5))).body)
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

MAX_QUICK_POINTS = 1 << 17
"""Up to so many elements and terms, optimizing takes longer than it saves."""


def is_quick(procedure: Procedure) -> bool:
    """Whether a call computes few elements and terms; not where their number is dynamic."""
    return count_points(procedure.body) <= MAX_QUICK_POINTS


def count_points(body: Iterable[AnyStatement]) -> float:
    """Return the number of elements and terms that statements compute, infinity if unknown."""
    return sum(map(_statement_points, body))


def _statement_points(stmt: AnyStatement) -> float:
    match stmt:
        case Assign(value=value, free=free, reduced=reduced):
            return _size(free) * _size(reduced) * (1 + _term_count(value))
        case For(lo=lo, hi=hi, step=step, body=body):
            return _iterations(lo, hi) / abs(step) * count_points(body)
        case While():
            return inf
        case _:
            return sum(map(count_points, bodies(stmt)))


def _term_count(expr: Expr) -> float:
    """Return the number of terms of the reductions in an expression."""
    inner = sum(map(_term_count, children(expr)))
    return _size(expr.domain) * (1 + inner) if isinstance(expr, Reduce) else inner


def _size(domain: Domain) -> float:
    return prod(_iterations(r.lo, r.hi) for r in domain.ranges)


def _iterations(lo: Affine, hi: Affine) -> float:
    distance = (hi - lo).constant
    return inf if distance is None else abs(distance)
