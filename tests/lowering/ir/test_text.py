"""Expressions and indices as text: precedence, constants, names."""

from __future__ import annotations

import ast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.expressions import Cast, Expr, Reduce, Select
from plusequals.lowering.ir.indexing import (
    Affine,
    Symbol,
    const,
    floordiv,
    maximum,
    minimum,
    mod,
    multiply,
    var,
)
from plusequals.lowering.ir.ops import OPS, PAIR_OPS
from plusequals.lowering.ir.text import Scope, expr_text, index_text

from .build import aff, ap, bool_, f32, f64, i64, node, num, over, pos, read, rng, symbols

I, J, N = symbols("i j n")
X, Y, Z = (read(node(k, name)) for k, name in enumerate("xyz"))
P, Q = (read(node(k + 3, name, dtype=bool_)) for k, name in enumerate("pq"))


@pytest.mark.parametrize(
    ("expr", "wanted"),
    [
        (ap("add", ap("add", X, Y), Z), "x + y + z"),
        (ap("add", X, ap("add", Y, Z)), "x + (y + z)"),
        (ap("mul", ap("add", X, Y), Z), "(x + y) * z"),
        (ap("add", X, ap("mul", Y, Z)), "x + y * z"),
        (ap("div", X, ap("mul", Y, Z)), "x / (y * z)"),
        (ap("pow", ap("neg", X), ap("neg", Y)), "(-x) ** -y"),
        (ap("neg", ap("pow", X, Y)), "-x ** y"),
        (ap("pow", X, ap("pow", Y, Z)), "x ** y ** z"),
        (ap("pow", ap("pow", X, Y), Z), "(x ** y) ** z"),
        (ap("pow", num(-2.0), X), "(-2.0) ** x"),
        (ap("sub", X, ap("neg", Y)), "x - -y"),
        (ap("eq", ap("lt", X, Y), ap("lt", Y, Z)), "(x < y) == (y < z)"),
        (ap("and", ap("or", P, Q), ap("logical_not", P)), "(p or q) and not p"),
        (ap("logical_not", ap("lt", X, Y)), "not x < y"),
        (ap("eq", ap("logical_not", P), Q), "(not p) == q"),
        (ap("max", X, ap("exp", Y)), "max(x, exp(y))"),
        (Cast(ap("add", X, Y), f64), "f64(x + y)"),
        (Select(P, X, Select(Q, Y, Z)), "x if p else y if q else z"),
        (Select(P, Select(Q, X, Y), Z), "(x if q else y) if p else z"),
        (ap("add", Select(P, X, Y), Z), "(x if p else y) + z"),
        (ap("mul", pos(aff(I) + 1), num(2, i64)), "(i + 1) * 2"),
        (ap("add", pos(aff(I) - 1), num(2, i64)), "i - 1 + 2"),
        (ap("shl", pos(I), ap("add", pos(J), pos(N))), "i << j + n"),
        (
            Reduce(OPS["add"], over(rng(I, 0, 4), where=P), ap("add", X, Y), f32),
            "sum[i in [0, 4) where p](x + y)",
        ),
        (
            Reduce(PAIR_OPS["argmin"], over(rng(I, 0, 4)), X, i64, aff(I) + 1),
            "argmin[i in [0, 4)](x at i + 1)",
        ),
        (read(node(9, "t", 4, 4), aff(I) + 1, read(node(8, "k", dtype=i64))), "t[i + 1, k]"),
    ],
)
def test_parentheses_are_those_that_precedence_needs(expr: Expr, wanted: str) -> None:
    assert expr_text(expr, Scope()) == wanted


@pytest.mark.parametrize(
    ("value", "dtype", "wanted"),
    [
        (0.1, f64, "0.1"),
        (0.10000000149011612, f32, "0.1"),
        (1, f32, "1.0"),
        (0.2001953125, dtypes.bfloat16, "0.20019531"),
        (float("-inf"), f32, "-inf"),
        (float("nan"), f64, "nan"),
        (-0.0, f64, "-0.0"),
        (True, bool_, "True"),
        (-3, i64, "-3"),
        (1 + 2j, dtypes.complex128, "(1+2j)"),
    ],
)
def test_constants_are_short_and_exact(value: complex, dtype: dtypes.DType, wanted: str) -> None:
    assert expr_text(num(value, dtype), Scope()) == wanted


@pytest.mark.parametrize(
    ("index", "wanted"),
    [
        (const(-2), "-2"),
        (var(I) * 2 - var(J) + 1, "2*i - j + 1"),
        (-var(I) + var(J) * 3, "-i + 3*j"),
        (floordiv(var(I) + 1, const(4)), "(i + 1)//4"),
        (mod(var(I), var(N)), "i%n"),
        (multiply(var(I), var(N)) * 2 - 1, "2*(i*n) - 1"),
        (minimum(var(I) * 4 + 4, var(N)), "min(4*i + 4, n)"),
        (maximum(var(I), mod(var(J), var(N) + 1)), "max(j%(n + 1), i)"),
    ],
)
def test_index_text(index: Affine, wanted: str) -> None:
    assert index_text(index, Scope()) == wanted


def test_a_taken_name_gets_a_number() -> None:
    scope, x = Scope(), node(0, "x", 4)
    inner, other = Symbol("i", 7), node(1, "x", 4)
    both = ap("add", read(x, I), read(other, inner))
    assert expr_text(both, scope) == "x[i] + x_2[i_2]"
    assert expr_text(read(x, Symbol("x_2", 9)), scope) == "x[x_2_2]"
    assert expr_text(read(x, inner), Scope()) == "x[i]"


_leaf = st.sampled_from([X, Y, Z])
_real = st.recursive(
    _leaf,
    lambda inner: st.one_of(
        st.builds(ap, st.sampled_from(["add", "sub", "mul", "div", "mod", "pow"]), inner, inner),
        st.builds(ap, st.just("neg"), inner),
        st.builds(lambda p, a, b: Select(p, a, b), st.just(P), inner, inner),
        st.builds(lambda a, b, c, d: Select(ap("lt", a, b), c, d), inner, inner, inner, inner),
    ),
    max_leaves=8,
)


@settings(suppress_health_check=[HealthCheck.too_slow])  # a busy machine
@given(_real)
def test_python_reads_back_the_same_tree(expr: Expr) -> None:
    assert _tree(ast.parse(expr_text(expr, Scope()), mode="eval").body) == _plain(expr)


_PYTHON = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.Mod: "mod",
    ast.Pow: "pow", ast.USub: "neg", ast.Lt: "lt",
}  # fmt: skip


def _tree(tree: ast.expr) -> object:
    match tree:
        case ast.Name(name):
            return name
        case ast.BinOp(left, op, right):
            return (_PYTHON[type(op)], _tree(left), _tree(right))
        case ast.UnaryOp(op, operand):
            return (_PYTHON[type(op)], _tree(operand))
        case ast.Compare(left, [op], [right]):
            return (_PYTHON[type(op)], _tree(left), _tree(right))
        case ast.IfExp(test, yes, no):
            return ("select", _tree(test), _tree(yes), _tree(no))
        case _:
            raise AssertionError(ast.dump(tree))


def _plain(expr: Expr) -> object:
    if isinstance(expr, Select):
        return ("select", _plain(expr.test), _plain(expr.yes), _plain(expr.no))
    if hasattr(expr, "op"):
        return (expr.op.name, *map(_plain, expr.args))
    return expr.node.label
