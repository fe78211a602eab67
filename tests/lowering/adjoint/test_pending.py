"""What is wrong about compiled derivatives is found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.base import settings
from tests.programs.batch import NAME, Deferring, compile_all, installed

from .moved import Moved
from .pending import Ended, Pending, apart, compiled, flat, is_exact, remembering

TEXT = "def f(x):\n    return np.sum(x * x * x)\n"
X = np.array([0.5, 0.25, 2.0])


def pending_of(backend: Deferring, change: float) -> list[tuple[int, Pending]]:
    """Return a gradient whose first number is said to be another one."""
    f = pe.cd_from_source(TEXT, {"np": np}, backend=NAME)
    g = pe.gradient(f, wrt="x")
    found = flat(g(X.copy()))
    found[0] = found[0] + np.array([change, 0.0, 0.0])
    exact = all(is_exact(code.procedure) for code in backend.made)
    return [(7, Pending("native", g, backend.made, [([X], found)], 1e-9, exact, ""))]


@pytest.mark.parametrize(
    ("profile", "change", "kind"),
    [("default", 0.0, ""), ("strict", 0.0, ""), ("default", 1e-3, "native"),
     ("default", 1e-16, ""), ("strict", 1e-15, "native, bits")],
)  # fmt: skip
def test_numbers_are_held_as_the_profile_says(profile: Any, change: float, kind: str) -> None:
    with installed() as backend, settings.override(cache=False, profile=profile):
        ended = compiled(pending_of(backend, change), compile_all)
    assert [(n, why.kind) for n, why in ended.items()] == ([(7, kind)] if kind else [])


def test_calls_that_remember_find_other_bits() -> None:
    numbers = iter(
        [np.array([1.0, 2.0]), np.array([1.0, 2.0]), np.array([1.0, np.nextafter(2, 3)])]
    )
    one = Pending("native", lambda: next(numbers), [], [([], [])], 1e-9, False, "")
    ((_, watched),) = remembering([(0, one)], "another order")
    watched.function()
    watched.function()
    with pytest.raises(Ended, match="another order"):
        watched.function()


def test_bits_and_numbers_that_differ_are_told_apart() -> None:
    assert not apart([0.1, np.nan], [0.1, np.nan], 0.0)
    assert apart([0.0], [-0.0], 0.0) and not apart([0.0], [-0.0], 1e-9)
    assert apart([1.0], [np.nextafter(1.0, 2.0)], 0.0)
    assert apart([np.inf], [1.0], 1e-9) and not apart([np.inf], [np.inf], 1e-9)


@pytest.mark.parametrize(("text", "exact"), [("x * x / 3.0", True), ("np.exp(x)", False)])
def test_what_is_exactly_rounded_is_known(text: str, exact: bool) -> None:
    f = pe.cd_from_source(f"def f(x):\n    return {text}\n", {"np": np}, backend="numpy")
    assert is_exact(f.matched(X)[0].specialization.typed.procedure) is exact


@pytest.mark.parametrize("wrong", [0.0, 1e-7])
def test_a_gradient_that_is_wrong_is_found(wrong: float) -> None:
    f = pe.cd_from_source("def f(x):\n    return np.sum(np.sin(x) * x)\n", {"np": np})
    match = f.on("numpy").matched(X)[0]
    moved = Moved(match.specialization.typed.procedure, match.held, [0])
    gradient = np.cos(X) * X + np.sin(X) + np.array([0.0, wrong, 0.0])
    value = float(np.sum(np.sin(X) * X))
    if not wrong:
        moved.check(value, [gradient], "", 1)
        return
    with pytest.raises(Ended, match="derivative"):
        moved.check(value, [gradient], "", 1)


def test_where_there_is_a_kink_nothing_is_said() -> None:
    f = pe.cd_from_source("def f(x):\n    return np.sum(np.abs(x - 0.5))\n", {"np": np})
    match = f.on("numpy").matched(X[:1])[0]
    moved = Moved(match.specialization.typed.procedure, match.held, [0])
    with pytest.raises(Ended, match="rough"):
        moved.check(0.0, [np.ones(1)], "", 1)
