"""What a thread reads before all else."""

from __future__ import annotations

import pytest

from plusequals.lowering import thresholds
from plusequals.lowering.gpu.load_hoisting import (
    has_branching_ops,
    hoist_loads,
    unconditional_reads,
)
from plusequals.lowering.ir.loops import For, Store

from .kernels import Case


def done(case: Case) -> list[str]:
    """Return what is read early, after it was seen that this changes nothing."""
    loop = case.loop()
    rounds = (loop.hi - loop.lo).constant
    assert rounds is not None
    loads, body, nodes = hoist_loads(loop.body, loop.symbol, rounds, case.fresh)
    parts = [part for part in (loads, body) if part]
    case.assert_same([For(loop.symbol, loop.lo, loop.hi, 1, part, "unrolled") for part in parts])
    assert len(nodes) == len(loads)
    assert all(isinstance(stmt, Store) for stmt in loads)
    return [node.label for node in nodes]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("y[i] = exp(x[i])", ["x_at"]),
        ("y[i] = x[i] / z[i] + x[i]", ["x_at", "z_at"]),
        ("y[i] = x[i] * z[i]", []),
        ("y[i] += exp(x[i])", ["x_at"]),
        ("y[i] = exp(y[i])", []),
        ("y[i] = exp(x[i] if z[i] > 0 else 1.0)", ["z_at"]),
        ("y[i] = sqrt(x[3 - i])", ["x_at"]),
        ("y[i] = x[i] / z[0]", ["x_at"]),
    ],
)
def test_what_is_read_anyhow_is_read_early_where_there_are_branches(
    text: str, names: list[str]
) -> None:
    case = Case(text, y="f32[4]", x="f32[4]", z="f32[4]")
    assert done(case) == names


def test_no_more_is_read_early_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case("y[i] = x[i] / z[i]", y="f32[4]", x="f32[4]", z="f32[4]")
    monkeypatch.setattr(thresholds, "MAX_HOISTED_BYTES", 4 * 4 * 2)
    assert len(done(case)) == 2
    monkeypatch.setattr(thresholds, "MAX_HOISTED_BYTES", 4 * 4 * 2 - 1)
    assert not done(case)


def test_what_is_sure_and_what_branches() -> None:
    case = Case("y[i] = x[i] if z[i] > 0 else 2.0", y="f32[4]", x="f32[4]", z="f32[4]")
    assert [read.node.label for read in unconditional_reads(case.loop().body)] == ["z"]
    assert not has_branching_ops(case.loop().body)
