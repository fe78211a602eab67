"""Index variables that reductions bind: in tests, ranges and slices, and what guards are on."""

from __future__ import annotations

import numpy as np
import pytest

from plusequals.base.diagnostic import CdError
from tests.compare import assert_same
from tests.language.ask import run

X = np.arange(9.0)
SQUARE = X.reshape(3, 3)
PLACES = {
    "while sum(x[i]) > 3: x -= 1\nreturn x": X - 4,
    "while max[k](x[k]) > 3: x[i] -= 1\nreturn x": X - 5,
    "if sum(x[i]) > 3: return 1\nreturn 0": 1,
    "if x[0] > 5: return 1\nelif min(x[i]) > 3: return 2\nreturn 3": 3,
    "s = 0\nfor k in range(int(max(x[i]))): s += k\nreturn s": 28,
    "return x[:int(max(x[i])) - 5]": X[:3],
    "return [sum(x[i] * m) for m in range(3)]": [0.0, 36.0, 72.0],
    "return np.zeros(int(max(x[i])))": np.zeros(8),
    "x[:2] = mean(x[i])\nreturn x": np.r_[4, 4, X[2:]],
    "x += sum(x[i])\nreturn x": X + 36,
    "x[int(min(x[i]))] = 7\nreturn x": np.r_[7, X[1:]],
    "return sum(v for v in x if v < mean(x[i]))": 6.0,
}


@pytest.mark.parametrize(("body", "expected"), PLACES.items())
def test_a_reduction_of_all_its_letters_is_a_number_everywhere(
    backend: str, body: str, expected: object
) -> None:
    assert_same(run(backend, "x", body, X.copy()), expected)


GUARDS = {
    "if max[k](x[k]) > 3: y[i] = 1\nelse: y[i] = 2": np.ones(3),
    "if sum(x[k]) < 3: y[i] = 1\nelse: y[i] = 2": np.full(3, 2.0),
    "if a[i, 0] > mean(x[j]): y[i] = 1": np.array([0.0, 0, 1]),
    "if a[i, 0] > mean(x[j]):\n    y[i] = 1\n    y[i] += a[i, 1]\nelse:\n    y[i] = 5": np.array(
        [5.0, 5, 8]
    ),
    "if sum(a[i, j]) > 3: y[i] = 1": np.array([0.0, 1, 1]),
    "if sum[j](a[i, j]) > 3: y[i] = 1": np.array([0.0, 1, 1]),
    "if max[k <= i](x[k]) > 1: y[i] = 1": np.array([0.0, 0, 1]),
    "if i < max(x[j]) - 6: y[i] = 1": np.array([1.0, 1, 0]),
    "if a[i, 0] > mean(x[j]): y[i] += a[i, j]": np.array([0.0, 0, 21]),
    "if i > 0:\n    if max[k](x[k]) > 1: y[i] = 1": np.array([0.0, 1, 1]),
    "if any(x[k] > 7):\n    for t in range(3): y[i] += t": np.full(3, 3.0),
}


@pytest.mark.parametrize(("body", "expected"), GUARDS.items())
def test_what_a_reduction_in_a_test_binds_is_no_letter_of_the_guard(
    backend: str, body: str, expected: np.ndarray
) -> None:
    y = np.zeros(3)
    run(backend, "y, x, a", body, y, X, SQUARE)
    assert_same(y, expected)


def test_a_guard_reads_what_its_reduction_reads_on_entry(backend: str) -> None:
    x = X.copy()
    run(backend, "x", "if x[i] > mean(x[j]): x[i] = 0", x)
    assert_same(x, np.where(X > 4, 0, X))


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("if max(x[i]) > 3: x[i] -= 1", "CD0509.*left of a statement inside the `if`"),
        ("if x[i] > mean(x[j]): a[i, j] = 1", "CD0509.*left of a statement inside the `if`"),
        ("if max(x[i]) > 3:\n    for t in range(3): x[i] = t", "CD0509"),
        ("if x[i] > max(x[i]): a[j, 0] = 1", "CD0515.*`i`"),
        ("while x[i] > 3: x -= 1", "CD0519.*`i` is not reduced"),
        ("for k in range(int(x[i])): x -= 1", "CD0519.*`i` is not reduced"),
    ],
)
def test_a_letter_that_nothing_binds_is_named(body: str, code: str) -> None:
    with pytest.raises(CdError, match=code):
        run("numpy", "x, a", body, X.copy(), SQUARE.copy())
