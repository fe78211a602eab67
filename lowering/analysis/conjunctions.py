"""Conjunctions as sequences of tests, and as nested branches.

    if a and b: body    becomes    if a: if b: body

>>> from plusequals.lowering.ir.expressions import Const
>>> from plusequals.lowering.ir import dtypes
>>> a, b = Const(True, dtypes.bool_), Const(False, dtypes.bool_)
>>> len(split_conjunction(Select(a, b, FALSE)))
2
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from ..ir import dtypes
from ..ir.algebra import FALSE
from ..ir.expressions import Apply, Expr, Select
from .guarded_reads import negate


def split_conjunction(test: Expr) -> tuple[Expr, ...]:
    """Return the conjuncts of a test, in the order in which they are evaluated."""
    match test:
        case Select(first, second, no) if no == FALSE:
            return (*split_conjunction(first), *split_conjunction(second))
        case Select(first, no, second) if no == FALSE:
            return (negate(first), *split_conjunction(second))
        case Apply(op, (first, second), dtype) if op.name in ("and", "bitand") and (
            dtype is dtypes.bool_
        ):
            return (*split_conjunction(first), *split_conjunction(second))
        case _:
            return (test,)


def conjunction(tests: Sequence[Expr]) -> Expr:
    """Return the conjunction of tests; one is evaluated only where those before it hold."""
    return reduce(lambda last, first: Select(first, last, FALSE), tests[-2::-1], tests[-1])
