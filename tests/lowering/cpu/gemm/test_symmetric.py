"""Symmetric contractions: bit-identical, with one triangle copied from the other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from plusequals.base import settings
from plusequals.lowering import thresholds
from plusequals.lowering.cpu.gemm.symmetric import mirror_triangles
from plusequals.lowering.ir.loops import Program
from plusequals.lowering.lower import lower
from plusequals.lowering.pipeline import optimize

from ....compare import run_on
from ...scheduled import MODEST, function, interpreted, scheduled
from ...shown import lowered

SAME = {
    "rows": "y[:] = x @ x.T",
    "columns": "y[:] = x.T @ x",
    "with a diagonal": "y[:] = x @ x.T + 3 * np.eye(len(x))",
    "scaled": "y[i, j] = sum(x[i, k] * x[j, k]) / 3 - 1",
    "with a weight": "y[i, j] = sum(w[k] * (x[i, k] * x[j, k]))",
    "of sums": "y[i, j] = sum(abs(x[i, k] + x[j, k]))",
    "greatest": "y[i, j] = sum(np.exp(x[i, k] * x[j, k]))",
}
OTHER = {
    "two arrays": "y[i, j] = sum(x[i, k] * z[j, k])",
    "differences": "y[i, j] = sum(x[i, k] - x[j, k])",
    "an order of three": "y[i, j] = sum(w[k] * x[i, k] * x[j, k])",
    "a row of its own": "y[i, j] = sum(x[i, k] * x[j, k]) + w[i]",
    "added to": "y[i, j] += sum(x[i, k] * x[j, k])",
    "a diagonal": "y[i, i] = sum(x[i, k] * x[i, k])",
    "only half": "n = len(x)\nfor i in range(n):\n    for j in range(i):\n"
    "        y[i, j] = sum(x[i, :] * x[j, :])",
}


def made(text: str) -> Any:
    body = text.replace("\n", "\n    ")
    return function(f"def f(y, x, z, w):\n    {body}\n")


def prepared(procedure: Any) -> Program:
    """Return the loops of a procedure before the pass."""
    return optimize(lower(procedure), MODEST, None, None, "narrow_accumulators")[0]


def arguments(size: int, dtype: str = "f8") -> list[Any]:
    random = np.random.default_rng(size)
    shapes = ((size, size),) * 3 + ((size,),)
    return [random.standard_normal(shape).astype(dtype) for shape in shapes]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thresholds, "MIN_SYMMETRIC_ROWS", 2)
    monkeypatch.setattr(thresholds, "MIN_SYMMETRIC_TERMS", 2)


@pytest.mark.parametrize("name", SAME)
def test_one_triangle_is_copied(name: str, small: None) -> None:
    for size in (2, 5):
        given = arguments(size)
        before = prepared(made(SAME[name]).procedure(*given))
        after = mirror_triangles(before, MODEST)
        assert [str(one.outcome) for one in after.decisions] == ["mirrored"]
        for got, want in zip(
            interpreted(after.program, *given), interpreted(before, *given), strict=True
        ):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", OTHER)
def test_what_stays(name: str, small: None) -> None:
    program = prepared(made(OTHER[name]).procedure(*arguments(5)))
    assert mirror_triangles(program, MODEST).program is program


HANDED_ON = {
    "a sum of all": "c += s\ny[p, q] = s",
    "the one before": "y[p, q] = s + c\nc = s",
    "the greatest, which fades": "y[p, q] = s\nc = max(c, s) * 0.5",
}


@pytest.mark.parametrize("name", HANDED_ON)
def test_elements_that_hand_something_on_are_all_computed(name: str) -> None:
    rest = HANDED_ON[name].replace("\n", "\n            ")
    text = (
        "def f(y, x):\n    c = 0.0\n    for p in range(60):\n        for q in range(60):\n"
        "            s = 0.0\n            for r in range(64):\n"
        f"                s += x[p, r] * x[q, r]\n            {rest}\n    return c\n"
    )
    x = np.random.default_rng(1).integers(-3, 4, (60, 64)).astype("f8")
    scope: dict[str, Any] = {}
    exec(text, scope)
    one, other = np.zeros((60, 60)), np.zeros((60, 60))
    wanted = scope["f"](one, x)
    assert run_on("cc", function(text), other, x) == wanted
    np.testing.assert_array_equal(other, one)


@pytest.mark.parametrize("columns", ["0, 64, 2", "0, 64, 3", "63, -1, -1", "0, 63"])
def test_other_columns_than_rows_stay(columns: str) -> None:
    text = (
        f"def f(y, x):\n    for p in range(64):\n        for q in range({columns}):\n"
        "            s = 0.0\n            for r in range(64):\n"
        "                s += x[p, r] * x[q, r]\n            y[p, q] = s\n"
    )
    x = np.random.default_rng(1).integers(-3, 4, (64, 64)).astype("f8")
    scope: dict[str, Any] = {}
    exec(text, scope)
    wanted, got = np.full((64, 64), -1.0), np.full((64, 64), -1.0)
    scope["f"](wanted, x)
    run_on("cc", function(text), got, x)
    assert got.dtype == wanted.dtype
    np.testing.assert_array_equal(got, wanted)


def test_complex_conjugates_stay(small: None) -> None:
    program = lowered("y[:] = x @ np.conj(x).T", y="c128[9, 9]", x="c128[9, 9]")
    assert mirror_triangles(program, MODEST).program is program


@pytest.mark.parametrize(("rows", "terms", "count"), [(48, 64, 1), (47, 64, 0), (48, 63, 0)])
def test_short_sums_and_few_rows_stay(rows: int, terms: int, count: int) -> None:
    body = "y[i, j] = sum(x[i, k] * x[j, k])"
    program = lowered(body, y=f"f32[{rows}, {rows}]", x=f"f32[{rows}, {terms}]")
    assert len(mirror_triangles(program, MODEST).decisions) == count


def test_tiles_leave_out_half() -> None:
    text = "y[:] = x @ x.T + np.eye(len(x))"
    given = arguments(67, "f4")
    procedure = made(text).procedure(*given)
    plain = scheduled(procedure, replace(MODEST, schedule=False, reorders=False))
    tiled = scheduled(procedure, replace(MODEST, reorders=False))
    for got, want in zip(interpreted(tiled, *given), interpreted(plain, *given), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("threads", [1, 3])
def test_c_is_symmetric(threads: int) -> None:
    text = "y[:] = x.T @ x * 0.5"
    one, other = arguments(130), arguments(130)
    with settings.override(threads=threads, parallel_from=0):
        run_on("cc", made(text), *one)
    run_on("numpy", made(text), *other)
    np.testing.assert_array_equal(one[0], one[0].T)
    np.testing.assert_allclose(one[0], other[0], rtol=1e-12, atol=1e-12)
