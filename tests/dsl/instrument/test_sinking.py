"""Counts behind loops and branches: what is sunk, and that no NaN is missed or made up for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.dsl.instrument import recording, work_estimate
from plusequals.dsl.instrument.nan_counts import add_nan_counting
from plusequals.lowering.ir.printer import print_procedure

SUNK = {
    "rows": "for r in range(1, 6):\n        y[r] = y[r - 1] / x[r]",
    "backwards": "for r in range(4, -1, -1):\n        y[r] = y[r + 1] / x[r]",
    "columns": "for c in range(1, 6):\n        y[:, c] = y[:, c - 1] / x[:, c]",
    "elements": "for r in range(6):\n        for c in range(r):\n"
    "            y[r, c] = z[r, c] / x[r, c]",
    "branch": "for r in range(6):\n        if k[r] > 1:\n            y[r] = z[r] / x[r]",
    "sides": "for r in range(6):\n        if k[r] > 1:\n            y[r] = z[r] / x[r]\n"
    "        else:\n            y[r] = x[r] / z[r]",
    "sides that change the test": "for r in range(6):\n        if y[r, 0] > 0:\n"
    "            y[r] = z[r] / x[r]\n        else:\n            y[r] = x[r] / z[r]",
    "sides of other columns": "for r in range(6):\n        if k[r] > 1:\n"
    "            y[r, 1:] = z[r, 1:] / x[r, 1:]\n        else:\n            y[r] = x[r] / z[r]",
    "steps": "for t in range(n):\n        y[1:-1] = y[1:-1] / x[1:-1] + z[2:]",
    "updates": "for t in range(n):\n        y *= z\n        y /= x",
    "swap": "for t in range(n):\n"
    "        y[1:-1, 1:-1] = (z[2:, 1:-1] + z[:-2, 1:-1]) / x[1:-1, 1:-1]\n"
    "        y, z = z, y",
    "masked": "for t in range(n):\n        y[k > 2] *= z[k > 2] / x[k > 2]",
    "number": "for r in range(6):\n        for c in range(6):\n            s += x[r, c] / z[r, c]",
    "comment": "for r in range(6):\n        with comment('inner'):\n            y[r] = z[r] / x[r]",
}  # fmt: skip
STAYS = {
    "overwritten": "for t in range(n):\n        y[:] = z / x\n"
    "        z[:] = np.where(k > 1, 2.0, z)",
    "hidden": "for t in range(n):\n        y[:] = np.where(np.isnan(y), 1.0, y) / x",
    "greatest": "for t in range(n):\n        y[:] = np.fmax(y, 1.0) * z / x",
    "shifted": "for t in range(n):\n        y[1:] = y[:-1] / x[1:]",
    "far": "for t in range(n):\n        y[3:] = y[:-3] / x[3:]",
    "one row": "for t in range(n):\n        y[k[t]] = z[t] / x[t]",
    "halves": "for r in range(6):\n        y[r // 2] = z[r] / x[r]",
    "left": "for r in range(6):\n        y[r] = z[r] / x[r]\n"
    "        if k[r] > 2:\n            break",
    "changed": "for r in range(6):\n        if y[r, 0] > 0:\n            y[r] = z[r] / x[r] - 1",
    "every other": "for r in range(0, 6, 2):\n        y[r] = z[r] / x[r]",
    "one side leaves": "for r in range(6):\n        if k[r] > 1:\n            y[r] = z[r] / x[r]\n"
    "        else:\n            y[r] = x[r] / z[r]\n            continue\n"
    "        y[r] = np.where(np.isnan(y[r]), 1.0, y[r])",
    "its own test": "for r in range(6):\n        for c in range(6):\n"
    "            if k[c] > 2:\n                s += x[r, c] / z[r, c]\n"
    "            else:\n                y[r, c] = x[r // 2, c]",
    "while": "while n > 0:\n        n -= 1\n        y[n] = z[n] / x[n]",
}  # fmt: skip


def text_of(name: str) -> str:
    body = {**SUNK, **STAYS}[name]
    return f"def f(x, y, z, k, n):\n    s = 0.0\n    {body}\n    return s"


def made(name: str) -> pe.CdFunction[Any, Any]:
    return pe.cd_from_source(text_of(name), {"np": np, "comment": pe.comment}, backend="numpy")


def arguments(seed: int) -> list[Any]:
    """Arguments of which most have a zero divided by zero somewhere, or a NaN."""
    rng = np.random.default_rng(seed)
    x, y, z = rng.integers(1, 9, (3, 6, 6)) / 4
    if seed:
        x[rng.integers(6), rng.integers(6)] = 0.0
        z[rng.integers(0, 6, 18), rng.integers(0, 6, 18)] = 0.0
        y[rng.integers(0, 6, 18), rng.integers(0, 6, 18)] = 0.0
    if seed % 4 == 3:
        z[rng.integers(6), rng.integers(6)] = np.nan
    return [x, y, z, rng.permutation(6), int(rng.integers(1, 4))]


def counted(name: str) -> tuple[int, int]:
    """How many counts there are in all, and how many of them are inside of nests."""
    procedure = add_nan_counting(made(name).specialise(*arguments(0)).typed.procedure)
    assert procedure is not None
    lines = [x for x in print_procedure(procedure).splitlines() if "i64(isnan" in x]
    return len(lines), sum(line.startswith("        ") for line in lines)


@pytest.mark.parametrize("name", SUNK)
def test_what_is_sunk(name: str) -> None:
    number, inside = counted(name)
    assert number > 0 and not inside


def test_what_both_sides_leave_is_counted_once() -> None:
    assert counted("sides")[0] == counted("sides that change the test")[0] == 1
    assert counted("sides of other columns")[0] == 2


@pytest.mark.parametrize("name", STAYS)
def test_what_stays_where_it_is(name: str) -> None:
    assert counted(name)[1] > 0


@pytest.mark.parametrize("name", [*SUNK, *STAYS])
def test_each_nan_is_counted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_estimate, "MAX_QUICK_POINTS", 0)
    seen: list[bool] = []
    run = recording.Recorder._counted

    def noted(self: Any, *args: Any) -> Any:
        results = run(self, *args)
        seen.append(results is None)
        return results

    monkeypatch.setattr(recording.Recorder, "_counted", noted)
    f, found = made(name), set[bool]()
    for seed in range(12):
        traces, left = [], []
        for first_nan in (False, True):
            given = arguments(seed)
            with np.errstate(all="ignore"), pe.trace(first_nan=first_nan) as trace:
                left.append([f(*given), *given])
            traces.append(trace)
        for one, other in zip(*left, strict=True):
            np.testing.assert_array_equal(one, other)
        nans = [r for r in traces[0] if r.after != r.after]
        assert seen.pop() == bool(nans)
        assert len(traces[1]) == len([r for r in nans if r.order[:2] == nans[0].order[:2]])
        found.add(bool(nans))
    assert found == {False, True}
