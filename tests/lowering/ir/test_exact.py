"""Simplified expressions give the same bits, for random expressions at nasty points."""

from __future__ import annotations

import random

import numpy as np
import pytest

from plusequals.lowering.ir import dtypes, indexing
from plusequals.lowering.ir.bounds import Bounds
from plusequals.lowering.ir.evaluate import compile_index, compile_value
from plusequals.lowering.ir.exact import simplify_expr, simplify_index
from plusequals.lowering.ir.expressions import Cast, Expr, Select, walk
from plusequals.lowering.ir.indexing import (
    Range,
    Symbol,
    const,
    floordiv,
    maximum,
    minimum,
    mod,
    var,
)
from plusequals.lowering.ir.printer import print_expr, print_index

from .build import ap, f32, f64, i32, i64, node, num, pos, read
from .random_expressions import COMPUTED, KNOWN, Maker, states


def _agree(seed: int, count: int) -> int:
    """Compare that many random expressions; return how many became smaller."""
    rng = random.Random(seed)
    maker, smaller = Maker(rng), 0
    points = list(states(rng, 40))
    with np.errstate(all="ignore"):
        for _ in range(count):
            expr = maker.expression(rng.choice(COMPUTED), rng.randrange(1, 5))
            new = simplify_expr(expr, KNOWN)
            smaller += _size(new) < _size(expr)
            assert new.dtype == expr.dtype
            if new == expr:
                continue
            before, after = compile_value(expr), compile_value(new)
            for state in rng.sample(points, 3):
                one, two = before(state), after(state)
                assert one.dtype == two.dtype
                assert one.tobytes() == two.tobytes(), (
                    f"{print_expr(expr)} is {one}, but {print_expr(new)} is {two}"
                )
    return smaller


def _size(expr: Expr) -> int:
    return sum(1 for _ in walk(expr))


def test_random_expressions_keep_their_bits() -> None:
    assert _agree(1, 3000) > 300


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 13))
def test_many_random_expressions_keep_their_bits(seed: int) -> None:
    assert _agree(seed, 10_000) > 1000


def test_random_indices_keep_their_numbers() -> None:
    rng = random.Random(5)
    maker, changed = Maker(rng), 0
    for _ in range(2000):
        index = maker.index(3)
        new = simplify_index(index, KNOWN)
        low, high = KNOWN.interval(index)
        before, after = compile_index(index), compile_index(new)
        changed += new != index
        for state in states(rng, 2):
            value = before(state)
            assert value == after(state), f"{print_index(index)} became {print_index(new)}"
            assert (low is None or low <= value) and (high is None or value <= high)
    assert changed > 100


X, Y = node(50, "x", dtype=f32), node(51, "k", dtype=i32)
x, k = read(X), read(Y)
CASES = [
    (ap("mul", x, num(1.0)), "x"),
    (ap("mul", num(1.0), x), "x"),
    (ap("add", x, num(0.0)), "x + 0.0"),
    (ap("add", x, num(-0.0)), "x"),
    (ap("sub", x, num(0.0)), "x"),
    (ap("sub", x, num(-0.0)), "x - -0.0"),
    (ap("sub", x, x), "x - x"),
    (ap("mul", x, num(0.0)), "x * 0.0"),
    (ap("div", x, num(4.0)), "x * 0.25"),
    (ap("div", x, num(3.0)), "x / 3.0"),
    (ap("eq", x, x), "x == x"),
    (ap("logical_not", ap("lt", x, num(2.0))), "not x < 2.0"),
    (ap("logical_not", ap("eq", x, num(2.0))), "x != 2.0"),
    (ap("max", ap("neg", ap("neg", x)), x), "x"),
    (ap("add", num(2.0), num(3.0)), "5.0"),
    (ap("div", num(0.0), num(0.0)), "0.0 / 0.0"),
    (ap("max", num(0.0), num(-0.0)), "max(0.0, -0.0)"),
    (ap("add", k, num(0, i32)), "k"),
    (ap("mul", k, num(0, i32)), "0"),
    (ap("sub", k, k), "0"),
    (ap("add", ap("add", k, num(2, i32)), num(3, i32)), "k + 5"),
    (ap("add", num(2**31 - 1, i32), num(1, i32)), "-2147483648"),
    (ap("sub", ap("add", k, num(2, i32)), num(3, i32)), "k + -1"),
    (ap("mul", num(3, i32), ap("mul", k, num(2, i32))), "k * 6"),
    (ap("mod", k, num(1, i32)), "0"),
    (ap("floordiv", num(1, i32), num(0, i32)), "1 // 0"),
    (ap("eq", k, k), "True"),
    (Select(ap("lt", k, k), x, num(1.0)), "1.0"),
    (Select(ap("logical_not", ap("isnan", x)), x, num(1.0)), "1.0 if isnan(x) else x"),
]


@pytest.mark.parametrize("expr,text", CASES, ids=[text for _, text in CASES])
def test_rules(expr: Expr, text: str) -> None:
    assert print_expr(simplify_expr(expr, Bounds())) == text


def test_conversions_that_lose_nothing_go() -> None:
    from_bool = Select(ap("lt", x, num(0.0)), num(1.0, f64), num(0.0, f64))
    assert print_expr(simplify_expr(_cast(from_bool, f32), Bounds())) == "1.0 if x < 0.0 else 0.0"
    assert print_expr(simplify_expr(_cast(_cast(x, f64), f32), Bounds())) == "x"
    assert print_expr(simplify_expr(_cast(_cast(k, f64), f32), Bounds())) == "f32(k)"
    saturating = _cast(_cast(k, f64), dtypes.int8)
    assert print_expr(simplify_expr(saturating, Bounds())) == "i8(f64(k))"
    assert print_expr(simplify_expr(_cast(_cast(k, f32), f64), Bounds())) == "f64(f32(k))"


def test_whole_numbers_are_compared_in_their_own_type() -> None:
    def shown(name: str, one: Expr, other: Expr) -> str:
        return print_expr(simplify_expr(ap(name, one, other), Bounds()))

    wide, other = _cast(k, dtypes.int64), _cast(read(node(52, "m", dtype=i32)), dtypes.int64)
    byte = read(node(53, "b", dtype=dtypes.uint8))
    assert shown("lt", wide, num(7, dtypes.int64)) == "k < 7"
    assert shown("ge", num(-7, dtypes.int64), wide) == "-7 >= k"
    assert shown("ne", wide, other) == "k != m"
    assert shown("eq", _cast(byte, i32), num(255, i32)) == "b == 255"
    for number in (-1, 256):
        assert shown("eq", _cast(byte, i32), num(number, i32)) == "False"
    assert shown("lt", wide, num(2**31, dtypes.int64)) == "True"
    assert shown("lt", wide, _cast(byte, dtypes.int64)) == "i64(k) < i64(b)"
    assert shown("lt", wide, read(node(54, "l", dtype=dtypes.int64))) == "i64(k) < l"
    assert shown("lt", _cast(k, dtypes.uint64), num(7, dtypes.uint64)) == "u64(k) < 7"
    assert shown("lt", _cast(k, f64), num(7.0, f64)) == "f64(k) < 7.0"


def _cast(expr: Expr, dtype: dtypes.DType) -> Expr:
    return Cast(expr, dtype)


i, n = Symbol("i", 0), Symbol("n", 1)
SMALL = Bounds({n: (0, None)}).inside(Range(i, const(0), const(8)))
RUNTIME = Bounds({n: (0, None)}).inside(Range(i, const(0), var(n)))
INDICES = [
    (mod(var(i), const(8)), SMALL, "i"),
    (mod(var(i) + 8, const(8)), SMALL, "i"),
    (mod(var(i) + 1, const(8)), SMALL, "(i + 1)%8"),
    (floordiv(var(i), const(8)), SMALL, "0"),
    (floordiv(var(i) - 8, const(8)), SMALL, "-1"),
    (minimum(var(i), const(7)), SMALL, "i"),
    (maximum(var(i) - 7, const(0)), SMALL, "0"),
    (mod(var(i), var(n)), RUNTIME, "i"),
    (minimum(var(i) + 1, var(n)), RUNTIME, "i + 1"),
    (minimum(var(i) + 2, var(n)), RUNTIME, "min(i + 2, n)"),
]


@pytest.mark.parametrize("index,known,text", INDICES, ids=[text for _, _, text in INDICES])
def test_indices(index: indexing.Affine, known: Bounds, text: str) -> None:
    assert print_index(simplify_index(index, known)) == text


def test_ranges_decide_comparisons() -> None:
    def text(expr: Expr, known: Bounds = SMALL) -> str:
        return print_expr(simplify_expr(expr, known))

    assert text(ap("lt", pos(i), num(8, i64))) == "True"
    assert text(ap("ge", pos(i), num(8, i64))) == "False"
    assert text(ap("lt", pos(i), num(7, i64))) == "i < 7"
    assert text(ap("lt", pos(i), pos(n)), RUNTIME) == "True"
    assert text(ap("eq", pos(var(i) + 1), pos(0))) == "False"
    assert text(ap("add", pos(i), num(1, i64))) == "i + 1"
    guarded = Select(ap("lt", pos(i), num(3, i64)), pos(minimum(var(i), const(2))), pos(9))
    assert text(guarded) == "i if i < 3 else 9"
