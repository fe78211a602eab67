"""Truth: tests, `and` and `or` that give an operand, `not`, as Python has them."""

from __future__ import annotations

import numpy as np
import pytest

from plusequals.base.diagnostic import CdError
from plusequals.dsl.elaborate.truth import is_bool
from plusequals.dsl.values.types import BOOL, TRUE, WEAK_INT
from plusequals.dsl.values.values import Scalar, Static
from tests.compare import assert_same
from tests.language.ask import plain, run

X = np.array([1.5, 0.0, 2.0])
N = np.array([0, 3, 4])
GIVES = {
    "the second": "return x[0] and x[2], x[1] or x[2]",
    "the first": "return x[1] and x[2], x[0] or x[2]",
    "one of three": "return x[0] and x[1] and x[2], x[1] or x[1] or x[2]",
    "bools": "return x[0] > 1 and n[1] > 1, x[0] > 9 or n[1] > 1, not x[0]",
    "a fallback": "y = n[0] or 7\nreturn np.zeros(3) + y",
    "in a test": "return 1 if x[0] and n[1] else 2, 1 if not (x[0] and n[0]) else 2",
    "at each round": (
        "s = 0.0\nfor k in range(3):\n    s = s * 10 + (x[k] or 5.0) * (n[k] and 2)\nreturn s"
    ),
    "one element": (
        "e = np.ones(1)\nk = 0\nwhile e > 0.1:\n    e = e / 2\n    k += 1\n"
        "return k, 1 if x[1:2] else 2, not x[:1], bool(x[None, 1:2]), bool(1j * x[0])"
    ),
    "short circuit": "k = 3\nreturn 1 if k < 3 and x[k] > 0 else 0",
}


@pytest.mark.parametrize("body", GIVES.values(), ids=GIVES)
def test_and_and_or_give_an_operand(body: str, backend: str) -> None:
    assert_same(run(backend, "x, n", body, X.copy(), N.copy()), plain("x, n", body, X, N))


@pytest.mark.parametrize(("a", "b"), [(3, 5), (0, 5), (2.5, 0.0), (True, False)])
def test_run_time_python_numbers_give_an_operand(a: object, b: object, backend: str) -> None:
    body = "return a and b, a or b"
    assert_same(run(backend, "a, b", body, a, b), plain("a, b", body, a, b))


def test_a_whole_array_has_no_truth() -> None:
    with pytest.raises(CdError, match="CD0408"):
        run("numpy", "x", "return x and 1", X.copy())


class _Switch:
    def __bool__(self) -> bool:
        return False


class _Plain:
    pass


def test_objects_are_true_unless_their_class_says_what_they_are() -> None:
    assert run("numpy", "m", "return 1 if m else 2", _Plain()) == 1
    for one in (_Switch(), {"a": 1}):
        with pytest.raises(CdError, match="CD0408.*is what its class says"):
            run("numpy", "m", "return 1 if m else 2", one)


def test_what_is_one_bool() -> None:
    assert is_bool(Static(True))
    assert is_bool(Scalar(TRUE, BOOL))
    assert not is_bool(Static(1))
    assert not is_bool(Scalar(TRUE, WEAK_INT))
