"""Checks beside what needs them: the same results, the same errors, and nothing written before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from plusequals.base import settings
from plusequals.base.diagnostic import CdError
from plusequals.lowering import thresholds
from plusequals.lowering.ir.loops import Check, For, Program
from plusequals.lowering.ir.walk import statements

from ...scheduled import MODEST, function, interpreted, of_any_size, scheduled

SMALL = replace(MODEST, l2_bytes=4096)
JOINED = {
    "a look": "return x[k]",
    "two": "return x[k] * x[m]",
    "of two axes": "return z[k, m]",
    "in letters": "y[i] = x[k[i]] + 1\n    return y",
    "turned": "return -x[k[::-1]]",
    "under a test": "return np.where(k > 2, x[k], 0.5)",
}
APART = {
    "into an argument": "v[i] = x[k[i]]",
    "rows": "return z[k]",
    "what is checked changes": "k[i] = h[k[i]]",
}
SIZES = (1, thresholds.CHECKED_BLOCK_ITERATIONS, 2 * thresholds.CHECKED_BLOCK_ITERATIONS + 5)


def arrays(size: int, wrong: tuple[int, ...] = ()) -> dict[str, Any]:
    rng = np.random.default_rng(size)
    k, m = rng.integers(0, 6, size), rng.integers(-6, 6, size)
    for at, value in zip(wrong, (99, -77), strict=False):
        k[at % size] = value
    given = {"k": k, "m": m, "x": rng.random(7), "z": rng.random((7, 7)), "v": np.zeros(size)}
    return given | {"h": rng.integers(0, 6, 7)}


def made(body: str) -> tuple[Any, list[str]]:
    names = [
        name for name in "kmxzvh" if f"{name}[" in body or f"[{name}" in body or f" {name}]" in body
    ]
    return function(f"def f({', '.join(names)}):\n    {body}\n"), names


def blocks(program: Program) -> int:
    """Return how many loops over blocks do something beside the checks in them."""
    loops = [s for kernel in program.kernels for s in statements(kernel.body) if isinstance(s, For)]
    return sum(
        loop.step == thresholds.CHECKED_BLOCK_ITERATIONS
        and any(isinstance(inner, Check) for inner in statements(loop.body))
        and isinstance(loop.body[-1], For)
        for loop in loops
    )


def outcome(program: Program, given: list[Any]) -> Any:
    try:
        return [one.tobytes() for one in interpreted(program, *given)]
    except CdError as problem:
        return str(problem)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", JOINED)
def test_results_and_errors_are_the_same(name: str, size: int) -> None:
    f, names = made(JOINED[name])
    given = [arrays(size)[one] for one in names]
    plain = scheduled(f.procedure(*given))
    together = scheduled(f.procedure(*given), SMALL)
    assert not blocks(plain)
    assert bool(blocks(together)) == (8 * size > SMALL.l2_bytes)
    any_size = scheduled(of_any_size(f, *given), SMALL) if size > 1 else together
    for wrong in (
        (),
        (thresholds.CHECKED_BLOCK_ITERATIONS - 1, 5),
        (-1, thresholds.CHECKED_BLOCK_ITERATIONS),
    ):
        given = [arrays(size, wrong)[one] for one in names]
        expected = outcome(plain, given)
        assert outcome(together, given) == expected, wrong
        assert outcome(any_size, given) == expected, wrong


@pytest.mark.parametrize("name", APART)
def test_what_is_seen_after_an_error_is_written_behind_all_checks(name: str) -> None:
    f, names = made(APART[name])
    size = 3 * thresholds.CHECKED_BLOCK_ITERATIONS + 5
    given = [arrays(size)[one] for one in names]
    assert not blocks(scheduled(f.procedure(*given), SMALL))
    given = [arrays(size, (-1,))[one] for one in names]
    before = [one.copy() for one in given]
    with pytest.raises(IndexError):
        f.on("cc")(*given)
    for one, other in zip(given, before, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", JOINED)
def test_code_does_the_same_with_any_number_of_threads(name: str) -> None:
    f, names = made(JOINED[name])
    size = 20 * thresholds.CHECKED_BLOCK_ITERATIONS + 77
    for wrong in (
        (),
        (15 * thresholds.CHECKED_BLOCK_ITERATIONS + 3, 19 * thresholds.CHECKED_BLOCK_ITERATIONS),
    ):
        given = [arrays(size, wrong)[one] for one in names]
        expected = said(f.on("numpy"), given)
        for threads in (1, 2, 7):
            with settings.override("cc", threads=threads, parallel_from=0, optimize=1):
                np.testing.assert_array_equal(said(f, given), expected, f"{threads}")


def said(f: Callable[..., Any], given: list[Any]) -> Any:
    """Return the result of a call, or the text of its error."""
    try:
        return f(*given)
    except IndexError as problem:
        return str(problem)
