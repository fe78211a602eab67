"""Extremes of a known number of terms: the first of equal zeros, NaN, terms met twice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from plusequals.base import settings
from plusequals.lowering import thresholds
from plusequals.lowering.ir.loops import For, Update
from plusequals.lowering.ir.walk import statements
from plusequals.lowering.target import Target

from ...scheduled import LIKE_C, function, interpreted, of_any_size, scheduled

SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 127)
TERMS = {
    "plain": "x[i, j]",
    "negated": "-x[i, j]",
    "shifted": "(x[i, j] - 1)",
    "sizes": "abs(x[i, j])",
    "numbers": "where(isnan(x[i, j]), 0.25, x[i, j])",
}


def rows(size: int, dtype: str) -> Any:
    """Return rows in which zeros of both signs, one NaN, infinities, or nothing else is greatest
    and least."""
    rng = np.random.default_rng(size)
    x = rng.uniform(0.5, 2, (9, size)).astype(dtype)
    x[1] *= -1
    for row, first in ((2, 0), (3, size // 2), (4, size - 1)):
        x[row, first:] = rng.choice([0.0, -0.0], size - first)
        x[row + 3] = -x[row]
        x[row + 3, :first] = x[row, :first]
    x[5, size // 3] = np.nan
    x[6, -1], x[6, 0] = -np.inf, np.inf
    x[8] = rng.choice([0.0, -0.0, 1.0, -1.0], size)
    return x


def one_by_one(row: Any, name: str) -> Any:
    """Return what a loop finds: the first of equals, and NaN where there is one."""
    best = row[0]
    for one in row[1:]:
        is_better = one > best if name == "max" else one < best
        best = one if is_better or np.isnan(one) and not np.isnan(best) else best
    return best


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("term", TERMS)
def test_what_is_found_is_what_a_loop_finds(term: str, name: str, dtype: str) -> None:
    made = function(f"def f(x):\n    y[i] = {name}({TERMS[term]})\n    return y\n")
    for size in SIZES:
        x = rows(size, dtype)
        terms = {
            "plain": x,
            "negated": -x,
            "shifted": x - x.dtype.type(1),
            "sizes": np.abs(x),
            "numbers": np.where(np.isnan(x), x.dtype.type(0.25), x),
        }[term]
        expected = np.array([one_by_one(row, name) for row in terms])
        (walked,) = interpreted(scheduled(made.procedure(x)), x)
        with settings.override(schedule=True):
            ran = made.on("cc")(x)
        for found in (walked, ran):
            np.testing.assert_array_equal(found, expected)
            known = ~np.isnan(expected)
            assert np.array_equal(np.signbit(found)[known], np.signbit(expected)[known]), size


@pytest.mark.parametrize("size", SIZES)
def test_all_terms_are_met_in_lanes_from_some_on(size: int) -> None:
    made = function("def f(x):\n    y[i] = max(x[i, j])\n    return y\n")
    program = scheduled(made.procedure(np.ones((5, size), "f4")))
    inside = [stmt for kernel in program.kernels for stmt in statements(kernel.body)]
    lanes = [s for s in inside if isinstance(s, For) and s.kind == "vector"]
    assert bool(lanes) == (size >= thresholds.MIN_VECTOR_MIN_MAX_TERMS)
    terms = [s for s in inside if isinstance(s, Update) and "x[" in str(s.value)]
    serial = [s for s in inside if isinstance(s, For) and s.kind == "serial" and s.step == 1]
    assert size < thresholds.MIN_VECTOR_MIN_MAX_TERMS or len(serial) == 2, (
        "rows, and the search for the first zero"
    )
    assert size < thresholds.MIN_VECTOR_MIN_MAX_TERMS or all(
        any(t in loop.body for loop in lanes) for t in terms
    )


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_terms_with_a_name_are_those_of_their_own_round(dtype: str) -> None:
    made = function(
        "def f(x):\n    t = np.abs(x)\n"
        "    return np.max(np.where(t < 1, t, 0.0) - t, 1), t.max(1)\n"
    )
    for size in SIZES:
        x = np.where(np.isnan(rows(size, dtype)), 0, rows(size, dtype))
        t = np.abs(x)
        with np.errstate(invalid="ignore"):
            terms = np.where(t < 1, t, x.dtype.type(0)) - t
        expected = [np.array([one_by_one(row, "max") for row in every]) for every in (terms, t)]
        for found, wanted in zip(made(x), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)
            assert np.array_equal(np.signbit(found), np.signbit(wanted)), size


BESIDE = {
    "all four": "return x.min(), x.max(), x.mean(), x.sum()",
    "rows": "return np.min(x, axis=1), np.sum(x, axis=1), np.max(-x, axis=1)",
    "a loop": (
        "m = -np.inf\ns = 0.0\nfor a in range(len(x)):\n    for b in range(x.shape[1]):\n"
        "        t = x[a, b] - 1\n        m = max(m, t)\n        s += t\nreturn m, s"
    ),
    "what is stored": (
        "y = np.zeros_like(x)\nm = np.inf\nfor a in range(len(x)):\n"
        "    for b in range(x.shape[1]):\n        y[a, b] = x[a, b] * 2\n"
        "        m = min(m, x[a, b])\nreturn y, m"
    ),
    "what a round has from another": (
        "m = -np.inf\ns = 0.0\nt = 0.0\nfor a in range(len(x)):\n    for b in range(x.shape[1]):\n"
        "        m = max(m, x[a, b] - t)\n        t = x[a, b]\n        s += t\nreturn m, s, t"
    ),
    "one needs the other": (
        "m = -np.inf\ns = 0.0\nfor a in range(len(x)):\n    for b in range(x.shape[1]):\n"
        "        s += x[a, b]\n        m = max(m, s)\nreturn m, s"
    ),
}


@pytest.mark.parametrize("name", BESIDE)
def test_extremes_beside_sums_are_what_loops_find(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thresholds, "MIN_SEPARATE_MIN_MAX_ITERATIONS", 3)
    text = "".join(f"    {line}\n" for line in BESIDE[name].splitlines())
    made = function(f"def f(x):\n{text}")
    for size in SIZES:
        x = rows(size, "f8")
        procedure = made.procedure(x)
        plain = interpreted(scheduled(procedure, Target()), x)
        walked = interpreted(scheduled(procedure, LIKE_C), x)
        with settings.override(schedule=True, threads=1):
            found = made.on("cc")(x)
        for one, other, want in zip(found, walked, plain, strict=True):
            other, want = (np.asarray(part).reshape(np.shape(one)) for part in (other, want))
            np.testing.assert_array_equal(one, other)
            np.testing.assert_allclose(one, want, rtol=1e-12)
            signs = np.signbit(one) == np.signbit(other)
            assert np.all(signs | np.isnan(one)), (name, size)


def test_extremes_beside_sums_are_found_in_a_loop_of_their_own() -> None:
    made = function("def f(x):\n    return x.min(), x.max(), x.mean()\n")
    program = scheduled(made.procedure(np.zeros(1000)))
    found = [s for k in program.kernels for s in statements(k.body) if isinstance(s, For)]
    inner = [{s.op.name for s in loop.body if isinstance(s, Update)} for loop in found]
    assert {"min", "max"} in inner and {"add"} in inner
    assert not any("add" in names and "max" in names for names in inner)


@pytest.mark.parametrize("name", BESIDE)
@pytest.mark.parametrize("size", [4, 33, 100])
def test_extremes_beside_sums_for_sizes_of_the_run(name: str, size: int) -> None:
    text = "".join(f"    {line}\n" for line in BESIDE[name].splitlines())
    made, x = function(f"def f(x):\n{text}"), rows(size, "f8")
    x[5, size // 3] = 0.0
    fixed = interpreted(scheduled(made.procedure(x), LIKE_C), x)
    run = interpreted(scheduled(of_any_size(made, x), LIKE_C), x)
    for one, other in zip(fixed, run, strict=True):
        assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("size", [5, 9, 20, 31, 33, 70])
@pytest.mark.parametrize(
    "body",
    [
        "np.maximum.at(h, k, x)\n    s[0] = x.max()",
        "s[0] = x.max()\n    np.maximum.at(h, k, x)",
        "np.minimum.at(h, k, x)\n    s[0] = x.max()\n    s[1] = x.min()",
        "for p in range(2):\n        s[p] = x.min()\n        np.maximum.at(h, k, x)",
    ],
)
def test_elements_that_terms_go_to_keep_what_they_had(body: str, size: int, dtype: str) -> None:
    text = f"def f(h, k, x, s):\n    {body}\n"
    rng = np.random.default_rng(size)
    h, x = np.full(256, 0.5, dtype), rng.random(size).astype(dtype)
    given = [h, rng.integers(0, 3, size).astype("u1"), x, np.zeros(2, dtype)]
    wanted, got = ([one.copy() for one in given] for _ in range(2))
    scope: dict[str, Any] = {"np": np}
    exec(text, scope)
    scope["f"](*wanted)
    walked = interpreted(scheduled(function(text).procedure(*given)), *given)
    with settings.override(schedule=True):
        function(text).on("cc")(*got)
    for made in (got, walked):
        for one, other in zip(made, wanted, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)
