"""What was evaluated stays what it was when a call behind it writes what it was read from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plusequals as pe


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


@pytest.mark.parametrize("body", ["x[0] += bump(x)", "x[1] *= bump(x)", "x[:] += bump(x)",
                                  "i = 1; x[i - 1] -= 3 * bump(x)"])  # fmt: skip
def test_what_is_added_to_was_read_before(body: str, backend: str) -> None:
    text = f"def f(x):\n    {body}\n    return x\n"
    world: dict[str, Any] = {"bump": bump}
    exec(text, world)
    wanted = world["f"](np.array([1.0, 5.0]))
    found = pe.cd_from_source(text, {"bump": bump}, backend=backend)(np.array([1.0, 5.0]))
    np.testing.assert_array_equal(found, wanted)
