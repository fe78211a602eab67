"""Surface expressions to values: subscripts, attributes, unpacking, short circuits, texts."""

from __future__ import annotations

import types

import numpy as np
import pytest

import plusequals as pe
from plusequals.base.diagnostic import CdError
from plusequals.lowering.ir.assignments import Check
from tests.compare import assert_same
from tests.language.ask import plain, run

from .scenes import found, typed

X = np.arange(6.0).reshape(2, 3)
OWN = types.SimpleNamespace(
    scale=3.0, sizes=(2, 3), table={"a": 1.5}, inner=types.SimpleNamespace(w=X * 2.0)
)
EXPRESSIONS = (
    "x[0, 1]", "x[-1]", "x[..., 0]", "x[(1, 2)]", "x[n][n - 1]", "(1, 2, 3)[1]", "[x, n][0]",
    "(1, 2, 3)[1:]", "'abc'[1]", "(4, 5)[-1]", "own.scale * n", "own.sizes[0]", "own.table['a']",
    "own.inner.w[1]", "x.shape[1]", "x.T.shape", "x.dtype == np.float64", "len(x.shape)",
    "f'{2:3d}' == '  2'", "-own.scale", "(*own.sizes, 4)",
    "[*x][1]", "x[0] if own.scale > 2 else nothing", "own.scale > 2 or nothing",
    "own.scale < 2 and nothing", "x[n, 0] if n < 2 else -1.0", "x.sum() > 3 and x[0, 0] < 1",
    "1 if x[0, 0] < x[0, 1] < x[0, 2] else 0", "x[None].shape",
)  # fmt: skip


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_an_expression_is_what_python_says(text: str) -> None:
    given = X, 1
    body = f"return {text}"
    assert_same(run("numpy", "x, n", body, *given, own=OWN, nothing=None),
                plain("x, n", body, *given, own=OWN, nothing=None))  # fmt: skip


def test_both_sides_of_a_test_are_checked_under_it_only() -> None:
    body = "for k in range(5):\n    x[0, 0] = x[k, 0] if k < 2 else 0.0"
    assert not found(typed("x", body, X).procedure, Check)
    other = "for k in range(5):\n    x[0, 0] = x[k, 0] if k < 3 else 0.0"
    assert len(found(typed("x", other, X).procedure, Check)) == 1


def test_later_operands_of_and_are_looked_at_under_the_earlier_ones() -> None:
    body = "y[i] = 1.0 if i > 0 and x[0, i - 1] > 0 else 0.0"
    assert not found(typed("y, x", body, np.zeros(3), X).procedure, Check)
    y = np.zeros(3)
    run("numpy", "y, x", body, y, X)
    assert_same(y, np.array([0.0, 0.0, 1.0]))


def test_an_attribute_is_a_dependence_found_again_at_each_call() -> None:
    own = types.SimpleNamespace(scale=2.0)
    f = pe.cd_from_source("def f(x):\n    return x * own.scale\n", {"own": own})
    with pe.override(backend="numpy"):
        first = f(X)
        own.scale = 5.0
        second = f(X)
    assert_same((first, second), (X * 2.0, X * 5.0))


def test_fields_and_properties_of_a_tensor() -> None:
    p = pe.tensor("p", (2, 3), dtype="float64", init=X)
    body = "p.grad = p * 2.0\nreturn p.shape, p.value[1], p.sum(), p.grad[0]"
    got = run("numpy", "p", body, p)
    assert_same(got, ((2, 3), X[1], X.sum(), X[0] * 2.0))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("x.nothing", "CD0414"),
        ("own.nothing", "CD0414"),
        ("n[0]", "CD0411"),
        ("(1, 2)[n * x[0, 0]]", "CD0413"),
        ("own.table['b']", "CD0407"),
        ("(1, 2)[5]", "CD0407"),
        ("x[pad()]", "CD0412"),
        ("f'{x[0, 0]}'", "CD0415"),
        ("[*x[x > 1]]", "CD0406"),
        ("x < x < x", "CD0408|CD0409"),
        ("x if x > 0 else x", "CD0408"),
    ],
)
def test_what_means_nothing_is_refused(text: str, code: str) -> None:
    with pytest.raises(CdError, match=code):
        run("numpy", "x, n", f"return {text}", X, 1, own=OWN)


class Counter:
    def __init__(self) -> None:
        self.at = 0

    def next(self) -> int:
        self.at += 1
        return self.at


@pytest.mark.parametrize("items", ["(1.0, 2.0, 3.0)", "tuple(range(40))", "('a', *range(40))"])
def test_the_subscript_of_a_sequence_is_evaluated_once(items: str) -> None:
    mine, given = Counter(), Counter()
    body = f"p.at = 0\nt = {items}\nreturn t[p.next()], p.at"
    assert_same(run("numpy", "p", body, mine), plain("p", body, given))
    assert mine.at == given.at
