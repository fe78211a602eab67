"""Every reason for which two nests stay apart."""

from __future__ import annotations

import pytest

from plusequals.lowering.passes.fuse import Together, fused
from plusequals.lowering.passes.pair import Apart

from .shown import lowered

REFUSED = [
    ("z[i] = x[i]\ny[:-1] = z[1:]", Apart.RANGES),
    ("z[:-1] = x[:-1]\ny[:-1] = z[1:]", Apart.ORDER),
    ("z[i] = x[i]\ny[i] = z[p[i]]", Apart.EFFECTS),
    ("z[i] = x[i]\nfor k in range(8):\n    print(z[k])", Apart.EFFECTS),
    ("for k in range(8):\n    z[k] = x[k]\n    if x[k] > 1:\n        break\ny[i] = z[i]",
     Apart.JUMPS),
    ("z[i] = x[i]\nc[0] = z[3]\ny[i] = z[i] * c[0]", Apart.SEPARATED),
    ("y[i] = x[i]\nz[0] = sum(y[i])", Apart.RUNNING),
]  # fmt: skip
ARRAYS = {"y": "f32[8]", "z": "f32[8]", "x": "f32[8]", "p": "i64[8]", "c": "f32[1]"}


@pytest.mark.parametrize(("body", "reason"), REFUSED, ids=[b for b, _ in REFUSED])
def test_apart_for_a_reason(body: str, reason: Apart) -> None:
    made = fused(lowered(body, **ARRAYS))
    assert reason in [decision.reason for decision in made.decisions]
    assert Together.SHARED not in [decision.reason for decision in made.decisions]
