"""Prints, asserts and raises act in the run; what is known to hold leaves nothing."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.base.diagnostic import CdAssertionError, CdError
from plusequals.lowering.ir.assignments import Check, Print
from tests.language.ask import plain, run

from .scenes import found, typed

X = np.array([1.5, -2.0])


class NotConverged(ArithmeticError):
    """An error as users define them."""

    def __init__(self, text: str = "never") -> None:
        super().__init__(text)
        self.code = len(text)


class Twofold(Exception):
    """One that is not made of a message alone."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(one, two)


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


def moved(x: Any) -> Any:
    x[:] = x + 10
    return 1


@pytest.mark.parametrize(
    "body",
    [
        "print(x[0], moved(x), x[0])",
        "print(f'{x[0]} {moved(x)} {x[0]}', x[1], moved(x), x[1])",
        "print(x[0] > 1, moved(x), x[0] > 2, sep='' if moved(x) else ' ')",
        "assert x[0] > 100, f'{x[0]} {moved(x)} {x[0]}'",
        "raise ValueError(f'{x[0]} {moved(x)} {x[0]}')",
    ],
)
def test_what_is_shown_was_evaluated_from_left_to_right(
    body: str, capfd: pytest.CaptureFixture[str]
) -> None:
    shown = []
    for ask in (plain, partial(run, "numpy")):
        text = ""
        try:
            ask("x", body, X.copy(), moved=moved)
        except (AssertionError, ValueError) as problem:
            text = str(problem).partition("\n")[0].rpartition(": ")[2]
        shown.append((text, capfd.readouterr().out))
    assert shown[0] == shown[1]


NUMBERS = """def f(x, h, d, c, z, b, n, u):
    print(np.float32(0.1), x[0], x[1], x[2], h[0], h[1], d[0], d[1], c[0], z[0], b[0], n[0], u[0])
    print(x[0] * 2, x[0] + 0.1, h[0] * h[0], x[0] * d[0], float(x[0]), int(x[1]), x.max(), -h[0])
    print(f"{x[0]} {x[1]} {h[0]} {h[0] * h[0]} {d[0]} {c[0]} {z[0]} {b[0]} {n[0]:4d} {x[0]:.3f}")
"""


def test_prints_show_numbers_of_each_type_as_numpy_does(
    backend: str, capfd: pytest.CaptureFixture[str]
) -> None:
    arrays = (
        np.array([0.1, 1e10, np.nan], np.float32), np.array([0.1, 1e4], np.float16),
        np.array([0.1, 1e16]), np.array([0.1 + 0.2j], np.complex64), np.array([0.1 + 2j]),
        np.array([True]), np.array([3], np.int8), np.array([2**63], np.uint64),
    )  # fmt: skip
    scope: dict[str, Any] = {"np": np}
    exec(NUMBERS, scope)
    scope["f"](*arrays)
    expected = capfd.readouterr().out
    assert expected.startswith("0.1 0.1 1e+10 nan 0.1 1e+04 0.1 1e+16 ")
    pe.cd_from_source(NUMBERS, {"np": np}, backend=backend)(*arrays)
    assert capfd.readouterr().out == expected


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
        ("ZeroDivisionError('zero')", ZeroDivisionError), ("RuntimeError('other')", RuntimeError),
        ("OverflowError('far')", OverflowError), ("MemoryError", MemoryError),
        ("NotImplementedError", NotImplementedError), ("KeyError('other')", KeyError),
        ("KeyboardInterrupt('stop')", KeyboardInterrupt),
    ],
)  # fmt: skip
def test_a_raise_is_of_pythons_family(raised: str, family: type[BaseException]) -> None:
    with pytest.raises(family) as caught:
        run("numpy", "x", f"if x[0] > 0:\n    raise {raised}", X)
    assert isinstance(caught.value, pe.CdError) and caught.value.code == "CD0762"
    assert run("numpy", "x", f"if x[0] < 0:\n    raise {raised}\nreturn 1", X) == 1


def test_a_raise_of_several_shows_them_as_python_does() -> None:
    with pytest.raises(ValueError, match=r"ValueError: \('a, b', 2, \d") as caught:
        run("numpy", "x, n", "if n > 1:\n    raise ValueError('a, b', 2, n)", X, 5)
    assert "('a, b', 2, 5)" in str(caught.value)


def test_texts_and_numbers_of_a_print_are_pieces_in_order() -> None:
    (shown,) = found(typed("x", "print('x is', x[0])", X).procedure, Print)
    assert [piece for piece in shown.fragments if isinstance(piece, str)] == ["x is", " "]


@pytest.mark.parametrize(
    ("body", "code"),
    [("print(x)", "CD0423"), ("print(1, file=x)", "CD0422"), ("x[0] > 1", "CD0146"),
     ("raise x[0]", "CD0145")],
)  # fmt: skip
def test_what_has_no_effect_or_no_text_is_refused(body: str, code: str) -> None:
    with pytest.raises(CdError, match=code):
        run("numpy", "x", body, X)


BEHIND = {
    "an assert": "assert x.shape[1] == 3, 'is wrong'\nreturn x @ np.ones(3)",
    "a raise": "if x.shape[1] != 3:\n    raise ValueError('is wrong')\nreturn x @ np.ones(3)",
    "one in a function": (
        "def g(v):\n    assert v.shape[1] == 3, 'is wrong'\n    return v @ np.ones(3)\n"
        "y = g(x) + 1\nreturn y @ np.ones(3)"
    ),
    "one of two rounds": "for n in (2, 3):\n    assert len(x) == n, 'is wrong'\n    y = x @ x",
    "with a shape": "assert x.ndim == 1, f'{x.shape} is wrong'\nreturn x @ np.ones(3)",
}


@pytest.mark.parametrize("body", BEHIND.values(), ids=BEHIND)
def test_what_stands_behind_the_end_of_every_run_is_not_refused(body: str) -> None:
    with pytest.raises(CdError, match="CD076[12].*is wrong") as caught:
        run("numpy", "x", body, np.ones((2, 2)))
    assert ("(2, 2)" in str(caught.value.diagnostics[0].message)) == ("ndim" in body)


@pytest.mark.parametrize("test", ["x[0, 0] > 5", "x.shape[1] == 2"])
def test_what_stands_behind_an_assert_that_may_hold_is_refused(test: str) -> None:
    with pytest.raises(CdError, match="CD0301"):
        run("numpy", "x", f"assert {test}\nreturn x @ np.ones(3)", np.ones((2, 2)))


def test_what_was_done_before_an_assert_that_fails_was_done() -> None:
    x = np.ones((2, 2))
    with pytest.raises(CdAssertionError):
        run("numpy", "x", "x[0] = 5.0\nassert len(x) > 2\nreturn x @ np.ones(3)", x)
    assert x.tolist() == [[5.0, 5.0], [1.0, 1.0]]


RAISES = """def f(x, n):
    if x[0] == 1:
        raise NotConverged(f"after {n} of {x[0]}")
    if x[0] == 2:
        raise Twofold("one")
    if x[0] == 3:
        raise SystemExit(n)
    if x[0] == 4:
        raise Local
    raise KeyError("key")
"""


def test_errors_of_any_class_are_raised_as_they_are(backend: str) -> None:
    class Local(Exception):
        pass

    classes = {one.__name__: one for one in (NotConverged, Twofold, Local)}
    f = pe.cd_from_source(RAISES, classes, backend=backend)
    with pytest.raises(
        NotConverged, match="CD0762.*NotConverged: after 3 of 1.0\n.*:3:9"
    ) as caught:
        f(np.array([1.0]), 3)
    assert caught.value.args == ("after 3 of 1.0",) and caught.value.code == 14
    again = copy.copy(caught.value)  # as is done to errors of queues
    assert isinstance(again, NotConverged) and str(again) == str(caught.value)
    with pytest.raises(pe.CdError, match="`Twofold` cannot be made of this message alone: .*'two'"):
        f(np.array([2.0]), 3)
    with pytest.raises(SystemExit) as left:
        f(np.array([3.0]), 3)
    assert left.value.code == 3
    with pytest.raises(pe.CdError, match="let `Local` be a name of a module"):
        f(np.array([4.0]), 3)
    with pytest.raises(KeyError):
        f(np.array([5.0]), 3)


def test_the_text_of_what_is_known_is_pythons(backend: str) -> None:
    text = (
        "def f(x, how, n):\n    raise ValueError(f'{how!r} {how=} {n!r:>3} {how!s:>4}' + repr(how))"
    )
    with pytest.raises(ValueError, match="'a' how='a'   3    a'a'"):
        pe.cd_from_source(text, backend=backend)(X, "a", 3)
    with pytest.raises(pe.CdError, match="CD0126"):
        pe.cd_from_source("def f(x):\n    print(f'{x[0]!r}')")(X)


MESSAGES = {
    "writes": "def g(x):\n    x[:] = x + 10\n    return x[1]\nassert x[0] > 0, f'{g(x)} {x[0]}'",
    "reads out of range": "assert n >= 2, f'{x[n]} {n}'",
    "in a loop": "for k in range(2):\n    assert x[k] > -3 or k > 9, f'{x[k + 1]}'",
    "what it needs": "assert x[0] > 0, f'{np.sum(x * 2)} {x.mean()}'",
    "of a function": "def g(x):\n    assert x[0] > 0, f'{x[n]}'\n    return 1\nn = n - g(x)",
    "chosen": "assert x[0] > 0, x[n - 2]",
    "an array of a comprehension": "assert x[0] > 0, f'{sum(v + x[n - 2] for v in x)}'",
}


@pytest.mark.parametrize("body", MESSAGES.values(), ids=MESSAGES)
@pytest.mark.parametrize("first", [1.5, -4.5])
def test_a_message_is_evaluated_where_its_assertion_fails(
    body: str, first: float, backend: str
) -> None:
    """What is written, and what is raised, by the message is that of plain Python."""
    outcomes = []
    for call in (plain, lambda *args: run(backend, *args)):
        x = np.array([first, 2.0])
        try:
            outcome: object = call("x, n", f"{body}\nreturn x[0] + n", x, 2)
        except (AssertionError, IndexError) as problem:
            kind = AssertionError if isinstance(problem, AssertionError) else IndexError
            message = problem.diagnostics[0].message if isinstance(problem, CdError) else problem
            outcome = kind, str(message) if kind is AssertionError else ""
        outcomes.append((outcome, x.tolist()))
    assert outcomes[0] == outcomes[1]


def test_a_message_without_statements_leaves_one_check() -> None:
    procedure = typed("x", "assert x[0] > 0, f'{x[1]} {x[0] + 1}'", X).procedure
    assert len(procedure.body) == 1 and isinstance(procedure.body[0], Check)


def test_an_assert_at_points_that_a_choice_leaves_out_is_refused() -> None:
    """It would have to run at every point; it is not run where no point takes that side."""
    body = "def g(v):\n    assert v > 0\n    return v\ny[i] = g(n) if y[i] > 0 else 0.0\nreturn y"
    with pytest.raises(CdError, match="CD0522"):
        run("numpy", "y, n", body, X, -1.5)
