"""Every reason for which two nests stay apart."""

from __future__ import annotations

import pytest

from plusequals.lowering.analysis.fusion import FusionRefusal, are_unrelated
from plusequals.lowering.analysis.product_loops import tiled_symbols
from plusequals.lowering.ir.loops import Comment, For
from plusequals.lowering.passes.fuse import FusionReason, fuse

from ..shown import lowered

REFUSED = [
    ("z[i] = x[i]\ny[:-1] = z[1:]", FusionRefusal.RANGES),
    ("z[:-1] = x[:-1]\ny[:-1] = z[1:]", FusionRefusal.ORDER),
    ("z[i] = x[i]\ny[i] = z[p[i]]", FusionRefusal.EFFECTS),
    ("z[i] = x[i]\nfor k in range(8):\n    print(z[k])", FusionRefusal.EFFECTS),
    ("for k in range(8):\n    z[k] = x[k]\n    if x[k] > 1:\n        break\ny[i] = z[i]",
     FusionRefusal.JUMPS),
    ("z[i] = x[i]\nc[0] = z[3]\ny[i] = z[i] * c[0]", FusionRefusal.SEPARATED),
    ("y[i] = x[i]\nz[0] = sum(y[i])", FusionRefusal.RUNNING),
    ("y[j] = sum(a[i, j])\nz[i] = sum(a[i, j])", FusionRefusal.ACROSS),
    ("y[j] = sum(a[i, j] * x[i])\nz[i] = sum(a[i, j] * x[j])", FusionRefusal.ACROSS),
    ("y[i] = max(a[i, j])\nz[j] = max(a[i, j])", FusionRefusal.ACROSS),
]  # fmt: skip
ARRAYS = {"y": "f32[8]", "z": "f32[8]", "x": "f32[8]", "p": "i64[8]", "c": "f32[1]",
          "a": "f32[8, 8]"}  # fmt: skip


@pytest.mark.parametrize(("body", "reason"), REFUSED, ids=[b for b, _ in REFUSED])
def test_apart_for_a_reason(body: str, reason: FusionRefusal) -> None:
    made = fuse(lowered(body, **ARRAYS))
    assert reason in [decision.reason for decision in made.decisions]
    assert FusionReason.SHARED not in [decision.reason for decision in made.decisions]


ALONG = [
    "y[i] = sum(a[i, j])\nz[i] = max(a[i, j])",
    "y[i] = sum(a[j, i])\nz[i] = max(a[j, i])",
    "y[i] = sum(a[i, j] * x[i])\nz[i] = sum(a[j, i] * x[i])",  # both need that element of x
    "y[i] = sum(a[i, j])\nz[i] = y[i] + sum(a[j, i])",  # one hands something to the other
    "y[i] = sum(x[j] * i)\nz[i] = sum(x[j] + i)",  # each round reads all of it
]


@pytest.mark.parametrize("body", ALONG)
def test_together_where_rounds_share_something(body: str) -> None:
    made = fuse(lowered(body, **{name: ARRAYS[name] for name in ARRAYS if f"{name}[" in body}))
    assert FusionReason.SHARED in [decision.reason for decision in made.decisions]


PRODUCT = "t[n, j] = sum(x[n, i] * w[i, j])\n"
WIDE = "t[n, j, m] = sum[i](x[n, i] * v[i, j, m])\n"
TILED = [
    (PRODUCT + "y[n, j] = t[n, j] + 1", FusionReason.SHARED),
    (PRODUCT + "for h in range(32):\n    y[h, 0] = 1\n    for k in range(96):\n"
     "        y[h, k] = t[h, k]", FusionRefusal.TILES),
    (PRODUCT + "for h in range(32):\n    for k in range(96):\n        y[h, k] = t[h, k]\n"
     "        z[h, k] = t[h, k]", FusionReason.SHARED),
    (PRODUCT + "for h in range(32):\n    for k in range(95):\n        y[h, k] = t[h, k]",
     FusionRefusal.TILES),
    (PRODUCT + "y[n, j] = t[n, 95 - j]", FusionRefusal.TILES),
    (PRODUCT + "for h in range(32):\n    y[h, 3] = t[h, 3]", FusionRefusal.TILES),
    (PRODUCT + "z[n, j] = sum(x[n, i] * w[i, j])\ny[n, j] = t[n, j] + z[n, j]",
     FusionRefusal.TILES),
    ("for h in range(32):\n    for k in range(96):\n        z[h, k] = 1\n    y[h, 0] = 1\n"
     "z[n, j] += x[n, i] * w[i, j]", FusionRefusal.TILES),
    (PRODUCT + "for h in range(32):\n    for k in range(96):\n        s = t[h, k]\n"
     "        y[h, k] = s * s", FusionReason.SHARED),
    (PRODUCT + "for h in range(32):\n    for k in range(96):\n        q[0] += t[h, k]",
     FusionRefusal.TILES),
    (PRODUCT + "for h in range(32):\n    for k in range(96):\n        q[0] = t[h, k]",
     FusionRefusal.TILES),
    (PRODUCT + "for h in range(32):\n    for k in range(96):\n        r[h] += t[h, k]",
     FusionRefusal.TILES),
    (PRODUCT + "for h in range(32):\n    for k in range(96):\n        q[h + k] += t[h, k]",
     FusionRefusal.TILES),
    (PRODUCT + "for h in range(32):\n    for k in range(96):\n        q[96 * h + k] = t[h, k]",
     FusionReason.SHARED),
    (PRODUCT + "for h in range(32):\n    for k in range(96):\n        y[h, k] = t[h, k]\n"
     "        for m in range(3):\n            y[h, k] += z[h, k] * m", FusionRefusal.TILES),
    ("z[n, j] = 1\nz[n, j] += x[n, i] * w[i, j]", FusionReason.SHARED),
    (WIDE + "u[n, j, m] = t[n, j, m] + 1", FusionReason.SHARED),
    (WIDE + "u[n, j, m] = t[n, j, 7 - m]", FusionRefusal.TILES),
    (WIDE + "u[n, j, m] = t[n, 7 - j, m]", FusionRefusal.TILES),
    (WIDE + "u[n, j, m] = t[31 - n, j, m]", FusionRefusal.ORDER),
]  # fmt: skip
MATRICES = {"x": "f32[32, 64]", "w": "f32[64, 96]", "y": "f32[32, 96]", "z": "f32[32, 96]",
            "v": "f32[64, 8, 8]", "u": "f32[32, 8, 8]", "q": "f32[3072]",
            "r": "f32[32]"}  # fmt: skip


@pytest.mark.parametrize(("body", "reason"), TILED, ids=[b for b, _ in TILED])
def test_products_keep_their_tiles(body: str, reason: FusionRefusal | FusionReason) -> None:
    made = fuse(lowered(body, **MATRICES))
    assert made.decisions[0].reason == reason, [one.reason for one in made.decisions]


ROWS = "y[n, j] = t[n, j] * 2\nm[n] = max[j](y[n, j])\ne[n, j] = exp(y[n, j] - m[n])\n"
LATE = "y[n, j] = t[n, j] * 2\nz[n, j] = y[n, j] + 1\n"
PARTS = [
    (PRODUCT + ROWS, 2),
    ("y[n, j] = z[n, j]\ne[n, j] = y[n, j]\ne[n, j] += x[n, i] * w[i, j]", 2),
    (PRODUCT + LATE, 1),
    (PRODUCT + LATE + "e[n, j] = z[n, j] + y[n, 95 - j]", 2),
]  # fmt: skip


@pytest.mark.parametrize(("body", "nests"), PARTS, ids=[b for b, _ in PARTS])
def test_what_is_joined_with_a_product_before_its_loops_are_one(body: str, nests: int) -> None:
    arrays = {**MATRICES, "m": "f32[32]", "e": "f32[32, 96]"}
    (kernel,) = fuse(lowered(body, **arrays)).program.kernels
    loops = [stmt for stmt in kernel.body if isinstance(stmt, For)]
    product = next(loop for loop in loops if tiled_symbols(loop))
    inside = [stmt for stmt in product.body if not isinstance(stmt, Comment)]
    assert (len(loops), len(inside)) == (nests, 1)


@pytest.mark.parametrize(
    "distance",
    ["(x[n, i] - w[i, j]) ** 2", "w[i, j] - x[n, i]", "max(x[n, i], w[i, j])"],
)
def test_a_sum_of_all_distances_is_not_joined_with_them(distance: str) -> None:
    body = f"y[n, j] = sum[i]({distance})\ns = sum(y[n, j] * y[n, j])"
    made = fuse(lowered(body, **MATRICES, s="f32"))
    assert {FusionRefusal.TILES, FusionRefusal.LITTLE} & {one.reason for one in made.decisions}


def test_a_short_sum_is_not_carried_through_long_rows() -> None:
    sizes = {"f": "f32[300, 2]", "p": "f32[300, 2]", "s": "f32"}
    body = "f[i, k] = sum[j](exp(p[i, k] - p[j, k]))\ns = sum(f[i, k] * f[i, k])"
    made = fuse(lowered(body, **sizes))
    assert FusionRefusal.LITTLE in [one.reason for one in made.decisions]
    short = fuse(lowered(body.replace("[j]", "[j in range(4)]"), **sizes))
    assert FusionRefusal.LITTLE not in [one.reason for one in short.decisions]


def test_sums_of_rows_and_of_columns_are_not_joined() -> None:
    body = "r[j] += sum[i](a[i, j] * p[j])\nr[i] += sum[j](a[i, j] * p[i])"
    made = fuse(lowered(body, r="f32[300]", p="f32[300]", a="f32[300, 300]"))
    assert FusionRefusal.ACROSS in [one.reason for one in made.decisions]


def test_strangers_have_no_array_in_common() -> None:
    program = lowered(
        "y[i] = x[i]\nz[i] = t[i]\nz[i] = x[i]",
        y="f32[8]", x="f32[8]", z="f32[8]", t="f32[8]",
    )  # fmt: skip
    first, second, third = (s for s in program.kernels[0].body if isinstance(s, For))
    assert are_unrelated(first, second) and are_unrelated(second, first)
    assert not are_unrelated(first, third) and not are_unrelated(second, third)
