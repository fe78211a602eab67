"""Branches: decided while compiling, or both sides with names that meet in one place."""

from __future__ import annotations

import numpy as np
import pytest

from plusequals.lowering.diagnostic import CdError
from plusequals.lowering.ir.assignments import Assign, Branch
from tests.compare import assert_same
from tests.language.ask import plain, run

from .scenes import found, typed

X = np.array([[1.0, -2.0, 3.0], [0.5, 4.0, -6.0]])
BRANCHES = {
    "numbers meet in the wider type": "if t > 0:\n    y = 1\nelse:\n    y = 2.5\nreturn y",
    "arrays meet": "if t > 0:\n    y = x * 2.0\nelse:\n    y = x - 1.0\nreturn y",
    "groups meet": "if t > 0:\n    y = (1, x[0, 0])\nelse:\n    y = (2, 0.5)\nreturn y[0], y[1]",
    "before and after": "y = 1.0\nif t > 0:\n    y = y + 1.0\nreturn y * 2.0",
    "a tail return": "if t > 0:\n    return x[0, 0]\nreturn x[1, 1]",
    "returns on both sides": "if t > 0:\n    return x * 1.0\nelse:\n    return x * 2.0",
    "a chain": (
        "if t > 2:\n    y = 1.0\nelif t > 0:\n    y = 2.0\nelif t > -2:\n    y = 3.0\nelse:\n"
        "    y = 4.0\nreturn y"
    ),
    "in place": "if t > 0:\n    x[0] = 0.0\nelse:\n    x[1] += 1.0\nreturn x",
    "a raise on one side": "if t > 99:\n    raise ValueError('no')\nelse:\n    y = 1.0\nreturn y",
    "a branch on an element": (
        "if x[0, 1] < t and x[0, 0] > 0:\n    y = 1\nelse:\n    y = 0\nreturn y"
    ),
    "unused sides": "if t > 0:\n    z = 1.0\nelse:\n    w = 2.0\nreturn x[0, 0]",
}


@pytest.mark.parametrize("t", [3.0, 1.0, -1.0, -3.0])
@pytest.mark.parametrize("body", BRANCHES.values(), ids=BRANCHES)
def test_branches_do_what_python_does(body: str, t: float) -> None:
    mine, pythons = X.copy(), X.copy()
    got, expected = run("numpy", "x, t", body, mine, t), plain("x, t", body, pythons, t)
    assert np.all(np.asarray(got, float) == np.asarray(expected, float))
    assert_same(mine, pythons)


def test_numbers_of_two_types_meet_in_their_join() -> None:
    body = "if t > 0:\n    y = n\nelse:\n    y = x[0, 0]\nreturn y"
    got = run("numpy", "x, t, n", body, X.astype("f4"), 1.0, np.int32(3))
    assert (got, np.asarray(got).dtype) == (3.0, np.dtype("f8"))


def test_what_is_known_decides_and_leaves_no_branch() -> None:
    for test in ("x.ndim == 2", "flag", "len(x) > 1", "mode == 'a'", "not 0"):
        body = f"if {test}:\n    y = x[0, 0]\nelse:\n    y = nothing.at.all\nreturn y"
        form = typed("x, flag, mode", body, X, True, "a")
        assert not found(form.procedure, Branch), test


def test_names_that_agree_need_no_place_of_their_own() -> None:
    body = "y = x[0]\nif t > 0:\n    x[1] = y\nelse:\n    x[1] = -y\nreturn y"
    (both,) = found(typed("x, t", body, X, 1.0).procedure, Branch)
    assert [len(both.then), len(both.other)] == [1, 1]


def test_a_branch_at_each_point_becomes_a_selection() -> None:
    body = "def g(v):\n    if v > 0:\n        w = v\n    else:\n        w = 2.0 * v\n    return w\n"
    body += "y[i, j] = g(x[i, j])\nreturn y"
    form = typed("x", body, X)
    assert not found(form.procedure, Branch) and len(found(form.procedure, Assign)) == 1
    assert_same(run("numpy", "x", body, X), np.where(X > 0, X, 2.0 * X))


GUARDS = {
    "if x[i, j] > 0:\n    x[i, j] = 0.0\nelse:\n    x[i, j] = 1.0": np.where(X > 0, 0.0, 1.0),
    "if i == j:\n    x[i, j] = 9.0": np.where(np.eye(2, 3) > 0, 9.0, X),
    "if i < j:\n    if x[i, j] > 0:\n        x[i, j] = 9.0": [[1, -2, 9], [0.5, 4, -6]],
    "if x[i, 0] > 0.75:\n    x[i, 0] = -1.0\n    x[i, 1] = 5.0": [[-1, 5, 3], [0.5, 4, -6]],
}


@pytest.mark.parametrize(("body", "expected"), GUARDS.items())
def test_a_guard_is_decided_before_its_statements_write(body: str, expected: object) -> None:
    x = X.copy()
    run("numpy", "x", body, x)
    assert_same(x, np.array(expected, float))


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("if t > 0:\n    y = x\nelse:\n    y = x * 2.0\ny[0] = 1.0", "CD0202"),
        ("if t > 0:\n    y = 1.0\nreturn y", "CD0202"),
        ("if t > 0:\n    y = 1.0\nelse:\n    y = x\nreturn y", "CD0202"),
        ("if t > 0:\n    return 1.0\nreturn x", "CD0425"),
        ("if i < 1:\n    x[0, j] = 1.0", "CD0515"),
        ("if i < 1:\n    t = 1.0", "CD0515"),
        ("if x > 0:\n    t = 1.0", "CD0408"),
    ],
)
def test_what_does_not_meet_is_refused(body: str, code: str) -> None:
    with pytest.raises(CdError, match=code):
        run("numpy", "x, t", body, X.copy(), 1.0)
