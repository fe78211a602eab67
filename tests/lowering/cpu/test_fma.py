"""Products that are rounded with their sums: which, and that no sum has some of both kinds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from plusequals.lowering.cpu.fma import form_fma
from plusequals.lowering.ir.expressions import Apply
from plusequals.lowering.ir.loops import Store
from plusequals.lowering.ir.walk import expressions_of, statements
from plusequals.lowering.passes.reduction_order import set_reduction_order

from ..scheduled import MODEST, function, interpreted, scheduled
from ..shown import lowered

SPECS = {"y": "f32[8]", "x": "f32[8, 9]", "w": "f32[9]", "n": "i64[8]", "k": "i64[8, 9]"}
FUSED = {
    "y[i] = sum(x[i, j] * w[j])": 1,
    "y[i] += x[i, j] * w[j]": 1,
    "y[i] = sum(x[i, j] + w[j])": 0,  # no product
    "y[i] = max(x[i, j] * w[j])": 0,  # no sum
    "n[i] = sum(k[i, j] * k[i, j])": 0,  # no floats
    "y[i] += x[i, 0] * w[0]": 0,  # one term is rounded as it is written
}


@pytest.mark.parametrize("text", FUSED)
def test_which_products_are_rounded_with_their_sums(text: str) -> None:
    used = {name: spec for name, spec in SPECS.items() if f"{name}[" in text}
    program = form_fma(set_reduction_order(lowered(text, **used), True))
    body = [stmt for kernel in program.kernels for stmt in statements(kernel.body)]
    calls = [e.op.name for s in body for e in expressions_of(s) if isinstance(e, Apply)]
    assert calls.count("fma") == FUSED[text]
    assert "product" not in calls
    assert sum(isinstance(s, Store) and "fma" in str(s.value) for s in body) == FUSED[text]


def test_nothing_is_fused_where_there_is_no_such_instruction() -> None:
    program = set_reduction_order(
        lowered("y[i] = sum(x[i, j] * w[j])", y="f32[8]", x="f32[8, 9]", w="f32[9]")
    )
    assert form_fma(program) == program


@pytest.mark.parametrize("fma", [False, True])
def test_a_part_that_rounding_would_lose_is_kept(fma: bool) -> None:
    made = function("def f(y, x, w):\n    y[i, l] = sum(x[i, j] * w[j, l])\n")
    tiny = np.float32(2.0**-12)
    x = np.array([[-1, 1 + tiny]], "f4")
    w = np.array([[1 + 2 * tiny], [1 + tiny]], "f4")
    y = np.zeros((1, 1), "f4")
    program = scheduled(made.procedure(y, x, w), replace(MODEST, fma=fma))
    assert interpreted(program, y, x, w)[0][0, 0] == (tiny * tiny if fma else 0)
