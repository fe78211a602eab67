"""Gradients against differences in extended precision, along random directions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from plusequals.lowering.ir.assignments import Procedure

from .extended import Extended
from .pending import Ended

STEP = 2e-5
"""The smallest of the three steps of differences."""
RTOL = 1e-9
"""How much a derivative may differ from differences, relative to what it is the sum of."""
SMOOTH = 1e-7
"""How much those of two steps may differ: where it is more there is a kink, or a pole."""
DIRECTIONS = 3


class Moved:
    """A procedure that returns one number, where its parameters are moved along directions."""

    def __init__(self, procedure: Procedure, values: Sequence[Any], places: Sequence[int]) -> None:
        self.run = Extended(procedure).run
        self.values, self.places = values, places

    def value(self, directions: Sequence[np.ndarray], step: float) -> Any:
        """Return the number in extended precision."""
        values = list(self.values)
        size = np.longdouble(step)
        for place, direction in zip(self.places, directions, strict=step != 0.0):
            values[place] = np.asarray(values[place], np.longdouble) + size * direction
        return self.run(values)[0][()]

    def check(self, value: float, gradients: Sequence[Any], told: str, seed: int) -> None:
        """Hold gradients against differences along random directions. Raises Ended."""
        rng = np.random.default_rng(seed)
        here = self.value((), 0.0)
        if not abs(here - value) <= 1e-9 * max(1.0, abs(value)):
            raise Ended("rough")
        smooth = False
        for _ in range(DIRECTIONS):
            directions = [np.asarray(rng.standard_normal(np.shape(g))) for g in gradients]
            products = [g * d for g, d in zip(gradients, directions, strict=True)]
            along = float(sum(p.sum() for p in products))
            at = {n: self.value(directions, n * STEP) for n in (-4, -2, -1, 1, 2, 4)}
            centered = {n: (at[n] - at[-n]) / (2 * n * np.longdouble(STEP)) for n in (1, 2, 4)}
            best, other = ((4 * centered[n] - centered[2 * n]) / 3 for n in (1, 2))
            sides = (at[1] - here) / STEP, (here - at[-1]) / STEP
            scale, spread = max(1.0, abs(best)), abs(best - other)
            if not spread <= SMOOTH * scale or not abs(sides[0] - sides[1]) <= 1e-2 * scale:
                continue
            smooth = True
            terms = float(sum(np.abs(p).sum() for p in products))
            if not abs(along - best) <= RTOL * (scale + terms) + 20 * spread:
                why = f"{along} along a direction, not {best} +- {spread:.1g}"
                raise Ended("derivative", f"{why} in {told}", True)
        if not smooth:
            raise Ended("rough")
