"""Whether NaNs are counted where a statement leaves one, and what is done then."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.dsl.instrument import recording, work_estimate
from plusequals.dsl.instrument.nan_counts import add_nan_counting
from plusequals.lowering.ir.printer import print_procedure

TEXT = """def f(x, y, c, k, n):
    a = x / y
    b = np.where(np.isnan(a), 0.0, a) + np.nan_to_num(x)
    y[k] = np.sqrt(b - 1)
    p, q = y.copy(), 3 - b
    for t in range(n):
        s = 2.0 * b[t]
        if t == 2:
            y[t] -= s
            break
        y[1:] = y[:-1] * s
        p, q = q, p * s
    while n > 0:
        b[n] = np.log(b[n])
        n -= 1
        if n == 1:
            continue
        c *= b
    with comment("turned"):
        z = b[::-1].copy()
    z[0] = np.max(b)
    return z, np.exp(-z), c.real, p - q
"""


@pytest.fixture(autouse=True)
def all_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """NaNs are counted also where a call computes few elements."""
    monkeypatch.setattr(work_estimate, "MAX_QUICK_POINTS", 0)


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each run that was tried without recording whether it was done again."""
    seen: list[bool] = []
    counted = recording.Recorder._counted

    def noted(self: Any, *args: Any) -> Any:
        results = counted(self, *args)
        seen.append(results is None)
        return results

    monkeypatch.setattr(recording.Recorder, "_counted", noted)
    return seen


def arguments(seed: int) -> tuple[Any, ...]:
    """Arguments of which some give NaNs, one after another."""
    rng = np.random.default_rng(seed)
    x, y = rng.integers(1, 9, (2, 5)) / 2
    if seed % 3 == 1:
        x[seed % 5] = y[seed % 5] = 0.0
    c = rng.integers(0, 3, 5) * (1 + 1j)
    if seed % 4 == 3:
        c[1] = np.nan
    return x, y, c, rng.permutation(5), 3


def test_the_first_nan_is_what_a_full_trace_shows(recorded: list[bool], backend: str) -> None:
    f = pe.cd_from_source(TEXT, {"np": np, "comment": pe.comment}, backend=backend)
    found = set[bool]()
    for seed in range(4):
        given = arguments(seed)
        results, left, traces = [], [], []
        for first_nan in (False, True):
            own = [one.copy() if isinstance(one, np.ndarray) else one for one in given]
            with np.errstate(all="ignore"), pe.override(optimize=0, pipeline="short"):
                with pe.trace(first_nan=first_nan) as trace:
                    results.append(f(*own))
            left.append(own)
            traces.append(trace)
        for one, other in zip([*left[0], *results[0]], [*left[1], *results[1]], strict=True):
            np.testing.assert_array_equal(one, other, strict=True)
        nans = [r for r in traces[0] if r.after != r.after]
        first = [r for r in nans if r.order[:2] == nans[0].order[:2]]
        assert [str(r) for r in traces[1]] == [str(r) for r in first]
        assert recorded.pop() or not nans, "there was one, and it was not noticed"
        found.add(bool(nans))
        assert len(traces[1].runs) == 1 and traces[1].runs[0].name == "f"
    assert found == {False, True}


def test_a_run_without_a_nan_is_no_run_that_is_recorded(recorded: list[bool]) -> None:
    f = pe.cd_from_source("def f(y, x):\n    y += x / 2\n    return y * y", backend="numpy")
    x, y = np.arange(3.0), np.ones(3)
    with pe.trace(first_nan=True) as trace:
        np.testing.assert_array_equal(f(y, x), [1.0, 2.25, 4.0])
        x[1] = np.nan
        f(y, x)
    assert recorded == [False, True] and [r.run for r in trace] == [1]
    assert trace.dropped == 0 and "f" in str(trace)
    with pytest.raises(pe.CdError, match="CD0875"), pe.trace(first_nan=True, arrays="z"):
        f(y, np.ones(3))


def test_a_nan_that_a_function_of_the_library_makes(recorded: list[bool]) -> None:
    f = pe.cd_from_source("def f(x):\n    return np.sort(x)", {"np": np}, backend="numpy")
    with pe.trace(first_nan=True) as trace:
        for last in (1.0, np.nan):
            f(np.array([2.0, last, 0.0]))
    assert recorded == [False, True] and [(r.run, r.index) for r in trace] == [(1, (1,))]


def test_a_run_that_fails_is_done_again_from_where_it_began(recorded: list[bool]) -> None:
    text = "def f(y, k):\n    y *= y - 1.0\n    y[0] = y[k[0]]\n    return np.sqrt(y)"
    f = pe.cd_from_source(text, {"np": np}, backend="numpy")
    y = np.full(3, 3.0)
    with pe.trace(first_nan=True) as trace, pytest.raises(IndexError):
        f(y, np.array([7]))
    np.testing.assert_array_equal(y, [6.0, 6.0, 6.0])
    assert recorded == [True] and "raised" in repr(trace.runs[0])


def test_what_is_only_written_is_not_kept_for_a_run_that_is_done_again(
    recorded: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    saved: list[np.ndarray] = []
    empty = recording._empty

    def noted(array: np.ndarray, code: Any) -> np.ndarray:
        saved.append(array)
        return empty(array, code)

    monkeypatch.setattr(recording, "_empty", noted)
    text = "def f(x, y, z):\n    y[1:-1] = np.sqrt(x[2:] - x[:-2])\n    z += x"
    f = pe.cd_from_source(text, {"np": np})
    x, y, z = np.arange(6.0), np.ones(6), np.ones(6)
    x[3] = -1.0
    with pe.trace(first_nan=True) as trace:
        f(x, y, z)
    first = trace.first_nonfinite()
    assert recorded == [True] and first is not None and first.array == "y"
    assert any(one is z for one in saved) and not any(one is y or one is x for one in saved)
    with np.errstate(invalid="ignore"):
        expected = np.array([1.0, *np.sqrt(x[2:] - x[:-2]), 1.0])
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(z, 1.0 + x)


def test_what_is_called_often_counts_however_little_it_computes(
    recorded: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work_estimate, "MAX_QUICK_POINTS", 1 << 17)
    monkeypatch.setattr(recording, "MAX_RUNS_UNCOMPILED", 3)
    f, x = pe.cd_from_source("def f(x):\n    x *= 2.0"), np.ones(3)
    with pe.trace(first_nan=True) as trace:
        for _ in range(5):
            f(x)
        assert recorded == [False, False]
        x[1] = np.nan
        f(x)
    assert recorded == [False, False, True]
    first = trace.first_nonfinite()
    assert first is not None and first.index == (1,)
    np.testing.assert_array_equal(x, [64.0, np.nan, 64.0])


def test_what_is_printed_is_printed_once(recorded: list[bool], capfd: Any) -> None:
    f = pe.cd_from_source("def f(x):\n    print(x[0])\n    return x / x", backend="numpy")
    with np.errstate(all="ignore"), pe.trace(first_nan=True) as trace:
        f(np.zeros(1))
    assert len(trace) == 1 and capfd.readouterr().out == "0.0\n" and not recorded


def counted(text: str, *args: Any) -> list[str]:
    """What is counted in a function for arguments."""
    f = pe.cd_from_source(text, {"np": np}, backend="numpy")
    procedure = add_nan_counting(f.specialise(*args).typed.procedure)
    assert procedure is not None
    return [line.strip() for line in print_procedure(procedure).splitlines() if "isnan" in line]


def test_what_joins_loops_is_counted_together_and_what_only_moves_numbers_is_not() -> None:
    x = np.ones(5)
    together = (
        "def f(x):\n    a = x + 1\n    b = np.where(a > 1, a, 0)\n    return np.fmax(a, 1) / b"
    )
    assert counted(together, x) == [
        "nans_2 = sum[i in [0, 5)](i64(isnan(a[i]) | isnan(result[i])))"
    ]
    apart = "def f(x):\n    a = x + 1\n    b = a[1:] - a[1:]\n    a[:] = 0\n    return -b"
    assert len(counted(apart, x)) == 2
    passed = "def f(x):\n    a = x + 1\n    a *= x\n    b = a - 2\n    return np.sqrt(b) / x"
    assert counted(passed, x) == ["nans_2 = sum[i in [0, 5)](i64(isnan(result[i])))"]
