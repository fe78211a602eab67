"""Sums of small whole numbers in 32 bits: which these are, and that not a bit changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from plusequals.base import settings
from plusequals.lowering.cpu.reductions.narrow_accumulators import NarrowReason, narrow_accumulators
from plusequals.lowering.ir.loops import Program
from plusequals.lowering.passes.contract_arrays import contract_arrays
from plusequals.lowering.target import Target

from ....compare import run_on
from ...scheduled import function, interpreted, scheduled
from ...shown import lowered

TARGET = Target(schedule=True)
BODIES = {
    "along rows": "y[i] = sum(x[i, j], acc=i64)",
    "down columns": "y[j] = sum(x[i, j], acc=i64)",
    "over all": "y[0] += sum[i, j](x[i, j], acc=i64)",
    "added to": "y[i] += x[i, j]",
    "of a test": "y[i] = sum(x[i, j] > 1)",
    "two": "y[i] = sum(x[i, j], acc=i64) - sum(x[i, j] == 3)",
}
TYPES = ("bool", "u1", "i1", "u2", "i2")
SIZES = ((3, 50), (50, 3), (0, 20), (20, 0), (1, 23), (23, 40))


def parts(program: Program) -> list[str]:
    return [node.label for node in program.locals if node.label.endswith("_part")]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", BODIES)
def test_not_a_bit_changes(name: str, dtype: str) -> None:
    made = function(f"def f(y, x):\n    {BODIES[name]}\n")
    kind = np.dtype(dtype)
    for size in SIZES:
        rng = np.random.default_rng(4)
        x: Any = rng.integers(0, 2, size).astype(bool)
        if kind.kind != "b":
            limits = np.iinfo(kind)
            x = rng.integers(limits.min, limits.max + 1, size).astype(kind)
        y = np.arange(size["columns" in name] or "over" in name)
        procedure = made.procedure(y, x)
        before = interpreted(scheduled(procedure, Target()), y, x)
        after = interpreted(scheduled(procedure, TARGET), y, x)
        assert [one.tobytes() for one in before] == [one.tobytes() for one in after]


def test_sums_that_do_not_fit_are_taken_piece_by_piece() -> None:
    @settings.override(schedule=True)
    def total(x: Any) -> Any:
        made = function("def f(x):\n    return np.sum(x, dtype=np.int64), np.sum(x > 7)\n")
        return run_on("cc", made, x)

    for dtype, value in (("u2", 65535), ("i2", -32768), ("u1", 255), ("i1", -128)):
        for count in (1 << 15, (1 << 15) + 1, 99991):
            x = np.full(count, value, dtype)
            assert total(x) == (value * count, count * (value > 7))


@pytest.mark.parametrize(
    ("text", "types"),
    [
        ("y[i] = sum(x[i, j], acc=i64)", {"x": "i32[8, 90]"}),  # two of them may not fit
        ("y[i] = sum(x[i, j], acc=i64)", {"x": "u8[8, 16]"}),  # too few
        ("y[i] = max(i64(x[i, j]))", {"x": "u8[8, 90]"}),
        ("y[i] = sum(x[i, j], acc=i64)", {"x": "f32[8, 90]"}),
        ("for k in range(90):\n    y[k % 8] += x[k % 8, k]", {"x": "u8[8, 90]"}),
        ("y[x[i, j] % 8] += x[i, j]", {"x": "u8[8, 90]"}),
        ("for k in range(90):\n    y[0] += x[0, k]\n    if y[0] > 9: break", {"x": "u8[8, 90]"}),
        ("for k in range(90):\n    y[0] += x[0, k]\n    z[k] = y[0]",
         {"x": "u8[8, 90]", "z": "i64[90]"}),
        ("for k in range(90):\n    y[0] += x[0, k] > y[0]", {"x": "u8[8, 90]"}),
    ],
)  # fmt: skip
def test_other_sums_stay(text: str, types: dict[str, str]) -> None:
    program = contract_arrays(lowered(text, y="i64[8]", **types)).program
    assert narrow_accumulators(program, TARGET).program is program


@pytest.mark.parametrize("term", ["x[p] > y[q]", "y[q] < 20", "np.int8(x[p] > y[q] * 2)"])
def test_terms_that_depend_on_the_sum_so_far(term: str) -> None:
    loops = "    for q in range(3):\n        for p in range(200):\n"
    text = f"def f(y, x):\n{loops}            y[q] += {term}\n"
    x = np.random.default_rng(3).integers(0, 99, 200)
    scope: dict[str, Any] = {"np": np}
    exec(text, scope)
    wanted, got = np.arange(3), np.arange(3)
    scope["f"](wanted, x)
    run_on("cc", function(text), got, x)
    assert got.dtype == wanted.dtype and got.tolist() == wanted.tolist()


def test_what_was_decided_is_told_and_needs_vectors() -> None:
    program = contract_arrays(
        lowered("y[i] = sum(x[i, j], acc=i64)", y="i64[8]", x="u8[8, 90]")
    ).program
    found = narrow_accumulators(program, TARGET)
    assert [one.reason for one in found.decisions] == [NarrowReason.SMALL]
    assert parts(found.program) == ["y_acc_part"]
    assert narrow_accumulators(program, replace(TARGET, vector_bits=64)).program is program


def test_a_loop_that_does_more_keeps_what_it_does() -> None:
    text = "for k in range(90):\n    y[0] += x[0, k]\n    z[k] = x[1, k]"
    types = {"y": "i64[8]", "x": "u8[8, 90]", "z": "i64[90]"}
    assert parts(
        narrow_accumulators(contract_arrays(lowered(text, **types)).program, TARGET).program
    ) == ["y_acc_part"]
