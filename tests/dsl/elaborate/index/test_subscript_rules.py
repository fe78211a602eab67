"""Captured letters and slices beside letters are refused; slice objects are not."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.base.diagnostic import CdError
from tests.compare import assert_same
from tests.language.ask import plain, run

X = np.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize("body", ["y[i] = x[i, 0]\nreturn y", "return x[i]", "x[0, i] = 1.0"])
def test_a_captured_number_is_no_index_letter(body: str) -> None:
    with pytest.raises(CdError) as caught:
        run("numpy", "x", body, X, i=1)
    problem = caught.value.diagnostics[0]
    assert problem.code == "CD0203" and "the number 1" in problem.message
    assert any("i + 0" in text for text in problem.helps)


@pytest.mark.parametrize(
    ("params", "body", "names"),
    [
        ("x, i", "return x[i]", {}),
        ("x, n", "i = n\nreturn x[i]", {}),
        ("x, n", "for i in range(2):\n    pass\nreturn x[i + 0]", {}),
        ("x, n", "return x[i + 0]", {"i": 1}),
        ("x, n", "return x[row]", {"row": 1}),
        ("x, n", "return x[i:][0]", {"i": 1}),
        ("x, n", "i = n\ndef g():\n    return x[i]\nreturn g()", {"i": 0}),
    ],
)
def test_numbers_of_the_function_and_plain_ones_index(
    params: str, body: str, names: dict[str, Any]
) -> None:
    assert_same(run("numpy", params, body, X, 1, **names), X[1])


def test_slices_beside_letters_are_written_both_ways() -> None:
    with pytest.raises(CdError) as caught:
        run("numpy", "x, y", "y[i] = sum(x[i, 1:])", X, np.zeros(2))
    problem = caught.value.diagnostics[0]
    assert problem.code == "CD0508"
    assert "`x[i, j]`" in problem.helps[0] and "`x[:, 1:]`" in problem.helps[1]


def test_slices_beside_loop_variables_are_fine() -> None:
    x = X.copy()
    run("numpy", "x", "for i in range(2):\n    x[i, 1:] = i", x)
    assert_same(x, np.array([[0.0, 0, 0], [3, 1, 1]]))


def helper(x: float) -> float:
    return x + 1.0


@pytest.mark.parametrize("body", ["y[m, i] = x[m, i]", "y[i, m] = x[i, m] * 2", "t[m] = x[m, 0]"])
@pytest.mark.parametrize("outside", [math, helper, np.exp, float, pe.cd(helper)])
def test_a_captured_function_or_module_is_no_index_letter(body: str, outside: object) -> None:
    with pytest.raises(CdError) as caught:
        run("numpy", "x, y", body, X, X.copy(), m=outside)
    problem = caught.value.diagnostics[0]
    assert problem.code == "CD0203"
    kind = "`m` looks like an index letter, but is the (module|function|type) `"
    assert re.match(kind, problem.message)
    assert problem.helps[0] in ("use another letter: `j`", "use another letter: `i`")


def test_a_function_is_a_key_where_no_array_is() -> None:
    assert run("numpy", "x", "return x * d[h]", 2.0, h=helper, d={helper: 3.0}) == 6.0


A = np.arange(60.0).reshape(3, 4, 5)
SLICE = slice(1, 3)
WRITTEN = (
    "A[s]", "A[s, 1]", "A[..., s]", "A[s, None, s]", "A[:, s][s]", "A[::-1][b]", "A[s, b, -1]",
    "A[p]", "A[q]", "A[p + (s,)]", "A[(s, 1)]", "A[p, 0]", "A[p, p]", "A[p,]", "A[(1, 2),]",
    "A[(0, 1), (2, 3)]", "A[np.s_[1:, ::2]]", "A[np.s_[1, ...]]", "A[slice(2)]",
    "A[slice(0, n, 2)]", "A[np.index_exp[1:3, 0]]", "A[e]", "A[gather]",
    "A[()][s]", "A[s].T[s]", "A[s][:0]", "A[x]",
)  # fmt: skip
NAMES = {
    "s": SLICE, "b": slice(None, None, -2), "p": (1, 2), "q": (slice(None), None, 1, ...),
    "e": (), "gather": ((0, 2), slice(None), [1, 3]), "x": (np.array([0, 1]), np.array([2, 1])),
}  # fmt: skip


@pytest.mark.parametrize("text", WRITTEN)
def test_slice_objects_and_tuples_are_as_if_written_in_place(text: str, backend: str) -> None:
    expected = plain("A, n", f"return {text}", A, 3, **NAMES)
    assert_same(run(backend, "A, n", f"return {text}", A, 3, **NAMES), expected)


@pytest.mark.parametrize(
    "body",
    ["A[s] = 0.0", "A[s, 1] += n", "A[q] *= 2.0", "A[p] = 7.0", "c = np.s_[1:3]\nA[c, 0] = n",
     "c = (1, slice(1, n))\nA[c] = -1.0", "row = A[s]\nrow[p] = 5.0",
     "for t in range(2):\n    A[slice(t, t + 2)] += 1.0", "c = ()\nA[c] = 1.0", "A[p,] = 3.0",
     "for c in (slice(0, 2), slice(2, 4)):\n    A[:, c] *= 2.0"],
)  # fmt: skip
def test_they_are_places_too(body: str, backend: str) -> None:
    names = {**NAMES, "p": (1, 1)} if "row" in body else NAMES
    got, expected = A.copy(), A.copy()
    run(backend, "A, n", body, got, 3, **names)
    plain("A, n", body, expected, 3, **names)
    assert_same(got, expected)


def test_another_slice_is_another_specialisation() -> None:
    holder = {"np": np, "s": slice(1, 3)}
    function = pe.cd_from_source("def f(x):\n    return x[s]", holder)
    assert function(np.arange(4.0)).tolist() == [1.0, 2.0]
    holder["s"] = slice(2, None)
    assert function(np.arange(4.0)).tolist() == [2.0, 3.0]


@pytest.mark.parametrize(
    ("body", "code", "help"),
    [
        ("return x[math]", "CD0401", "`x[1:3]`"),
        ("return x['a']", "CD0401", "`x[1:3]`"),
        ("return x[slice(x[0, 0], 2)]", "CD0443", "`x[a:b]`"),
        ("return x[slice()]", "CD0440", "`slice(1, 3)`"),
        ("return x[slice(0, 1.5)]", "CD0501", "`int(...)`"),
        ("return x[s, s, s]", "CD0502", "`x[:, None]`"),
        ("y[i] = sum(x[i, s])", "CD0508", "`x[:, s]`"),
    ],
)
def test_what_is_no_subscript_says_what_is(body: str, code: str, help: str) -> None:
    with pytest.raises(CdError) as caught:
        run("numpy", "x, y", body, X, np.zeros(2), s=SLICE)
    problem = caught.value.diagnostics[0]
    assert problem.code == code
    assert any(help in text for text in problem.helps)
