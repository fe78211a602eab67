"""Formation of fused multiply-adds: a product is rounded once, together with its sum.

Changes: `x += product(a, b)` becomes `x = fma(a, b, x)`. `set_reduction_order` decided which
products these are, and `use_real_form` those of complex numbers, whose parts are added one by one.

Precondition: none. Postcondition: of every sum either all terms are fused or none: `product` is an
operation of its own, which no pass separates from its sum, so that sizes, traces and the shape of
loops change no bit.

>>> from plusequals.lowering.passes.reduction_order import set_reduction_order
>>> show(lambda program: form_fma(set_reduction_order(program, True)), "y[i] = sum(x[i, j] * w[j])",
...      y="f32[8]", x="f32[8, 9]", w="f32[9]")
for i in 0..8:
    y[i] = 0.0
    for j in 0..9:
        y[i] = fma(x[i, j], w[j], y[i])
"""

from __future__ import annotations

from ..analysis.complex_parts import add_product, is_complex, parts_of
from ..ir.expressions import Apply, Read
from ..ir.loops import Program, Stmt, Store, Update
from ..ir.ops import OPS
from ..ir.rewrite import map_kernels, map_statements


def form_fma(program: Program) -> Program:
    """Return the program in which each `product` is rounded once, together with the sum it is added
    to."""
    return map_kernels(program, lambda body: map_statements(body, _fuse_update))


def _fuse_update(stmt: Stmt) -> tuple[Stmt, ...]:
    match stmt:
        case Update(access, op, Apply(product, args, dtype), None, span) if (
            op.name == "add" and product.name == "product"
        ):
            before = Read(access.node, access.index, span)
            if is_complex(dtype):
                left, right = args
                return (
                    Store(
                        access, add_product(*map(parts_of, (before, left, right))).joined(), span
                    ),
                )
            return (Store(access, Apply(OPS["fma"], (*args, before), dtype), span),)
        case _:
            return (stmt,)
