"""Numbers that look like letters, and slices beside letters, are refused with both ways out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from plusequals.lowering.diagnostic import CdError
from tests.compare import assert_same
from tests.language.ask import run

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
