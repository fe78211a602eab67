"""Products of factors, and how they are written."""

from __future__ import annotations

from plusequals.lowering.adjoint.products import Product, combined, innermost, total
from plusequals.lowering.adjoint.rules import apply, number
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.expressions import Expr, Read, Select
from plusequals.lowering.ir.indexing import Symbol, const, var
from plusequals.lowering.ir.node import Node
from plusequals.lowering.ir.text import Scope, expr_text

I, J = Symbol("i", 1), Symbol("j", 2)
X = Node(1, "x", (const(4), const(3)), dtypes.float64)
R = Node(2, "r", (const(4),), dtypes.float64)
ONE = Product(dtypes.float64)


def x() -> Expr:
    return Read(X, (var(I), var(J)))


def r() -> Expr:
    return Read(R, (var(I),))


def text(expr: Expr) -> str:
    return expr_text(expr, Scope())


def test_an_expression_is_taken_apart() -> None:
    whole = apply("neg", apply("div", apply("mul", x(), number(3.0, dtypes.float64)), r()))
    product = ONE.times(whole)
    assert (product.factor, product.over, product.under) == (-3.0, (x(),), (r(),))
    assert text(product.expr()) == "-(3.0 * x[i, j] / r[i])"
    assert text(ONE.divided(r()).expr()) == "1.0 / r[i]"


def test_divisors_that_the_innermost_loop_does_not_change_are_factors() -> None:
    product = ONE.times(x()).divided(r()).divided(r())
    assert text(product.expr(J)) == "x[i, j] * (1.0 / r[i]) * (1.0 / r[i])"
    assert text(product.expr(I)) == "x[i, j] / r[i] / r[i]"


def test_factors_outside_of_a_sum() -> None:
    inside, outside = ONE.times(x()).times(number(2.0, dtypes.float64)).divided(r()).split({J})
    assert text(inside.expr()) == "x[i, j]" and text(outside.expr()) == "2.0 / r[i]"


def test_gates_are_outermost() -> None:
    zero, one = number(0.0, dtypes.float64), number(1.0, dtypes.float64)
    gate = Select(apply("gt", r(), zero), one, zero)
    assert text(ONE.times(gate).times(x()).expr()) == "x[i, j] if r[i] > 0.0 else 0.0"


def test_equal_products_are_added_up() -> None:
    products = combined([ONE.times(x()), ONE.times(r()), ONE.times(x())])
    assert text(total(products, None)) == "2.0 * x[i, j] + r[i]"


def test_the_innermost_loop_is_that_of_most_last_axes() -> None:
    assert innermost((x(), x(), r()), {I, J}) == J
    assert innermost((x(), r(), r()), {I}) == I
    assert innermost((), {I}) is None
