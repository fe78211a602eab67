"""Contractions by units of a device: what is one, and that the loops mean the same."""

from __future__ import annotations

import pytest

from plusequals.lowering import thresholds
from plusequals.lowering.analysis.parallel_band import find_band
from plusequals.lowering.gpu.gemm.tensor_tiles import map_tensor_tiles
from plusequals.lowering.gpu.thread_points import DeviceCode
from plusequals.lowering.ir.instructions import AwaitProducts, CopyVector, MatMul, StoreVector
from plusequals.lowering.ir.loops import Barrier, For
from plusequals.lowering.ir.walk import statements
from plusequals.lowering.target import Target

from ..kernels import Case

TEXT = "c[i, j] = sum[k](a[i, k] * b[k, j])"


def made_of(case: Case, *types: str, room: int = 0) -> DeviceCode | None:
    found = find_band(case.loop(), case.facts)
    assert found is not None
    target = Target("cuda", tensors=types, warpgroups=room > 0, shared_bytes=room)
    return map_tensor_tiles(found, case.facts, case.fresh, target)


def units(made: DeviceCode) -> list[str]:
    return [s.unit for s in statements(made.body) if isinstance(s, MatMul)]


def sizes(of: str, *shapes: str) -> dict[str, str]:
    return {name: f"{of}[{shape}]" for name, shape in zip("cab", shapes, strict=True)}


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        (TEXT, ("16, 17", "16, 18", "18, 17")),
        ("c[j, i] = relu(sum[k](a[k, i] * b[j, k]) + 1)", ("17, 20", "16, 20", "17, 16")),
    ],
)
@pytest.mark.parametrize("kind", ["f16", "f32"])
def test_the_loops_mean_the_same(kind: str, text: str, shapes: tuple[str, ...]) -> None:
    case = Case(text, **sizes(kind, *shapes))
    made = made_of(case, kind)
    assert made is not None
    case.assert_same(made.body)


def test_all_that_both_factors_depend_on_is_counted_as_one() -> None:
    text = "c[b, h, i, j] = sum[k](a[b, h, i, k] * d[h, b, k, j])"
    shapes = {"c": "f16[2, 1, 16, 17]", "a": "f16[2, 1, 16, 18]", "d": "f16[1, 2, 18, 17]"}
    case = Case(text, **shapes)
    made = made_of(case, "f16")
    assert made is not None
    case.assert_same(made.body)


def test_tiles_are_filled_three_ahead_between_barriers() -> None:
    made = made_of(Case(TEXT, **sizes("f16", *["64, 64"] * 3)), "f16")
    assert made is not None
    assert list(made.spaces.values()) == ["rows", "shared", "shared"]
    (terms,) = (
        s for s in statements(made.body)
        if isinstance(s, For) and s.kind == "serial" and any(isinstance(x, Barrier) for x in s.body)
    )  # fmt: skip
    assert isinstance(terms.body[0], Barrier), "all have used the tile that is filled next"
    barriers = [s.later for s in statements(made.body) if isinstance(s, Barrier)]
    assert barriers == [3, 3, 3, 2, 0], "what is used next is there, what comes behind need not be"
    assert units(made) == ["warp"]
    assert sum(isinstance(s, CopyVector) for s in statements(made.body)) == 8


def test_the_loops_of_four_warps_mean_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thresholds, "MIN_OCCUPYING_TILES", 1)
    monkeypatch.setattr(thresholds, "TILE_SIDE", 16)
    monkeypatch.setattr(thresholds, "WARPGROUP_TILE", (128, 128))
    case = Case(TEXT, **sizes("f16", "17, 18", "17, 16", "16, 18"))
    made = made_of(case, "f16", room=200_000)
    assert made is not None
    assert units(made) == ["warpgroup"]
    assert sum(isinstance(s, StoreVector) for s in statements(made.body)) == 1
    (wait,) = (s for s in statements(made.body) if isinstance(s, AwaitProducts))
    assert made.spaces[wait.node.id] == "rows"
    case.assert_same(made.body)


def test_four_warps_need_room_and_many_tiles() -> None:
    def used(size: int, room: int) -> list[str]:
        made = made_of(Case(TEXT, **sizes("f16", *[f"{size}, {size}"] * 3)), "f16", room=room)
        assert made is not None
        return units(made)

    assert used(2048, 196_608) == ["warpgroup"]
    assert used(2048, 196_607) == used(1024, 196_608) == ["warp"]


def test_what_is_none() -> None:
    squares = sizes("f16", *["32, 32"] * 3)
    assert made_of(Case(TEXT, **squares), "f16") is not None
    assert made_of(Case(TEXT, **squares)) is None
    assert made_of(Case(TEXT, **squares), "bf16", "f32") is None
    assert made_of(Case(TEXT, True, **squares), "f16") is None, "sums keep their order"
    mixed = {"c": "f32[32, 32]", "a": "f16[32, 32]", "b": "f32[32, 32]"}
    assert made_of(Case(TEXT, **mixed), "f16", "f32") is None
    few = thresholds.MIN_TENSOR_CORE_SIZE - 1
    small = sizes("f16", "32, 32", f"32, {few}", f"{few}, 32")
    assert made_of(Case(TEXT, **small), "f16") is None
    assert made_of(Case(TEXT, **sizes("f64", *["32, 32"] * 3)), "f16", "f32") is None
