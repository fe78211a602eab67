"""Systems of equations."""

from __future__ import annotations

import pytest

import plusequals as pe

from .numpy_oracle import assert_same_as_numpy, compiled

EXPRESSIONS = (
    "np.linalg.solve(m.astype(np.float32), v.astype(np.float32))",
    "np.linalg.solve(m, v)",
    "np.linalg.solve(m, m.T)",
    "np.linalg.solve(m + 1j * spd, v)",
    "np.linalg.inv(m)",
    "np.linalg.det(m)",
    "np.linalg.det(k[:, :3])",
    "sign, size = np.linalg.slogdet(m)\nreturn sign, size",
    "sign, size = np.linalg.slogdet(m[[1, 0, 2, 3]].astype(np.float32))\nreturn sign, size",
    "sign, size = np.linalg.slogdet(z[:, :3])\nreturn sign, size",
    "sign, size = np.linalg.slogdet(1e-200 * spd)\nreturn sign, size",
    "sign, size = np.linalg.slogdet(np.ones((3, 3)))\nreturn sign, size",
    "sign, size = np.linalg.slogdet(k[:0, :0])\nreturn sign, size",
    "np.linalg.cholesky(spd)",
    "np.linalg.inv(np.eye(3)[::-1])",
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
