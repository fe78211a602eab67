"""Points that do several nests: when each nest is for all points, and that it means the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from plusequals.lowering import thresholds
from plusequals.lowering.analysis.parallel_band import find_band
from plusequals.lowering.gpu.mapping import map_program
from plusequals.lowering.gpu.nest_distribution import distribute_nests
from plusequals.lowering.ir.expressions import Read
from plusequals.lowering.ir.indexing import const
from plusequals.lowering.ir.loops import Check, Comment, For
from plusequals.lowering.ir.walk import statements
from plusequals.lowering.target import Target

from .kernels import Case, filled, ran

ATTENTION = """
s[b, h, i, j] = sum[d](q[b, h, i, d] * k[b, h, j, d])
m[b, h, i] = max(s[b, h, i, j])
p[b, h, i, j] = exp(s[b, h, i, j] - m[b, h, i])
z[b, h, i] = 1 / sum(p[b, h, i, j])
y[b, h, i, d] = z[b, h, i] * sum(p[b, h, i, j] * v[b, h, j, d])
"""
SHAPES = dict.fromkeys("yqkv", "f64[2, 2, 24, 9]")


def cut(case: Case) -> tuple[For, ...] | None:
    found = find_band(case.loop(), case.facts)
    assert found is not None
    return distribute_nests(found, case.facts, case.fresh, case.nodes)


def test_points_whose_temporaries_fit_into_a_block_stay_whole() -> None:
    assert cut(Case(ATTENTION, **SHAPES)) is None


def test_points_whose_temporaries_do_not_fit_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thresholds, "MAX_BLOCK_SHARED_BYTES", 1000)
    case = Case(ATTENTION, **SHAPES)
    made = cut(case)
    assert made is not None and len(made) == 3
    case.assert_same(made)
    shapes = {n.label: n.static_shape for n in case.fresh.nodes}
    assert shapes == {"s": (2, 2, 24, 24), "p": (2, 2, 24, 24), "z": (2, 2, 24)}
    assert all(any(not isinstance(s, Comment) for s in loop.body) for loop in made)


def test_points_that_contract_more_than_a_tile_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thresholds, "TILE_SIDE", 8)
    assert cut(Case(ATTENTION, **SHAPES)) is not None
    monkeypatch.setattr(thresholds, "TILE_SIDE", 25)
    assert cut(Case(ATTENTION, **SHAPES)) is None


def test_what_takes_too_much_memory_stays_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thresholds, "MAX_BLOCK_SHARED_BYTES", 1000)
    sizes = 2 * 2 * (24 * 24 + 24 * 24 + 24) * 8
    for most, is_cut in ((sizes, True), (sizes - 1, False)):
        monkeypatch.setattr(thresholds, "MAX_EXPANDED_BYTES", most)
        assert (cut(Case(ATTENTION, **SHAPES)) is not None) is is_cut


def test_where_a_check_may_fail_points_stay_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thresholds, "MAX_BLOCK_SHARED_BYTES", 1000)
    checked = Case("y[j] = x[k[j]]", y="f64[9]", x="f64[9]", k="i64[9]")
    check = next(s for s in statements(checked.body) if isinstance(s, Check))
    case = Case(ATTENTION, **SHAPES)
    found = find_band(case.loop(), case.facts)
    assert found is not None
    zero = Read(case.program.parameters[0].node, (const(0),) * 4)
    inner = (replace(check, test=zero), *found.inner)
    assert distribute_nests(found, case.facts, case.fresh, case.nodes) is not None
    found = replace(found, inner=inner)
    assert distribute_nests(found, case.facts, case.fresh, case.nodes) is None


@pytest.mark.parametrize("most", [1 << 28, 20_000])
def test_the_kernels_mean_the_same(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {
        "TILE_SIDE": 8,
        "THREAD_TILE_SIDE": 2,
        "TILE_SIDE_THREADS": 4,
        "TILE_DEPTH": 4,
        "MIN_CONTRACTION_PRODUCTS": 65,
        "MAX_BLOCK_SHARED_BYTES": 1000,
        "MAX_EXPANDED_BYTES": most,
    }
    for name, size in sizes.items():
        monkeypatch.setattr(thresholds, name, size)
    case = Case(ATTENTION, **SHAPES)
    made = map_program(case.program, Target("cuda"))
    outer = [s for s in made.program.kernels[0].body if isinstance(s, For)]
    while [loop.kind for loop in outer] == ["serial"]:
        outer = [s for s in outer[0].body if isinstance(s, For)]
    assert [loop.kind for loop in outer] == ["block"] * 3, "the host may keep a loop around them"
    rng = np.random.default_rng(1)
    arrays = [filled(p.node, rng) for p in case.program.parameters]
    for got, want in zip(ran(made.program, arrays), ran(case.program, arrays), strict=True):
        np.testing.assert_allclose(got, want, 1e-12, 1e-12)
