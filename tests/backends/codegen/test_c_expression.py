"""Expressions and indices as C text: right, and as a person would write them."""

import re
from dataclasses import replace

import pytest

from plusequals.backends.codegen.c_expression import Scope
from plusequals.backends.codegen.dialect import C
from plusequals.backends.codegen.speculation import Storage
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.assignments import Access
from plusequals.lowering.ir.expressions import Cast, Const, Dynamic, Expr, Position, Select
from plusequals.lowering.ir.indexing import const, floordiv, minimum, mod, multiply, var
from plusequals.lowering.ir.ops import OPS

from .brackets import with_brackets
from .programs import apply, at, node, number, position, read, symbols

i, j, n = symbols("i j n")
A, B, S = (node(k, name, ()) for k, name in enumerate("abs"))
X = node(3, "x", (8, 1024))
M = node(4, "m", (var(n), var(n), 3))
T = node(5, "t", (8, 4), dtypes.float32, (1, 8))
P, Q = (node(k, name, (), dtypes.bool_) for k, name in ((6, "p"), (7, "q")))
D, E8 = node(8, "d", (), dtypes.int64), node(9, "e", (), dtypes.int8)
SCOPE = Scope(
    C,
    {x.id: x.label for x in (A, B, S, X, M, T, P, Q, D, E8)},
    frozenset(x.id for x in (A, B, S, P, Q, D, E8)),
    {i: "i", j: "j", n: "n"},
)
a, b, s, p, q, d, e = (read(x) for x in (A, B, S, P, Q, D, E8))
FALSE, TRUE = Const(False, dtypes.bool_), Const(True, dtypes.bool_)


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (apply("add", apply("add", a, b), s), "a + b + s"),
        (apply("add", a, apply("add", b, s)), "a + (b + s)"),
        (apply("sub", a, apply("sub", b, s)), "a - (b - s)"),
        (apply("mul", apply("add", a, b), s), "(a + b) * s"),
        (apply("div", a, apply("mul", b, s)), "a / (b * s)"),
        (apply("neg", apply("neg", a)), "-(-a)"),
        (apply("neg", apply("add", a, b)), "-(a + b)"),
        (apply("sub", a, number(-1.5)), "a - -1.5f"),
        (apply("exp", apply("sub", a, b)), "exp_f32(a - b)"),
        (apply("sub", number(0.0), a), "0.0f - a"),
        (apply("sub", number(-0.0), apply("abs", a)), "-0.0f - abs_f32(a)"),
        (apply("sub", number(0.0), apply("mul", a, b)), "from_zero_f32(a * b)"),
        (apply("mul", a, number(-0.0)), "zero_product_f32(a, -0.0f)"),
        (apply("add", apply("neg", apply("abs", a)), number(0.0)), "from_zero_f32(abs_f32(a))"),
        (apply("add", number(0.0), apply("abs", a)), "0.0f + abs_f32(a)"),
        (
            apply("sub", Cast(Position(const(0)), dtypes.float32), apply("exp", a)),
            "from_zero_f32(exp_f32(a))",
        ),
        (apply("floordiv", d, number(8, dtypes.int64)), "d >> 3"),
        (apply("mod", apply("add", d, d), number(8, dtypes.int64)), "(d + d) & 7"),
        (apply("eq", apply("mod", d, number(2, dtypes.int64)), d), "(d & 1) == d"),
        (apply("floordiv", e, number(4, dtypes.int8)), "(int8_t)(e >> 2)"),
        (apply("floordiv", d, number(6, dtypes.int64)), "floordiv_i64(d, 6)"),
        (apply("mod", d, number(1, dtypes.int64)), "mod_i64(d, 1)"),
        (apply("mod", d, number(-8, dtypes.int64)), "mod_i64(d, -8)"),
        (Select(apply("lt", a, b), a, apply("add", b, s)), "a < b ? a : b + s"),
        (apply("add", Select(p, a, b), s), "(p ? a : b) + s"),
        (Select(p, a, Select(q, b, s)), "p ? a : q ? b : s"),
        (Select(p, q, FALSE), "p && q"),
        (Select(p, TRUE, q), "p || q"),
        (apply("or", apply("and", p, q), p), "(p && q) || p"),
        (apply("logical_not", apply("and", p, q)), "!(p && q)"),
        (apply("eq", apply("lt", a, b), p), "(a < b) == p"),
        (Cast(apply("add", a, b), dtypes.float64), "(double)(a + b)"),
        (Cast(a, dtypes.int32), "i32_from_f32(a)"),
        (Cast(a, dtypes.bool_), "a != 0"),
        (Cast(d, dtypes.complex128), "complex_f64((double)d, 0.0)"),
        (apply("add", e, e), "(int8_t)(e + e)"),
        (apply("neg", e), "(int8_t)-e"),
        (apply("add", d, Const(1, dtypes.int64)), "d + 1"),
        (apply("mul", *[Const(10**6, dtypes.int64)] * 2), "(int64_t)1000000 * 1000000"),
        (apply("bitand", d, apply("add", d, d)), "d & (d + d)"),
    ],
)
def test_expressions_have_as_few_brackets_as_they_need(expr: Expr, text: str) -> None:
    assert SCOPE.expression(expr).text == text


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (read(X, i, j), "x[i*1024 + j]"),
        (read(X, var(i) + 1, var(j) - 1), "x[i*1024 + j + 1023]"),
        (read(X, var(i) + var(j), 0), "x[(i + j)*1024]"),
        (read(X, var(i) - 1, var(j) * -1 + 5), "x[i*1024 - j - 1019]"),
        (read(X, 0, 0), "x[0]"),
        (read(X, i, Dynamic(d)), "x[i*1024 + d]"),
        (read(X, Dynamic(apply("add", d, d)), j), "x[(d + d)*1024 + j]"),
        (read(M, i, j, 2), "m[i*n*3 + j*3 + 2]"),
        (read(T, i, j), "t[i + j*8]"),
        (read(X, minimum(var(i), var(n)), floordiv(var(j), const(2))),
         "x[min_i64(i, n)*1024 + floordiv_i64(j, 2)]"),
        (position(var(i) * 2 - var(j) + 1), "i*2 - j + 1"),
        (position(multiply(var(i), var(n)) * 2), "(i*n)*2"),
        (Cast(position(i), dtypes.float32), "(float)i"),
        (Cast(position(var(i) + 1), dtypes.float32), "(float)(i + 1)"),
        (read(X, floordiv(var(i), const(1024)), mod(var(i), const(1024))), "x[i]"),
        (
            read(X, floordiv(var(i), const(64)), mod(var(i), const(64))),
            "x[floordiv_i64(i, 64)*1024 + mod_i64(i, 64)]",
        ),
        (read(T, mod(floordiv(var(i), const(4)), const(8)), 3),
         "t[mod_i64(floordiv_i64(i, 4), 8) + 24]"),
        (position(var(i) * (2**64 + 3) - (2**64 + 5)), "i*3 - 5"),
        (position(var(i) * 2**63 - var(n) + 2**63), "i*INT64_MIN - n + INT64_MIN"),
        (position(var(i) * 2**64), "0"),
    ],
)  # fmt: skip
def test_indices_read_as_a_person_would_write_them(expr: Expr, text: str) -> None:
    assert SCOPE.expression(expr).text == text


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (Select(apply("lt", a, b), a, apply("add", b, s)), "pick_f32(a < b, a, b + s)"),
        (apply("add", Select(p, a, b), s), "pick_f32(p, a, b) + s"),
        (Select(p, a, Select(q, b, s)), "pick_f32(p, a, pick_f32(q, b, s))"),
        (Select(p, read(X, i, j), b), "p ? x[i*1024 + j] : b"),
        (Select(p, q, FALSE), "p & q"),
        (Select(p, TRUE, q), "p | q"),
        (apply("or", apply("and", p, q), p), "(p & q) | p"),
        (apply("logical_not", apply("and", p, q)), "!(p & q)"),
        (apply("max", a, b), "straight_max_f32(a, b)"),
        (apply("max", d, d), "max_i64(d, d)"),
        (apply("floor", a), "floor_f32(a)"),
        (Cast(a, dtypes.int32), "straight_i32_from_f32(a)"),
        (Cast(a, dtypes.float64), "(double)a"),
    ],
)  # fmt: skip
def test_choices_have_no_branches_where_that_is_asked_for(expr: Expr, text: str) -> None:
    scope = replace(SCOPE, storage=Storage(SCOPE.by_value), branch_free=True)
    assert scope.expression(expr).text == text


def test_where_rounds_wait_for_others_both_sides_are_computed_and_one_is_taken() -> None:
    scope = replace(SCOPE, storage=Storage(SCOPE.by_value), has_dependence=True)
    assert scope.expression(apply("min", a, b)).text == "quick_min_f32(a, b)"
    assert scope.expression(apply("min", d, d)).text == "min_i64(d, d)"
    assert scope.expression(Select(p, a, b)).text == "quick_pick_f32(p, a, b)"
    assert scope.expression(Select(p, q, FALSE)).text == "p & q"
    assert scope.expression(Select(p, read(X, i, j), b)).text == "p ? x[i*1024 + j] : b"


def test_what_is_accumulated_in_a_variable_keeps_its_branch() -> None:
    scope = replace(SCOPE, storage=Storage(SCOPE.by_value), branch_free=True)
    cell = Access(X, (var(i), var(j)))
    assert scope.accumulated(Access(A, ()), OPS["max"], b).text == "max_f32(a, b)"
    assert scope.accumulated(cell, OPS["max"], b).text == "straight_max_f32(x[i*1024 + j], b)"
    assert scope.accumulated(Access(A, ()), OPS["add"], b).text == "a + b"


def test_sixteen_bit_floats_are_computed_as_float() -> None:
    half = node(8, "d", (), dtypes.float16)
    assert SCOPE.expression(apply("mul", read(half), read(half))).text == (
        "(_Float16)((float)d * (float)d)"
    )
    brain = node(8, "d", (), dtypes.bfloat16)
    assert SCOPE.expression(Cast(read(brain), dtypes.float64)).text == "(double)f32_from_bf16(d)"
    assert at(i) == (var(i),)


F, G = (node(k, name, (), dtypes.float64) for k, name in ((10, "f"), (11, "g")))
V, W = (node(k, name, (), dtypes.int64) for k, name in ((12, "v"), (13, "w")))
NESTED = Scope(
    C, {x.id: x.label for x in (F, G, V, W, P, Q)}, frozenset(x.id for x in (F, G, V, W, P, Q)),
    {i: "i", j: "j", n: "n"},
)  # fmt: skip
NAMES = {dtypes.float64: (read(F), read(G)), dtypes.int64: (read(V), read(W))} | {
    dtypes.bool_: (p, q)
}
POSITIONS = [
    position(term * factor + rest)
    for term in (var(i), multiply(var(i), var(j)), floordiv(var(i), const(2)))
    for factor in (1, -1, 3, -3)
    for rest in (const(0), const(2), var(n), -multiply(var(n), var(j)))
]


def _forms(*operands: Expr) -> list[Expr]:
    """Return every operation on these operands, of their type, whose text depends on nothing else
    than the precedence of their texts."""
    first, second = operands
    match first.dtype:
        case dtypes.bool_:
            made = [Select(first, second, FALSE), Select(first, TRUE, second)]
            return [*made, apply("logical_not", first), apply("eq", first, second)]
        case dtypes.int64:
            operators = "add", "sub", "mul", "bitand", "bitor", "bitxor", "lt", "eq"
            casts = [Cast(first, dtypes.float64), Cast(first, dtypes.int8), apply("neg", first)]
        case _:
            operators, casts = ("add", "sub", "mul", "div", "lt", "eq"), [apply("neg", first)]
    return [*casts, *(apply(name, first, second) for name in operators), Select(p, first, second)]


def test_brackets_never_change_what_an_operand_is() -> None:
    compared = 0
    for dtype, names in NAMES.items():
        inner = [form for pair in NAMES.values() for form in _forms(*pair) if form.dtype is dtype]
        for nested in [*inner, *(POSITIONS if dtype is dtypes.int64 else ())]:
            nested_text = f"({NESTED.expression(nested).text})"
            for at_first in (True, False):
                pair = (nested, names[1]) if at_first else (names[1], nested)
                plain = names if at_first else names[::-1]
                for form, model in zip(_forms(*pair), _forms(*plain), strict=True):
                    name = NESTED.expression(names[0]).text
                    text, model_text = (NESTED.expression(e).text for e in (form, model))
                    put = re.sub(rf"\b{name}\b", lambda _, t=nested_text: t, model_text)
                    assert with_brackets(text) == with_brackets(put), (text, put)
                    compared += 1
    assert compared > 1000
