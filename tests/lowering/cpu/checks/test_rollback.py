"""Counting with its checks: the same sums, the same errors, and nothing left behind by one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from plusequals.base import settings
from plusequals.base.diagnostic import CdError
from plusequals.lowering.analysis.cost import surely_fails
from plusequals.lowering.ir.loops import Check, For, Program, Update
from plusequals.lowering.ir.walk import statements

from ...scheduled import MODEST, function, interpreted, of_any_size, scheduled

THREADED = replace(MODEST, threads=3, parallel_from=1000)
TOGETHER = {
    "counts": "h[k[i]] += 1",
    "weights": "h[k[i]] += w[i]",
    "differences": "h[k[i]] -= 2 * w[i]",
    "of two axes": "g[k[i], m[i]] += w[i]",
    "narrow": "b[k[i]] += 77",
}
APART = {
    "reals": "r[k[i]] += w[i]",
    "the greatest": "h[k[i]] = max(h[k[i]], w[i])",
    "bits": "h[k[i]] |= w[i]",
    "products": "h[k[i]] *= w[i]",
    "rows": "g[k[i], j] += w[i]",
    "nothing to check": "h[k[i] % 9] += 1",
    "checked as it goes": "for i in range(len(k)):\n    h[k[i]] += 1",
}
NAMES = "hgbrkmw"


def arrays(size: int, wrong: tuple[int, ...] = ()) -> dict[str, Any]:
    random = np.random.default_rng(size)
    k, m = random.integers(0, 9, size), random.integers(0, 9, size)
    for at, value in zip(wrong, (99, -1, 9), strict=False):
        k[at % size] = value
    made: dict[str, Any] = {"h": random.integers(-9, 9, 9), "g": random.integers(-9, 9, (9, 9))}
    made |= {"b": random.integers(-99, 99, 9).astype("i1"), "r": random.random(9)}
    return made | {"k": k, "m": m, "w": random.integers(-(2**62), 2**62, size)}


def made(text: str) -> tuple[Any, list[str]]:
    names = [name for name in NAMES if f"{name}[" in text]
    inside = text.replace("\n", "\n    ")
    return function(f"def f({', '.join(names)}):\n    {inside}\n"), names


def is_together(program: Program) -> bool:
    """Whether a loop adds up what it may have to take back."""
    loops = [s for kernel in program.kernels for s in statements(kernel.body) if isinstance(s, For)]
    return any(
        isinstance(loop.body[-1], Update)
        and any(isinstance(s, Check) and surely_fails(s) for s in statements(loop.body))
        for loop in loops
    )


def outcome(program: Program, given: list[Any]) -> Any:
    try:
        return [one.tobytes() for one in interpreted(program, *given)]
    except CdError as problem:
        return str(problem)


@pytest.mark.parametrize("wrong", [(), (0,), (500, 3), (-1, 400, 300)], ids=str)
@pytest.mark.parametrize("name", TOGETHER)
def test_results_and_errors_are_the_same(name: str, wrong: tuple[int, ...]) -> None:
    f, names = made(TOGETHER[name])
    given = [arrays(700, wrong)[one] for one in names]
    expected = outcome(scheduled(f.procedure(*given), replace(MODEST, schedule=False)), given)
    assert isinstance(expected, str) == bool(wrong)
    for procedure in (f.procedure(*given), of_any_size(f, *given)):
        together = scheduled(procedure)
        assert is_together(together)
        assert outcome(together, given) == expected
        assert outcome(scheduled(procedure, THREADED), given) == expected


@pytest.mark.parametrize("name", APART)
def test_what_cannot_be_taken_back_stays_behind_all_checks(name: str) -> None:
    f, names = made(APART[name])
    assert not is_together(scheduled(f.procedure(*(arrays(700)[one] for one in names))))


@pytest.mark.parametrize("wrong", [(), (0,), (18_000, 6_200), (-1,)], ids=str)
@pytest.mark.parametrize("name", [*TOGETHER, "rows", "reals"])
def test_nothing_is_left_behind_by_an_error(name: str, wrong: tuple[int, ...]) -> None:
    f, names = made((TOGETHER | APART)[name])
    given = [arrays(20_003, wrong)[one] for one in names]
    outcomes = []
    for way, threads in ((f.on("numpy"), 1), *((f.on("cc"), threads) for threads in (1, 2, 7))):
        mine = [one.copy() for one in given]
        with settings.override("cc", threads=threads, parallel_from=1000, optimize=1):
            try:
                way(*mine)
                outcomes.append([one.tolist() for one in mine])
            except IndexError as problem:
                outcomes.append(str(problem))
                for one, before in zip(mine, given, strict=True):
                    np.testing.assert_array_equal(one, before)
    assert all(isinstance(outcome, str) == bool(wrong) for outcome in outcomes)
    if name != "reals" or wrong:  # whose sums come in another order
        assert outcomes == [outcomes[0]] * 4
