"""What was evaluated stays what it was when a call behind it writes what it was read from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plusequals as pe
from tests.compare import assert_same


def bump(x: Any) -> Any:
    x[0] += 1
    return x[0]


def pair(a: Any, b: Any, c: Any = 0) -> Any:
    return 100 * a + 10 * b + c


@pytest.mark.parametrize(
    "body",
    [
        "x[0] + bump(x)",
        "bump(x) + 10 * bump(x) + 100 * x[0]",
        "x[0] < bump(x), bump(x) < bump(x), 0 < x[0] < bump(x) < bump(x)",
        "x[0], bump(x), [x[0], bump(x)][0], (x[0], (x[0], bump(x)))[1][0]",
        "pair(x[0], bump(x), x[0]), max(x[0], bump(x), x[0])",
        "(x * 2 + bump(x))[0], (x[[0, 1]] + bump(x))[0], (x + bump(x))[0]",
        "np.where(x > 1, x, bump(x))[0], (x[0] > 1, bump(x))[0]",
    ],
)
def test_it_is_pythons_order(body: str) -> None:
    world = {"np": np, "bump": bump, "pair": pair}
    text = f"lambda x: ({body})"
    mine, given = np.array([1.0, 5.0]), np.array([1.0, 5.0])
    found = pe.cd_from_source(text, world, backend="numpy")(mine)
    assert found == eval(text, world)(given)
    np.testing.assert_array_equal(mine, given)


def one(x: Any) -> Any:
    x[:] = x + 10
    return 1


def copied(x: Any) -> Any:
    x[:] = x + 10
    return x.copy()


def two(x: Any) -> Any:
    x[:] = x + 10
    return x[0], x[1]


@pytest.mark.parametrize(
    "body",
    [
        "(x * 2)[one(x)]",
        "(x * 2)[one(x):][0]",
        "(x[0], x[1], x)[one(x)], (x[0], x * 2)[one(x)][0]",
        "x[1:][one(x) - 1], (x + 1).T[one(x)]",
        "(x * 2).dot(copied(x))",
        "(x * 2).clip(one(x), 4)[1]",
        "(x * 2).sum(axis=one(x) - 1)",
        "(x * 2).reshape(one(x), 2)[0, 0]",
        "[x[0], *two(x)], (x[0],) + two(x), [*(x * 2), one(x), *x]",
        "max(x[0], *two(x)), pair(x[0], *two(x))",
        "(x[x > 1], one(x))[0].sum(), x[x > 1].sum() + one(x)",
        "(lambda q, r: q + r)(x[0], r=one(x))",
    ],
)
def test_what_owns_a_subscript_or_a_method_is_evaluated_first(body: str) -> None:
    world = {"one": one, "copied": copied, "two": two, "pair": pair}
    text = f"lambda x: ({body})"
    mine, given = np.array([1.0, 5.0]), np.array([1.0, 5.0])
    assert_same(pe.cd_from_source(text, world, backend="numpy")(mine), eval(text, world)(given))
    assert_same(mine, given)


@pytest.mark.parametrize("body", ["x[0] += bump(x)", "x[1] *= bump(x)", "x[:] += bump(x)",
                                  "i = 1; x[i - 1] -= 3 * bump(x)"])  # fmt: skip
def test_what_is_added_to_was_read_before(body: str, backend: str) -> None:
    text = f"def f(x):\n    {body}\n    return x\n"
    world: dict[str, Any] = {"bump": bump}
    exec(text, world)
    wanted = world["f"](np.array([1.0, 5.0]))
    found = pe.cd_from_source(text, {"bump": bump}, backend=backend)(np.array([1.0, 5.0]))
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    "body",
    [
        "(a[:, m], copied(a))[0].sum(axis=1)",
        "len((a[:, m], one(a))[0])",
        "(a[m2], one(a))[0].sum(axis=0)",
        "a[:, m].sum(axis=1) + one(a)",
    ],
)
def test_a_selection_keeps_its_place_among_the_axes(body: str) -> None:
    world, text = {"one": one, "copied": copied}, f"lambda a, m, m2: {body}"
    masks = np.array([True, False, True]), np.array([False, True])
    mine, given = np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(2, 3)
    found = pe.cd_from_source(text, world, backend="numpy")(mine, *masks)
    assert_same(found, eval(text, world)(given, *masks))
    assert_same(mine, given)
