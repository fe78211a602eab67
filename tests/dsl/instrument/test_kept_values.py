"""What a run that counts NaNs keeps of what it overwrites, and that all is as it was then."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.runtime.code_variants import accesses_of, inputs_of
from plusequals.dsl.instrument import work_estimate
from plusequals.dsl.instrument.kept_values import may_stop, saved_boxes_of

BOXES = {
    "y[:, 3] = y[:, 4] * 2": "0:5, 3:4",
    "y += x": "0:5, 0:6",
    "y[1:-1, 2:] = y[2:, 2:] + x[1:-1, 2:]; y[0, 5] += 1": "0:4, 2:6",
    "for r in range(1, 4): y[r, ::2] = y[r - 1, ::2] + 1": "1:4, 0:5",
    "for r in range(3, 0, -1): y[r] = y[r + 1]": "1:4, 0:6",
    "y[k[0]] += 1": "0:5, 0:6",
    "for r in range(3): y[0] += x[1]; y, x = x, y": "0:5, 0:6",
    "y[:] = x": "",
}


@pytest.mark.parametrize("text", BOXES)
def test_a_box_is_around_what_is_written(text: str) -> None:
    inner = "\n    " if not text.startswith("for") else "\n        "
    lines = text.replace(": y", ":\n        y").replace("; ", inner)
    f = pe.cd_from_source(f"def f(x, y, k):\n    {lines}", backend="numpy")
    procedure = f.procedure(np.ones((5, 6)), np.ones((5, 6)), np.zeros(1, int))
    kept = saved_boxes_of(procedure, inputs_of(procedure, accesses_of(procedure)))
    label = {procedure.parameters[one.at].node.label: one.part({}) for one in kept}
    shown = ", ".join(f"{one.start}:{one.stop}" for one in label.get("y", ()))
    assert shown == BOXES[text]


@pytest.mark.parametrize("checked", [False, True])
def test_all_is_as_it_was_when_a_run_is_done_again(
    checked: bool, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work_estimate, "MAX_QUICK_POINTS", 0)
    index, last = ("k[0]", "n") if checked else ("0", "3")
    text = f"""def f(x, y, k, n):
    y[1:-1, 1:] = np.sqrt(y[1:-1, :-1]) - x[1:-1, 1:]
    x *= 2
    for t in range({last}):
        y[t + 1, 2] += x[t, 2]
    k[{index}] += 1
    return y.sum() + x[{index}]
"""
    f = pe.cd_from_source(text, {"np": np}, backend=backend)
    for size in (6, 9):
        x, y = np.ones((size, 7)), np.arange(7.0 * size).reshape(size, 7)
        y[2, 3] = -1.0
        plain: list[Any] = [x.copy(), y.copy(), np.zeros(2, int), 3]
        given = [x.copy(), y.copy(), np.zeros(2, int), 3]
        with np.errstate(all="ignore"):
            expected = f(*plain)
            with pe.trace(first_nan=True) as trace:
                np.testing.assert_array_equal(f(*given), expected)
        for one, other in zip(given, plain, strict=True):
            np.testing.assert_array_equal(one, other)
        first = trace.first_nonfinite()
        assert first is not None and (first.array, first.index) == ("y", (2, 4))
        assert may_stop(f.procedure(*given)) == checked


def test_a_run_that_fails_leaves_what_it_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_estimate, "MAX_QUICK_POINTS", 0)
    f = pe.cd_from_source("def f(y, k):\n    y += 1.0\n    y[k[0]] = 2.0", backend="numpy")
    y = np.zeros(4)
    with pe.trace(first_nan=True), pytest.raises(pe.CdError):
        f(y, np.array([9]))
    np.testing.assert_array_equal(y, np.ones(4))
