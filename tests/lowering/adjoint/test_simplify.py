"""What starts from zero, and what nothing reads."""

from __future__ import annotations

from textwrap import dedent, indent

import numpy as np
import pytest

import plusequals as pe
from plusequals.dsl.elaborate.normalize import build
from plusequals.dsl.gradient.source_text import source_text
from plusequals.lowering.adjoint.simplify import simplified
from plusequals.lowering.ir.assignments import Procedure

from .differences import run

CASES = {
    "a sum that starts from zero": (
        "t = np.zeros(3); t[i] += x[i]; t[i] -= x[i] * n; return t.copy()",
        "t[i] = x[i]\nt[i] -= x[i] * n",
    ),
    "zero again, and unused": (
        "t = np.zeros(3); t[i] += x[i]; y = t * 2; t[i] = 0.0; return y",
        "t[i] = x[i]\ny[i] = t[i] * 2.0",
    ),
    "in a loop that ends with zeros": (
        """
        t = np.zeros(3)
        y = np.zeros(3)
        for k in range(2):
            t[i] += x[i] * y[i]
            y[i] = t[i] + 1.0
            t[i] = 0.0
        return y.copy()
        """,
        "for k in range(2):\n    t[i] = x[i] * y[i]\n    y[i] = t[i] + 1.0",
    ),
    "not in one that does not": (
        """
        t = np.zeros(3)
        for k in range(2):
            t[i] += x[i]
        return t.copy()
        """,
        "for k in range(2):\n    t[i] += x[i]",
    ),
    "a branch that writes": (
        """
        t = np.zeros(3)
        if n > 0:
            t[i] = x[i]
        t[i] += x[i]
        return t.copy()
        """,
        "if n > 0.0:\n    t[i] = x[i]\nt[i] += x[i]",
    ),
    "some elements": (
        "t = np.zeros(3); t[1] += n; t[i] += x[i]; return t.copy()",
        "t[1] += n\nt[i] += x[i]",
    ),
    "a loop that is left": (
        """
        t = np.zeros(3)
        for k in range(3):
            if x[k] > 0.5:
                break
            t[i] += x[i]
            t[i] = 0.0
        t[i] += x[i]
        return t.copy()
        """,
        "        break",
    ),
}


def procedure_of(body: str) -> Procedure:
    lines = indent(dedent(body.strip("\n")), "    ")
    f = pe.cd_from_source(f"def f(x, n):\n{lines}\n", {"np": np}, backend="numpy")
    return build(f.matched(np.ones(3), 2.0)[0].specialization.typed.procedure)


@pytest.mark.parametrize("name", CASES)
def test_statements_are_fewer_and_results_equal(name: str) -> None:
    body, expected = CASES[name]
    before = procedure_of(body)
    after = simplified(before)
    lines = source_text(after, "f", after.results).split("\n")
    shown = "\n".join(line.removeprefix("    ") for line in lines)
    assert expected in shown
    for values in (np.array([0.2, 0.7, 0.1]), np.array([0.9, -1.0, 2.0])):
        given = [values, np.asarray(2.0)]
        for one, other in zip(run(before, given)[1], run(after, given)[1], strict=True):
            np.testing.assert_array_equal(one, other)
