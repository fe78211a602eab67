"""Cost of computing an expression, against storing its value: the numbers behind `inline`.

The unit is about one addition; a division counts as 4 and a function such as `exp` as 16.

>>> from plusequals.lowering.ir import dtypes, expressions, node, ops
>>> x = expressions.Read(node.Node(0, "x", (), dtypes.float32), ())
>>> cost(expressions.Apply(ops.OPS["mul"], (x, x), dtypes.float32))
1
"""

from __future__ import annotations

from collections.abc import Iterable

from .. import thresholds
from ..ir.expressions import Apply, Cast, Const, Dynamic, Expr, Position, Read, Select
from ..ir.loops import For, Stmt, While
from ..ir.ops import Op


def estimate_iterations(inside: Iterable[Stmt]) -> int:
    """Return how often the innermost body runs, with `ASSUMED_SIZE` for sizes that are not
    known."""
    total = 1
    for stmt in inside:
        if isinstance(stmt, For):
            gap = (stmt.hi - stmt.lo).constant
            total *= thresholds.ASSUMED_SIZE if gap is None else max(0, -(-gap // stmt.step))
        elif isinstance(stmt, While):
            total *= thresholds.ASSUMED_SIZE
    return total


LIGHT = frozenset(
    "max min fmax fmin abs neg sign floor ceil trunc rint relu relu_gate sat01 sat01_gate copysign "
    "signbit isnan isinf isfinite real imag conj complex invert shl shr eq ne fma".split()
)
HEAVY = frozenset("div floordiv mod fmod sqrt recip recip_sqrt".split())


def cost(expr: Expr) -> int:
    """Return about how many additions an expression is worth; scalars cost nothing."""
    match expr:
        case Const() | Position():
            return 0
        case Read(node, index):
            inner = sum(cost(i.value) for i in index if isinstance(i, Dynamic))
            return inner + (thresholds.READ_COST if node.rank else 0)
        case Apply(op, args, _):
            return function_cost(op) + sum(map(cost, args))
        case Cast(value, dtype):
            return cost(value) + (1 if dtype.compute != dtype else 0)
        case Select(test, yes, no):
            return 1 + cost(test) + cost(yes) + cost(no)
        case _:
            raise AssertionError("reductions are gone before loops are made")


def function_cost(op: Op) -> int:
    """Return about how many additions an operation is worth, without its operands."""
    if op.name in HEAVY:
        return 4
    return 1 if op.infix or op.name in LIGHT else 16
