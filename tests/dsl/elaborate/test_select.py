"""`x if test else y` where the run decides: numbers, and arrays of one shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.base.diagnostic import CdError
from tests.compare import assert_same
from tests.language.ask import run

X, Y = np.arange(4.0), np.arange(4.0) * 10


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("x if y[1] > 5 else y", X),
        ("x if y[1] < 5 else y", Y),
        ("x[1:] if y[1] < 5 else y[:3]", Y[:3]),
        ("x[0] if y[1] > 5 else 2.5", np.float64(0.0)),
        ("(x + 1 if y[1] > 5 else y) * 2", (X + 1) * 2),
        ("y[0] or x[1]", np.float64(1.0)),
        ("(x, y) if y[1] > 5 else (y, x)", (X, Y)),
        ("[x + 1, 2.5] if y[1] < 5 else [y, x[1]]", [Y, np.float64(1.0)]),
    ],
)
def test_a_choice_is_what_python_gives(expression: str, expected: object) -> None:
    assert_same(run("numpy", "x, y", f"return {expression}", X, Y), expected)


@pytest.mark.parametrize(
    ("expression", "code"),
    [
        ("x if y[1] > 5 else y[1:]", "CD0301"),
        ("x if y[1] > 5 else x[None]", "CD0463"),
        ("x if y[1] > 5 else 0.0", "CD0463"),
        ("0.0 if y[1] > 5 else x", "CD0463"),
        ("(x, y) if y[1] > 5 else x", "CD0463"),
        ("(x, y) if y[1] > 5 else [x, y]", "CD0463"),
        ("(x, y) if y[1] > 5 else (x,)", "CD0463"),
    ],
)
def test_a_choice_has_one_shape(expression: str, code: str) -> None:
    with pytest.raises(CdError) as caught:
        run("numpy", "x, y", f"return {expression}", X, Y)
    assert caught.value.code == code


@pe.cd
def _by_size(x: Any) -> Any:
    return x[:4] * 2 if len(x) >= 4 else x


def test_a_test_of_sizes_decides_between_arrays_of_different_sizes() -> None:
    for n in (2, 4, 6, 3, 7, 1, 8):  # run-time sizes from the fourth on
        x = np.ones(n)
        np.testing.assert_array_equal(_by_size(x), x[:4] * 2 if n >= 4 else x)
