"""Smaller arrays and registers: what is left of an array, and why others stay whole."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest

from plusequals.lowering.ir.indexing import const
from plusequals.lowering.ir.loops import For, Program, Update
from plusequals.lowering.ir.ops import OPS
from plusequals.lowering.passes.contract_arrays import (
    ContractionReason,
    NoContractionReason,
    contract_arrays,
)
from plusequals.lowering.passes.fuse import fuse

from ..ir.build import at, node, program, read, symbols
from ..shown import after, lowered
from .agree import assert_agrees


def both(program: Program) -> Program:
    return contract_arrays(fuse(program).program).program


def test_a_row_and_two_scalars_are_left_of_softmax() -> None:
    body = """
        m[i] = max(x[i, j])
        e[i, j] = exp(x[i, j] - m[i])
        y[i, j] = e[i, j] / sum[k](e[i, k])
    """
    program = both(lowered(body, y="f32[8, 9]", x="f32[8, 9]"))
    assert {node.label: node.static_shape for node in program.locals} == {
        "m": (), "e": (9,), "total": (),
    }  # fmt: skip


REGISTERS = [
    ("y[i] = sum(a[i, j])",
     """
     for i in 0..8:
         y_acc = 0.0
         for j in 0..9:
             y_acc += a[i, j]
         y[i] = y_acc
     """),
    ("y[i] += a[i, j]",
     """
     for i in 0..8:
         y_acc = y[i]
         for j in 0..9:
             y_acc += a[i, j]
         y[i] = y_acc
     """),
]  # fmt: skip


@pytest.mark.parametrize(("body", "expected"), REGISTERS, ids=[b for b, _ in REGISTERS])
def test_a_running_sum_is_kept_in_a_register(body: str, expected: str) -> None:
    assert (
        after(contract_arrays, body, y="f32[8]", a="f32[8, 9]") == textwrap.dedent(expected).strip()
    )


def test_a_loop_that_may_not_run_loads_nothing() -> None:
    body = "for k in range(n):\n    y[q] += x[k]"
    program = lowered(body, y="f32[8]", x="f32[8]", n="i64", q="i64")
    _, decisions = contract_arrays(program)
    assert ContractionReason.REGISTER not in [made.reason for made in decisions]


@pytest.mark.parametrize("n", [0, 1, 8])
def test_a_loop_that_may_not_run_keeps_what_is_surely_there(n: int) -> None:
    body = "for k in range(n):\n    y[7] += x[2]"
    program = lowered(body, y="f32[8]", x="f32[8]", n="i64")
    _, decisions = contract_arrays(program)
    assert ContractionReason.REGISTER in [made.reason for made in decisions]
    y, x = np.ones(8, np.float32), np.arange(8, dtype=np.float32)
    assert_agrees(program, contract_arrays, [y, x, np.int64(n)])


@pytest.mark.parametrize(
    "body",
    [
        "for k in range(n):\n    y[0] = x[k % 8]",
        "for k in range(n):\n    if x[k % 8] > 0:\n        y[0] += x[k % 8]",
    ],
)
def test_a_loop_that_may_not_run_loads_nothing_that_it_may_not_read(body: str) -> None:
    _, decisions = contract_arrays(lowered(body, y="f32[8]", x="f32[8]", n="i64"))
    assert ContractionReason.REGISTER not in [made.reason for made in decisions]


def test_a_sum_that_a_check_may_stop_is_stored_each_time() -> None:
    body = "for k in range(8):\n    y[0] += x[p[k]]"
    _, decisions = contract_arrays(lowered(body, y="f32[1]", x="f32[8]", p="i64[8]"))
    assert ContractionReason.REGISTER not in [made.reason for made in decisions]


def test_a_cell_that_data_choose_is_in_no_register() -> None:
    body = "for k in range(8):\n    y[clamp(p[k])] += x[k]"
    _, decisions = contract_arrays(lowered(body, y="f32[8]", x="f32[8]", p="i64[8]"))
    assert ContractionReason.REGISTER not in [made.reason for made in decisions]


def test_one_cell_of_an_array_is_a_scalar_in_all_rounds() -> None:
    body = "t: f32[8]\nfor k in range(8):\n    y[k] = t[3]\n    t[3] = x[k]"
    program = lowered(body, y="f32[8]", x="f32[8]")
    assert [node.shape for node in contract_arrays(program).program.locals] == [()]
    assert_agrees(
        program, contract_arrays, [np.zeros(8, np.float32), np.arange(8, dtype=np.float32)]
    )


WHOLE = [
    ("t[i] = x[i] * 2\ny[i] = t[i] + t[7 - i]", NoContractionReason.INDICES),
    ("t: f32[8]\nfor k in range(8):\n    y[k] = t[k]\n    t[k] = x[k]",
     NoContractionReason.LOOP_CARRIED),
    ("t: f32[8]\nfor k in range(8):\n    if x[k] > 0:\n        t[k] = x[k]\n    y[k] = t[k]",
     NoContractionReason.LOOP_CARRIED),
    ("t: f32[8]\nfor k in range(3):\n    y[k] = t[q + k]\n    t[q + k] = x[k]",
     NoContractionReason.LOOP_CARRIED),
]  # fmt: skip


@pytest.mark.parametrize(("body", "reason"), WHOLE, ids=[b for b, _ in WHOLE])
def test_whole_for_a_reason(body: str, reason: NoContractionReason) -> None:
    program, decisions = contract_arrays(lowered(body, y="f32[8]", x="f32[8]", q="i64"))
    assert [made.reason for made in decisions if made.node and made.node.label == "t"] == [reason]
    assert [n.static_shape for n in program.locals if n.label == "t"] == [(8,)]


def test_the_value_beside_a_position_needs_no_array() -> None:
    body = "d[n, c] = sum((p[n, k] - q[c, k]) ** 2)\ny[n] = argmin[c](d[n, c])"
    program = lowered(body, y="i64[8]", p="f32[8, 2]", q="f32[3, 2]")
    small = both(program)
    assert all(node.static_shape == () for node in small.locals)
    rng = np.random.default_rng(5)
    p, q = rng.random((8, 2), np.float32), rng.random((3, 2), np.float32)
    assert_agrees(program, both, [np.zeros(8, np.int64), p, q])


def test_storage_of_run_time_size_goes_with_the_axis() -> None:
    body = "for k in range(n):\n    t = x[:k] * 2\n    s = t.sum()\n    y[k] = s"
    program = lowered(body, y="f32[8]", x="f32[8]", n="i64")
    assert_agrees(program, both, [np.zeros(8, np.float32), np.ones(8, np.float32), np.array(8)])
    assert program.locals


@pytest.mark.parametrize(("first", "end", "kept"), [(5, 2, True), (2, 5, False), (2, 2, False)])
def test_a_cell_that_may_not_be_there_is_loaded_only_where_rounds_go_down_to_it(
    first: int, end: int, kept: bool
) -> None:
    n, k = symbols("n k")
    y, x = node(0, "y", n), node(1, "x", 8)
    body = (Update(at(y, 0), OPS["add"], read(x, k)),)
    loop = For(k, const(first), const(end), -1, body)
    made = contract_arrays(program((y,), (x,), loop)).program
    assert bool(made.locals) == kept
