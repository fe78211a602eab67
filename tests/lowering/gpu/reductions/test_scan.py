"""Running totals in pieces: which loops are some, and that pieces give the same."""

from __future__ import annotations

import numpy as np
import pytest

from plusequals.lowering import thresholds
from plusequals.lowering.analysis.parallel_band import find_band
from plusequals.lowering.gpu.reductions.scan import build_scan, match_scan, scan_rows
from plusequals.lowering.ir.loops import For
from plusequals.lowering.ir.walk import writes

from ..kernels import Case, ran


def is_total(body: str, exact: bool = True, **arrays: str) -> bool:
    case = Case(body, **arrays)
    return any(isinstance(stmt, For) and match_scan(stmt, exact) is not None for stmt in case.body)


@pytest.mark.parametrize(
    "n",
    [
        2 * thresholds.MIN_SCAN_CHUNK_ITERATIONS,
        2 * thresholds.MIN_SCAN_CHUNK_ITERATIONS + 1,
        101,
        1000,
    ],
)
@pytest.mark.parametrize(
    "text",
    [
        "for i in range(1, len(y)):\n    y[i] = y[i - 1] + x[i]",
        "for i in range(len(y) - 2, -1, -1):\n    y[i] = x[i] * 3 ^ y[i + 1]",
        "for i in range(2, len(y), 2):\n    y[i] = max(y[i - 2], x[i])",
        "for i in range(1, len(y)):\n    y[i] ^= y[i - 1]",
        "for i in range(len(y) - 2, -1, -1):\n    y[i] = y[i + 1] + y[i] * x[i]",
    ],
)
def test_pieces_give_the_same(text: str, n: int) -> None:
    size = 2 * n + 3 if ", 2)" in text else n + 1
    case = Case(text, True, y=f"i64[{size}]", x=f"i64[{size}]")
    made = build_scan(case.loop(), case.fresh, True)
    assert made is not None and len(made) == 2
    case.assert_same(made)


def test_how_many_pieces_there_are() -> None:
    text = "for i in range(1, len(y)):\n    y[i] = y[i - 1] + x[i]"
    for rounds, pieces, nests in (
        (10 * thresholds.MIN_SCAN_CHUNK_ITERATIONS, 10, 2),
        (
            2 * thresholds.MAX_SCAN_CHUNKS * thresholds.MIN_SCAN_CHUNK_ITERATIONS,
            2 * thresholds.MAX_SCAN_CHUNKS,
            4,
        ),
    ):
        case = Case(text, y=f"i64[{rounds + 1}]", x=f"i64[{rounds + 1}]")
        made = build_scan(case.loop(), case.fresh, True)
        assert made is not None and made[0].hi.constant == pieces and len(made) == nests
    few = Case(text, y="i64[9]", x="i64[9]")
    assert build_scan(few.loop(), few.fresh, True) is None


def test_what_is_none() -> None:
    sizes = {"y": "i64[99]", "x": "i64[99]"}
    assert is_total("for i in range(1, 99):\n    y[i] = y[i - 1] + x[i]", **sizes)
    assert not is_total("for i in range(1, 99):\n    y[i] = y[i - 1] - x[i]", **sizes)
    assert not is_total("for i in range(2, 99):\n    y[i] = y[i - 2] + x[i]", **sizes)
    assert not is_total("for i in range(1, 99):\n    y[i] = y[i - 1] + y[0]", **sizes)
    assert not is_total("for i in range(1, 99):\n    y[i] = y[i - 1] + i * y[i - 1]", **sizes)
    real = {"y": "f32[99]", "x": "f32[99]"}
    assert not is_total("for i in range(1, 99):\n    y[i] = y[i - 1] + x[i]", **real)
    assert is_total("for i in range(1, 99):\n    y[i] = max(y[i - 1], x[i])", **real)


@pytest.mark.parametrize("n", [2 * thresholds.MIN_SCAN_CHUNK_ITERATIONS + 1, 1000])
@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_real_numbers_too_where_their_order_is_left_open(kind: str, n: int) -> None:
    case = Case("y[:] = np.cumsum(x)", y=f"{kind}[{n}]", x=f"{kind}[{n}]")
    made = build_scan(case.loop(), case.fresh, False)
    assert made is not None and made[0].hi.constant == -(
        -(n - 1) // thresholds.MIN_SCAN_CHUNK_ITERATIONS
    )
    case.assert_same(made)


def test_real_numbers_otherwise_keep_their_order() -> None:
    real = {"y": "f32[99]", "x": "f32[99]"}
    assert is_total("y[:] = np.cumsum(x)", False, **real)
    assert is_total("y[:] = np.add.accumulate(x)", False, **real)
    assert not is_total("y[:] = np.cumsum(x)", True, **real)
    assert not is_total("y[:] = np.cumprod(x)", False, **real), "parts could be out of range"
    assert not is_total("for i in range(1, 99):\n    y[i] = y[i - 1] + x[i]", False, **real)
    halves = {"y": "f16[99]", "x": "f16[99]"}
    assert not is_total("y[:] = np.cumsum(x)", False, **halves), "each total is rounded"


def test_an_infinite_term_changes_only_what_comes_behind_it() -> None:
    case = Case("y[:] = np.cumsum(x)", y="f64[200]", x="f64[200]")
    made = build_scan(case.loop(), case.fresh, False)
    assert made is not None
    x = np.ones(200)
    x[70], x[150] = np.inf, np.nan
    got, _ = ran(case.with_kernel(made), [np.zeros(200), x])
    assert np.array_equal(got, np.cumsum(x), equal_nan=True)


@pytest.mark.parametrize(
    "n",
    [
        2 * thresholds.MIN_SCAN_CHUNK_ITERATIONS + 1,
        9 * thresholds.MIN_SCAN_CHUNK_ITERATIONS,
        70 * thresholds.MIN_SCAN_CHUNK_ITERATIONS + 5,
    ],
)
@pytest.mark.parametrize("kind", ["i64", "f64"])
def test_totals_of_many_pieces_run_themselves(
    monkeypatch: pytest.MonkeyPatch, kind: str, n: int
) -> None:
    monkeypatch.setattr(thresholds, "MAX_SCAN_CHUNKS", 2)
    case = Case("y[:] = np.cumsum(x)", y=f"{kind}[{n}]", x=f"{kind}[{n}]")
    made = build_scan(case.loop(), case.fresh, False)
    assert made is not None and len(made) == (
        2
        if n < 3 * thresholds.MIN_SCAN_CHUNK_ITERATIONS
        else 3
        if n < 64 * thresholds.MIN_SCAN_CHUNK_ITERATIONS
        else 5
    )
    case.assert_same(made)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", ["3, 200", "100, 90", "200, 3"])
def test_rows_have_pieces_of_their_own(axis: int, shape: str) -> None:
    case = Case(f"y[:] = np.cumsum(x, axis={axis})", y=f"f64[{shape}]", x=f"f64[{shape}]")
    found = find_band(case.loop(1), case.facts)
    assert found is not None
    made = scan_rows(found, case.fresh, False)
    rounds = int(shape.split(", ")[axis]) - 1
    assert (made is not None) == (rounds >= 2 * thresholds.MIN_SCAN_CHUNK_ITERATIONS)
    if made is not None:
        case.assert_same(made, 1)
        (parts,) = {node for node in writes(made[:1]) if node.rank}
        axes = [one.constant for one in parts.shape]
        assert axes.index(-(-rounds // thresholds.MIN_SCAN_CHUNK_ITERATIONS)) == axis, (
            "neighbours in memory are neighbours there"
        )
    assert scan_rows(found, case.fresh, True) is None, "each adds in its order"


def test_enough_rows_are_a_threads_each(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case("y[:] = np.cumsum(x, axis=1)", y="f64[30, 100]", x="f64[30, 100]")
    found = find_band(case.loop(1), case.facts)
    assert found is not None and scan_rows(found, case.fresh, False) is not None
    monkeypatch.setattr(thresholds, "MIN_SERIAL_SCAN_ROWS", 30)
    assert scan_rows(found, case.fresh, False) is None
