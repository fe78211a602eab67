"""Accumulations deferred until after a loop: bit-identical, with iterations in threads or not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from plusequals.lowering import thresholds
from plusequals.lowering.cpu.deferred_accumulation import (
    DistributeReason,
    distribute_accumulations,
    distribute_reductions,
)
from plusequals.lowering.ir.assignments import Let
from plusequals.lowering.ir.expressions import Const
from plusequals.lowering.ir.indexing import const, var
from plusequals.lowering.ir.loops import For, Program, Store, Update
from plusequals.lowering.ir.ops import OPS
from plusequals.lowering.ir.verify import verify_program
from plusequals.lowering.ir.walk import statements
from plusequals.lowering.passes.reduction_order import set_reduction_order

from ..ir.build import at, i64, node, program, read, symbols
from ..scheduled import MODEST, function, interpreted, of_any_size, out_of_order, scheduled
from ..shown import lowered, text_of

EAGER = replace(MODEST, threads=2, parallel_from=2000)


def _loop(*lines: str, through: str = "range(len(x))", start: float = 0) -> str:
    """Return a loop over rows that ends with a number `s`."""
    return "\n    ".join((f"s = {float(start)}\nfor i in {through}:", *lines)) + "\nreturn s"


BODIES = {
    "all": "return sum(x[i, j])",
    "all of an array": "return np.sum(x * x)",
    "mean and spread": "m = np.mean(x)\nreturn np.mean((x - m) ** 2, dtype=np.float64)",
    "two at once": "a = sum(x[i, j])\nb = sum(x[i, j] * x[i, j])\nreturn a * b",
    "greatest": "return np.max(x)",
    "product": "return np.prod(x)",
    "of few terms": _loop("s += max[j in range(min(3, x.shape[1]))](x[i, j])"),
    "of whole numbers": "return np.sum(x > 0)",
    "written loop": _loop("s += sum(x[i, j])"),
    "written backwards": _loop("s += sum(x[i, j])", through="range(len(x) - 1, -1, -1)"),
    "in steps": _loop("s -= sum(x[i, j])", through="range(0, len(x), 3)", start=1),
    "turned round": _loop("s = sum(x[i, j]) - s", start=1),
    "beside a result": "y[i] = max(x[i, j])\nreturn y, sum(y[i])",
}
STAY = ("of few terms", "of whole numbers", "beside a result")
JUMPS = {
    "continue": "if x[i, 0] < 0:\n        continue\n    s += max(x[i])",
    "continue in a branch": "if x[i, 0] > 0:\n        s = s * 1\n    elif x[i, 1] < 0:\n"
    "        continue\n    s += max(x[i])",
    "continue behind": "s += max(x[i])\n    if x[i, 0] < 0:\n        continue\n"
    "    y[i] = max(x[i])",
    "inner continue": "for j in range(9):\n        if x[i, j] < 0:\n            continue\n"
    "        s += max(x[i] * x[i, j])",
    "inner break": "for j in range(9):\n        s += max(x[i] * x[i, j])\n"
    "        if x[i, j] < -1:\n            break",
    "break of a loop before": "for j in range(9):\n        if x[i, j] < 0:\n            break\n"
    "        y[i] = j\n    s += max(x[i])",
}
SHAPES = [(1, 300), (3, 257), (64, 128), (7, 1031), (2, 0), (0, 400)]
ROWS = _loop("s += max(x[i, j])")
LONG = {"sum": "return sum(x[i])", "squares": "return sum(x[i] * x[i])"}


def _kept(made: Program) -> list[str]:
    return [one.label for one in made.locals if one.purpose == "kept"]


def _shared(made: Program) -> list[For]:
    return [
        stmt for kernel in made.kernels for stmt in statements(kernel.body)
        if isinstance(stmt, For) and stmt.kind == "parallel"
    ]  # fmt: skip


def _same(one: Any, other: Any) -> bool:
    return [np.asarray(a).tobytes() for a in one] == [np.asarray(a).tobytes() for a in other]


def _made(text: str) -> Any:
    return function("def f(x):\n    " + text.replace("\n", "\n    ") + "\n")


@pytest.mark.parametrize("name", JUMPS)
def test_an_iteration_that_ends_early_adds_what_it_reached(name: str) -> None:
    text = f"s = 0.0\nfor i in range(len(x)):\n    {JUMPS[name]}\nreturn s"
    made = function("def f(y, x):\n    " + text.replace("\n", "\n    ") + "\n")
    y, x = np.zeros(40), np.random.default_rng(3).standard_normal((40, 257))
    program, alone = (
        scheduled(made.procedure(y, x), replace(EAGER, threads=threads)) for threads in (2, 1)
    )
    assert bool(_kept(program)) is (name == "break of a loop before")
    assert _same(interpreted(out_of_order(program), y, x), interpreted(alone, y, x))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", BODIES)
def test_not_a_bit_changes(name: str, shape: tuple[int, int]) -> None:
    if name == "greatest" and 0 in shape:
        pytest.skip("nothing has no greatest")
    x = np.random.default_rng(1).standard_normal(shape).astype("f4") * np.float32(1.5)
    procedure = _made(BODIES[name]).procedure(x)
    alone = scheduled(procedure, replace(EAGER, threads=1))
    made = scheduled(procedure, EAGER)
    assert not _kept(alone) or name in WHOLE
    assert _same(interpreted(alone, x), interpreted(made, x))
    if shape == (7, 1031) and name not in STAY:
        assert _kept(made) and _shared(made), "it is one of those that this is for"


WHOLE = {
    "beside a result": "y[i] = max(x[i, j])\nreturn y, sum(y[i])",
    "within and between": (
        "m[i] = mean(x[i, j])\nv[i] = mean((x[i, j] - m[i]) ** 2)\n"
        "return mean(v[i]) + mean((m[i] - mean[k](m[k])) ** 2)"
    ),
    "a product": "y[i] = sum(x[i, j] * x[i, j])\nreturn y, np.prod(y)",
}
"""Sums over rows that have much else to do."""


@pytest.mark.parametrize("shape", [(3, 700), (70, 129), (1100, 4)], ids=str)
@pytest.mark.parametrize("name", WHOLE)
def test_a_sum_that_is_put_off_has_the_bits_of_its_lanes(name: str, shape: tuple[int, int]) -> None:
    x = np.random.default_rng(4).standard_normal(shape).astype("f4")
    procedure = _made(WHOLE[name]).procedure(x)
    never = scheduled(procedure, replace(EAGER, parallel_from=10**9))
    made, alone = (scheduled(procedure, replace(EAGER, threads=count)) for count in (2, 1))
    assert not _kept(never) and bool(_kept(made)) == bool(_kept(alone))
    results = [interpreted(one, x) for one in (never, made, alone)]
    assert _same(results[0], results[1]) and _same(results[0], results[2])
    is_fused = name != "within and between"  # its rows are long beside what is summed of them
    assert shape != (70, 129) or (bool(_kept(made)) is is_fused and _shared(made))


@pytest.mark.parametrize(
    ("text", "rounds"),
    [
        ("y[i] = max(x[i, j])\nreturn y, max(y[i])", 70),  # zeros have signs
        (_loop("s += max(x[i, j])"), 70),  # in the order that was written
        ("y[i] = max(x[i, j])\nreturn y, sum(y[i])", 70_000),  # too much to keep
    ],
)
def test_what_only_threads_put_off(text: str, rounds: int) -> None:
    program = set_reduction_order(lowered(text, x=f"f32[{rounds}, 129]"), True)
    assert distribute_reductions(program, EAGER).program == program


@pytest.mark.parametrize("size", [10, 32_768, 100_003])
@pytest.mark.parametrize("name", LONG)
def test_one_long_sum_is_shared_by_blocks(name: str, size: int) -> None:
    x = np.random.default_rng(2).standard_normal(size).astype("f4")
    procedure = _made(LONG[name]).procedure(x)
    alone = scheduled(procedure, replace(EAGER, threads=1))
    made = scheduled(procedure, EAGER)
    assert bool(_kept(made)) == (size > 1024)
    if size < 50_000:
        assert _same(interpreted(alone, x), interpreted(made, x))


@pytest.mark.parametrize("shape", [(5, 200), (300, 130)], ids=str)
def test_sizes_of_the_run_change_no_bit(shape: tuple[int, int], monkeypatch: Any) -> None:
    monkeypatch.setattr(thresholds, "MAX_DYNAMIC_DEFERRED_ITERATIONS", 7)
    x = np.random.default_rng(3).standard_normal(shape).astype("f4")
    many = "max[j in range(400)](exp(x[i, 0] * j))"
    made = _made(_loop(f"s += {many}"))
    fixed = interpreted(scheduled(made.procedure(x), replace(EAGER, threads=1)), x)
    run = scheduled(of_any_size(made, x), EAGER)
    assert _kept(run)
    assert _same(fixed, interpreted(run, x))


@pytest.mark.parametrize("rounds", [64, 65, 66, 130])
def test_rounds_that_would_keep_too_much_are_cut_into_pieces(rounds: int, monkeypatch: Any) -> None:
    monkeypatch.setattr(thresholds, "MAX_DEFERRED_BYTES", 22 * 4)
    made = lowered(ROWS, x=f"f32[{rounds}, 99]")
    after = distribute_accumulations(made, EAGER).program
    verify_program(after)
    (kept,) = (one for one in after.locals if one.purpose == "kept")
    assert kept.static_shape is not None and kept.static_shape[0] <= 22
    assert "for piece in" in text_of(after)
    x = np.random.default_rng(4).standard_normal((rounds, 99)).astype("f4")
    assert _same(interpreted(made, x), interpreted(after, x))


def test_what_a_loop_may_do_as_it_is_stays() -> None:
    made = lowered("y[i] = max(x[i, j])", y="f32[64]", x="f32[64, 200]")
    assert distribute_accumulations(made, EAGER).program is made


def test_without_threads_or_work_nothing_changes() -> None:
    made = lowered(ROWS, x="f32[64, 200]")
    assert distribute_accumulations(made, replace(EAGER, threads=1)).program is made
    assert distribute_accumulations(made, replace(EAGER, parallel_from=10**7)).program is made
    found = distribute_accumulations(made, EAGER)
    assert found.program is not made
    (decision,) = found.decisions
    assert decision.reason is DistributeReason.THREADS
    assert decision.sentence() == (
        "what iterations over `i` add to `s` is added after them: nothing else keeps the "
        "iterations from running on several threads"
    )


@pytest.mark.parametrize(
    "text",
    [
        _loop("s += x[i, 0]"),  # as much as it would keep
        _loop("s += max(x[i, j]) * s"),
        _loop("if s < 9:", "    s += max(x[i, j])"),
        _loop("s += max(x[i, j])", "x[i, 0] = s"),
        _loop("s += max(x[i, j])", "x[i, 0] = x[i - 1, 0]", through="range(1, 64)"),
        "for i in range(64):\n    x[0, 0] += max(x[i, j])",  # the caller's
        _loop("print(i)", "s += max(x[i, j])"),
        _loop("s += max(x[i, j])", "s += 1"),
    ],
)  # fmt: skip
def test_loops_that_stay(text: str) -> None:
    made = lowered(text, x="f32[64, 200]")
    assert not _kept(distribute_accumulations(made, EAGER).program)


i, j, k, d = symbols("i j k d")
X, S, A, Y = node(0, "x", 64, 300), node(1, "s"), node(2, "a", 4), node(3, "y", 4)


def _of(*body: Any) -> Program:
    loop = For(i, const(0), const(64), 1, tuple(body))
    out = For(k, const(0), const(4), 1, (Store(at(Y, k), read(A, k)),))
    return program((Y,), (X,), loop, out, local=(S, A))


def _row(*behind: Any) -> tuple[Any, ...]:
    """A row's greatest element in `s`, then what uses it."""
    best = Update(at(S), OPS["max"], read(X, i, j))
    return (Store(at(S), read(X, i, 0)), For(j, const(0), const(300), 1, (best,)), *behind)


def test_each_lane_has_its_own_element_or_memory_is_used() -> None:
    """All lanes of the first one add to one element."""
    for index in (var(k), const(1), var(k) + 1):
        lanes = For(
            k, const(0), const(3), 1, (Update(at(A, index), OPS["add"], read(S)),), "vector"
        )
        made = _of(*_row(lanes))
        after = distribute_accumulations(made, EAGER).program
        verify_program(after)
        assert _kept(after) == ["a_kept"]
        assert ("lanes" in {one.purpose for one in after.locals}) == (index == var(k))
        x = np.random.default_rng(5).standard_normal((64, 300)).astype("f4")
        y = np.zeros(4, "f4")
        assert _same(interpreted(made, y, x), interpreted(after, y, x))


def test_places_that_data_decides_stay() -> None:
    let = Let(d, Const(1, i64))
    made = _of(*_row(let, Update(at(A, var(d)), OPS["add"], read(S))))
    assert distribute_accumulations(made, EAGER).program is made


ADDED = """
for k in range(9):
    a[i, j] += max(x[k, i], x[k, j])
    b[i, j] += a[i, j]
return a, b
"""


def test_threads_share_loops_inside_rather_than_keep_arrays() -> None:
    """What is kept would be larger than all else, and its iterations are done one at a time."""
    text = "a = np.zeros((60, 60))\nb = np.zeros((60, 60))" + ADDED
    x = np.random.default_rng(3).standard_normal((9, 60))
    procedure = _made(text.rstrip()).procedure(x)
    made = scheduled(procedure, EAGER)
    assert _shared(made) and not _kept(made)
    assert _same(interpreted(out_of_order(made), x), interpreted(scheduled(procedure), x))


def test_all_threads_have_several_iterations_at_a_time() -> None:
    text = _loop("s += max(x[i, j])")
    program = set_reduction_order(lowered(text, x="f32[4000, 129]"), True)
    room = thresholds.MAX_DEFERRED_BYTES
    try:
        thresholds.MAX_DEFERRED_BYTES = (
            4 * thresholds.MIN_DEFERRED_ITERATIONS_PER_THREAD * EAGER.threads
        )
        assert distribute_accumulations(program, EAGER).decisions
        thresholds.MAX_DEFERRED_BYTES -= 4
        assert not distribute_accumulations(program, EAGER).decisions
    finally:
        thresholds.MAX_DEFERRED_BYTES = room
