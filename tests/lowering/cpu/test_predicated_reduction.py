"""Sums under a test add what changes nothing where it does not hold: not a bit changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.lowering.cpu.masked_lanes import MaskReason, mask_lanes
from plusequals.lowering.ir.loops import If
from plusequals.lowering.ir.walk import statements
from plusequals.lowering.lower import lower
from plusequals.lowering.pipeline import optimize

from ..scheduled import function, interpreted, of_any_size, scheduled
from ..shown import lowered
from .masked import TARGET

SUMS = {
    "a sum": "return x[x > 0.5].sum()",
    "a mean": "return x[(x > -0.5) & (z < 0.5)].mean()",
    "a product": "return (1 + x[z > 0.5] / 64).prod()",
    "of products": "return (x * y)[z > 0].sum()",
    "of a square": "return (x[z > 0.25] ** 2).sum()",
    "of labels": "return x[p == 3].mean(), y[p != 3].sum()",
    "of truth values": "return x[b].mean(), x[~b].sum(), x[b & (z > 0)].sum()",
    "of another type": "return x[w > 0].mean(), w[x > 0].mean()",
    "of two tests": "m = x > 0.5\nn = z > 0.5\nreturn x[m | n].sum(), m.sum(), (m ^ n).sum()",
    "extremes": "return x[x > 0.5].max(initial=-9), (x * y)[z < 0.25].min(initial=0.5)",
    "in a loop": (
        "out = np.zeros(3)\nfor k in range(3):\n    r = k * 0.25\n"
        "    out[k] = x[(r <= z) & (z < r + 0.25)].mean()\nreturn out"
    ),
}
SIZES = (0, 1, 33, 1030)
MANY = 40_000


def text(name: str) -> str:
    body = SUMS[name].replace("\n", "\n    ")
    return f"def f(x, y, z, w, p, b):\n    {body}\n"


def given(size: int, dtype: str, whole: str = "i8") -> tuple[Any, ...]:
    rng = np.random.default_rng(size)
    x, y, z = (np.rint(8 * rng.standard_normal(size)).astype(dtype) / 7 for _ in range(3))
    if size > 40:
        x[7], x[9], y[3], z[5] = np.inf, -0.0, np.nan, np.nan
    other = "f8" if dtype == "f4" else "f4"
    p = rng.integers(0, 5, size).astype(whole)
    return x, y, z, rng.standard_normal(size).astype(other), p, rng.random(size) > 0.5


def bits(value: Any) -> list[bytes]:
    """Return the bits of results; of NaN there is one."""
    values = value if isinstance(value, tuple) else (value,)
    return [np.where(np.isnan(one), np.nan, one).tobytes() for one in map(np.asarray, values)]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", SUMS)
def test_compiled_sums_have_the_bits_of_their_lanes(name: str, dtype: str) -> None:
    made = function(text(name))
    for size in (*SIZES, MANY) if dtype == "f4" else (1030,):
        values = given(size, dtype)
        found = []
        for threads in (1, 2, 7):
            with pe.settings.override(threads=threads, parallel_from=10_000):
                found.append(bits(made.on("cc")(*values)))
        assert found[0] == found[1] == found[2], size
        if size == MANY:  # which the interpreter takes long for
            continue
        whole = made.procedure(*values)
        assert found[0] == bits(tuple(interpreted(scheduled(whole), *values))), size


@pytest.mark.parametrize("whole", ["i1", "i4", "u4", "i8", "u8"])
def test_tests_of_whole_numbers_of_every_type(whole: str) -> None:
    made = function(text("of labels"))
    for dtype in ("f4", "f8"):
        values = given(1030, dtype, whole)
        expected = bits(tuple(interpreted(scheduled(made.procedure(*values)), *values)))
        assert bits(made.on("cc")(*values)) == expected
        if whole == "i8":
            program = scheduled(of_any_size(made, *values))
            assert bits(tuple(interpreted(program, *values))) == expected


@pytest.mark.parametrize("name", SUMS)
def test_their_loops_have_no_branches(name: str) -> None:
    procedure = function(text(name)).procedure(*given(48, "f4"))
    program, _ = optimize(lower(procedure), TARGET, stop_after="annotate_private")
    found = mask_lanes(program, TARGET)
    assert {decision.reason for decision in found.decisions} <= {MaskReason.SUM, MaskReason.COUNT}
    assert any(decision.reason is MaskReason.SUM for decision in found.decisions)
    inside = (s for kernel in found.program.kernels for s in statements(kernel.body))
    assert not any(isinstance(stmt, If) for stmt in inside)


STAYS = {
    "dear": "return (" + " + ".join(f"exp(x * {n})" for n in range(9)) + ")[x > 0].sum()",
    "whole numbers divided": "return (x * (7 // (p + 9)))[x > 0].sum()",
    "where data says": "return x[p][x > 0].sum()",
}


@pytest.mark.parametrize("name", STAYS)
def test_others_keep_their_branches(name: str) -> None:
    types = {"x": "f32[48]", "p": "i64[48]"}
    program, _ = optimize(lowered(STAYS[name], **types), TARGET, stop_after="annotate_private")
    assert not any(one.reason is MaskReason.SUM for one in mask_lanes(program, TARGET).decisions)
