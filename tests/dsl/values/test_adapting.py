"""Python ints of the run fit the integer types that they meet, or raise where they are used."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.base.diagnostic import CdOverflowError
from plusequals.lowering.ir.assignments import Check
from tests.compare import assert_same
from tests.dsl.elaborate.scenes import found, typed
from tests.language.ask import compiled, plain, run

BOUNDS = {"i1": (-128, 127), "u1": (0, 255), "i2": (-(2**15), 2**15 - 1),
          "u4": (0, 2**32 - 1), "u8": (0, 2**63 - 1)}  # fmt: skip
OPERATIONS = (
    "x * n", "n + x", "n - x", "x // n", "x % n", "x & n", "x ^ n", "x | n", "x << n", "x ** n",
    "np.minimum(x, n)", "np.maximum(n, x)", "np.multiply(x, n)", "x[0] * n", "-x + n",
    "x[x > 0].sum(dtype=x.dtype) + n", "divmod(x, n)", "x[:0] * n",
)  # fmt: skip


@pytest.mark.parametrize("code", BOUNDS)
def test_what_fits_is_taken_and_what_does_not_raises(code: str, backend: str) -> None:
    x = np.array([1, 2, 100], code)
    for bound, outwards in zip(BOUNDS[code], (-1, 1), strict=True):
        with np.errstate(over="ignore"):
            expected = plain("x, n", "return x * n", x, bound)
        assert_same(run(backend, "x, n", "return x * n", x, bound), expected)
        if abs(bound + outwards) >= 2**63:
            continue
        with pytest.raises(OverflowError):
            plain("x, n", "return x * n", x, bound + outwards)
        with pytest.raises(OverflowError, match=f"CD0464.* {bound + outwards} .*{x.dtype}"):
            run(backend, "x, n", "return x * n", x, bound + outwards)


@pytest.mark.parametrize("body", OPERATIONS)
def test_each_operation_raises_as_numpy_does(body: str) -> None:
    for n in (300, -129):
        with pytest.raises(OverflowError, match="out of bounds"):
            plain("x, n", f"return {body}", np.array([1, 2], "i1"), n)
        expected = CdOverflowError if body != "x ** n" or n > 0 else ValueError
        with pytest.raises(expected):
            run("numpy", "x, n", f"return {body}", np.array([1, 2], "i1"), n)


@pytest.mark.parametrize("body", ["np.max(x, initial=n)", "x.min(initial=n)"])
def test_what_a_reduction_starts_from_has_to_fit(body: str, backend: str) -> None:
    x = np.array([1, 2], "i1")
    for n in (1, 100, -128):
        expected = plain("x, n", f"return {body}", x, n)
        assert_same(run(backend, "x, n", f"return {body}", x, n), expected)
    with pytest.raises(CdOverflowError, match="CD0464.* 300 .*int8"):
        run(backend, "x, n", f"return {body}", x, 300)
    total = "return np.sum(x, initial=n)"
    assert_same(run(backend, "x, n", total, x, 300), np.int64(303))


@pytest.mark.parametrize(
    "body",
    ["x < n", "n == x", "np.greater(x, n)", "x / n", "np.hypot(x, n)", "n * 2.5", "n * n",
     "x.astype(np.int64) * n", "x * np.int64(n)", "(x > 1) * n", "np.float32(2) * n",
     "np.logical_and(x, n)"],
)  # fmt: skip
def test_what_takes_no_narrow_integer_type_is_not_checked(body: str, backend: str) -> None:
    x = np.array([1, 2], "i1")
    expected = plain("x, n", f"return {body}", x, 300)
    assert_same(run(backend, "x, n", f"return {body}", x, 300), expected)
    assert not found(typed("x, n", f"return {body}", x, 300).procedure, Check)


@pytest.mark.parametrize("code", ["i8", "f4", "c16"])
def test_types_that_hold_every_int_are_not_checked(code: str) -> None:
    form = typed("x, n", "y[i] = x[i] * n\nreturn y + n", np.ones(3, code), 300)
    assert not found(form.procedure, Check)


@pytest.mark.parametrize(
    ("body", "raises"),
    [
        ("y[i] = x[i] * (n + 1)", True),
        ("y[i] = x[i] * n if x[i] > 1 else x[i]", True),
        ("y[i] = x[i] * n if x[i] > 5 else x[i]", False),
        ("y[i] = x[i] * i if n > 5 else x[i] * n", False),
        ("if i > n - 299:\n    y[i] = x[i] + n", True),
        ("if i > n - 298:\n    y[i] = x[i] + n", False),
        ("y[i] = sum[k <= i](x[k] * n)", True),
        ("if i < 1:\n    y[i] = sum[k < i](x[k] * n)", False),
        ("y[i] = x[i] * int(z[i])", True),
        ("y[i] = x[i] * int(z[i]) if i < 1 else 0", False),
        ("if n < 100:\n    y[:] = x + n", False),
        ("y[:] = x * int(z[1])", True),
        ("s = 0\nwhile s < n:\n    s += 100\ny[:] = x * s", True),
        ("for t in range(2):\n    y[t] = x[t] + n", True),
        ("for t in range(0):\n    y[t] = x[t] + n", False),
        ("y[x > 1] = x[x > 1] + n", True),
        ("y[i] = sum(x[k] * (n * 2))", True),
    ],
)
def test_it_is_checked_where_it_is_used(body: str, raises: bool, backend: str) -> None:
    z = np.array([3.5, 301.0, 2.0])
    given: tuple[Any, ...] = (np.zeros(3, "i1"), np.array([1, 2, 3], "i1"), z, 300)
    if not raises:
        run(backend, "y, x, z, n", body, *given)
        return
    with pytest.raises(CdOverflowError) as caught:
        run(backend, "y, x, z, n", body, *given)
    assert caught.value.code == "CD0464" and "int8" in str(caught.value)


def test_letters_and_loop_variables_wrap(backend: str) -> None:
    x = np.ones(300, "u1")
    got = run(backend, "x", "y[i] = x[i] * i\nfor t in range(298, 300):\n    x[t] = x[t] * t\n"
              "return y", x)  # fmt: skip
    assert_same(got, np.arange(300).astype("u1"))
    assert x[298:].tolist() == [42, 43]


def test_stores_and_accumulations_wrap(backend: str) -> None:
    x = np.array([1, 2], "u1")
    run(backend, "x, n", "x[0] = n\nx[1] += n", x, 300)
    assert x.tolist() == [44, 46]


def test_it_raises_in_program_order(backend: str) -> None:
    body = "y[:] = 1\ny[n - 300] = 2\nz = x * n\ny[:] = 3\nreturn z"
    y = np.zeros(2)
    with pytest.raises(CdOverflowError, match=r"300 .*int8"):
        run(backend, "y, x, n", body, y, np.ones(2, "i1"), 300)
    assert y.tolist() == [2.0, 1.0]


def test_sizes_of_the_run_are_checked_too(backend: str) -> None:
    function = compiled("x", "return x + len(x)")
    with pe.override(backend=backend):
        for size in (5, 7, 11, 13, 127):
            assert function(np.zeros(size, "i1"))[0] == size
        with pytest.raises((OverflowError, TypeError), match="128"):
            function(np.ones(128, "i1"))


def test_the_whole_message() -> None:
    with pytest.raises(CdOverflowError) as caught:
        run("numpy", "x, n", "return np.add(x, n)", np.ones(2, "u1"), -1)
    assert str(caught.value).split("\n")[0] == (
        "error[CD0464]: the Python integer -1 does not fit in uint8, the type that it meets"
    )
    assert str(caught.value).endswith(
        "2 |     return np.add(x, n)\n"
        "  |            ^^^^^^^^^^^^\n"
        "  = help: convert the array first: `x.astype(np.int64)`\n"
        "  = help: or the number, which wraps then: `np.uint8(n)`"
    )


LOOP = "for v in x:\n    if v > best:\n        best = v\nreturn best"
JOINS = {  # each gives `n` where x[0] is small, an element elsewhere
    "branch": "if x[0] > 9:\n    r = x[1]\nelse:\n    r = n\nreturn r",
    "paths": "if x[0] > 9:\n    return x[1]\nreturn n",
    "loop": f"best = n\n{LOOP}",
    "while": "best, k = n, 0\nwhile k < len(x):\n    best = x[k]\n    k += 1\n"
    "if x[0] < 9:\n    best = n\nreturn best",
    "found": "for v in x:\n    if v > 25:\n        return x[1]\nreturn n",
    "choice": "return x[1] if x[0] > 9 else n",
    "or": "return (x[0] > 9 and x[1]) or n",
    "call": "def g(v):\n    if v > 9:\n        return v\n    return n\nreturn g(x[0])",
    "points": "y = np.zeros(2)\ny[i] = x[i] if x[i] > 9 else n\nreturn y",
    "loop variable": "for k in range(n, n + 1):\n    r = x[1] if x[0] > 9 else k\nreturn r",
}  # fmt: skip


@pytest.mark.parametrize("known", [False, True], ids=["run", "constant"])
@pytest.mark.parametrize("join", JOINS)
def test_where_paths_meet_a_python_int_has_to_fit(join: str, known: bool, backend: str) -> None:
    x = np.array([3, 20], np.uint8) if join != "points" else np.array([3, 4], np.uint8)
    for n in (200, 256, -1):
        params, args = ("x", (x,)) if known else ("x, n", (x, n))
        body = f"n = {n}\n{JOINS[join]}" if known else JOINS[join]
        if 0 <= n < 256:
            expected = n if join != "loop" else max(n, 20)
            assert np.all(np.asarray(run(backend, params, body, *args)) == expected)
        else:
            with pytest.raises(CdOverflowError, match=f"CD0464.* Python integer {n}, .*uint8"):
                run(backend, params, body, *args)
        if join not in ("loop", "while", "points", "loop variable"):  # the other path stays
            big = np.array([30, 20], np.uint8)
            other = big[0] if join == "call" else big[1]
            assert_same(run(backend, params, body, big, *args[1:]), other)


def test_a_type_that_holds_all_values_needs_no_check() -> None:
    for code in ("i8", "f8", "?"):
        assert not found(typed("x, n", JOINS["loop"], np.zeros(3, code), 5).procedure, Check)
    assert not found(typed("x", f"best = 5\n{LOOP}", np.zeros(3, "u1")).procedure, Check)


def test_a_loop_that_has_iterations_may_start_from_any_number(backend: str) -> None:
    body = "v = -1\nfor v in x:\n    pass\nreturn v"
    x = np.array([3, 20], np.uint8)
    assert_same(run(backend, "x", body, x), np.uint8(20))
    with pytest.raises(CdOverflowError, match="CD0464.*`v` is the Python integer -1"):
        run(backend, "x", body, x[:0])
