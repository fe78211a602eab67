"""Reductions over letters: who binds which letter, over what, and in which type."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import plusequals as pe
from plusequals.base.diagnostic import CdError
from tests.compare import assert_same
from tests.language.ask import run

A = np.random.default_rng(2).integers(-9, 9, (4, 4)).astype(float)
N = np.arange(16, dtype=np.int8).reshape(4, 4)
B = A > 0


def _each(function: Callable[[int], object]) -> np.ndarray:
    return np.array([function(i) for i in range(4)])


REDUCTIONS = {
    "sum(a[i, j])": A.sum(1),
    "sum[k](a[i, k])": A.sum(1),
    "sum[k, l](a[k, l]) + a[i, i]": A.sum() + np.diag(A),
    "sum[k in range(1, 3)](a[i, k])": A[:, 1:3].sum(1),
    "sum[k in range(0)](a[i, k])": np.zeros(4),
    "sum[k < i](a[i, k])": _each(lambda i: A[i, :i].sum()),
    "a[i, 0] + sum[k <= i, l > k](a[k, l])": _each(
        lambda i: A[i, 0] + np.triu(A, 1)[: i + 1].sum()
    ),
    "max[k != i](a[i, k])": _each(lambda i: np.delete(A[i], i).max()),
    "prod[k in range(2)](a[i, k])": A[:, :2].prod(1),
    "mean(a[i, j])": A.mean(1),
    "mean[k <= i](a[i, k])": _each(lambda i: A[i, : i + 1].mean()),
    "min(a[i, j])": A.min(1),
    "argmax(a[i, j])": A.argmax(1),
    "argmin[k](a[i, k])": A.argmin(1),
    "argmax[k, l](a[k, l] * a[i, 0])": _each(lambda i: (A * A[i, 0]).argmax()),
    "any(a[i, j] > 5)": (A > 5).any(1),
    "all(b[i, j])": B.all(1),
    "sum(b[i, j])": B.sum(1),
    "sum[k](a[i, k] * sum[l](a[k, l]))": A @ A.sum(1),
    "sum[k](max[l](a[k, l]) * a[i, k])": A @ A.max(1),
    "sum(n[i, j])": N.sum(1),
    "mean(n[i, j])": N.mean(1),
    "max(n[i, j])": N.max(1),
    "sum(n[i, j], acc=f32)": N.sum(1, dtype="f4"),
    "sum(where(j < i, a[i, j], 0.0))": np.tril(A, -1).sum(1),
}


@pytest.mark.parametrize(("text", "expected"), REDUCTIONS.items())
def test_a_reduction_is_numpys(text: str, expected: np.ndarray) -> None:
    body = f"y[i] = {text}\nreturn y"
    assert_same(run("numpy", "a, n, b", body, A, N, B), expected, 1e-12)


def test_small_floats_are_summed_in_thirty_two_bits() -> None:
    h = np.full((1, 3000), 1.0, np.float16)
    assert_same(run("numpy", "h", "y[i] = sum(h[i, j])\nreturn y", h), np.array([3000.0], "f2"))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("sum(a[i, 0])", "CD0509"),
        ("sum[k](a[i, 0])", "CD0604"),
        ("sum[i](a[i, 0])", "CD0511"),
        ("sum[n](a[i, 0])", "CD0204"),
        ("sum[i < 2](a[i, 0])", "CD0510"),
        ("sum[k + 1](a[i, k])", "CD0510"),
        ("sum[k in a](a[i, k])", "CD0510"),
        ("sum[k](a[i, k], a[i, k])", "CD0521"),
        ("sum[k](a[k])", "CD0416"),
        ("max[k](c[i, k])", "CD0404"),
        ("argmax[k](c[i, k])", "CD0404"),
        ("argmin(c[i, j])", "CD0404"),
        ("sum(a[i, j], acc=3)", "CD0420"),
        ("sum[k in range(9)](a[i, k])", "CD0602"),
    ],
)
def test_a_reduction_without_one_meaning_is_refused(text: str, code: str) -> None:
    with pytest.raises(CdError, match=code):
        run("numpy", "a, n, c", f"y[i] = {text}\nreturn y", A, N, A * 1j)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_letters_of_one_side_of_a_choice_are_not_those_of_the_other(size: int) -> None:
    texts = (
        "v[j] = sum[k](a[k]) if j > 1 else sum[k](b[k])",
        "v[j] = sum[k](b[k]) if j <= 1 else sum[k](a[k])",
        "v[j] = (sum[k](a[k]) if j > 1 else sum[k](b[k])) + 0 * sum[k](b[k])",
        "v[j] = 0 * sum[k](a[k]) + (sum[k](a[k]) if j > 1 else 0 * sum[k](a[k]) + sum[k](b[k]))",
        "v[j] = (sum[k](a[k]) if j > 1 and sum[k](a[k]) > 0 else sum[k](b[k])) + min[k](b[k]) - 1",
        "v[j] = (0 if j > 1 or sum[k](b[k]) > 9 else sum[k](b[k])) + (sum(a) if j > 1 else 0)",
        "v[j] = sum[k](sum[n](a[n]) if j > 1 else b[k] + 0 * sum[n](b[n]))"
        " if j <= 1 else sum[k](a[k])",
    )
    for a, b in ((5, 3), (2, 4), (1, 1)):
        for text in texts:
            f = pe.cd_from_source(f"def f(v, a, b):\n    {text}\n    return v\n")
            want = [float(b if j <= 1 else a) for j in range(size)]
            assert f(np.zeros(size), np.ones(a), np.ones(b)).tolist() == want, text


GUARDED = {
    "sum[k, a[i, k] > 3](a[i, k])": np.where(A > 3, A, 0).sum(1),
    "sum[k, n[i, k] > 0, b[i, k] == b[k, i]](n[i, k])": ((N > 0) * (B == B.T) * N).sum(1),
    "sum[k >= 1, a[i, k - 1] > 0](a[i, k])": (A[:, 1:] * B[:, :-1]).sum(1),
    "sum[k < i, l, a[k, l] > a[i, l]](a[i, l])": _each(
        lambda i: sum((A[i] * (A[k] > A[i])).sum() for k in range(i))
    ),
    "max[k, n[i, k] % 3 == 1](n[i, k])": np.where(N % 3 == 1, N, -1).max(1),
    "argmax[k, a[i, k] < 3](a[i, k])": np.where(A < 3, A, -99).argmax(1),
}


@pytest.mark.parametrize(("text", "expected"), GUARDED.items())
def test_a_test_may_read_at_the_letters_it_is_about(
    text: str, expected: np.ndarray, backend: str
) -> None:
    assert_same(run(backend, "a, n, b", f"y[i] = {text}\nreturn y", A, N, B), expected, 1e-12)


@pytest.mark.parametrize("text", ["argmin[k, a[k] > 3](a[k])", "max[k, a[k] > 3](int(a[k]))"])
def test_where_no_guard_holds_there_is_no_value(text: str, backend: str) -> None:
    assert int(run(backend, "a", f"return {text}", np.array([1.0, 5.0]))) in (1, 5)
    for a in (np.ones(4), np.full(4, np.nan)):
        with pytest.raises(CdError, match="of no elements has no value"):
            run(backend, "a", f"return {text}", a)
    outside = f"if a[i] > 2:\n    y[i] = {text}\nreturn y"
    assert run(backend, "a", outside, np.ones(4)).tolist() == [0, 0, 0, 0]


def test_a_position_counts_rows_that_are_as_long_as_the_longest(backend: str) -> None:
    x = np.arange(15.0).reshape(3, 5)
    assert run(backend, "x", "return argmax[i, j <= i + 2](x[i, j])", x) == 14
    assert run(backend, "x", "return argmax[i, j < i](x[i, j])", x) == 2 * 2 + 1
    assert run(backend, "x", "return argmin[j <= i, i](x[i, j])", x) == 0


EMPTY_MEANS = {
    "mean[k in range(p, q)](x[k])": [np.nan] * 4,
    "mean[k in range(i, 2)](x[k])": [1.5, 2.0, np.nan, np.nan],
    "mean[k < i - 1](x[k])": [np.nan, np.nan, 1.0, 1.5],
    "mean[k in range(i, 2), l in range(i, 2)](x[k] + x[l])": [3.0, 4.0, np.nan, np.nan],
}


@pytest.mark.parametrize(("text", "expected"), EMPTY_MEANS.items())
def test_the_mean_over_a_range_that_ends_before_it_starts_is_nan(
    text: str, expected: list[float], backend: str
) -> None:
    y = run(backend, "y, x, p, q", f"y[i] = {text}\nreturn y", np.zeros(4), np.arange(1.0, 5), 3, 1)
    assert_same(y, np.array(expected))


TYPED = {
    "mean(n[i], acc=i64)": np.int64(20),
    "mean(n[i], acc=i8)": np.int8(20),
    "sum[k in range(3)](2)": 6,
    "prod[k in range(3)](2.0)": 8.0,
    "mean[k in range(3)](7)": np.float64(7),
    "sum[k in range(3)](np.int8(100))": np.int64(300),
    "sum[k in range(3)](True)": 3,
    "sum(not n[i])": 1,
    "max[k in range(3)](True)": True,
}


@pytest.mark.parametrize(("text", "expected"), TYPED.items())
def test_a_reduction_has_the_type_of_its_numbers_or_the_one_asked_for(
    text: str, expected: object, backend: str
) -> None:
    result = run(backend, "n", f"return {text}", np.array([0, 20, 41], np.int8))
    assert (result, type(result)) == (expected, type(expected))
