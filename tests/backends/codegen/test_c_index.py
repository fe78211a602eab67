"""Index expressions as C text: what may leave 64 bits wraps in a language where it has to."""

from __future__ import annotations

import itertools

import pytest

from plusequals.backends.codegen.c_expression import Scope
from plusequals.backends.codegen.c_index import affine, number
from plusequals.backends.codegen.c_text import ADD, MUL, UNARY
from plusequals.backends.codegen.dialect import C, Dialect
from plusequals.backends.codegen.quirks.counter_overflow import LEAST, MAX_EXTENT, MOST
from plusequals.backends.cuda.dialect import CUDA
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.bounds import Bounds
from plusequals.lowering.ir.expressions import Apply, Cast, Position, Read
from plusequals.lowering.ir.indexing import (
    Affine,
    const,
    evaluate,
    floordiv,
    maximum,
    mod,
    multiply,
    var,
)
from plusequals.lowering.ir.loops import For
from plusequals.lowering.ir.ops import OPS

from .programs import node, symbols

N, M, S, I = symbols("n m s i")
n, m, s, i = var(N), var(M), var(S), var(I)
ANY = (LEAST, MOST)


def scope(dialect: Dialect = CUDA) -> Scope:
    """Return names of numbers: `n` and `m` are people's, `s` is a size, `i` goes up to it."""
    made = Scope(dialect, {0: "x"}, frozenset(), {N: "n", M: "m", S: "s", I: "i"})
    made.bounds = Bounds({N: ANY, M: ANY, S: (0, MAX_EXTENT)}).inside(For(I, const(0), s, 1, ()))
    return made


@pytest.mark.parametrize(
    ("index", "text"),
    [
        (n, "n"),
        (-n, "neg_i64(n)"),
        (n + 1, "add_i64(n, 1)"),
        (n - 1, "sub_i64(n, 1)"),
        (n + m, "add_i64(n, m)"),
        (m - n * 4, "sub_i64(m, mul_i64(n, 4))"),
        (n * -3 - m, "sub_i64(neg_i64(mul_i64(n, 3)), m)"),
        (n + LEAST, "add_i64(n, INT64_MIN)"),
        (n * LEAST + m, "add_i64(m, mul_i64(n, INT64_MIN))"),
        (n * 2**64 + 5, "5"),
        (multiply(n, m) + i, "add_i64(i, mul_i64(m, n))"),
        (i * 2 + s - 1, "s + i*2 - 1"),
        (multiply(i, s), "mul_i64(i, s)"),
        (floordiv(n + m, const(2)), "floordiv_i64(add_i64(n, m), 2)"),
        (maximum(n, const(3)), "max_i64(3, n)"),
        (mod(n * 2, const(7)) + i, "add_i64(i, mod_i64(mul_i64(n, 2), 7))"),
        (mod(i * 2 + 1, const(7)) + i, "i + mod_i64(i*2 + 1, 7)"),
        (const(-7), "-7"),
    ],
)
def test_sums_that_64_bits_may_not_hold_are_functions(index: Affine, text: str) -> None:
    assert number(index, scope()).text == text
    assert number(index, scope(C)) == affine(index, scope(C))


def _wrapped(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63


MEANING = {
    "INT64_MIN": LEAST,
    "neg_i64": lambda a: _wrapped(-a),
    "add_i64": lambda a, b: _wrapped(a + b),
    "sub_i64": lambda a, b: _wrapped(a - b),
    "mul_i64": lambda a, b: _wrapped(a * b),
}


@pytest.mark.parametrize(
    "index",
    [n * 3 - m * 5 + 7, -n - m, n * LEAST - m + LEAST, multiply(n, m) * -2 + n,
     n * (2**64 + 3) - MOST],
)  # fmt: skip
def test_they_wrap_as_64_bits_do(index: Affine) -> None:
    text = number(index, scope()).text
    for one, two in itertools.product((0, 1, -1, 2**62, 3037000500, LEAST, MOST), repeat=2):
        found = eval(text, {}, {**MEANING, "n": one, "m": two})
        assert found == _wrapped(evaluate(index, {N: one, M: two})), (text, one, two)


def test_places_of_elements_are_plain_but_for_what_is_divided() -> None:
    x = node(0, "x", (const(9),))
    assert scope().element(x, (n * 4 + i,)) == "x[n*4 + i]"
    assert scope().element(x, (mod(multiply(n, n), const(9)),)) == "x[mod_i64(mul_i64(n, n), 9)]"


def test_tests_and_values_of_people_wrap() -> None:
    here = scope()
    test = Apply(OPS["gt"], (Position(n + m), Position(n)), dtypes.bool_)
    assert here.expression(test).text == "add_i64(n, m) > n"
    assert here.expression(Position(i + 1)).text == "i + 1"


def test_a_number_that_is_read_is_known_by_its_type() -> None:
    here, narrow = scope(), node(1, "k", (9,), dtypes.int32)
    here.nodes = {1: "k"}
    *_, at, wide = symbols("n m s i at wide")
    here.symbols.update({at: "at", wide: "wide"})
    assert here.held(at, Cast(Read(narrow, (i,)), dtypes.int64)).text == "(int64_t)k[i]"
    assert here.held(wide, Position(n * 4)).text == "mul_i64(n, 4)"
    assert number(var(at) * 4 + 1, here).text == "at*4 + 1"
    assert number(var(wide) + 1, here).text == "add_i64(wide, 1)"


ATOMS = (
    n, i, multiply(n, m), multiply(i, i), multiply(n + 1, -m), multiply(-n, m), multiply(-i, n),
    floordiv(n, const(2)),
)  # fmt: skip
SUMS = [
    atom * factor + rest
    for atom in ATOMS
    for factor in (1, -1, 2, -3)
    for rest in (const(0), const(2), const(-1), m, -m, multiply(m, m), -multiply(i, m))
]


@pytest.mark.parametrize(
    ("context", "least"),
    [("3.5 / {}", UNARY), ("-{}", UNARY), ("1000 // {}", UNARY), ("9 - {}", MUL), ("{} < 1", ADD)],
)
def test_the_text_is_one_operand_in_every_context(context: str, least: int) -> None:
    functions = {"floordiv_i64": lambda a, b: a // b}
    for index, factor in itertools.product(SUMS, (const(1), m, const(-2))):
        text = affine(index, scope(C), factor).within(least)
        assert "--" not in text, "a decrement in C"
        for at in ({N: -5, M: 2, I: 1}, {N: 3, M: 7, I: 4}):
            value = evaluate(index, at) * evaluate(factor, at)
            if value:
                found = eval(
                    context.format(text), {**functions, "n": at[N], "m": at[M], "i": at[I]}
                )
                assert found == eval(context.format("k"), {"k": value}), text
