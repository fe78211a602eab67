"""Reductions by the threads of a block: which there are, and that they give the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from plusequals.lowering.analysis.accumulators import find_accumulators
from plusequals.lowering.analysis.parallel_band import facts_of
from plusequals.lowering.gpu.reductions.block_reduction import build_block_reduction
from plusequals.lowering.gpu.thread_points import Space
from plusequals.lowering.ir.loops import For
from plusequals.lowering.transform.recognize_updates import recognize_updates

from ..kernels import Case, filled, ran


def with_sums(body: str, exact: bool = False, **arrays: str) -> Case:
    """Return a case whose last loop is a reduction, done by threads instead."""
    case = Case(body, exact, **arrays)
    at = max(k for k, stmt in enumerate(case.body) if isinstance(stmt, For) and is_sum(case, stmt))
    loop = case.loop(at)
    spaces: dict[int, Space] = {}
    found = find_accumulators(loop, case.facts.private(loop), case.facts)
    made = build_block_reduction(loop, found, case.facts, case.fresh, spaces)
    assert set(spaces.values()) == {"private", "shared"}
    case.assert_same((*made.threads, *made.all), at)
    return case


def is_sum(case: Case, loop: For) -> bool:
    return bool(find_accumulators(loop, case.facts.private(loop), case.facts))


@pytest.mark.parametrize("n", [2, 7, 40, 257, 600])
@pytest.mark.parametrize("op", ["sum", "max", "prod"])
def test_one_axis(op: str, n: int) -> None:
    with_sums(f"s[0] = {op}(x[i])", s="f32[1]", x=f"f32[{n}]")


@pytest.mark.parametrize("shape", ["3, 50", "50, 3", "9, 9"])
def test_two_axes(shape: str) -> None:
    with_sums("s[0] = sum(x[i, j])", s="f32[1]", x=f"f32[{shape}]")


@pytest.mark.parametrize("op", ["argmax", "argmin"])
@pytest.mark.parametrize("n", [2, 5, 33, 300])
def test_the_first_of_the_best_is_found(op: str, n: int) -> None:
    with_sums(f"s[0] = x.{op}()", s="i64[1]", x=f"f32[{n}]")


def test_not_a_number_is_best_and_the_first_of_them_is_found() -> None:
    case = Case("s[0] = x.argmax()", s="i64[1]", x="f32[80]")
    at = max(k for k, stmt in enumerate(case.body) if isinstance(stmt, For))
    loop = case.loop(at)
    found = find_accumulators(loop, case.facts.private(loop), case.facts)
    made = build_block_reduction(loop, found, case.facts, case.fresh, {})
    program = case.with_kernel((*made.threads, *made.all), at)
    x = filled(case.program.parameters[1].node, np.random.default_rng(0))
    for places in ((5,), (40, 7), (79, 3, 64)):
        x[:] = 1
        x[list(places)] = np.nan
        assert ran(program, [np.zeros(1, np.int64), x])[0][0] == min(places)


def test_whole_numbers_are_exact_in_any_order() -> None:
    with_sums("s[0] = sum(x[i])", exact=True, s="i64[1]", x="i64[300]")
    case = Case("s[0] = sum(x[i])", exact=True, s="f32[1]", x="f32[300]")
    assert not any(isinstance(stmt, For) and is_sum(case, stmt) for stmt in case.body)


def test_loops_that_were_written_keep_their_order() -> None:
    text = "for i in range(300):\n    s[0] += x[i]"
    real = Case(text, s="f32[1]", x="f32[300]")
    assert not is_sum(real, real.loop())
    whole = Case(text, s="i64[1]", x="i64[300]")
    assert is_sum(whole, whole.loop())


def test_what_is_used_otherwise_is_no_sum() -> None:
    case = Case("s[0] += x[i]", s="f32[1]", x="f32[9]")
    assert is_sum(case, case.loop())
    text = "for i in range(9):\n    s[0] += x[i]\n    y[i] = s[0]"
    case = Case(text, s="f32[1]", x="f32[9]", y="f32[9]")
    assert not is_sum(case, case.loop())
    case = Case("for i in range(1, 9):\n    y[i] = y[i - 1] + 1", y="f32[9]")
    assert not is_sum(case, case.loop())


def test_positions_that_fall_are_left_in_order() -> None:
    text = "best = -9.0\nat = 0\nfor i in range(8, -1, -1):\n    at = i if x[i] > best else at\n"
    case = Case(text + "s[0] = at", s="i64[1]", x="f32[9]")
    assert not any(isinstance(stmt, For) and is_sum(case, stmt) for stmt in case.body)


@pytest.mark.parametrize("shape", ["30, 40", "2, 100, 3", "300, 2"])
@pytest.mark.parametrize("op", ["sum", "argmax"])
def test_short_loops_are_shared_as_one(op: str, shape: str) -> None:
    text = f"s[0] = x.{op}()"
    case = with_sums(text, s="i64[1]" if op == "argmax" else "f32[1]", x=f"f32[{shape}]")
    sizes = [n.static_shape for n in case.fresh.nodes if n.rank]
    assert set(sizes) == {(256,)}


@pytest.mark.parametrize("rows", ["range(9)", "range(40)"])
@pytest.mark.parametrize("bounds", ["i", "40"])
def test_loops_inside_that_need_their_order_are_not_shared(rows: str, bounds: str) -> None:
    text = (
        f"q = y[0, 0]\nfor i in {rows}:\n    for j in range({bounds}):\n"
        "        y[i + 1, 2] = x[i, j]\n        q = max(q, x[i, j] * 2)\nx[0, 0] = q"
    )
    case = Case(text, True, y="f64[50, 50]", x="f64[50, 50]")
    body = recognize_updates(case.body)
    case.program = replace(case.program, kernels=(replace(case.program.kernels[0], body=body),))
    case.facts = facts_of(case.program, True)
    at = next(at for at, stmt in enumerate(body) if isinstance(stmt, For))
    loop = case.loop(at)
    found = find_accumulators(loop, case.facts.private(loop), case.facts)
    assert found
    made = build_block_reduction(loop, found, case.facts, case.fresh, {})
    case.assert_same((*made.threads, *made.all), at)
