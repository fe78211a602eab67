"""Which sums are stored together, and that the same is stored."""

from __future__ import annotations

import pytest

from plusequals.lowering.analysis.parallel_band import find_band
from plusequals.lowering.gpu.gemm.contraction import match_contraction
from plusequals.lowering.gpu.gemm.shared_tiles import map_shared_tiles
from plusequals.lowering.gpu.gemm.tile_side import Side
from plusequals.lowering.gpu.gemm.vector_stores import can_vectorize_stores
from plusequals.lowering.ir.instructions import StoreVector
from plusequals.lowering.ir.walk import statements

from ..kernels import Case

PLAIN = "c[i, j] = sum[k](a[i, k] * b[k, j])"


def case_of(text: str, kind: str = "f32", **other: str) -> Case:
    sizes = dict.fromkeys("c", f"{kind}[20, 18]")
    return Case(text, **(sizes | {"a": f"{kind}[20, 17]", "b": f"{kind}[17, 18]"} | other))


def is_together(case: Case) -> bool:
    found = find_band(case.loop(), case.facts)
    assert found is not None
    what = match_contraction(found)
    assert what is not None
    return can_vectorize_stores(what, Side(what.columns, case.fresh, "column"))


def test_neighbours_are_stored_together() -> None:
    assert is_together(case_of(PLAIN)) and is_together(case_of(PLAIN, "f64"))
    assert is_together(case_of("c[i, j] = relu(sum[k](a[i, k] * b[k, j]) - i)"))
    images = {"c": "f32[20, 3, 8]", "b": "f32[17, 3, 8]"}
    assert is_together(case_of("c[i, p, q] = sum[k](a[i, k] * b[k, p, q])", **images))


def test_others_are_not() -> None:
    assert not is_together(case_of("c[i, 2 * j] = sum[k](a[i, k] * b[k, j])", c="f32[20, 36]"))
    half = "for j in range(1, 18):\n    c[i, j] = sum[k](a[i, k] * b[k, j])"
    assert not is_together(case_of(half)), "the first is at an odd place"
    assert not is_together(case_of("c[i, j + 1] = sum[k](a[i, k] * b[k, j])", c="f32[20, 20]"))
    assert not is_together(case_of(PLAIN, c="f32[20, 19]", b="f32[17, 19]")), "odd rows"
    images = {"c": "f32[20, 6, 3]", "b": "f32[17, 6, 3]"}
    assert not is_together(case_of("c[i, p, q] = sum[k](a[i, k] * b[k, p, q])", **images))


@pytest.mark.parametrize(
    ("text", "other"),
    [
        (PLAIN, {}),
        (PLAIN, {"c": "f32[20, 70]", "b": "f32[17, 70]"}),
        ("c[i, p, q] = sum[k](a[i, k] * b[k, p, q])", {"c": "f32[20, 3, 8]", "b": "f32[17, 3, 8]"}),
    ],
)
def test_the_same_is_stored(text: str, other: dict[str, str]) -> None:
    case = case_of(text, **other)
    found = find_band(case.loop(), case.facts)
    assert found is not None
    made = map_shared_tiles(found, case.facts, case.fresh)
    assert made is not None
    assert any(isinstance(s, StoreVector) for s in statements(made.body))
    case.assert_same(made.body)
