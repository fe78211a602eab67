"""Tangents of all statements, against cotangents and against central differences."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe
from plusequals.lowering.adjoint.rules import NotDifferentiable
from plusequals.lowering.adjoint.tangent import tangent
from plusequals.lowering.ir.verify import verify_procedure

from .differences import Derived, run, with_parameters
from .test_adjoint import FUNCTIONS, case_of

LEFT_EARLY = {
    "while": """
        while x[0] < 2.0:
            x *= 1.0 + y
        return x""",
    "break": """
        for q in range(6):
            if x[q] > 0.9:
                break
            y[q] *= x[q]
        return y""",
    "a sort": "return np.sort(x * y) * y",
    "a median": "return np.median(a * s, axis=0)",
    "a maximum inside": """
        r = s
        for t in range(n):
            r = r * (a[t] * x).max() + (a[t] - x).min()
        return r""",
}


def tangents(case: Derived, directions: list[np.ndarray]) -> list[np.ndarray]:
    """Return the tangents of the outputs of a case, along directions of its inputs."""
    procedure, given = with_parameters(case.procedure, case.inputs, "t")
    made = tangent(procedure, case.inputs, case.outputs, given)
    verify_procedure(made.procedure)
    results = run(made.procedure, [*case.values, *directions])[1]
    return results[len(case.procedure.results) :]


def directions_of(case: Derived, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [np.asarray(rng.standard_normal(node.static_shape)) for node in case.inputs]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_tangents_and_cotangents_are_products_with_one_jacobian(name: str) -> None:
    case = case_of(FUNCTIONS[name])
    rng = np.random.default_rng(1)
    given = [np.asarray(rng.standard_normal(node.static_shape)) for node in case.outputs]
    directions = directions_of(case, 2)
    pairs = zip(given, tangents(case, directions), strict=True)
    forward = sum(float((one * other).sum()) for one, other in pairs)
    pairs = zip(case.cotangents(given), directions, strict=True)
    backward = sum(float((one * other).sum()) for one, other in pairs)
    assert forward == pytest.approx(backward, rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("name", LEFT_EARLY)
def test_loops_run_as_often_as_before(name: str) -> None:
    f = procedure_of(LEFT_EARLY[name])
    directions = directions_of(f, 3)
    step = 1e-6
    ends = zip(f.moved(directions, step), f.moved(directions, -step), strict=True)
    for found, (high, low) in zip(tangents(f, directions), ends, strict=True):
        np.testing.assert_allclose(found, (high - low) / (2 * step), rtol=1e-6, atol=1e-8)


def procedure_of(body: str) -> Derived:
    return case_of(body, with_adjoint=False)


def test_an_extreme_of_its_own_target_is_refused() -> None:
    with pytest.raises(NotDifferentiable, match="an extreme of what it is assigned to"):
        tangents(procedure_of("x[i] = max[j](x[i] * x[j]); return x"), [])


def test_a_side_that_is_not_taken_contributes_nothing() -> None:
    text = "def f(x):\n    v[i] = sqrt(abs(x[pad(i - 2)])) + 0.0 * x[i]\n    return v\n"
    step = pe.jvp(pe.cd_from_source(text, {"np": np}, backend="numpy"), wrt="x")
    assert step(np.array([1.0, 4.0, 9.0]), np.ones(3)).tolist() == [0.0, 0.0, 0.5]
