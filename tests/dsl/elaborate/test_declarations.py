"""Declarations make zeros for locals and are contracts for parameters."""

from __future__ import annotations

import typing

import numpy as np
import pytest

from plusequals import cd_from_source, f64
from plusequals.base.diagnostic import CdError
from plusequals.lowering.ir.assignments import Check
from tests.compare import assert_same
from tests.language.ask import run

from .scenes import found, typed

X = np.arange(6.0).reshape(2, 3)


def test_a_local_is_zeros_of_its_type_and_sizes() -> None:
    got = run("numpy", "x, n", "t: i32[n, 2 * n + 1]\nreturn t", X, 2)
    assert_same(got, np.zeros((2, 5), "i4"))


def test_a_local_is_zero_again_in_each_round() -> None:
    body = "for k in range(3):\n    t: f64[2]\n    t[0] += k\n    x[0, k] = t[0]"
    x = X.copy()
    run("numpy", "x", body, x)
    assert_same(x[0], np.array([0.0, 1.0, 2.0]))


def test_a_number_and_a_value_at_once() -> None:
    assert_same(run("numpy", "x", "s: f32\ns += 1.5\nreturn s", X), np.float32(1.5))
    assert_same(run("numpy", "x", "y: f64[2, 3] = x * 2.0\nreturn y", X), X * 2.0)


def test_a_contract_that_holds_leaves_nothing_behind() -> None:
    assert not found(typed("x", "x: f64[2, 3]\nx[0, 0] = 1.0", X).procedure, Check)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("x: f32[2, 3]", "CD0421"),
        ("x: f64[6]", "CD0421"),
        ("x: f64[2, 4]", "CD0301"),
        ("t: nonsense[3]", "CD0201"),
        ("t: np[3]", "CD0420"),
        ("t: f64['n m']", "CD0420"),
        ("t: f64[2.5]", "CD0420"),
        ("x[0]: f64[3]", "CD0143"),
    ],
)
def test_what_declares_nothing_or_something_else_is_refused(body: str, code: str) -> None:
    with pytest.raises(CdError, match=code):
        run("numpy", "x", body, X)


def test_a_contract_may_have_a_name_or_stand_in_annotated() -> None:
    row = f64[3]
    names = {"f64": f64, "Row": row, "typing": typing, "Annotated": typing.Annotated, "np": np}
    names["Either"] = typing.Annotated[np.ndarray, row]
    for note in ("Row", "Annotated[np.ndarray, Row]", "Either", "typing.Annotated[int, f64[3]]"):
        text = f"def f(x: {note}):\n    t: {note}\n    t += x\n    return t"
        f = cd_from_source(text, names, backend="numpy")
        assert_same(f(np.ones(3)), np.ones(3))
        with pytest.raises(CdError, match="CD0301"):
            f(np.ones(2))
    names["Row"] = f64[2]
    f = cd_from_source("def f(x: Row):\n    return x + 1", names, backend="numpy")
    assert_same(f(np.ones(2)), np.full(2, 2.0))
    names["Row"] = row
    with pytest.raises(CdError, match="CD0301"):
        f(np.ones(2))
