"""Prints, asserts and raises act in the run; what is known to hold leaves nothing."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe
from plusequals.lowering.diagnostic import CdAssertionError, CdError
from plusequals.lowering.ir.assignments import Check, Print
from tests.language.ask import plain, run

from .scenes import found, typed

X = np.array([1.5, -2.0])
PRINTS = (
    "print('a', 1, 2.5, None)", "print(x[0], x[1] < 0)", "print(f'{n} of {x[0]}!')", "print()",
    "print(f'{x[0]:.3f}|{x[1]:>9}|{n:05d}|{x[0]:e}')", "print(x[0], n, sep='; ', end='.')",
    "print((1, 2))", "print('{}', n)", "for i in range(2):\n    print(i, x[i])",
)  # fmt: skip


@pytest.mark.parametrize("body", PRINTS)
def test_prints_show_what_python_shows(body: str, capfd: pytest.CaptureFixture[str]) -> None:
    run("numpy", "x, n", body, X, 3)
    got = capfd.readouterr().out
    plain("x, n", body, X.tolist(), 3)
    assert got == capfd.readouterr().out


def test_an_assert_is_a_check_of_the_run_unless_it_is_known() -> None:
    assert not found(typed("x", "assert len(x) == 2, 'two'", X).procedure, Check)
    (check,) = found(typed("x", "assert x[0] > 0", X).procedure, Check)
    assert (check.fault.code, check.fault.kind) == ("CD0761", "CdAssertionError")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("assert x[0] < 0, 'too {large}'", "too {large}"),
        ("assert x[0] < 0", "`x[0] < 0` does not hold"),
        ("assert len(x) == 3, f'{len(x)} given'", "2 given"),
    ],
)
def test_an_assert_that_fails_says_its_message(body: str, message: str) -> None:
    with pytest.raises(CdAssertionError) as caught:
        run("numpy", "x", body, X)
    assert message in caught.value.diagnostics[0].message
    assert isinstance(caught.value, AssertionError)


@pytest.mark.parametrize(
    ("raised", "family"),
    [
        ("ValueError('bad x')", ValueError), ("IndexError", IndexError),
        ("ZeroDivisionError('zero')", ZeroDivisionError), ("RuntimeError('other')", ValueError),
    ],
)  # fmt: skip
def test_a_raise_is_of_pythons_family(raised: str, family: type[Exception]) -> None:
    with pytest.raises(family) as caught:
        run("numpy", "x", f"if x[0] > 0:\n    raise {raised}", X)
    assert isinstance(caught.value, pe.CdError) and caught.value.code == "CD0762"
    assert run("numpy", "x", f"if x[0] < 0:\n    raise {raised}\nreturn 1", X) == 1


def test_texts_and_numbers_of_a_print_are_pieces_in_order() -> None:
    (shown,) = found(typed("x", "print('x is', x[0])", X).procedure, Print)
    assert [piece for piece in shown.pieces if isinstance(piece, str)] == ["x is", " "]


@pytest.mark.parametrize(
    ("body", "code"),
    [("print(x)", "CD0423"), ("print(1, file=x)", "CD0422"), ("x[0] > 1", "CD0146"),
     ("raise x[0]", "CD0145")],
)  # fmt: skip
def test_what_has_no_effect_or_no_text_is_refused(body: str, code: str) -> None:
    with pytest.raises(CdError, match=code):
        run("numpy", "x", body, X)
