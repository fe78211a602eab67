"""Long sums down columns: where they are cut, and that parts by many threads mean the same."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
import pytest

from plusequals.lowering import thresholds
from plusequals.lowering.analysis.parallel_band import find_band
from plusequals.lowering.gpu.mapping import map_program
from plusequals.lowering.gpu.reductions.column_reduction import split_columns
from plusequals.lowering.gpu.thread_points import DeviceCode
from plusequals.lowering.ir.loops import Check, For
from plusequals.lowering.ir.walk import statements
from plusequals.lowering.target import Target

from ..kernels import Case, backwards, filled, ran

SUM = "y[j] = sum[i](x[i, j]) * 2"
LARGE = {"y": "f32[700]", "x": "f32[9000, 700]"}
TEXTS = {
    "sum": ("y[:] = x.sum(axis=0)", "f64[70]", "f64[99, 70]"),
    "mean": ("y[:] = x.mean(axis=0)", "f64[70]", "f64[99, 70]"),
    "variance": ("y[:] = x.var(axis=0)", "f64[70]", "f64[99, 70]"),
    "greatest": ("y[:] = np.abs(x).max(axis=0)", "f32[70]", "f32[64, 70]"),
    "place": ("y[:] = x.argmax(axis=0)", "i64[70]", "f32[65, 70]"),
    "any": ("y[:] = (x > 3).any(axis=0)", "i32[70]", "f32[66, 70]"),
    "whole numbers": ("y[:] = x.sum(axis=0)", "i64[65]", "i64[70, 65]"),
    "middle": ("y[:, :] = x.sum(axis=1)", "f64[6, 16]", "f64[6, 80, 16]"),
    "two axes": ("y[:] = x.sum(axis=(0, 1))", "f64[65]", "f64[5, 70, 65]"),
    "four axes": ("y[:, :, :] = x.sum(axis=2)", "f64[2, 3, 16]", "f64[2, 3, 70, 16]"),
    "a product": ("y[j] = sum[i](x[i, j] * x[i, 0]) + 1", "f64[66]", "f64[67, 66]"),
    "added to": ("y[j] += sum[i](x[i, j])", "f64[66]", "f64[67, 66]"),
    "a triangle": (
        "y[j] = sum[i, k < i, l < k](x[i, j] * x[k, j] * x[l, j])", "f64[64]", "f64[9, 64]",
    ),
    "two sums": ("y[j] = sum[i](x[i, j]) / max[i](x[i, j] + 9)", "f64[66]", "f64[67, 66]"),
    "a sum of what one gives": (
        "m = x.max(axis=0)\ns = np.exp(x - m).sum(axis=0)\ny[:] = m + np.log(s)",
        "f64[65]", "f64[70, 65]",
    ),
}  # fmt: skip


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let little be worth as much as a lot is."""
    monkeypatch.setattr(thresholds, "MIN_COLUMN_TERMS", 64 * 64)
    monkeypatch.setattr(thresholds, "COLUMN_REDUCTION_THREADS", 1024)
    monkeypatch.setattr(thresholds, "MIN_COLUMN_TERMS_PER_THREAD", 7)


def cut(case: Case) -> tuple[DeviceCode | For, ...] | None:
    found = find_band(case.loop(), case.facts)
    assert found is not None
    return split_columns(found, case.facts, case.fresh, case.nodes)


def kernels(loop: DeviceCode | For) -> bool:
    return isinstance(loop, DeviceCode)


def test_a_sum_becomes_parts_and_their_sum() -> None:
    made = cut(Case(SUM, **LARGE))
    assert made is not None
    assert list(map(kernels, made)) == [True, False]


def test_what_needs_the_first_sum_comes_after_it() -> None:
    made = cut(Case("y[:] = x.var(axis=0)", **LARGE))
    assert made is not None
    assert list(map(kernels, made)) == [True, False, True, False]


@pytest.mark.parametrize(
    ("points", "rounds"), [(63, 90_000), (1024, 1000), (1 << 18, 64), (700_000, 64)]
)
def test_few_points_and_many_and_short_sums_stay_whole(points: int, rounds: int) -> None:
    assert cut(Case(SUM, y=f"f32[{points}]", x=f"f32[{rounds}, {points}]")) is None


def test_sums_along_neighbours_in_memory_stay_whole() -> None:
    assert cut(Case("y[j] = sum[i](x[j, i])", y="f32[700]", x="f32[700, 9000]")) is None


def test_the_order_of_the_program_is_kept_where_it_has_to_be() -> None:
    assert cut(Case(SUM, exact=True, **LARGE)) is None
    assert cut(Case("y[j] = max[i](x[i, j])", exact=True, **LARGE)) is not None


def test_sums_that_a_check_may_end_stay_whole() -> None:
    arrays = {"y": "f32[700]", "x": "f32[9000, 700]", "w": "f32[9]", "k": "i64[9000]"}
    case = Case("y[j] = sum[i](x[i, j] * w[k[i]])", **arrays)
    found = find_band(case.loop(), case.facts)
    assert found is not None and cut(case) is not None
    check = next(stmt for stmt in statements(case.body) if isinstance(stmt, Check))
    found = replace(found, inner=(check, *found.inner))
    assert split_columns(found, case.facts, case.fresh, case.nodes) is None


@pytest.mark.parametrize(("text", "y", "x"), TEXTS.values(), ids=list(TEXTS))
@pytest.mark.usefixtures("small")
def test_the_parts_mean_the_same(text: str, y: str, x: str) -> None:
    case = Case(text, y=y, x=x)
    made = map_program(case.program, Target("cuda"))
    blocks = [s for s in statements(made.program.kernels[0].body) if isinstance(s, For)]
    assert any(loop.symbol.name == "part" and loop.kind == "block" for loop in blocks)
    rng = np.random.default_rng(1)
    arrays = [filled(p.node, rng) for p in case.program.parameters]
    wanted = ran(case.program, arrays)
    for program in (made.program, backwards(made.program)):
        for got, want in zip(ran(program, arrays), wanted, strict=True):
            np.testing.assert_allclose(got, want, 1e-12, 1e-12)


@pytest.mark.parametrize("shape", [(8192, 8192), (4096, 1024), (100_000, 64), (2048, 3000)])
def test_threads_enough_for_a_device(shape: tuple[int, int]) -> None:
    rows, count = shape
    case = Case(SUM, y=f"f32[{count}]", x=f"f32[{rows}, {count}]")
    assert cut(case) is not None
    (parts,) = (node for node in case.fresh.nodes if node.rank)
    assert parts.static_shape is not None and parts.static_shape[1] == count
    assert 60_000 <= prod(parts.static_shape) <= thresholds.COLUMN_REDUCTION_THREADS
