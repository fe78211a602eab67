"""Vectorizable terms: those made of adjacent elements by operations that vectors have.

>>> i = Symbol("i", 0)
>>> from plusequals.lowering.ir.indexing import const, var
>>> from plusequals.lowering.ir.node import Node
>>> from plusequals.lowering.ir.ops import OPS
>>> x = Node(0, "x", (const(9),), dtypes.float32)
>>> near, far = Read(x, (var(i) + 1,)), Read(x, (var(i) * 2,))
>>> is_vector_term(Apply(OPS["mul"], (near, near), near.dtype), i), is_vector_term(far, i)
(True, False)
"""

from __future__ import annotations

from ...analysis.contraction import VECTOR_OPS
from ...analysis.subscripts import stride
from ...ir import dtypes
from ...ir.expressions import Apply, Cast, Const, Expr, Position, Read
from ...ir.indexing import Affine, Symbol

REALS = (dtypes.float32, dtypes.float64)
_WHOLE = frozenset(("add", "sub", "mul", "neg", "bitand", "bitor", "bitxor", "invert"))
_TESTS = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))


def is_vector_term(value: Expr, symbol: Symbol) -> bool:
    """Whether terms of consecutive iterations are vectors: of elements with stride 0 or 1, by
    vector operations."""
    if value.dtype is dtypes.bool_ and isinstance(value, Apply):
        return value.op.name in _TESTS and all(is_vector_term(arg, symbol) for arg in value.args)
    is_real = value.dtype in REALS
    if not is_real and value.dtype.kind not in "biu":
        return False
    match value:
        case Const():
            return True
        case Position(at):
            return symbol not in at.symbols()
        case Read(node, index):
            plain = all(isinstance(at, Affine) for at in index)
            return plain and stride(node, index, symbol) in (0, 1)
        case Apply(op, args):
            is_vector_op = op.name in (VECTOR_OPS if is_real else _WHOLE)
            return is_vector_op and all(is_vector_term(arg, symbol) for arg in args)
        case Cast(inner, dtype):
            is_widening = inner.dtype is dtypes.float32 or not is_real
            return is_widening and inner.dtype.kind == dtype.kind and is_vector_term(inner, symbol)
        case _:
            return False
