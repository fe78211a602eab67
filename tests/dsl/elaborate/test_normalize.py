"""Reductions inside expressions become assignments of their own, and nothing else changes."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.dsl.elaborate.normalize import build
from plusequals.dsl.elaborate.typed import Typed
from plusequals.dsl.specialize.specialization import Lookup
from plusequals.lowering.ir.assignments import Assign, Check, Procedure
from plusequals.lowering.ir.expressions import Reduce, walk
from plusequals.lowering.ir.verify import verify_procedure
from plusequals.lowering.ir.walk import expressions_of, statements
from tests.dsl.elaborate.scenes import found, outcome, parsed, scope, typed, typed_of
from tests.language import index_functions
from tests.language.examples import EXAMPLES, Example


def _same_when_built(form: Typed, lookup: Lookup, arguments: dict[str, Any]) -> Procedure:
    """Assert that a typed procedure and its built form are well made and do the same."""
    built = build(form.procedure)
    verify_procedure(form.procedure, built=False)
    verify_procedure(built)
    before = outcome(form.procedure, form, lookup, arguments)
    after = outcome(built, form, lookup, arguments)
    for one, other in zip((*before[0], *before[1]), (*after[0], *after[1]), strict=True):
        np.testing.assert_array_equal(one, other)
    assert before[2] == after[2]
    return built


@pytest.mark.parametrize("example", EXAMPLES, ids=repr)
def test_worked_examples_mean_the_same_when_built(example: Example) -> None:
    function = getattr(index_functions, example.function)
    surface, lookup = function.__cd_function__()
    arguments = dict(inspect.signature(function).bind(*example.make()).arguments)
    _same_when_built(typed_of(surface, lookup, arguments), lookup, arguments)


X = np.random.default_rng(5).standard_normal((4, 5))
PROGRAMS = {
    "nested": "return np.var(x, axis=1) / np.mean(x)",
    "shared": "return x.sum(axis=0) * x.sum(axis=0)",
    "one side": "return np.where(x > 0, x / x.sum(axis=0), 0.0)",
    "a branch": "y = 0.0\nif x.sum() > 0:\n    y = x.max()\nreturn y",
    "a while": "n = 0\nwhile x[n].sum() < 100.0 and n < 3:\n    n += 1\nreturn n",
    "a print": "print('sum', x.sum())",
    "a check": "assert np.abs(x).max() < 100.0, 'large'\nreturn x[0, 0]",
    "a subscript": "return x[np.argmin(x[:, 0]), np.argmax(x[0])]",
    "a slice": "n = int(np.argmax(x[:, 1])) + 1\nreturn x[:n].sum()",
    "a guard": "if x[i, j] > x.mean():\n    x[i, j] = 0.0",
    "a triangle": "y[i] = sum[k <= i](x[i, k]) * prod[k in range(1, 3)](x[i, k])\nreturn y",
    "a window": "y[i] = max(x[i + k, j] * x[k, j])\nreturn y",
    "in a loop": "for r in range(4):\n    x[r] = x[r] / x[:r + 1].sum()",
    "a mask": "return x[x > 0].mean()",
    "best of each": "y[i] = argmax[k](x[i, k]) + argmin[k](x[i, k])\nreturn y",
}


@pytest.mark.parametrize("body", PROGRAMS.values(), ids=PROGRAMS)
def test_reductions_anywhere_mean_the_same_when_built(body: str) -> None:
    arguments = {"x": X.copy()}
    built = _same_when_built(typed_of(parsed("x", body), scope(), arguments), scope(), arguments)
    inside = [e for one in statements(built.body) for e in expressions_of(one) for e in walk(e)]
    assert not any(isinstance(e, Reduce) for e in inside)


def test_equal_reductions_of_one_statement_are_computed_once() -> None:
    built = build(
        typed("x", "y[i] = sum[k](x[i, k]) / (1.0 + sum[k](x[i, k]))\nreturn y", X).procedure
    )
    once = build(typed("x", "y[i] = 1.0 / (1.0 + sum[k](x[i, k]))\nreturn y", X).procedure)
    assert len(found(built, Assign)) == len(found(once, Assign)) + 1


def test_a_reduction_shared_by_both_sides_of_a_test_is_there_for_both() -> None:
    body = "def g(v, t):\n    return v if t > 0 else 2.0 * v\n"
    body += "y[i] = g(sum[k](x[i, k]), x[i, 0])\nreturn y"
    arguments = {"x": X.copy()}
    form = typed_of(parsed("x", body), scope(), arguments)
    built = _same_when_built(form, scope(), arguments)
    (y,) = outcome(built, form, scope(), arguments)[1]
    np.testing.assert_allclose(y, np.where(X[:, 0] > 0, 1.0, 2.0) * X.sum(1))


def test_a_statement_that_is_one_reduction_needs_no_temporary() -> None:
    built = build(typed("y, x", "y[i] = sum(x[i, k])", np.zeros(4), X).procedure)
    assert [one.target.node.label for one in found(built, Assign)] == ["y"]
    assert built.locals == ()


def test_a_reduction_is_indexed_by_what_it_uses() -> None:
    body = "y[i, j] = x[i, j] / sum[k](x[i, k])"
    total, _ = found(build(typed("y, x", body, X.copy(), X).procedure), Assign)
    assert total.target.node.static_shape == (4,)
    assert total.op is not None and total.initialize


def test_what_has_no_value_when_empty_is_checked_where_it_may_be() -> None:
    body = "for n in range(5):\n    y[n] = argmin[k < n](x[0, k])"
    checks = found(build(typed("y, x", body, np.zeros(5, int), X).procedure), Check)
    assert [check.fault.code for check in checks] == ["CD0603"]
    never = build(typed("y, x", "y[i] = argmin[k](x[i, k])", np.zeros(4, int), X).procedure)
    assert not found(never, Check)


@pytest.mark.parametrize("test", ["j < i % 4", "j < min(i, 9 - i)", "j < i * (9 - i) // 4"])
def test_trap_the_array_of_a_reduction_is_as_wide_as_its_range_ever_gets(
    test: str, backend: str
) -> None:
    text = f"def f(a, x):\n    if {test}:\n        a[i, j] = sum[k](x[i, j, k]) * 2\n"
    x, a, expected = np.arange(300.0).reshape(10, 10, 3), np.zeros((10, 10)), np.zeros((10, 10))
    pe.cd_from_source(text, backend=backend)(a, x)
    for i, j in np.ndindex(10, 10):
        if eval(test):
            expected[i, j] = x[i, j].sum() * 2
    np.testing.assert_array_equal(a, expected)


@pytest.mark.parametrize("dtype", [int, float])
def test_rows_of_different_lengths_have_something_where_one_has(dtype: type, backend: str) -> None:
    x = np.arange(12).reshape(3, 4).astype(dtype)
    for name, best in (("max", 9), ("argmax", 5)):
        text = f"def f(x, n):\n    return {name}[i in range(n), j < i](x[i, j])\n"
        made = pe.cd_from_source(text, backend=backend)
        assert made(x, 3) == best
        for n in (0, 1):
            if dtype is float and name == "max":
                assert made(x, n) == -np.inf
                continue
            with pytest.raises(pe.CdError, match=f"`{name}` of no elements has no value"):
                made(x, n)
    body = "return argmax[i, j <= i + 1](x[i, j])"
    assert not found(build(typed("x", body, x).procedure), Check)


@pytest.mark.parametrize(
    ("body", "sums"),
    [
        ("y[i, j] = sum[k](x[i, k])", (4,)),
        ("y[i, j] = sum[k](x[k, j])", (4,)),
        ("y[:] = x.sum(axis=0)", (4,)),
        ("y[:] = x.sum()", ()),
        ("y[i, j] = sum[k](x[i, k] * j)", (4, 4)),
        ("if i < j:\n    y[i, j] = sum[k](x[i, k])", (4, 4)),  # some may have no place
        ("if x[j, 0] > 0:\n    y[i, j] = sum[k](x[i, k])", (4,)),
        ("if x[i, 0] > 0 and x[j, 0] > 0:\n    y[i, j] = sum[k](x[i, k])", (4,)),
        ("y[:] = np.where(x > 0, x / x.sum(), 0)", ()),
        ("y[i, j] = sum[k](x[k, 0] ** k) if x[i, j] > 0 else 0.0", ()),
        ("y[i, j] = sum[k](x[i32(x[k, 0]), k]) if x[i, j] > 0 else 0.0", (4, 4)),  # may be outside
    ],
)
def test_a_sum_that_is_the_same_along_an_axis_is_computed_once(
    body: str, sums: tuple[int, ...]
) -> None:
    square = X[:, :1] + np.arange(4.0)
    built = build(typed("y, x", body, square.copy(), square).procedure)
    shapes = [one.target.node.static_shape for one in found(built, Assign) if one.op is not None]
    assert shapes == [sums]


@pytest.mark.parametrize(
    ("test", "term"),
    [
        ("i < j", "x[i + 1, k]"),
        ("j < n", "x[i + 1, k]"),
        ("j < i and i < n", "x[i - 1, k]"),
        ("j < n and i < j", "x[i + 1, k]"),
        ("j < n", "x[i32(x[i + 2, 0]), k]"),
        ("i < j and x[i + 1, 0] != 9", "x[i, k]"),
        ("j < i - 1 and x[i - 2, 3] != 9 and i > n", "x[i, k]"),
    ],
)
@pytest.mark.parametrize("more", ["", " + x[0, 0]"])
def test_a_sum_that_no_element_has_reads_nothing(
    test: str, term: str, more: str, backend: str
) -> None:
    text = f"def f(y, x, n):\n    if {test}:\n        y[i, j] = sum[k]({term}){more}\n"
    made = pe.cd_from_source(text).on(backend)
    x = np.arange(16.0).reshape(4, 4) % 5 / 2
    for n in (0, 1) if "n" in test.split() else (0,):
        expected = np.zeros((4, 4))
        y = expected.copy()
        rows = {"i32": int, "x": x, "n": n}
        try:
            for i, j in np.ndindex(4, 4):
                if eval(test, {}, {**rows, "i": i, "j": j}):
                    terms = (eval(term, {**rows, "i": i, "k": k}) for k in range(4))
                    expected[i, j] = sum(terms) + (x[0, 0] if more else 0)
        except IndexError:
            with pytest.raises(IndexError):
                made(y, x, n)
            continue
        made(y, x, n)
        np.testing.assert_allclose(y, expected)
