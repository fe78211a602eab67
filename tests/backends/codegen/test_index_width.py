"""Which index arithmetic has 32 bits: all that surely fits, and nothing else."""

from __future__ import annotations

import doctest

import pytest

from plusequals.backends.codegen import index_width
from plusequals.backends.codegen.c_expression import Scope
from plusequals.backends.codegen.index_width import (
    NARROW_LIMIT,
    fits,
    loop_magnitude,
    magnitude,
    symbol_magnitude,
)
from plusequals.backends.cuda.dialect import CUDA
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.bounds import Bounds
from plusequals.lowering.ir.expressions import Apply, Position
from plusequals.lowering.ir.indexing import (
    Affine,
    Symbol,
    const,
    floordiv,
    minimum,
    mod,
    multiply,
    var,
)
from plusequals.lowering.ir.loops import For
from plusequals.lowering.ir.node import Node
from plusequals.lowering.ir.ops import OPS

I, J, N = Symbol("i", 0), Symbol("j", 1), Symbol("n", 2)
i, j, n = var(I), var(J), var(N)


@pytest.mark.parametrize(
    ("index", "most"),
    [
        (const(NARROW_LIMIT - 1), NARROW_LIMIT - 1),
        (const(NARROW_LIMIT), None),
        (i * 1000 - j, 1000 * 100 + 7),
        (i * (NARROW_LIMIT // 100 + 1), None),
        (i * (NARROW_LIMIT // 100 - 1) + j - j, (NARROW_LIMIT // 100 - 1) * 100),
        (i * 20_000_000 - i * 20_000_000 + 5, 5),
        (i * 20_000_000 - j * 22_000_000, None),
        (minimum(i * 3, j), 300),
        (minimum(i, n), None),
        (mod(i, const(8)), 8),
        (floordiv(i * 9, const(8)), 113),
        (floordiv(i * 9, const(8)) * 19_000_000, 113 * 19_000_000),
        (multiply(i, j), 700),
        (multiply(i * 2_000_000, j * 2), None),
        (n, None),
    ],
)
def test_parts_of_an_index_expression_fit(index: Affine, most: int | None) -> None:
    assert magnitude(index, {I: 100, J: 7}) == most


def loop(lo: Affine, hi: Affine, step: int = 1) -> For:
    return For(J, lo, hi, step, ())


@pytest.mark.parametrize(
    ("one", "most"),
    [
        (loop(const(0), const(900)), 900),
        (loop(const(0), const(NARROW_LIMIT // 2 - 1)), NARROW_LIMIT // 2 - 1),
        (
            loop(const(0), const(NARROW_LIMIT // 2)),
            None,
        ),  # those that are dealt out go beyond the end
        (loop(const(NARROW_LIMIT - 9), const(NARROW_LIMIT - 1)), None),
        (loop(const(900), const(-1), -1), 900),
        (loop(i, i + 256), 356),
        (loop(i * 10_000_000_000, const(5)), None),  # it may have no round
        (loop(const(0), n), None),
        (loop(const(0), const(8), NARROW_LIMIT // 1024), None),
    ],
)
def test_variables_of_loops(one: For, most: int | None) -> None:
    assert loop_magnitude(one, Bounds({I: (0, 100)})) == most


def test_numbers_that_the_host_knows() -> None:
    known = Bounds({I: (-9, 5), J: (0, NARROW_LIMIT)})
    assert [symbol_magnitude(one, known) for one in (I, J, N)] == [9, None, None]


def scope(**narrow: int) -> Scope:
    made = Scope(CUDA, {0: "x"}, frozenset(), {I: "i", J: "j", N: "n"})
    made.narrow.update({symbol: narrow[symbol.name] for symbol in (I, J) if symbol.name in narrow})
    return made


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        (1000, "x[i*1000 + j]"),
        (NARROW_LIMIT // 99, f"x[(int64_t)i*{NARROW_LIMIT // 99} + (int64_t)j]"),
        (NARROW_LIMIT // 99 - 1, f"x[i*{NARROW_LIMIT // 99 - 1} + j]"),
    ],
)
def test_places_of_elements_just_below_and_above_the_limit(columns: int, text: str) -> None:
    node = Node(0, "x", (const(100), const(columns)), dtypes.float32)
    assert scope(i=99, j=46).element(node, (i, j)) == text


def test_places_whose_sizes_the_run_knows_have_64_bits() -> None:
    node = Node(0, "x", (const(100), n), dtypes.float32)
    assert scope(i=99, j=46).element(node, (i, j)) == "x[(int64_t)i*n + (int64_t)j]"
    assert scope(j=46).element(node, (i, j + 1)) == "x[i*n + (int64_t)j + 1]"
    assert scope(j=46).element(node, (const(0), mod(j, n))) == "x[mod_i64(j, n)]"
    assert scope(j=46).element(node, (const(0), mod(j, const(9)))) == "x[(int64_t)mod_i32(j, 9)]"


def test_numbers_that_are_computed_with_have_the_bits_of_their_type() -> None:
    here = scope(i=99, j=46)
    product = Apply(OPS["mul"], (Position(i), Position(j + 1)), dtypes.int64)
    assert here.expression(product).text == "mul_i64((int64_t)i, (int64_t)(j + 1))"
    test = Apply(OPS["lt"], (Position(i), Position(j + 1)), dtypes.bool_)
    assert here.expression(test).text == "i < j + 1"
    test = Apply(OPS["lt"], (Position(i), Position(n)), dtypes.bool_)
    assert here.expression(test).text == "(int64_t)i < n"


def test_the_examples_are_true() -> None:
    assert doctest.testmod(index_width) == (0, 6)


@pytest.mark.parametrize(
    ("index", "whether"),
    [
        (n, True),
        (n + 1, False),
        (-n, False),
        (i * 2 + j, True),
        (i - j, True),
        (i * 2**40, True),
        (i * 2**57, False),
        (j * 2**62 - i * 2**62 - i * 2**62, False),
        (multiply(i, j) + 2**62, True),
        (multiply(n, i), False),
        (mod(n, const(9)) + i, True),
        (mod(n + 1, const(9)), False),
        (const(2**63 - 1), True),
        (const(2**63), False),
    ],
)
def test_what_64_bits_hold_in_any_case(index: Affine, whether: bool) -> None:
    assert fits(index, Bounds({I: (0, 100), J: (-7, 7)})) == whether
