"""What is evaluated only where a test holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plusequals as pe


def first(a: Any, b: Any) -> Any:
    return a[0] - b


def bump(x: Any) -> Any:
    x[0] += 1
    return x[0]


def steps(n: Any) -> int:
    s = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        s += 1
    return s


def small(n: Any) -> Any:
    assert n < 5
    return n


def firsts(x: Any, k: Any) -> Any:
    t = np.zeros(int(x[k]))
    t[0] = x[k]
    return t


BODIES = (
    "k >= 1 and first(a[n[k - 1]], 1) <= 0, x[0]",
    "k >= 1 and bump(x) > 0, x[0]",
    "k < 1 or bump(x) > 7, x[0]",
    "bump(x) if k > 1 else 7.0, x[0]",
    "x[0] > 1 and bump(x) > 1 and bump(x) > 2, x[0]",
    "k > 0 and steps(k) > 0",
    "3 if k < 5 else small(k)",
    "0 < k < first(a[n[k - 1]], -9) < 2 + first(a[n[k - 1]], -9)",
    "k < 3 and np.sort(x[int(x[k]):])[0] > 1",
    "k == 1 and firsts(x, 2 * k).sum() > 1",
    "first(np.linalg.solve(np.array([[x[k]]]), x[:1]), 0) if k != 1 else -1.0",
)


@pytest.mark.parametrize("body", [*BODIES, f"not ({BODIES[0][:-6]})"])
def test_what_stands_behind_is_done_only_where_the_test_holds(body: str) -> None:
    text = f"lambda x, a, n, k: ({body})"
    world = {"np": np, "first": first, "bump": bump, "steps": steps, "small": small,
             "firsts": firsts}  # fmt: skip
    plain, function = eval(text, world), pe.cd_from_source(text, world)
    for k in (0, 1, 2):
        given, mine = _given(), _given()
        wanted = plain(*given, k)
        with pe.override(optimize=0, backend="numpy" if body in BODIES else "cc"):
            assert function(*mine, k) == wanted
        np.testing.assert_array_equal(mine[0], given[0])


def _given() -> tuple[np.ndarray, ...]:
    return np.array([1.0, 0.0, 2.0]), -np.ones((2, 2)), np.array([1, 0])


@pytest.mark.parametrize(
    "body",
    [
        "0 < x[0] < 9", "9 < x[0] < 10", "k > 0 and x[0] > 0", "x[0] > 0 or k > 5", "0 < k < 5",
        "True and x[0] > 0", "not 0 < x[0] < 9", "k < 9 and 0 < x[2] < 9",
    ],
)  # fmt: skip
def test_bools_of_elements_are_numpys(body: str) -> None:
    text = f"lambda x, k: (~({body}), ({body}) + ({body}), x * ~({body}))"
    plain, function = eval(text), pe.cd_from_source(text)
    x, _, _ = _given()
    for got, wanted in zip(function.on("numpy")(x, 2), plain(x, 2), strict=True):
        np.testing.assert_array_equal(got, wanted)
        assert np.asarray(got).dtype == np.asarray(wanted).dtype
