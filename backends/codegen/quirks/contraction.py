"""Where products are rounded by a call: compilers round them together with what takes them.

gcc 12 makes vectors of neighbouring elements of which some are differences and others sums by one
instruction. Where these are of products, that rounds once, whatever `-ffp-contract` says:

    y[2*i] = a[2*i] * b - c[i];  y[2*i + 1] = a[2*i + 1] * b + c[i]

`rounded(x)` is x, and nothing that a compiler may join with an addition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ....lowering.ir import dtypes
from ....lowering.ir.expressions import Apply, Expr, Read, Select, walk
from ....lowering.ir.loops import Program, Stmt, Store, Update
from ....lowering.ir.walk import expressions_of, statements

REALS = (dtypes.float32, dtypes.float64)
_OTHERS = frozenset(("add", "sub", "div", "min", "max", "floor", "ceil", "rint", "abs", "sqrt",
                     "real", "imag"))  # fmt: skip
"""Operations that end with no product."""


def alternates(program: Program) -> bool:
    """Whether neighbouring elements, or sums side by side, may be sums and differences of products.

    It takes two statements that store into one array, or add to variables, or a choice, or a
    complex number that is put together.
    """
    inside = [stmt for kernel in program.kernels for stmt in statements(kernel.body)]
    found = [part for stmt in inside for expr in expressions_of(stmt) for part in walk(expr)]
    twice = any(count > 1 for count in Counter(_places(inside)).values())
    both = any(isinstance(e, Apply) and e.op.name == "complex" for e in found)
    if not (twice or both or any(isinstance(expr, Select) for expr in found)):
        return False
    applied = [expr for expr in found if isinstance(expr, Apply) and expr.dtype in REALS]
    less = any(expr.op.name == "sub" and may_be_product(expr.args[0]) for expr in applied)
    if not (less or any(expr.op.name == "neg" for expr in applied)):
        return False
    more = any(expr.op.name == "add" and any(map(may_be_product, expr.args)) for expr in applied)
    return more or any(isinstance(s, Update) and may_be_product(s.value) for s in inside)


def _places(inside: list[Stmt]) -> Iterator[int]:
    """Yield what each statement stores into: one number for all variables that are added to."""
    for stmt in inside:
        match stmt:
            case Update(access) if not access.index:
                yield -1
            case Store(access) | Update(access) if access.index:
                yield access.node.id


def is_product(expr: Expr) -> bool:
    """Whether an expression is computed by what ends with a product, or may do so."""
    return isinstance(expr, Apply) and expr.dtype in REALS and expr.op.name not in _OTHERS


def may_be_product(expr: Expr) -> bool:
    """Whether it is one, or a variable that may hold one."""
    return is_product(expr) or (isinstance(expr, Read) and not expr.index)
