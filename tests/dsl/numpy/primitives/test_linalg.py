"""Systems of equations."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe

from ...elaborate.numpy_oracle import assert_same_as_numpy, compiled
from ...elaborate.strict_oracle import assert_as_plain

EXPRESSIONS = (
    "np.linalg.solve(m.astype(np.float32), v.astype(np.float32))",
    "np.linalg.solve(m, v)",
    "np.linalg.solve(m, m.T)",
    "np.linalg.solve(m + 1j * spd, v)",
    "np.linalg.inv(m)",
    "np.linalg.det(m)",
    "np.linalg.det(k[:, :3])",
    "sign, size = np.linalg.slogdet(m)\nreturn sign, size",
    "found = np.linalg.slogdet(m)\nreturn found.sign, found.logabsdet",
    "sign, size = np.linalg.slogdet(m[[1, 0, 2, 3]].astype(np.float32))\nreturn sign, size",
    "sign, size = np.linalg.slogdet(z[:, :3])\nreturn sign, size",
    "sign, size = np.linalg.slogdet(1e-200 * spd)\nreturn sign, size",
    "sign, size = np.linalg.slogdet(np.ones((3, 3)))\nreturn sign, size",
    "sign, size = np.linalg.slogdet(k[:0, :0])\nreturn sign, size",
    "np.linalg.cholesky(spd)",
    "np.linalg.inv(np.eye(3)[::-1])",
    "np.linalg.matrix_power(m, 0)",
    "np.linalg.matrix_power(m, -2)",
    "np.linalg.matrix_power(k[:, :3], -1)",
    "np.linalg.matrix_power(np.stack([m, m + 1]) > 0.5, 0)",
)


@pytest.mark.parametrize("body", EXPRESSIONS)
def test_it_is_what_numpy_says(body: str) -> None:
    assert_same_as_numpy(body)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("np.linalg.solve(m * 0, v)", "singular matrix"),
        ("np.linalg.inv(np.zeros((3, 3)))", "singular matrix"),
        ("np.linalg.cholesky(-spd)", "positive definite"),
    ],
)
def test_a_matrix_without_a_solution_raises_in_the_run(body: str, message: str) -> None:
    with pytest.raises(pe.CdError, match=message) as caught:
        compiled(body)
    assert isinstance(caught.value, ValueError)


def test_stacks_of_matrices_are_refused() -> None:
    with pytest.raises(pe.CdError, match="one matrix"):
        compiled("np.linalg.solve(t, v)")


def _solve(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.linalg.solve(a, b)


def _inverse(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.linalg.inv(a)


def _determinants(a: np.ndarray, b: np.ndarray) -> tuple[object, object]:
    sign, size = np.linalg.slogdet(a / 4)
    return np.linalg.det(a / 4), sign * size


def _cholesky(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.linalg.cholesky(a @ np.conj(a).T + np.eye(a.shape[0]))


@pytest.mark.parametrize("made", [_solve, _inverse, _determinants, _cholesky])
def test_matrices_of_several_blocks_are_solved(made: object) -> None:
    function = pe.cd(made)
    for size, dtype in ((70, "c16"), (0, "f8")):
        rng = np.random.default_rng(size)
        a, b = rng.standard_normal((2, size, size))
        a, b = (a + 1j * b, b + 0j) if dtype == "c16" else (a, b)
        for got, wanted in zip(np.atleast_1d(function(a, b)), np.atleast_1d(made(a, b))):
            np.testing.assert_allclose(got, wanted, rtol=1e-8, atol=1e-8)


def test_what_has_no_pivot_in_a_later_block_is_singular() -> None:
    a = np.eye(80)
    a[50, 50] = 0
    with pytest.raises(pe.CdError, match="singular"):
        pe.cd(_solve)(a, a)
    a[50, 50] = -2
    with pytest.raises(pe.CdError, match="positive definite"):
        pe.cd(_cholesky_of)(a)


def _cholesky_of(a: np.ndarray) -> np.ndarray:
    return np.linalg.cholesky(a)


@pytest.mark.parametrize(
    "matrix",
    [[[np.inf, 1], [1, 0]], [[0, 0], [0, 0.0]], [[1, 2], [2, 4]], [[-np.inf, 1], [1, 0]],
     [[1, 2], [3, 4]], [[0, 1], [1, 0]], [[np.nan] * 2] * 2],
    ids=repr,
)  # fmt: skip
def test_a_zero_pivot_makes_a_zero_and_nan_is_no_negative_one(matrix: list[list[float]]) -> None:
    with np.errstate(all="ignore"):
        assert_as_plain("np.linalg.det(a), np.linalg.slogdet(a)[0]", np.array(matrix, float))


def _powers(a: np.ndarray, n: int) -> np.ndarray:
    return np.linalg.matrix_power(a, n)


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.bool_, np.complex128])
def test_a_power_of_the_run_is_a_loop(dtype: type) -> None:
    f, made = pe.cd(_powers), set()
    a = np.arange(18).reshape(2, 3, 3).astype(dtype)
    for n in (0, 1, 2, 3, 6, np.uint8(7), 0):
        given = a.copy()
        power = f(given, n)
        assert power.dtype == a.dtype
        np.testing.assert_allclose(power, _powers(a, n), rtol=1e-5)
        np.testing.assert_array_equal(given, a)
        made.add((type(n), id(f.matched(a, n)[0].specialization)))
    assert len(made) == 2


def test_a_negative_power_of_the_run_is_refused() -> None:
    with pytest.raises(ValueError, match="a run-time power of a matrix is zero or more, and is -2"):
        pe.cd(_powers)(np.eye(2), -2)
