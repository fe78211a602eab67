"""Adjoint procedures of control flow, extremes and sorts, against central differences."""

from __future__ import annotations

import pytest

from .differences import agree, derived
from .programs import EXTREMES, JUMPS, SORTS, WHILES, function_of, values_of

PROGRAMS = {**EXTREMES, **JUMPS, **WHILES, **SORTS}


@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_of_programs_are_those_of_differences(name: str) -> None:
    match, _ = function_of(PROGRAMS[name], "numpy").matched(*values_of(3))
    case = derived(match.specialization.typed.procedure, match.held)
    assert agree(case, 1, rtol=1e-4) and agree(case, 2, rtol=1e-4)
