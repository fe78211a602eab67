"""Products of matrices are recognised by what their indices share."""

from __future__ import annotations

import pytest

from plusequals.lowering.analysis.product_loops import tiled_depth, tiled_symbols
from plusequals.lowering.ir.loops import For

from ..shown import lowered

CASES = [
    ("c[i, j] = sum(a[i, k] * b[k, j])", "i j"),
    ("c[i, j] = sum(b[k, j] * a[i, k])", "i j"),
    ("c[i, j] += f32(a[i, k]) * b[k, j]", "i j"),
    ("h[n, i, j] = sum(a[i, k] * g[n, k, j])", "n i j"),
    ("h[n, i, j] = sum(g[n, i, k] * g[n, k, j])", "i j"),  # n counts products
    ("v[i] = sum(a[i, k] * b[k, i])", ""),  # one number for each i
    ("c[i, j] = sum(a[i, k] + b[k, j])", "i j"),
    ("c[i, j] = sum((a[i, k] - b[k, j]) ** 2)", "i j"),
    ("c[i, j] = sum(a[i, k] * b[k, j] * v[k])", "i j"),
    ("c[i, j] = sum(exp(a[i, k] - b[k, j]))", ""),  # no arithmetic alone
    ("c[i, j] = sum(a[i, k] * b[k, j] * c[i, j])", ""),  # an operand of rows and columns
    ("c[i, j] = a[i, j] * b[i, j]", ""),
    ("s[i, j] = sum(s[i, k] * s[k, j])", ""),  # too small
    ("for r in range(30, 32):\n    c[r, j] += a[r, k] * b[k, j]", ""),  # too few rows
    ("c[i, j] = max[k](a[i, k] * b[k, j])", ""),  # no sum
    ("v[i] += a[i, k] * b[k, j]", ""),  # a sum over j as well
    ("v[j] += a[i, k] * b[k, j]", ""),
    ("c[p[i], j] += a[i, k] * b[k, j]", ""),  # rows in any order
    ("o[i, j] += o[i, 0] * o[0, j]", ""),  # no sum at all
]


@pytest.mark.parametrize(("body", "expected"), CASES, ids=[body for body, _ in CASES])
def test_the_loops_of_tiles(body: str, expected: str) -> None:
    large = dict.fromkeys("abc", "f32[32, 32]")
    program = lowered(body, **large, g="f32[4, 32, 32]", h="f32[4, 32, 32]", s="f32[4, 4]",
                      v="f32[32]", o="f32[64, 64]", p="i64[32]")  # fmt: skip
    found = {s.name for stmt in program.kernels[0].body if isinstance(stmt, For)
             for s in tiled_symbols(stmt)}  # fmt: skip
    assert found == set(expected.split())


def test_loops_around_the_nest_are_not_its_own() -> None:
    body = "for s in range(64):\n    for k in range(64):\n        for m in range(64):\n"
    body += "            c[s, m] += a[s, k] * a[k, m]"
    program = lowered(body, c="f32[64, 64]", a="f32[64, 64]")
    whole = next(stmt for stmt in program.kernels[0].body if isinstance(stmt, For))
    inner = next(stmt for stmt in whole.body if isinstance(stmt, For))
    assert {symbol.name for symbol in tiled_symbols(whole)} == {"s", "m"}
    assert not tiled_symbols(inner)


DEPTHS = [
    ("c[i, j] = sum(a[i, k] * b[k, j])", 2),
    ("for k in range(32):\n    c[i, j] += a[i, k] * b[k, j]", 0),  # k is none of its loops
    ("for i in range(32):\n    for k in range(32):\n        for j in range(32):\n"
     "            c[i, j] += a[i, k] * b[k, j]", 3),
    ("for n in range(4):\n    h[n, i, j] = sum(g[n, i, k] * g[n, k, j])", 0),
    ("h[n, i, j] = sum(a[i, k] * g[n, k, j])", 3),
    ("for i in range(32):\n    for j in range(32):\n        for n in range(4):\n"
     "            h[n, i, j] = sum[k](g[n, i, k] * g[n, k, j])", 3),  # up to what sums
    ("c[i, j] = a[i, j]", 0),
]  # fmt: skip


@pytest.mark.parametrize(("body", "depth"), DEPTHS, ids=[body for body, _ in DEPTHS])
def test_how_many_loops_others_have_to_share(body: str, depth: int) -> None:
    arrays = dict.fromkeys("abc", "f32[32, 32]") | dict.fromkeys("gh", "f32[4, 32, 32]")
    nests = [s for s in lowered(body, **arrays).kernels[0].body if isinstance(s, For)]
    assert [tiled_depth(nest).loops for nest in nests] == [depth]


@pytest.mark.parametrize(("rows", "depth"), [(32, 3), (127, 3), (128, 1), (320, 1)])
def test_rows_and_columns_inside_may_be_enough_by_themselves(rows: int, depth: int) -> None:
    program = lowered("t[i, j, r] = sum(x[i, j, k] * c[k, r])", t=f"f32[40, {rows}, 32]",
                      x=f"f32[40, {rows}, 32]", c="f32[32, 32]")  # fmt: skip
    (nest,) = [stmt for stmt in program.kernels[0].body if isinstance(stmt, For)]
    assert tiled_depth(nest) == (depth, depth == 1)
