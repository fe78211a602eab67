"""The forms of statements that have adjoints."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe
from plusequals.lowering.adjoint.kept import Names
from plusequals.lowering.adjoint.normalize import normalized
from plusequals.lowering.ir.printer import print_statement

from .test_adjoint import case_of

FORMS = {
    "y[i] *= x[i]; return y": "y[i] = y[i] * x[i]    for i in [0, 6)",
    "m[i] = max[j](a[i, j]); return m": "argmax over j in [0, 6): a[i, j] at j",
    "y[k] = x; return y": "for i in 0..6:",
    "return np.prod(x)": "= result * x[i]",
    "y[i] += x[i]; return y": "y[i] += x[i]",
}


@pytest.mark.parametrize("body", FORMS)
def test_statements_are_put_into_these_forms(body: str) -> None:
    procedure = case_of(body).procedure
    names = Names.above(procedure)
    made = normalized(procedure.body, names, range(names.node + 1))
    assert FORMS[body] in "\n".join(map(print_statement, made))


def test_positions_of_run_time_sizes_have_storage() -> None:
    text = "def f(a):\n    m[i] = max[j](a[i, j])\n    return m[1]\n"
    g = pe.gradient(pe.cd_from_source(text, {"np": np}, backend="numpy"), wrt="a")
    for size in (2, 3, 4, 5):
        a = np.arange(size * size * 1.0).reshape(size, size)
        assert g(a).nonzero() == ([1], [size - 1])
