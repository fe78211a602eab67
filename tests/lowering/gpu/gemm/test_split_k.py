"""Contractions with many terms: when they are cut, and that the parts mean the same."""

from __future__ import annotations

import numpy as np
import pytest

from plusequals.lowering import thresholds
from plusequals.lowering.analysis.parallel_band import find_band
from plusequals.lowering.gpu.gemm.contraction import match_contraction
from plusequals.lowering.gpu.gemm.split_k import count_splits, split_terms
from plusequals.lowering.gpu.mapping import map_program
from plusequals.lowering.ir.loops import For
from plusequals.lowering.target import Target

from ..kernels import Case, filled, ran

TEXT = "c[i, j] = sum[k](a[i, k] * b[k, j])"


def case_of(
    m: int, k: int, n: int, text: str = TEXT, kind: str = "f32", exact: bool = False
) -> Case:
    return Case(text, exact, c=f"{kind}[{m}, {n}]", a=f"{kind}[{m}, {k}]", b=f"{kind}[{k}, {n}]")


def cut(case: Case) -> tuple[For, For] | None:
    found = find_band(case.loop(), case.facts)
    assert found is not None
    return split_terms(found, case.facts, case.fresh)


def parts(m: int, k: int, n: int) -> int:
    case = case_of(m, k, n)
    found = find_band(case.loop(), case.facts)
    assert found is not None
    made = match_contraction(found)
    assert made is not None
    return count_splits(made)


@pytest.mark.parametrize(
    ("sizes", "count"),
    [
        ((1024, 4096, 10), 8),
        ((64, 4096, 64), 16),
        ((64, 511, 64), 1),
        ((64, 512, 64), 2),
        ((64, 514, 64), 2),
        ((64, 1021, 64), 1),
        ((64, 768 * 1009, 64), 128),
        ((704, 4096, 704), 8),
        ((784, 4096, 1024), 4),
        ((704, 2048, 704), 1),
        ((1024, 2048, 1024), 2),
        ((4096, 4096, 4096), 1),
    ],
)
def test_sizes_decide_into_how_many_parts(sizes: tuple[int, int, int], count: int) -> None:
    assert parts(*sizes) == count


def test_what_keeps_the_order_of_its_terms_stays_whole() -> None:
    assert cut(case_of(8, 512, 8)) is not None
    assert cut(case_of(8, 512, 8, exact=True)) is None
    assert cut(case_of(8, 512, 8, kind="i32", text="c[i, j] += a[i, k] * b[k, j]", exact=True))
    rounds = "for k in range(512):\n    c[i, j] += a[i, k] * b[k, j]"
    written = case_of(8, 512, 8, text=rounds)
    found = find_band(written.loop(), written.facts)
    assert found is None or split_terms(found, written.facts, written.fresh) is None


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tiles and parts be small: they are interpreted."""
    sizes = {
        "TILE_SIDE": 8,
        "THREAD_TILE_SIDE": 2,
        "TILE_SIDE_THREADS": 4,
        "TILE_DEPTH": 4,
        "MIN_CONTRACTION_PRODUCTS": 65,
        "MIN_SPLIT_TERMS": 4,
    }
    for name, size in sizes.items():
        monkeypatch.setattr(thresholds, name, size)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("kind", ["f64", "i32"])
@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        "c[i, j] += a[i, k] * b[k, j]",
        "c[i, j] = relu(sum[k](a[i, k] * b[k, j]) + c[i, j]) * 2",
        "c[i, j] = sum[k](a[i, k] * b[k, j]) + i",
    ],
)
def test_the_parts_mean_the_same(text: str, kind: str) -> None:
    case = case_of(9, 12, 10, text, kind)
    made = cut(case)
    assert made is not None and (made[0].hi - made[0].lo).constant == 3
    rng = np.random.default_rng(2)
    arrays = [filled(p.node, rng) for p in case.program.parameters]
    want = ran(case.program, arrays)
    whole = map_program(case.program, Target("cuda")).program
    for program in (case.with_kernel(made), whole):
        for got, right in zip(ran(program, arrays), want, strict=True):
            np.testing.assert_allclose(got, right, 1e-12, 1e-12)


@pytest.mark.usefixtures("small")
def test_several_loops_of_terms_and_batches() -> None:
    case = Case("c[n, i, j] = sum[p, k](a[n, i, p, k] * b[p, k, j])", c="f64[2, 9, 10]",
                a="f64[2, 9, 6, 5]", b="f64[6, 5, 10]")  # fmt: skip
    made = cut(case)
    assert made is not None and (made[0].hi - made[0].lo).constant == 6
    case.assert_same(made)
