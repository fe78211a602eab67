"""Gradients as compiled text, against central differences, of static and of run-time sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from tests.lowering.adjoint.programs import (
    EXTREMES,
    JUMPS,
    PARAMETERS,
    SORTS,
    WHILES,
    function_of,
    values_of,
)

PROGRAMS = {**EXTREMES, **JUMPS, **WHILES, **SORTS}
SIZES = (3, 4, 5, 6)
"""From the fourth one on they are known when the function runs only."""
AT_ALL_SIZES = {*list(PROGRAMS)[::5], "a sort", "an array of a length that is known inside"}
"""Those that are compiled for several sizes; the hunt of gradients takes others."""


def copies(values: tuple[Any, ...]) -> list[Any]:
    return [np.copy(value) if np.ndim(value) else value for value in values]


def difference(f: Callable[..., float], values: tuple[Any, ...], moves: list[Any]) -> float:
    """Return the central difference along a direction."""
    step = 1e-6
    high, low = (
        f(*(v + sign * move for v, move in zip(copies(values), moves, strict=True)))
        for sign in (step, -step)
    )
    return (high - low) / (2 * step)


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_of_programs_are_those_of_differences(name: str) -> None:
    f = function_of(PROGRAMS[name])
    g = pe.value_and_gradient(f, wrt=PARAMETERS)
    for size in SIZES if name in AT_ALL_SIZES else SIZES[:1]:
        values, rng = values_of(size), np.random.default_rng(100 + size)
        value, found = g(*copies(values))
        assert value == f(*copies(values))
        moves = [rng.standard_normal(np.shape(v)) for v in values]
        along = sum(float(np.sum(d * m)) for d, m in zip(found, moves, strict=True))
        assert along == pytest.approx(difference(f, values, moves), rel=1e-4, abs=1e-4)
        if size == SIZES[0]:
            text = pe.cd_from_source(g.text(*copies(values)), g.names)
            again, others = text(*copies(values))
            assert again == value
            for one, other in zip(found, others, strict=True):
                np.testing.assert_allclose(other, one, rtol=1e-12, atol=1e-12)
