"""Products of matrices are recognised by what their indices share."""

from __future__ import annotations

import pytest

from plusequals.lowering.ir.loops import For
from plusequals.lowering.passes.products import tiled

from .shown import lowered

CASES = [
    ("c[i, j] = sum(a[i, k] * b[k, j])", "i j"),
    ("c[i, j] = sum(b[k, j] * a[i, k])", "i j"),
    ("c[i, j] += f32(a[i, k]) * b[k, j]", "i j"),
    ("h[n, i, j] = sum(a[i, k] * g[n, k, j])", "n i j"),
    ("h[n, i, j] = sum(g[n, i, k] * g[n, k, j])", "i j"),  # n counts products
    ("v[i] = sum(a[i, k] * b[k, i])", ""),  # one number for each i
    ("c[i, j] = sum(a[i, k] + b[k, j])", ""),
    ("c[i, j] = a[i, j] * b[i, j]", ""),
    ("s[i, j] = sum(s[i, k] * s[k, j])", ""),  # too small
]


@pytest.mark.parametrize(("body", "expected"), CASES, ids=[body for body, _ in CASES])
def test_the_loops_of_tiles(body: str, expected: str) -> None:
    large = dict.fromkeys("abc", "f32[32, 32]")
    program = lowered(body, **large, g="f32[4, 32, 32]", h="f32[4, 32, 32]", s="f32[4, 4]",
                      v="f32[32]")  # fmt: skip
    found = {s.name for stmt in program.kernels[0].body if isinstance(stmt, For)
             for s in tiled(stmt)}  # fmt: skip
    assert found == set(expected.split())
