"""Which sums may be added up in another order: the statement decides, not its loops."""

from __future__ import annotations

import pytest

from plusequals.lowering.schedule.order import order, updates

from ..passes.shown import lowered

CASES = {
    "y[i] = sum(x[i, j])": "j",
    "y[j] = sum(x[i, j])": "",  # down columns
    "y[i] = sum(x[i, j] * w[j])": "j",
    "y[j] = sum(x[i, j] * v[i])": "",  # rows, each times a number
    "y[i] = sum(x[j, k] * x[k, i] * v[i])": "",
    "z[i, k] = sum(x[i, j] * x[k, j])": "",  # a product of matrices
    "z[i, k] = sum((x[i, j] - x[k, j]) ** 2)": "",  # and what is like one
    "y[0] = sum(x[i, j])": "i j",
    "y[i] = max(x[i, j])": "j",
    "n[i] = sum(m[i, j])": "",  # integers are exact anyway
    "y[p[i]] += x[i, j]": "j",
    "y[p[j]] += x[i, j]": "",  # every term has a cell of its own
}


@pytest.mark.parametrize("text", CASES)
def test_what_may_be_regrouped(text: str) -> None:
    arrays = {
        "y": "f32[8]", "z": "f32[8, 8]", "n": "i64[8]", "x": "f32[8, 8]", "m": "i64[8, 8]",
        "w": "f32[8]", "v": "f32[8]", "p": "i64[8]",
    }  # fmt: skip
    used = {name: spec for name, spec in arrays.items() if f"{name}[" in text}
    (update,) = updates(order(lowered(text, **used)))
    assert [str(at) for at in update.over] == CASES[text].split()
