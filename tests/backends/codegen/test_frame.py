"""Storage and the way out: what is declared for which node, and that results come home."""

from __future__ import annotations

import numpy as np
import pytest

from plusequals.lowering.ir import assignments as ir1
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.expressions import Cast
from plusequals.lowering.ir.indexing import const, var
from plusequals.lowering.lower import lower

from .harness import FFI, compiled, needs_compiler
from .programs import (
    apply,
    assign,
    at,
    frame_for,
    node,
    number,
    over,
    position,
    procedure,
    read,
    symbols,
)

F64 = dtypes.float64
i, j, k, n = symbols("i j k n")


def test_small_arrays_are_on_the_stack_large_ones_in_the_arena() -> None:
    small, large, scalar = node(0, "a", (8,)), node(1, "b", (5000,)), node(2, "c", ())
    first = (const(3),)
    used = [assign("...", one, first, number(1), over()) for one in (small, large)]
    made = frame_for([], used, [small, large, scalar])
    assert list(made.opening()) == ["float c = 0.0f;", "_Alignas(64) float a[8] = {0};"]
    assert made.head(False, False) == "static int f_body(float *restrict b)"
    assert list(made.closing()) == ["return 0;"]


def test_what_nobody_writes_is_const_and_a_scalar_comes_by_value() -> None:
    x, y, s = node(0, "x", (8,)), node(1, "y", (8,)), node(2, "s", ())
    made = frame_for([(x, False), (y, True), (s, False)], [])
    assert made.head(True, False) == (
        "static int f_body(const float *restrict x, float *restrict y, const float s,"
        " int64_t *fault)"
    )


def test_arrays_that_move_promise_nothing() -> None:
    x, y = node(0, "x", (8,)), node(1, "y", (8,))
    swap = ir1.Permute((x, y), (y, x))
    made = frame_for([(x, False), (y, True)], [swap])
    assert made.head(False, False) == "static int f_body(float *x, float *y)"


@needs_compiler
@pytest.mark.parametrize("rounds", [0, 1, 2, 3])
def test_a_ring_of_results_comes_home(rounds: int) -> None:
    nodes = [node(at_, label, (600,), F64) for at_, label in enumerate("uvw")]
    u, v, w = nodes
    starts = [assign("...", one, at(symbol), number(5 + one.id, F64), over((symbol, 0, 600)))
              for one, symbol in zip(nodes, (i, j, n))]  # fmt: skip
    ring = ir1.Permute((u, v, w), (v, w, u))
    loop = ir1.For(k, const(0), const(rounds), 1, (ring,))
    out = [np.zeros(600) for _ in nodes]
    assert compiled(procedure("ring", [], [*starts, loop], [], nodes))(*out).status == 0
    assert [array[599] for array in out] == [5 + (at_ + rounds) % 3 for at_ in range(3)]


@needs_compiler
def test_results_of_run_time_shape_may_move_and_be_allocated_again() -> None:
    x = node(0, "x", (var(n),), F64)
    y, w = node(1, "y", (var(n),), F64), node(2, "w", (var(n),), F64)
    fill = assign("y[i] = x[i] + i", y, at(i), apply("add", read(x, i), Cast(position(i), F64)),
                  over((i, 0, var(n))))  # fmt: skip
    swap = ir1.Permute((y, w, x), (w, x, y))
    loop = ir1.For(k, const(0), const(2), 1, (ir1.Alloc(y), ir1.Alloc(w), fill, swap))
    run = compiled(procedure("moving", [(x, True)], [loop], [w], [y]))
    data, block = np.arange(4.0), FFI.new("int64_t[2]")
    assert run(data, blocks=[block]).status == 0
    got = [FFI.cast("double *", block[0])[at_] for at_ in range(4)]
    assert (block[1], got) == (4, [0.0, 0.0, 0.0, 0.0])
    assert data.tolist() == [0.0, 1.0, 2.0, 3.0]


@needs_compiler
def test_kernels_run_in_order_in_one_function() -> None:
    x = node(0, "x", (4,), F64)
    add = assign("x[i] += 1", x, at(i), number(1, F64), over((i, 0, 4)), "add")
    twice = assign("x[j] *= 2", x, at(j), number(2, F64), over((j, 0, 4)), "mul")
    first, second = (lower(procedure("f", [(x, True)], [stmt])) for stmt in (add, twice))
    program = type(first)("f", first.parameters, (), (), first.kernels + second.kernels)
    data = np.ones(4)
    assert compiled(program)(data).status == 0
    assert data.tolist() == [4.0] * 4
