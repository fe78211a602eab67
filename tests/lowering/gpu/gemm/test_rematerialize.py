"""Elements that contractions compute anew: what has no array any more, and that it is the same."""

from __future__ import annotations

import numpy as np
import pytest

from plusequals.lowering.gpu.gemm.rematerialize import rematerialize_elements
from plusequals.lowering.ir.loops import Program
from plusequals.lowering.ir.verify import verify_program
from plusequals.lowering.target import Target

from ..kernels import Case, filled, ran

CUDA = Target("cuda")
ROWS = """
m[i] = max(x[i, j])
p[i, j] = exp(x[i, j] - m[i])
z[i] = sum(p[i, j])
y[i, d] = sum[j](p[i, j] * v[j, d]) / z[i]
"""
SHAPES = {"y": "f64[9, 20]", "x": "f64[9, 40]", "v": "f64[40, 20]"}


def labels(program: Program) -> set[str]:
    """Return the arrays of a program that no caller has."""
    return {node.label for node in program.locals if node.rank > 1}


def changed(text: str, target: Target = CUDA, **shapes: str) -> bool:
    """Whether a program changes, whose results stay what they were."""
    case = Case(text, **(SHAPES | shapes))
    made = rematerialize_elements(case.program, target)
    verify_program(made)
    arrays = [filled(p.node, np.random.default_rng(2)) for p in case.program.parameters]
    for got, want in zip(ran(made, arrays), ran(case.program, arrays), strict=True):
        assert np.array_equal(got, want)
    assert (made is not case.program) == ("p" in labels(case.program) - labels(made))
    return made is not case.program


def test_a_softmax_has_two_numbers_for_each_row() -> None:
    assert changed(ROWS)
    made = rematerialize_elements(Case(ROWS, **SHAPES).program, CUDA)
    assert {n.label: n.static_shape for n in made.locals if n.rank} == {
        "m": (9,), "z": (9,), "p": (40,)
    }  # fmt: skip


SAME = {
    "rows of its own": """
m[i] = max(x[i, j])
e[i, j] = exp(x[i, j] - m[i])
p[i, j] = e[i, j] / sum[k](e[i, k])
y[i, d] = sum(p[i, j] * v[j, d])
""",
    "the other factor": "p[j, d] = exp(v[j, d])\ny[i, d] = sum(x[i, j] * p[j, d])",
    "another order of axes": "p[j, i] = exp(x[i, j])\ny[i, d] = sum(p[j, i] * v[j, d])",
    "part of it": "p = np.exp(x)\ny[:] = p[:, 1:] @ v[1:]",
    "a sum behind": "p[i, j] = exp(x[i, j])\ny[i, d] = sum(p[i, j] * v[j, d])\nw[i] = sum(p[i, j])",
}


@pytest.mark.parametrize("name", SAME)
def test_elements_are_computed_where_they_are_read(name: str) -> None:
    assert changed(SAME[name], w="f64[9]")


OTHERWISE = {
    "what it needs changes": """
m[i] = max(x[i, j])
p[i, j] = exp(x[i, j] - m[i])
z[i] = sum(p[i, j])
x[i, j] = 0
y[i, d] = sum[j](p[i, j] * v[j, d]) / z[i]
""",
    "both factors": "p[i, j] = exp(x[i, j])\nw[i, k] = sum(p[i, j] * p[k, j])",
    "two contractions": """
p[i, j] = exp(x[i, j])
y[i, d] = sum(p[i, j] * v[j, d])
w[i, d] = sum(p[i, j] * v[j, d])
""",
    "what is returned": "w[i, j] = exp(x[i, j])\ny[i, d] = sum(w[i, j] * v[j, d])",
    "much to compute": "p[i, j] = exp(sin(exp(sin(x[i, j]))))\ny[i, d] = sum(p[i, j] * v[j, d])",
}


@pytest.mark.parametrize("name", OTHERWISE)
def test_elements_stay_in_their_array(name: str) -> None:
    shape = {"both factors": "f64[9, 9]", "two contractions": "f64[9, 20]"}
    assert not changed(OTHERWISE[name], w=shape.get(name, "f64[9, 40]"))
