"""Equal nests run once: what goes, and everything that keeps two apart."""

from __future__ import annotations

import pytest

from plusequals.lowering.passes.repeated import repeated

from .shown import lowered, text_of

ARRAYS = {"y": "f32[8]", "x": "f32[8, 9]", "p": "i64[8]"}
SUMS = "t[i] = sum(x[i, j])\n"

GONE = [
    SUMS + "u[i] = sum(x[i, k])\ny[i] = t[i] - u[i]",
    SUMS + "u[i] = sum(x[i, k])\nv[i] = t[i] * 2\nw[i] = u[i] * 2\ny[i] = v[i] + w[i]",
    "y[i] = 0\n" + SUMS + "for s in range(2):\n    u[i] = sum(x[i, j])\n    v[i] = sum(x[i, k])\n"
    "    y[i] += u[i] * v[i] + t[i]",
]


@pytest.mark.parametrize("body", GONE)
def test_the_second_goes(body: str) -> None:
    program = lowered(body, **ARRAYS)
    new = repeated(program)
    assert len(new.locals) < len(program.locals)
    assert text_of(new).count("x[i, ") < text_of(program).count("x[i, ")
    assert repeated(new) == new


KEPT = [
    SUMS + "x[0, 0] = 1\nu[i] = sum(x[i, k])\ny[i] = t[i] - u[i]",
    SUMS + "u[i] = max(x[i, k])\ny[i] = t[i] - u[i]",
    SUMS + "u[i] = sum(x[i, k])\nu[0] = 1\ny[i] = t[i] - u[i]",
    SUMS + "u[i] = sum(x[i, k])\nt[0] = 1\ny[i] = t[i] - u[i]",
    SUMS + "u[i] = sum[k in range(8)](x[i, k])\ny[i] = t[i] - u[i]",
    "for s in range(2):\n    t[i] = x[i, s]\n    if s == 1:\n        break\n    u[i] = x[i, s]\n"
    "    y[i] += t[i] * u[i]",
]


@pytest.mark.parametrize("body", KEPT)
def test_what_differs_stays(body: str) -> None:
    program = lowered(body, **ARRAYS)
    assert repeated(program) == program


def test_a_check_that_has_passed_is_not_made_again() -> None:
    program = lowered("y[i] = x[i, p[i]]\ny[i] += x[i, p[i]] * 2", **ARRAYS)
    assert text_of(program).count("check ") == 2
    assert text_of(repeated(program)).count("check ") == 1
    other = lowered("y[i] = x[i, p[i]]\np[0] = 1\ny[i] += x[i, p[i]] * 2", **ARRAYS)
    assert text_of(repeated(other)).count("check ") == 2
