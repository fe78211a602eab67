"""Checked mode: integer division by zero raises, where it is reached and only there."""

from __future__ import annotations

import re

import numpy as np
import pytest

import plusequals as pe
from plusequals.base import settings
from plusequals.base.diagnostic import CdZeroDivisionError


def _divide(backend: str) -> pe.CdFunction:
    return pe.cd_from_source("def f(y, a, b):\n    y[i] = a[i] // b[i]", backend=backend)


def test_zero_is_the_answer_unless_checked(backend: str) -> None:
    y, a, b = np.ones(2, int), np.array([7, 8]), np.array([2, 0])
    _divide(backend)(y, a, b)
    assert y.tolist() == [3, 0]


def test_checked_division_raises_before_anything_is_written(backend: str) -> None:
    y, a, b = np.ones(2, int), np.array([7, 8]), np.array([2, 0])
    with settings.override(checked=True), pytest.raises(CdZeroDivisionError, match="CD0763"):
        _divide(backend)(y, a, b)
    assert y.tolist() == [1, 1]


def test_only_divisions_that_are_reached_count(backend: str) -> None:
    text = "def f(y, a, b):\n    y[i] = a[i] // b[i] if b[i] != 0 else -1"
    y = np.ones(2, int)
    with settings.override(checked=True):
        pe.cd_from_source(text, backend=backend)(y, np.array([7, 8]), np.array([2, 0]))
    assert y.tolist() == [3, -1]


def _run(text: str, backend: str, *arguments: object, overflow: bool = False) -> object:
    function = pe.cd_from_source(f"def f(y, a, b):\n    {text}", {"np": np}, backend=backend)
    with pe.checked(overflow=overflow):
        return function(*arguments)


def test_the_error_tells_the_point_and_the_values(backend: str) -> None:
    with pytest.raises(CdZeroDivisionError) as caught:
        _run("y[i] = a[i] // b[i]", backend, np.ones(2, int), np.array([7, 8]), np.array([2, 0]))
    text = str(caught.value)
    assert "at i = 1: a[i] = 8, b[i] = 0" in text and "y[i] = a[i] // b[i]" in text


def test_float_division_by_zero(backend: str) -> None:
    y, a, b = np.ones(3), np.array([1.0, 2.0, 3.0]), np.array([1.0, 0.5, -0.0])
    with pytest.raises(ZeroDivisionError, match="CD0764.*at i = 2"):
        _run("y[i] = a[i] / b[i]", backend, y, a, b)
    assert y.tolist() == [1.0] * 3
    _run("y[i] = a[i] / b[i] if b[i] != 0 else 0.0", backend, y, a, b)
    assert y.tolist() == [1.0, 4.0, 0.0]


@pytest.mark.parametrize(
    ("text", "a", "b"),
    [
        ("y[i] = a[i] - b[i]", np.inf, np.inf),
        ("y[i] = np.sqrt(a[i])", -1.0, 0.0),
        ("y[i] = np.log(a[i])", -1.0, 0.0),
        ("y += a * b", np.inf, 0.0),
        ("y[i] = np.where(a[i] < 0, np.sqrt(a[i]), b[i])", -1.0, 0.0),
        ("y[0] = sum[j](a[j] * b[j])", np.inf, 0.0),
    ],
)
def test_a_nan_that_is_born(text: str, a: float, b: float, backend: str) -> None:
    first, second, y = np.array([1.0, a]), np.array([1.0, b]), np.zeros(2)
    with pytest.raises(ValueError, match="CD0765"):
        _run(text, backend, y, first, second)


@pytest.mark.parametrize("dtype", ["f2", "f4", "c8", "c16"])
def test_nans_of_every_type(dtype: str, backend: str) -> None:
    text, y, a = "y += a * b", np.ones(2, dtype), np.array([1, np.inf], dtype)
    _run(text, backend, y, a[:1].repeat(2), np.ones(2, dtype))
    with pytest.raises(ValueError, match="CD0765"):
        _run(text, backend, y, a, np.zeros(2, dtype))


def test_a_nan_that_was_given_is_no_error(backend: str) -> None:
    y, a = np.zeros(3), np.array([np.nan, 1.0, 2.0])
    _run("y[i] = a[i] * 2 + b[i]", backend, y, a, a)
    assert np.isnan(y[0]) and y[1:].tolist() == [3.0, 6.0]
    _run("y[i] = np.nan if a[i] > 1 else a[i]", backend, y, a, a)
    assert np.isnan(y[2])


OPERATIONS = ("+", "-", "*")


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
@pytest.mark.parametrize("sign", OPERATIONS)
def test_integers_that_do_not_fit(dtype: str, sign: str, backend: str) -> None:
    info = np.iinfo(dtype)
    some = [info.min, info.min + 1, -1, 0, 1, 2, 3, info.max // 2, info.max - 1, info.max]
    values = [value for value in some if info.min <= value <= info.max]
    text = f"y[i] = a[i] {sign} b[i]"
    function = pe.cd_from_source(f"def f(y, a, b):\n    {text}", backend=backend)
    with pe.checked(overflow=True):
        for one in values:
            for other in values:
                exact = eval(f"one {sign} other", {"one": one, "other": other})
                y, a, b = np.zeros(1, dtype), np.array([one], dtype), np.array([other], dtype)
                if info.min <= exact <= info.max:
                    function(y, a, b)
                    assert int(y[0]) == exact
                else:
                    with pytest.raises(ValueError, match="CD0766"):
                        function(y, a, b)


@pytest.mark.parametrize(
    ("wide", "narrow", "fits", "large"),
    [("i8", "i4", 2**31 - 1, 2**31), ("i8", "u8", 0, -1), ("u8", "i8", 2**63 - 1, 2**63),
     ("i2", "u1", 255, -1), ("u4", "i2", 32767, 40000)],
)  # fmt: skip
def test_casts_that_do_not_fit(wide: str, narrow: str, fits: int, large: int, backend: str) -> None:
    text = f"def f(a):\n    return a.astype('{narrow}')"
    function = pe.cd_from_source(text, backend=backend)
    with pe.checked(overflow=True):
        assert function(np.array([fits], wide)).tolist() == [fits]
        with pytest.raises(ValueError, match="CD0766"):
            function(np.array([fits, large], wide))


_CASTS = [
    ("f8", "i4", [-(2.0**31) - 0.9, -0.9, 2.0**31 - 0.1], [1e20, np.nan, -3e9, 2.0**31]),
    ("f8", "i4", [], [-(2.0**31) - 1, -np.inf]),
    ("f8", "i8", [-(2.0**63), 2.0**63 - 1024], [2.0**63, -(2.0**63) - 2048, np.nan]),
    ("f8", "u8", [-0.5, 2.0**64 - 2048], [-1.0, 2.0**64]),
    ("f4", "i4", [-(2.0**31), 2.0**31 - 128], [2.0**31, -(2.0**31) - 256]),
    ("f4", "u1", [-0.5, 255.5], [256.0, -1.0, np.inf]),
    ("f2", "i2", [-32768.0], [32768.0, np.nan]),
    ("c16", "i1", [127.5 + 300j], [128.0 + 0j]),
]


@pytest.mark.parametrize(("given", "to", "fitting", "others"), _CASTS)
def test_floats_that_are_no_integers_of_the_type(
    given: str, to: str, fitting: list[float], others: list[float], backend: str
) -> None:
    function = pe.cd_from_source(f"def f(a):\n    return a.astype('{to}')", backend=backend)
    plain = function(np.array(others, given)).tolist()
    with pe.checked(overflow=True):
        found = function(np.array(fitting, given)).tolist()
        assert found == [int(np.real(value)) for value in fitting]
        for value in others:
            with pytest.raises(ValueError, match="CD0766.*a float has no place"):
                function(np.array([value], given))
    assert len(plain) == len(others), "without checked mode each becomes something"


def test_only_casts_that_are_reached_are_looked_at(backend: str) -> None:
    y, a = np.zeros(2, "i4"), np.array([1e20, 7.5])
    _run("y[i] = int(a[i]) if a[i] < 100 else -1", backend, y, a, a, overflow=True)
    assert y.tolist() == [-1, 7]


def test_overflow_is_only_an_error_on_request(backend: str) -> None:
    y, a = np.zeros(1, "i1"), np.array([100], "i1")
    _run("y[i] = a[i] + b[i]", backend, y, a, a)
    assert y.tolist() == [-56]
    with pytest.raises(ValueError, match="CD0766"):
        _run("y[i] = a[i] + b[i]", backend, y, a, a, overflow=True)


def test_nothing_is_checked_afterwards(backend: str) -> None:
    y, a = np.zeros(2), np.array([1.0, 0.0])
    with pytest.raises(ZeroDivisionError):
        _run("y[i] = 1 / a[i]", backend, y, a, a)
    pe.cd_from_source("def f(y, a):\n    y[i] = 1 / a[i]", backend=backend)(y, a)
    assert y.tolist() == [1.0, np.inf]


@pytest.mark.parametrize(
    "text",
    [
        "if a[0] // b[0] > 0:\n        y[0] = 1",
        "while y[0] < a[0] // b[0]:\n        y[0] += 1",
        "y[i] = 1 if a[i] // b[i] > 0 else 2",
        "y[a // b > 0] = 5",
        "y[a[i] // b[i]] = 1",
        "y[0] = y[a[0] // b[0]]",
        "n = a[0] // b[0]\n    y[n] = 1",
    ],
)
def test_tests_and_subscripts_are_looked_at(text: str, backend: str) -> None:
    a, b = np.array([1, 1]), np.array([2, 3])
    _run(text, backend, np.ones(2, int), a, b)
    with pytest.raises(ZeroDivisionError, match="CD0763"):
        _run(text, backend, np.ones(2, int), a, b * 0)


_BOUNDS = np.iinfo(np.int64)
_FITTING = [
    ("abs(a[i])", "int8", -127, 0, True),
    ("abs(a[i])", "int8", -128, 0, False),
    ("abs(a[i])", "int64", _BOUNDS.min, 0, False),
    ("a[i] << b[i]", "int16", 1, 14, True),
    ("a[i] << b[i]", "int16", 1, 15, False),
    ("a[i] << b[i]", "int16", -1, 15, True),
    ("a[i] << b[i]", "uint8", 1, 7, True),
    ("a[i] << b[i]", "uint8", 3, 7, False),
    ("a[i] << b[i]", "int64", 1, 64, False),
    ("a[i] << b[i]", "int64", 0, 64, True),
    ("a[i] ** b[i]", "int8", 2, 6, True),
    ("a[i] ** b[i]", "int8", 2, 7, False),
    ("a[i] ** b[i]", "int8", -2, 7, True),
    ("a[i] ** b[i]", "int64", 3037000499, 2, True),
    ("a[i] ** b[i]", "int64", 3037000500, 2, False),
    ("a[i] ** b[i]", "int64", -2, 63, True),
    ("a[i] ** b[i]", "int64", 2, 63, False),
    ("a[i] ** b[i]", "int64", -8, 21, True),
    ("a[i] ** b[i]", "uint64", 2, 63, True),
    ("a[i] ** b[i]", "uint64", 2, 64, False),
    ("a[i] ** b[i]", "uint64", 2**32 - 1, 2, True),
]


def test_indices_of_one_name_are_told_apart() -> None:
    b = np.ones((3, 4))
    b[1, 2] = 0
    shown = r"at i = 1, i_2 = 2: a\[i, i_2\] = 5.0, b\[i, i_2\] = 0.0$"
    with pytest.raises(ZeroDivisionError, match=re.compile(shown, re.MULTILINE)):
        _run("y[i] = np.sum(a[i] / b[i])", "numpy", np.zeros(3), b * 0 + 5, b)


@pytest.mark.parametrize(("value", "dtype", "a", "b", "fits"), _FITTING)
def test_what_does_not_fit_an_integer(
    value: str, dtype: str, a: int, b: int, fits: bool, backend: str
) -> None:
    arguments = np.zeros(1, dtype), np.array([a], dtype), np.array([b], dtype)
    if not fits:
        with pytest.raises(ValueError, match="CD0766"):
            _run(f"y[i] = {value}", backend, *arguments, overflow=True)
        return
    _run(f"y[i] = {value}", backend, *arguments, overflow=True)
    assert int(arguments[0][0]) == eval(value, {"a": [a], "b": [b], "i": 0})


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8"])
def test_the_one_quotient_that_does_not_fit(dtype: str, backend: str) -> None:
    info = np.iinfo(dtype)
    a, b = np.array([info.min, 7], dtype), np.array([-1, -1], dtype)
    for text in ("y[i] = a[i] // b[i]", "y[...] = a // np.int8(-1)", "y[...] = a // -1"):
        _run(text, backend, np.zeros(2, dtype), a[1:].repeat(2), b, overflow=True)
        _run(text.replace("1", "2"), backend, np.zeros(2, dtype), a, b * 2, overflow=True)
        with pytest.raises(ValueError, match="CD0766.*at i[_0-9]* = 0: a.* = -"):
            _run(text, backend, np.zeros(2, dtype), a, b, overflow=True)
    y = a.copy()
    with pytest.raises(ValueError, match="CD0766"):
        _run("y //= b", backend, y, a, b, overflow=True)
    _run("y[i] = a[i] % b[i]", backend, y, a, b, overflow=True)
    assert y.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("y[i] = a[i] % b", r"at i = 0: b = 0, a\[i\] = 5$"),
        ("return a % b", r"at i = 0: b = 0, a\[i\] = 5$"),
        ("return a.sum() / b", "checked mode: b = 0, a sum = 5$"),
        ("return 1 / (b - b)", "checked mode$"),
        ("y[i] = a[i] // (a[i] - 5)", r"at i = 0: a\[i\] - 5 = 0, a\[i\] = 5$"),
        ("return 3 // a[:0].sum()", "checked mode: a sum = 0$"),
        ("return 3 // (a.sum() - 5)", "checked mode: the divisor = 0, a sum = 5$"),
        ("return a[:1].std(ddof=1)", "checked mode: a sum = 0.0$"),
    ],
)
def test_the_divisor_is_told_and_no_name_that_nobody_wrote(
    text: str, shown: str, backend: str
) -> None:
    with pytest.raises(CdZeroDivisionError) as caught:
        _run(text, backend, np.ones(1, int), np.array([5]), 0)
    message = caught.value.diagnostics[0].message
    assert re.search(shown, message), message


def test_zero_by_zero_is_not_called_infinite(backend: str) -> None:
    with pytest.raises(CdZeroDivisionError, match="infinite, or NaN for zero by zero"):
        _run("return a.mean()", backend, 0, np.zeros(0), 0)


def test_a_routine_is_checked_where_its_function_was_compiled_so() -> None:
    p = pe.tensor("p", 2, dtype="float64", init=1.0)
    context = pe.device("numpy").stream(threaded=False).context()
    f = pe.cd_from_source("def f(p, x):\n    p[i] = p[i] / x[i]\n", backend="numpy")
    plain = f.compile(p, np.zeros(2)).link(context)
    with pe.checked():
        plain(np.zeros(2))
        code = f.compile(p, np.zeros(2))
    with pytest.raises(ZeroDivisionError, match="CD0764"):
        code.link(context)(np.zeros(2))


_IN_LOOPS = [
    ("for j in range(3):\n        y[j] = 1 / a[j]", r"at j = 2, j_2 = 0: a\[j, j_2\] = 0.0"),
    (
        "for row in range(3):\n        for col in range(2):\n            y[0] += 1 / a[row, col]",
        r"at row = 2, col = 0, j = 0: .*a\[row, col\] = 0.0$",
    ),
    ("for t in range(0, b, 2):\n        y[t, 0] = 1 / a[t, 0]", r"at t = 2: a\[t, 0\] = 0.0"),
    ("for t in range(1, b):\n        y[0, 0] = 1 / (b - 3)", "at t = 1: b - 3 = 0, b = 3$"),
    ("for t in range(b):\n        if 1 / a[t, 0] > 2:\n            y[t, 0] = 1", "at t = 2: a"),
    ("for t in range(b):\n        y[t] = np.unwrap(a[t], period=a[t, 0] * 1)", "at t = 2$"),
]


@pytest.mark.parametrize(("text", "shown"), _IN_LOOPS)
def test_the_iteration_of_each_loop_is_told(text: str, shown: str, backend: str) -> None:
    a = np.array([[1.0, 1.0], [1.0, 1.0], [0.0, 1.0]])
    with pytest.raises(pe.CdError) as caught:
        _run(text, backend, np.zeros((3, 2)), a, 3)
    problem = caught.value.diagnostics[0]
    assert re.search(shown, f"{problem.code} {problem.message}"), problem.message


def test_a_loop_without_iterations_is_not_checked(backend: str) -> None:
    _run("for t in range(b):\n        y[0] = 1 / b", backend, np.zeros(1), np.zeros(1), 0)


@pytest.mark.parametrize(
    ("text", "values", "code"),
    [
        ("np.fmod(a, b)", ([1, 2], [2, 0]), "CD0763"),
        ("np.fmod(a, b)", ([1.0, 2.0], [2.0, 0.0]), "CD0764"),
        ("np.reciprocal(b)", ([1.0, 2.0], [2.0, 0.0]), "CD0764"),
        ("b ** -2", ([1.0, 2.0], [2.0, -0.0]), "CD0764"),
        ("b ** -0.5", ([1.0, 2.0], [2.0, 0.0]), "CD0764"),
        ("np.power(b, a)", ([1.0, -2.0], [0.0, 0.0]), "CD0764"),
        ("b[1] ** a[1]", ([1.0, -2.0], [1.0, 0.0]), "CD0764"),
    ],
)
def test_each_operation_that_divides(
    text: str, values: tuple[list[float], list[float]], code: str, backend: str
) -> None:
    a, b = map(np.array, values)
    with pytest.raises(ZeroDivisionError, match=code) as caught:
        _run(f"return {text}", backend, np.ones(2), a, b)
    assert "b[" in str(caught.value) and "0" in str(caught.value)


@pytest.mark.parametrize("text", ["a ** b", "a ** 2", "a ** 0.5", "a ** 0", "np.power(a, b * b)"])
def test_zero_to_a_power_that_is_not_negative(text: str, backend: str) -> None:
    a, b = np.array([0.0, 2.0, 0.0]), np.array([2.0, -1.0, np.nan])
    plain = pe.cd_from_source(f"def f(a, b):\n    return {text}", {"np": np}, backend=backend)
    result = _run(f"return {text}", backend, np.ones(3), a, b)
    assert isinstance(result, np.ndarray)
    assert np.array_equal(result, plain(a, b), equal_nan=True)


@pytest.mark.parametrize(
    ("text", "values", "shown"),
    [
        ("return a // b", (1, 0), ": a = 1, b = 0$"),
        ("return a << b", (1, 64), ": a = 1, b = 64$"),
        ("return a << b", (np.int8(1), 8), ": a = 1, b = 8$"),
        ("return a[b] // a[b + 1]", (np.array([3, 0]), 0), ": b = 0, a\\[b\\] = 3, a.* = 0$"),
        ("return np.cumprod(a)", (np.array([np.inf, 0.0]), 0), ": i = 1, running.* = inf, a.* = 0"),
    ],
)
def test_numbers_of_the_run_are_shown(
    text: str, values: tuple[object, object], shown: str, backend: str
) -> None:
    with pytest.raises(pe.CdError) as caught:
        _run(text, backend, np.ones(2), *values, overflow=True)
    problem = caught.value.diagnostics[0]
    assert re.search(shown, problem.message), problem.message
