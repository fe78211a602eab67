"""Several rows at once: not a bit changes, and only where rounds allow it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from plusequals.backends.cc import backend, cpu_info
from plusequals.base import settings
from plusequals.lowering import thresholds
from plusequals.lowering.cpu.reductions.row_jam import jam_row_reductions
from plusequals.lowering.ir.loops import For, Program
from plusequals.lowering.ir.walk import statements
from plusequals.lowering.pipeline import optimize
from plusequals.lowering.target import Target

from ...scheduled import function, interpreted, of_any_size, scheduled
from ...shown import lowered

TARGET = Target(
    schedule=True, reorders=True, fma=True, l2_bytes=8192, vector_bits=512, vector_registers=32,
    streams=4,
)  # fmt: skip
"""So little is in its second cache that small arrays are read from further away."""
BODIES = {
    "sums": "y[i] = sum(x[i, j])",
    "a product with what rows share": "y[i] = sum(x[i, j] * w[j])",
    "two sums of a row": "y[i] = sum(x[i, j]) / (3 + sum(x[i, j] * w[j]))",
    "rows and then elements": "x[i, j] = x[i, j] - mean[k](x[i, k])",
    "a sum of all": "y[0] = sum(x[i, j])",
    "a sum in another type": "y[0] = mean((x[i, j] - w[j]) ** 2, acc=f64)",
    "added in rounds": "for i in range(len(x)):\n    y[0] = y[0] / 2 + sum[j](x[i, j])",
    "backwards": "y[i] = sum(x[:, ::-1][i, j])",
    "every second": "y[i] = sum(x[:, ::2][i, j])",
}
ORDERED = {
    "the row before": "for i in range(1, len(x)):\n    x[i] = x[i] * 0.5 + sum(x[i - 1, :])",
    "what a sum reads": "for i in range(len(x)):\n    w[i] = sum[j](x[i, j] * w[j])",
    "a sum that is read": (
        "for i in range(len(x)):\n    y[1] = y[0]\n    y[0] += sum[j](x[i, j])\n    y[i] += y[1]"
    ),
}
SHAPES = [(3, 96), (4, 97), (33, 130), (13, 1100), (0, 96), (9, 0)]


def arrays(shape: tuple[int, int], dtype: str = "f4") -> list[Any]:
    rng = np.random.default_rng(5)
    rows, columns = shape
    sizes = (shape, (max(columns, rows),), (2 * rows + 2,))
    return [rng.standard_normal(size).astype(dtype) for size in sizes]


def written(body: str) -> Any:
    if "w[j]" in body and "w[i]" not in body:
        body = body.replace("w[j]", "w[:x.shape[1]][j]")
    if "y[i]" in body and "range" not in body:
        body = body.replace("y[i]", "y[:len(x)][i]")
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    return function(f"def f(x, w, y):\n{lines}")


def steps(program: Program) -> set[int]:
    """How many rounds loops take at once that have sums in lanes inside."""
    return {
        stmt.step
        for kernel in program.kernels for stmt in statements(kernel.body)
        if isinstance(stmt, For) and stmt.kind != "vector" and stmt.step in (2, 4)
        and any(isinstance(one, For) and one.kind == "vector" for one in statements(stmt.body))
    }  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", BODIES | ORDERED)
def test_not_a_bit_changes(
    name: str, shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = arrays(shape)
    if name == "what a sum reads" and min(shape) == 0:
        pytest.skip("arrays of other sizes")
    made = written((BODIES | ORDERED)[name])
    procedure = made.procedure(*given)
    program = scheduled(procedure, TARGET)
    after = interpreted(program, *given)
    monkeypatch.setattr(thresholds, "MAX_JAMMED_ROWS", 1)
    before = interpreted(scheduled(procedure, TARGET), *given)
    assert [one.tobytes() for one in before] == [one.tobytes() for one in after]
    if shape == (33, 130):
        assert steps(program) == (set() if name in ORDERED else {4})


@pytest.mark.parametrize("name", BODIES)
def test_sizes_of_the_run_change_no_bit(name: str) -> None:
    for shape in ((9, 321), (12, 64)):
        given = arrays(shape)
        made = written(BODIES[name])
        fixed = interpreted(scheduled(made.procedure(*given), TARGET), *given)
        run = interpreted(scheduled(of_any_size(made, *given), TARGET), *given)
        assert [one.tobytes() for one in fixed] == [one.tobytes() for one in run]


@pytest.mark.parametrize(
    ("name", "dtype"), [*((name, "f4") for name in BODIES), ("two sums of a row", "f8")]
)
def test_c_gives_the_bits_of_one_row_at_a_time(
    name: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = arrays((1030, 576), dtype)
    texts, results = [], []
    here = replace(cpu_info.target(), streams=4)
    monkeypatch.setattr(
        backend, "target", lambda: replace(here, threads=settings.current().threads)
    )
    for most in (thresholds.MAX_JAMMED_ROWS, 1):
        for threads in (1, 7):
            mine = [one.copy() for one in given]
            monkeypatch.setattr(thresholds, "MAX_JAMMED_ROWS", most)
            with settings.override(threads=threads, parallel_from=1 + most, cache=False):
                again = written(BODIES[name]).on("cc")
                again(*mine)
                texts.append(str(again.explain(*mine)))
            results.append([one.tobytes() for one in mine])
    assert all(one == results[0] for one in results)
    assert texts[0] != texts[2]


@pytest.mark.parametrize(("bits", "registers", "expected"), [
    (512, 32, {4}), (256, 32, {4}), (256, 16, {2}), (128, 32, {2}), (128, 16, set()),
])  # fmt: skip
def test_there_are_as_many_as_registers_have_room_for(
    bits: int, registers: int, expected: set[int]
) -> None:
    target = replace(TARGET, vector_bits=bits, vector_registers=registers)
    given = arrays((9, 1100))
    program = scheduled(written(BODIES["sums"]).procedure(*given), target)
    assert steps(program) == expected


def before(body: str, **sizes: str) -> Program:
    program, _ = optimize(lowered(body, **sizes), TARGET, stop_after="distribute_accumulations")
    return program


def test_what_is_near_is_read_at_one_place() -> None:
    program = before("y[i] = sum(x[i, j])", y="f32[16]", x="f32[16, 512]")
    assert jam_row_reductions(program, TARGET).program is not program
    large = replace(TARGET, l2_bytes=1 << 16)
    assert jam_row_reductions(program, large) == (program, ())


def test_what_is_far_is_read_at_one_place_where_that_is_fastest() -> None:
    program = before("y[i] = sum(x[i, j])", y="f32[16]", x="f32[16, 512]")
    assert jam_row_reductions(program, TARGET).program is not program
    assert jam_row_reductions(program, replace(TARGET, streams=1)) == (program, ())
    two = "y[i] = sum((x[i, j] - mean[k](x[i, k])) ** 2)"
    program = before(two, y="f32[16]", x="f32[16, 800]")
    for size, is_near in ((1 << 15, False), (16 * 3200, False), (1 << 16, True)):
        target = replace(TARGET, streams=1, l2_bytes=size)
        assert bool(jam_row_reductions(program, target).decisions) == is_near


def test_rows_that_are_read_twice_stay_in_the_cache() -> None:
    body = "y[i] = sum(x[i, j]) / (3 + sum((x[i, j] - mean[k](x[i, k])) ** 2))"
    sizes = {"y": "f32[16]", "x": "f32[16, 800]"}
    assert jam_row_reductions(before(body, **sizes), TARGET).decisions == ()
    large = replace(TARGET, l2_bytes=1 << 16)
    (told,) = jam_row_reductions(before(body, **sizes), large).decisions
    assert told.sentence() == (
        "neighbouring elements of `y` are computed together: "
        "memory is read faster at several addresses at a time"
    )


def test_what_is_dear_stays_alone() -> None:
    body = "t = sum[j](x[i, j])\n    z[i, :] = exp(x[i, :] - t)"
    text = f"for i in range(9):\n    {body}"
    program = before(text, x="f32[9, 400]", z="f32[9, 400]")
    assert jam_row_reductions(program, TARGET).program is program
