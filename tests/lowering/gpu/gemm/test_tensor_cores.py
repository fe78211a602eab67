"""Which units multiply, and by which tiles."""

from __future__ import annotations

import pytest

from plusequals.lowering.analysis.parallel_band import find_band
from plusequals.lowering.gpu.gemm.contraction import match_contraction
from plusequals.lowering.gpu.gemm.tensor_cores import WARPGROUPS, WARPS, Unit, select_unit

from ..kernels import Case

ROOM = 200_000


def units(
    rows: int, columns: int, room: int = ROOM, copied: bool = True, itemsize: int = 2
) -> tuple[Unit, int, int]:
    case = Case(
        "c[i, j] = sum[k](a[i, k] * b[k, j])",
        c=f"f32[{rows}, {columns}]", a=f"f16[{rows}, 64]", b=f"f16[64, {columns}]",
    )  # fmt: skip
    found = find_band(case.loop(), case.facts)
    assert found is not None
    what = match_contraction(found)
    assert what is not None
    return select_unit(what, copied, itemsize, room)


@pytest.mark.parametrize(
    ("sizes", "tile"),
    [((4096, 4096), (128, 256)), ((2048, 2048), (128, 256)), ((16384, 100), (128, 128))],
)
def test_large_products_are_those_of_four_warps(
    sizes: tuple[int, int], tile: tuple[int, int]
) -> None:
    assert units(*sizes) == (WARPGROUPS, *tile)


def test_others_are_those_of_one() -> None:
    assert units(2048, 1024)[0] is WARPS, "there are too few tiles"
    assert units(100_000, 64)[0] is WARPS, "half of each tile would be for nothing"
    assert units(4096, 4096, room=WARPGROUPS.shared_bytes(128, 256, 2) - 1)[0] is WARPS
    assert units(4096, 4096, copied=False)[0] is WARPS
    assert units(4096, 4096, itemsize=4)[0] is WARPS
