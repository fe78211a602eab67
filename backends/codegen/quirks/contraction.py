"""Floating-point contraction despite `-ffp-contract=off`: products that a call has to round.

gcc 12 vectorizes neighbouring elements that are alternately differences and sums with one
instruction (`fmaddsub`). For sums of products, that rounds once, whatever `-ffp-contract` says:

    y[2*i] = a[2*i] * b - c[i];  y[2*i + 1] = a[2*i + 1] * b + c[i]

`rounded(x)` is x, in a form that a compiler cannot contract with an addition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ....lowering.ir import dtypes
from ....lowering.ir.expressions import Apply, Expr, Read, Select, walk
from ....lowering.ir.loops import Program, Stmt, Store, Update
from ....lowering.ir.walk import expressions_of, statements

REALS = (dtypes.float32, dtypes.float64)
_NO_PRODUCTS = frozenset(("add", "sub", "div", "min", "max", "floor", "ceil", "rint", "abs", "sqrt",
                     "real", "imag"))  # fmt: skip
"""Operations that do not end with a product."""


def may_alternate(program: Program) -> bool:
    """Whether adjacent elements or accumulators may be sums and differences of products.

    It takes two statements that store into one array or update scalars, or a select, or the
    construction of a complex number.
    """
    stmts = [stmt for kernel in program.kernels for stmt in statements(kernel.body)]
    exprs = [part for stmt in stmts for expr in expressions_of(stmt) for part in walk(expr)]
    has_shared_target = any(count > 1 for count in Counter(_targets(stmts)).values())
    has_complex = any(isinstance(e, Apply) and e.op.name == "complex" for e in exprs)
    if not (has_shared_target or has_complex or any(isinstance(expr, Select) for expr in exprs)):
        return False
    applied = [expr for expr in exprs if isinstance(expr, Apply) and expr.dtype in REALS]
    subtracts = any(expr.op.name == "sub" and may_be_product(expr.args[0]) for expr in applied)
    if not (subtracts or any(expr.op.name == "neg" for expr in applied)):
        return False
    adds = any(expr.op.name == "add" and any(map(may_be_product, expr.args)) for expr in applied)
    return adds or any(isinstance(s, Update) and may_be_product(s.value) for s in stmts)


def _targets(stmts: list[Stmt]) -> Iterator[int]:
    """Yield the node id that each statement stores into, -1 for all scalar accumulators."""
    for stmt in stmts:
        match stmt:
            case Update(access) if not access.index:
                yield -1
            case Store(access) | Update(access) if access.index:
                yield access.node.id


def is_product(expr: Expr) -> bool:
    """Whether the evaluation of an expression ends, or may end, with a product."""
    return isinstance(expr, Apply) and expr.dtype in REALS and expr.op.name not in _NO_PRODUCTS


def may_be_product(expr: Expr) -> bool:
    """Whether an expression is a product, or a scalar that may hold one."""
    return is_product(expr) or (isinstance(expr, Read) and not expr.index)
