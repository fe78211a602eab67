"""Contractions by tiles: what is one, and that sums keep their order."""

from __future__ import annotations

import pytest

from plusequals.lowering import thresholds
from plusequals.lowering.analysis.parallel_band import find_band
from plusequals.lowering.gpu.gemm.contraction import match_contraction
from plusequals.lowering.gpu.gemm.shared_tiles import map_shared_tiles
from plusequals.lowering.gpu.thread_points import DeviceCode
from plusequals.lowering.ir.loops import For
from plusequals.lowering.ir.walk import statements

from ..kernels import Case


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tiles be small: they are interpreted. Tests of the backend run those that there are."""
    for name, size in (
        ("TILE_SIDE", 8),
        ("THREAD_TILE_SIDE", 2),
        ("TILE_SIDE_THREADS", 4),
        ("TILE_DEPTH", 4),
        ("MIN_CONTRACTION_PRODUCTS", 65),
        ("MIN_LARGE_TILE_ELEMENTS", 17 * 16),
    ):
        monkeypatch.setattr(thresholds, name, size)


def tiled(case: Case) -> DeviceCode:
    found = find_band(case.loop(), case.facts)
    assert found is not None
    made = map_shared_tiles(found, case.facts, case.fresh)
    assert made is not None
    return made


def is_contraction(body: str, **arrays: str) -> bool:
    case = Case(body, **arrays)
    found = find_band(case.loop(), case.facts)
    return found is not None and match_contraction(found) is not None


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("sizes", [(8, 4, 8), (9, 5, 7), (16, 10, 17), (1, 9, 9)])
def test_products_of_matrices(sizes: tuple[int, int, int], exact: bool) -> None:
    m, k, n = sizes
    case = Case("c[i, j] = sum[k](a[i, k] * b[k, j])", exact, c=f"f32[{m}, {n}]",
                a=f"f32[{m}, {k}]", b=f"f32[{k}, {n}]")  # fmt: skip
    if m > 1:
        case.assert_same(tiled(case).body)
    else:
        found = find_band(case.loop(), case.facts)
        assert found is not None and map_shared_tiles(found, case.facts, case.fresh) is None


@pytest.mark.parametrize(
    "text",
    [
        "c[i, j] = sum[k](a[k, i] * b[j, k])",
        "c[j, i] = sum[k](a[i, k] * b[k, j])",
        "c[i, j] = relu(sum[k](a[i, k] * b[k, j]) + c[i, j]) * 2",
        "c[i, j] = sum[k](exp(a[i, k]) * (b[k, j] + 1))",
    ],
)
def test_any_order_of_axes_and_what_stands_around(text: str) -> None:
    case = Case(text, True, c="f32[9, 9]", a="f32[9, 9]", b="f32[9, 9]")
    case.assert_same(tiled(case).body)


def test_batches_and_windows() -> None:
    case = Case("c[b, i, j] = sum[k](x[b, i, k] * y[b, k, j])", True, c="f32[2, 9, 10]",
                x="f32[2, 9, 11]", y="f32[2, 11, 10]")  # fmt: skip
    case.assert_same(tiled(case).body)
    case = Case("c[n, i, j] = sum[a, b, m](x[i + a, j + b, m] * w[a, b, m, n])", True,
                c="f32[9, 10, 5]", x="f32[12, 7, 4]", w="f32[3, 3, 4, 9]")  # fmt: skip
    case.assert_same(tiled(case).body)


def test_whole_numbers_too() -> None:
    sizes = {"c": "i64[9, 9]", "a": "i64[9, 9]", "b": "i64[9, 9]"}
    case = Case("c[i, j] = sum[k](a[i, k] * b[k, j])", **sizes)
    case.assert_same(tiled(case).body)


@pytest.mark.parametrize("kind", ["i32", "u8", "i64", "f64"])
@pytest.mark.parametrize("sizes", [(8, 4, 8), (9, 5, 7), (16, 10, 17)])
def test_sums_that_start_from_an_array(sizes: tuple[int, int, int], kind: str) -> None:
    m, k, n = sizes
    case = Case("c[i, j] += a[i, k] * b[k, j]", True, c=f"{kind}[{m}, {n}]", a=f"{kind}[{m}, {k}]",
                b=f"{kind}[{k}, {n}]")  # fmt: skip
    case.assert_same(tiled(case).body)


def test_products_that_are_added_in_a_wider_type() -> None:
    case = Case("c[i, j] = sum[k](a[i, k] * b[k, j])", c="i64[9, 9]", a="i32[9, 9]", b="i32[9, 9]")
    made = tiled(case)
    case.assert_same(made.body)
    tiles_ = {n.label: n.dtype.short for n in case.fresh.nodes if "tile" in n.label}
    assert set(tiles_.values()) == {"i32"}


def test_all_that_both_factors_depend_on_is_counted_as_one() -> None:
    case = Case("c[b, h, i, j] = sum[k](x[b, h, i, k] * y[b, k, j])", True, c="f32[2, 3, 9, 10]",
                x="f32[2, 3, 9, 11]", y="f32[2, 11, 10]")  # fmt: skip
    case.assert_same(tiled(case).body)
    case = Case("c[b, h, i, j] = sum[k](x[h, b, i, k] * y[b, h, j, k]) + b", True,
                c="f32[2, 3, 9, 10]", x="f32[3, 2, 9, 11]", y="f32[2, 3, 10, 11]")  # fmt: skip
    made = tiled(case)
    case.assert_same(made.body)
    blocks = [s for s in statements(made.body) if isinstance(s, For) and s.kind == "block"]
    assert [(loop.hi - loop.lo).constant for loop in blocks] == [6, 1, 1]


def test_sums_are_in_registers_of_each_thread() -> None:
    case = Case("c[i, j] = sum[k](a[i, k] * b[k, j])", c="f32[64, 64]", a="f32[64, 64]",
                b="f32[64, 64]")  # fmt: skip
    made = tiled(case)
    assert sorted(set(made.spaces.values())) == ["rows", "shared"]
    assert any(isinstance(s, For) and s.kind == "unrolled" for s in statements(made.body))


def test_what_is_none() -> None:
    sizes = {"c": "f32[64, 64]", "a": "f32[64, 64]", "b": "f32[64, 64]"}
    assert is_contraction("c[i, j] = sum[k](a[i, k] * b[k, j])", **sizes)
    assert not is_contraction("c[i, j] = sum[k](a[i, k] + b[k, j])", **sizes)
    assert not is_contraction("c[i, j] = max[k](a[i, k] * b[k, j])", **sizes)
    assert not is_contraction("c[i, j] = sum[k](a[i, k] * b[i, j])", **sizes)
    assert not is_contraction("c[i, j] = a[i, j] * b[i, j]", **sizes)
    small = {"c": "f32[4, 4]", "a": "f32[4, 4]", "b": "f32[4, 4]"}
    assert not is_contraction("c[i, j] = sum[k](a[i, k] * b[k, j])", **small)
