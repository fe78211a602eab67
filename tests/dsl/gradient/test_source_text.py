"""The text of gradients: whole for a small one, and the same numbers as the assignments give."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe
from plusequals.dsl.gradient.source_text import source_text
from tests.lowering.adjoint.test_adjoint import FUNCTIONS, case_of

DENSE = """
def dense_gradient(x, w, b):
    d_z = np.zeros((4, 3))
    d_total = np.zeros((4, 3))
    d_w = np.zeros((6, 3))
    d_b = np.zeros(3)
    total[i, j] = sum[k](x[i, k] * w[k, j])
"""


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_text_computes_what_the_assignments_do(name: str) -> None:
    case = case_of(FUNCTIONS[name])
    rng = np.random.default_rng(3)
    given = [rng.standard_normal(node.static_shape) for node in case.outputs]
    expected = case.cotangents([np.asarray(one) for one in given])
    text = source_text(case.adjoint.procedure, "g", case.adjoint.cotangents)
    g = pe.cd_from_source(text, {"np": np}, backend="numpy")
    parameters = case.procedure.parameters
    values = [
        np.copy(value) if value.ndim or parameter.written else value.item()
        for value, parameter in zip(case.values, parameters, strict=True)
    ]
    found = g(*values, *(one if np.ndim(one) else float(one) for one in given))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
