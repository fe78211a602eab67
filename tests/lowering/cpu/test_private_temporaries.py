"""Loops that threads might share have temporaries of their own, and all else keeps its own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from plusequals.lowering.analysis.cost import total_work
from plusequals.lowering.cpu.private_temporaries import privatize_temporaries
from plusequals.lowering.ir.loops import For, Program, Store
from plusequals.lowering.ir.walk import direct_writes, statements
from plusequals.lowering.target import Target

from ..scheduled import LIKE_C, function, interpreted, scheduled
from ..shown import lowered, shared

TARGET = Target(threads=2, parallel_from=9000)
FIRST = "for i in range(8000):\n    t = x[i] * 2\n    y[i] = t + t * t"
AGAIN = "for i in range(8000, 8009):\n    t = x[i] - 1\n    y[i] += t * t"
LONG = "for i in range(8000):\n    t = x[i] - 1\n    y[i] += t * t"


def temporaries(program: Program) -> list[set[int]]:
    """Return the temporaries that each outermost loop writes."""
    own = {node.id for node in program.locals}
    return [
        {node.id for stmt in statements((loop,)) for node in direct_writes(stmt)} & own
        for kernel in program.kernels for loop in kernel.body if isinstance(loop, For)
    ]  # fmt: skip


def made(*parts: str) -> tuple[Program, Program]:
    program = lowered("\n".join(parts), y="f32[8009]", x="f32[8009]")
    return program, privatize_temporaries(program, TARGET)


@pytest.mark.parametrize(
    "parts", [(FIRST, AGAIN), (AGAIN, FIRST), (FIRST, LONG), (LONG, AGAIN, FIRST)]
)
def test_loops_side_by_side_have_no_temporary_in_common(parts: tuple[str, ...]) -> None:
    before = shared(made(*parts)[0])
    after = privatize_temporaries(before, TARGET)
    assert set.intersection(*temporaries(before))
    found = temporaries(after)
    assert len(set.union(*found)) == sum(map(len, found))
    assert len(after.locals) - len(before.locals) == len(parts) - 1
    rng = np.random.default_rng(1)
    y, x = (rng.standard_normal(8009).astype("f4") for _ in range(2))
    assert interpreted(after, y, x)[0].tobytes() == interpreted(before, y, x)[0].tobytes()


@pytest.mark.parametrize(
    "parts",
    [
        ("t = x[0]", FIRST, "y[0] = t"),
        (AGAIN, AGAIN.replace("8000, 8009", "9")),
        ("t = 0.0", FIRST, "for k in range(9):\n    y[k] = t"),
        (FIRST, "t = 0.0\nfor i in range(8000):\n    t = t * 0.5 + x[i]\n    y[i] = t"),
    ],
)
def test_what_has_a_value_from_before_or_is_little_stays(parts: tuple[str, ...]) -> None:
    before, after = made(*parts)
    assert after == before


ROUNDS = """
for k in range(3):
    {before}
    for i in range(8000):
        t = x[i] * (2 + k)
        y[i] = y[i] + t * t
    {after}
"""


@pytest.mark.parametrize(
    ("before", "after", "others"),
    [
        ("pass", "t = x[k]\n    y[8001] += t", 1),
        ("y[8001] += t", "t = x[k]", 0),
        ("y[8001] += t", "if x[k] > 0:\n        continue\n    t = x[k]", 0),
        ("y[8001] += t", "y[8002] += 1", 0),
        ("t = x[k]", "y[8001] += t", 0),
    ],
)
def test_what_the_next_round_needs_stays(before: str, after: str, others: int) -> None:
    text = "t = x[8000]\n" + ROUNDS.format(before=before, after=after)
    text = text if "y[8001] += t" in before else text.replace("t = x[8000]\n", "", 1)
    program, after_it = made(text)
    assert len(after_it.locals) - len(program.locals) == others
    rng = np.random.default_rng(2)
    y, x = (rng.standard_normal(8009).astype("f4") for _ in range(2))
    assert interpreted(after_it, y, x)[0].tobytes() == interpreted(program, y, x)[0].tobytes()


def test_equal_loops_are_told_apart() -> None:
    program, _ = made(FIRST, "t = x[8001]", "y[8001] = t")
    (kernel,) = program.kernels
    stmts = [stmt for stmt in kernel.body if isinstance(stmt, For | Store)]
    loop, start, use = stmts
    body = (loop, start, replace(loop), use)
    twice = replace(program, kernels=(replace(kernel, body=body),))
    after = privatize_temporaries(twice, TARGET)
    assert after.kernels[0].body[2] == loop, "its last value is used"
    assert after.kernels[0].body[0] != loop
    y, x = np.zeros(8009, "f4"), np.arange(8009, dtype="f4")
    assert interpreted(after, y, x)[0].tobytes() == interpreted(twice, y, x)[0].tobytes()


def test_one_thread_needs_no_more() -> None:
    program, _ = made(FIRST, AGAIN)
    assert privatize_temporaries(program, replace(TARGET, threads=1)) is program


@pytest.mark.parametrize("rows", [512, 511, 333])
@pytest.mark.parametrize("name", ["rows", "columns", "points"])
def test_threads_share_loops_of_any_number_of_rounds(name: str, rows: int) -> None:
    body = {
        "rows": "y[i] = sum(x[i, j])",
        "columns": "z[j] = sum[i]((x[i, j] - 0.5) ** 2)",
        "points": "y[i] = sum[j in range(len(x))](1 / (1 + (x[i, 0] - x[j, 0]) ** 2))",
    }[name]
    f = function(f"def f(y, z, x):\n    {body}\n")
    target = replace(LIKE_C, threads=2, streams=4, vector_bits=256, vector_registers=16)
    arrays = np.zeros(rows, "f4"), np.zeros(1001, "f4"), np.ones((rows, 1001), "f4")
    program = scheduled(f.procedure(*arrays), target)
    loops = [stmt for k in program.kernels for stmt in k.body if isinstance(stmt, For)]
    assert max(loops, key=lambda loop: total_work(loop).constant or 0).kind == "parallel"
