"""Statements one by one: targets, places, augmented forms, what may not be assigned."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import pytest

from plusequals.base.diagnostic import CdError
from plusequals.lowering.ir.assignments import Assign, Block
from tests.compare import assert_same
from tests.language.ask import plain, refused, run

from .scenes import found, typed

X = np.arange(12.0).reshape(3, 4)
STATEMENTS = (
    "x[0] = 1.0",
    "x[1:, ::2] = x[:2, 1::2]",
    "x[1:] = x[:-1]",
    "x[0], x[1] = x[1] * 1.0, x[0] * 1.0",
    "(a, b), c = (x[0, 0], x[0, 1]), 2.0\nx[2, 2] = a + b + c",
    "[a, b] = 1.0, 2.0\nx[0, 0] = b",
    "x[0] += 1.0\nx[:, 1] -= 2.0\nx[2] *= 3.0\nx[1] /= 4.0\nx[1] //= 0.3\nx[2] %= 5.0\nx **= 2",
    "s = 2.0\ns *= 3.0\ns -= 1.0\nx[0, 0] = s",
    "x[x > 5.0] = 0.0",
    "x[x > 5.0] += 1.0",
    "x[x > 5.0] = -x[x > 5.0]",
    "x @= np.eye(4) * 2.0",
    "b = x > 3.0\nb &= x < 9.0\nb |= x == 0.0\nx[b] = -1.0",
    "n = 7\nn <<= 2\nn ^= 5\nn >>= 1\nx[0, 0] = n",
    "x.T[1] = 5.0",
    "x[0, 1] = x[0, 1]",
    "pass\nx[...] = 3.0",
    "x[[0, 2]] = 1.0",
    "x[[2, 0], [1, 1]] = x[0, :2]",
)


@pytest.mark.parametrize("body", STATEMENTS)
def test_a_statement_writes_what_numpy_writes(body: str) -> None:
    mine, numpys = X.copy(), X.copy()
    run("numpy", "x", body, mine)
    plain("x", body, numpys)
    assert_same(mine, numpys)


def test_what_follows_a_return_is_not_looked_at() -> None:
    assert run("numpy", "x", "return 1\nreturn nothing.at.all", X) == 1


def test_comments_name_blocks() -> None:
    form = typed("x", "with comment('first'):\n    x[0] = 1.0\n    x[1] = 2.0", X)
    (block,) = found(form.procedure, Block)
    assert block.comment == "first" and len(block.body) == 2


def test_a_whole_statement_is_one_assignment() -> None:
    for body in ("x[1:] += x[:-1] * 2.0", "x[i, j] += 2.0", "x[0] = np.exp(x[1]) + 1.0"):
        (only,) = found(typed("x", body, X).procedure, Assign)
        assert only.target.node.label == "x", body


def test_augmented_numbers_wrap_in_their_own_type() -> None:
    x = np.array([250, 3], np.uint8)
    run("numpy", "x", "x[0] += 10", x)
    assert_same(x, np.array([4, 3], np.uint8))


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("x = x + 1.0", "CD0206"),
        ("x[0, 0].real = 1.0", "CD0418"),
        ("x.w = x", "CD0418"),
        ("a, b = x[0, 0], 1.0, 2.0", "CD0419"),
        ("t = (1, 2)\nt[0] = 3", "a tuple does not change"),
        ("t = [1, 2]\nt[0] = 3", "lists keep their items here"),
        (
            "t = [[1, 2], [3, 4]]\nfor k in range(2):\n    t[0][k] = 3",
            r"`t = np.zeros\(\(n, m\)\)`",
        ),
        ("return x[x > 5.0]", "fill one in a loop"),
        ("return (1, [x[x > 5.0]])", "fill one in a loop"),
        ("y[i] = z[i] = x[i, 0]", "CD0517"),
        ("y[i] @= x[i, 0]", "CD0518"),
        ("with comment(x):\n    pass", "CD0417"),
        ("x + 1.0", "CD0146"),
    ],
)
def test_what_cannot_be_assigned_is_refused(body: str, code: str) -> None:
    own = types.SimpleNamespace(w=np.zeros(3))
    with pytest.raises(CdError, match=code):
        run("numpy", "x, y", body, X.copy(), np.zeros(3), own=own)


def turned(z: Any) -> Any:
    z[:] = z + 1
    return z


@pytest.mark.parametrize(
    "body",
    [
        "turned(z).real = 5",
        "turned(z).imag += 1",
        "turned(z).imag = z[0].real",
        "turned(z)[1:].real[0] *= 3",
    ],
)
def test_the_owner_of_a_part_is_evaluated_once_and_after_the_value(body: str) -> None:
    mine, given = np.array([1 + 2j, 3 + 4j]), np.array([1 + 2j, 3 + 4j])
    run("numpy", "z", body, mine, turned=turned)
    plain("z", body, given, turned=turned)
    assert_same(mine, given)


@pytest.mark.parametrize("sign", ["|", "&", "^"])
@pytest.mark.parametrize(("update", "value"), [("b[1] {}= n", "Python int"), ("b {}= x", "int64")])
def test_bits_of_bools_and_integers_are_told_by_the_sign_that_is_written(
    sign: str, update: str, value: str
) -> None:
    text = update.format(sign)
    arguments = np.zeros(2, bool), np.array([0, 1]), 1
    refusal = refused("b, x, n", text, *arguments, says=(f"`{sign}` of bool and {value} gives",))
    assert refusal.code == "CD0405"
