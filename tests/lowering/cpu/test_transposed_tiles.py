"""Nests over arrays that lie across one another: which are in tiles, and that they stay right."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe
from plusequals.lowering.cpu.transposed_tiles import tile_transposed
from plusequals.lowering.ir.printer import print_program
from plusequals.lowering.target import Target

from ..shown import lowered

TILED = {
    "y[i, j] = x[j, i] * 2": {"y": "f64[300, 300]", "x": "f64[300, 300]"},
    "y[i, j] = x[i, j] + x[j, i]": {"y": "f32[300, 300]", "x": "f32[300, 300]"},
    "z[i, j, k] = w[j, k, i]": {"z": "f64[30, 20, 40]", "w": "f64[20, 40, 30]"},
    "z[i, j, k] = w[k, j, i]": {"z": "f64[30, 20, 40]", "w": "f64[40, 20, 30]"},
    "y[i, j] = x[j, i] if j > i else 0.0": {"y": "f64[300, 300]", "x": "f64[300, 300]"},
}
STAYS = {
    "y[i, j] = x[i, j] * 2": {"y": "f64[300, 300]", "x": "f64[300, 300]"},
    "y[i, j] = v[i] * 2": {"y": "f64[300, 300]", "v": "f64[300]"},
    "y[i, j] = x[j, i] + 1": {"y": "f64[90, 200]", "x": "f64[200, 90]"},
    "y[i, j] = x[j, n[i]]": {"y": "f64[300, 300]", "x": "f64[300, 300]", "n": "i64[300]"},
    "y[i, j] = sum[k](x[k, i] * x[k, j])": {"y": "f64[300, 300]", "x": "f64[300, 300]"},
    "for i in range(299):\n    y[i + 1, j] = y[i, j] + x[j, i]":
        {"y": "f64[300, 300]", "x": "f64[300, 300]"},
    "for k in range(8):\n    for i in range(300):\n        for j in range(min(300 - 40 * k, 3)):\n"
    "            y[i, j] = x[j, i]": {"y": "f64[300, 300]", "x": "f64[300, 300]"},
}  # fmt: skip


@pytest.mark.parametrize("text", TILED)
def test_what_lies_across_is_in_tiles(text: str) -> None:
    program, target = lowered(text, **TILED[text]), Target(schedule=True)
    made, decisions = tile_transposed(program, target)
    size = 32 if "f32" in str(TILED[text]) else 16
    assert f"step {size}:" in print_program(made)
    assert [str(one) for one in decisions] == [
        "it goes through arrays along different axes, and a tile uses all of what is loaded: "
        f"{size} by {size} elements"
    ]


@pytest.mark.parametrize("text", STAYS)
def test_what_stays(text: str) -> None:
    program = lowered(text, **STAYS[text])
    assert tile_transposed(program, Target(schedule=True)).program is program


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("sizes", [(0, 5, 7), (1, 300, 17), (37, 16, 33), (48, 1, 1)])
def test_what_is_in_tiles_is_what_numpy_has(sizes: tuple[int, int, int], dynamic: bool) -> None:
    text = """def f(a, b):
    c = a.transpose(2, 1, 0) * 2 + b
    return c, a.transpose(2, 0, 1) - 1
"""
    f = pe.cd_from_source(text, {"np": np})
    others = [sizes, (2, 3, 4), (3, 4, 5), (4, 5, 6), (5, 6, 7)] if dynamic else [sizes]
    for shape in (*others, sizes):
        a = np.arange(np.prod(shape), dtype="float64").reshape(shape)
        b = np.ones(shape[::-1])
        expected = a.transpose(2, 1, 0) * 2 + b, a.transpose(2, 0, 1) - 1
        for one, other in zip(f(a, b), expected, strict=False):
            np.testing.assert_array_equal(one, other)
