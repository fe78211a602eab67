"""Which index expressions wrap around: compared with Python's integers, which have no limits."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.base.diagnostic import CdError
from plusequals.dsl.instrument.index_overflow import (
    index_overflow_tests,
    symbol_bounds,
    user_symbols,
)
from plusequals.lowering.ir.bounds import Bounds
from plusequals.lowering.ir.evaluate import State, compile_value, symbol_key
from plusequals.lowering.ir.expressions import Position, Read
from plusequals.lowering.ir.indexing import (
    Affine,
    Symbol,
    const,
    evaluate,
    floordiv,
    maximum,
    mod,
    multiply,
    var,
)
from tests.language.ask import compiled

I, J = Symbol("i", 0), Symbol("j", 1)
NUMBERS = (0, 1, -1, 3037000499, 3037000500, -(2**32), 2**40, 2**62, -(2**62), 2**62 + 1, 2**63 - 1)
LEAST = -(2**63)
SUMS: tuple[tuple[Affine, Callable[[int, int], int]], ...] = (
    (var(I) + var(J), operator.add),
    (var(I) - var(J), operator.sub),
    (multiply(var(I), var(J)), operator.mul),
    (var(I) * 2 - var(J) * 3 + 7, lambda i, j: 2 * i - 3 * j + 7),
    (var(I) * (2**62) + var(J), lambda i, j: i * 2**62 + j),
    (var(I) + LEAST, lambda i, j: i - 2**63),
    (floordiv(var(I) + var(J), const(2)) * 0 + var(I), lambda i, j: i),
)


def _holds(index: Affine, known: Bounds, i: int, j: int) -> bool:
    state = State(print, {}, {symbol_key(I): i, symbol_key(J): j})
    return all(compile_value(test)(state) for test in index_overflow_tests(Position(index), known))


@pytest.mark.parametrize(("index", "meaning"), SUMS)
def test_a_sum_fits_where_the_exact_one_does(
    index: Affine, meaning: Callable[[int, int], int]
) -> None:
    for i in (*NUMBERS, LEAST):
        for j in (*NUMBERS, LEAST):
            fits = LEAST <= meaning(i, j) < -LEAST
            assert _holds(index, Bounds(), i, j) == fits, (i, j)
            assert evaluate(index, {I: i, J: j}) == meaning(i, j)


def test_what_is_inside_of_another_has_to_fit_too() -> None:
    for index in (floordiv(var(I) + var(J), const(2)), maximum(var(I) * 2, var(J)),
                  mod(multiply(var(I), var(I)), const(7))):  # fmt: skip
        assert _holds(index, Bounds(), 5, 6)
        assert not _holds(index, Bounds(), 2**62, 2**62)


def test_nothing_is_tested_where_the_ranges_say_that_all_fits() -> None:
    small = Bounds({I: (0, 2**30), J: (-5, 2**30)})
    for index in (multiply(var(I), var(J)) + 9, var(I) * 4 - var(J), floordiv(-var(I), const(3))):
        assert not list(index_overflow_tests(Position(index), small))
        assert list(index_overflow_tests(Position(index), Bounds()))
    assert not list(index_overflow_tests(Position(var(I)), Bounds()))


def test_what_is_known_and_named_of_a_function() -> None:
    f = pe.cd_from_source(
        "def f(y, n):\n    for k in range(2, 9):\n        y[i] = i + k * n\n", backend="numpy"
    )
    f(np.ones(3, int), 5)
    procedure = f.procedure(np.ones(3, int), 5)
    named = {symbol.name: symbol for symbol in user_symbols(procedure)}
    assert set(named) == {"k", "n"}
    known = symbol_bounds(procedure)
    assert known.interval(var(named["k"])) == (2, 8)
    assert known.interval(var(named["n"])) == (None, None)


def test_reads_are_looked_into() -> None:
    f = pe.cd_from_source("def f(x, n):\n    return x[n * 4]\n", backend="numpy")
    (read,) = {
        part
        for statement in f.procedure(np.ones(3), 5).body
        for part in [getattr(statement, "value", None)]
        if isinstance(part, Read) and part.index
    }
    assert len(list(index_overflow_tests(read, Bounds()))) == 1


def _code(function: Any, *arguments: object) -> str:
    with pe.checked(overflow=True):
        try:
            function(*arguments)
        except CdError as why:
            return why.code
    return ""


@pytest.mark.parametrize(
    "body",
    [
        "return n * 2",
        "return -n - n - n",
        "x[0] = n * n",
        "m = n * n\nx[0] = m",
        "x[:] = x + n * n",
        "t = 0\nfor k in range(3): t += n * n\nreturn t",
        "return n * n % 7",
        "return (n * 3) // 2",
        "return x[n * 4]",
        "x[n * 4] = 1",
        "for k in range(n * n): x[0] = k",
        "if n * n > x[0]: x[0] = 1",
        "while n * n > x[0]: x[0] = 2**60",
        "print(n * n + x[0])",
        "assert n * n < x[0]",
        "x[i] = n * 2 if x[i] == 0 else 0",
    ],
)
def test_integers_of_python_that_wrap_are_found(backend: str, body: str) -> None:
    f = compiled("x, n", body).on(backend)
    assert _code(f, np.arange(3), 2**62) == "CD0766"
    if "range" not in body and "while" not in body and "assert" not in body and "4]" not in body:
        assert _code(f, np.arange(3), 3) == ""


def test_what_is_not_computed_is_not_an_error(backend: str) -> None:
    f = compiled("x, n", "x[i] = n * 2 if x[i] > 9 else 0").on(backend)
    assert _code(f, np.arange(3), 2**62) == ""


def test_the_error_tells_the_number(backend: str) -> None:
    f = pe.cd_from_source("def f(x, n):\n    x[i] = i * n\n", name="example.py", backend=backend)
    with pe.checked(overflow=True), pytest.raises(CdError) as caught:
        f(np.zeros(4, int), 2**62)
    assert str(caught.value).splitlines() == [
        "error[CD0766]: a whole number does not fit int64 in checked mode, at i = 2: "
        "n = 4611686018427387904",
        " --> example.py:2:5",
        "2 |     x[i] = i * n",
        "  |     ^^^^^^^^^^^^",
        "  = help: compute with floats, `float(n) * n`, or with smaller numbers; without checked "
        "mode the result wraps around",
    ]
