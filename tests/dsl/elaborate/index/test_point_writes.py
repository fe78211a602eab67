"""What statements of index notation call writes nothing that others see."""

from __future__ import annotations

import numpy as np
import pytest

from tests.compare import assert_same
from tests.language.ask import refused, run

HELPERS = """
def bump(v):
    v[0] += 1
    return v[0]
def old(v):
    first = v[0]
    v[:] = 0
    return first
def double(v):
    w = v.copy()
    return 2 * w.sum()
"""

WRITING = (
    "y[i] = old(x) + y[i]",
    "y[i] = x[i] * bump(x)",
    "y[i] += x[j] * bump(x)",
    "y[i] = sum(x[j] * old(x))",
    "s = sum(x[j] * old(x))",
    "y[i] = x[i] if old(x) > 0 else 1.0",
    "if bump(x) > 0 and i > 0:\n    y[i] = 1",
    "y[i] = x[i] + np.cumsum(x, out=x)[i]",
    "y[i] = 1.0 if x.fill(3) is None else x[i]",
)


@pytest.mark.parametrize("body", WRITING)
def test_a_call_that_writes_what_it_did_not_make_is_refused(body: str) -> None:
    problem = refused("x, y", f"{HELPERS}{body}", np.ones(3), np.ones(3), says=("writes `x`,",))
    assert problem.code == "CD0522"


PURE = {
    "y[i] = double(x) + y[i]": [13.0, 13, 13],
    "y[i] = sum(x[j] * double(x))": [72.0] * 3,
    "s = sum(x[j]) + old(x) + sum(x[j])\ny[i] = s": [7.0] * 3,
    "t = bump(x)\ny[i] = t * x[i]": [4.0, 4, 6],
    "y[int(bump(x))] = 5.0\ny[i] += x[i]": [3.0, 3, 8],
}


@pytest.mark.parametrize(("body", "expected"), PURE.items())
def test_others_and_calls_in_statements_of_their_own_are_not(
    body: str, expected: list[float], backend: str
) -> None:
    y = run(backend, "x, y", f"{HELPERS}{body}\nreturn y", np.array([1.0, 2, 3]), np.ones(3))
    assert_same(y, np.array(expected))
