"""Sums computed where they are read, and every reason why not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from plusequals.lowering.ir.decision import Decided
from plusequals.lowering.ir.indexing import const
from plusequals.lowering.ir.loops import For, Store, Update
from plusequals.lowering.ir.ops import OPS
from plusequals.lowering.ir.rewrite import rename
from plusequals.lowering.ir.verify import verify_program
from plusequals.lowering.passes.sink import NoSinkReason, SinkReason, sink

from ..ir.build import at, in_kernels, node, num, program, read, symbols
from ..shown import lowered, text_of
from .agree import assert_agrees

ARRAYS = {"y": "f32[8]", "x": "f32[8, 9]", "w": "f32[8, 8]"}
SUMS = "t[i] = sum(x[i, j])\n"

SUNK = [
    SUMS + "y[i] = t[7 - i] * 2",
    SUMS + "y[1:] = t[:-1]",
    SUMS + "y[:4] = t[::2]",
    "t[i] = max(x[i, j])\ny[i] = exp(t[7 - i])",
    "t[i] = max(x[i, j])\nw[:, 0] = t[::-1]",
]


@pytest.mark.parametrize("body", SUNK)
def test_a_sum_goes_where_it_is_read(body: str) -> None:
    program = lowered(body, **ARRAYS)
    new, decisions = sink(program)
    assert [node.rank for node in new.locals] == [0], text_of(new)
    assert [made.reason for made in decisions] == [SinkReason.ONCE]
    x = np.random.default_rng(2).random((8, 9), dtype=np.float32)
    assert_agrees(program, sink, [np.zeros(8, np.float32), x, np.zeros((8, 8), np.float32)])


KEPT = [
    (SUMS + "y[1:] = t[1:] - t[:-1]", NoSinkReason.AGAIN),
    (SUMS + "w[i, j] = t[7 - i]", NoSinkReason.AGAIN),
    (SUMS + "y[i] = t[i]", None),
    ("t[i] = sum(y[j] * x[i, j + 1])\ny[i] = t[7 - i]", NoSinkReason.CHANGED),
    (SUMS + "x[0, 0] = 1\ny[i] = t[7 - i]", NoSinkReason.CHANGED),
    ("t: f32[8]\nt[2 * i] = sum[j](x[i, j])\n".replace("2 * i", "i") + "t[0] = 1\ny[i] = t[7 - i]",
     None),
]  # fmt: skip


@pytest.mark.parametrize(("body", "reason"), KEPT)
def test_kept_for_a_reason(body: str, reason: NoSinkReason | None) -> None:
    program = lowered(body, **ARRAYS)
    new, decisions = sink(program)
    assert new == program
    assert [made.reason for made in decisions] == ([] if reason is None else [reason])


def test_products_of_matrices_are_tiled_instead() -> None:
    program = lowered("t[i, j] = sum(a[i, k] * b[k, j])\nc[i, j] = t[31 - i, j]",
                      a="f32[32, 32]", b="f32[32, 32]", c="f32[32, 32]")  # fmt: skip
    assert [made.reason for made in sink(program).decisions] == [NoSinkReason.TILES]


def test_what_other_kernels_read_stays() -> None:
    program = lowered(SUMS + "y[i] = t[7 - i]", **ARRAYS)
    assert sink(in_kernels(program)).program == in_kernels(program) != sink(program).program


def test_another_kernel_may_do_something_else() -> None:
    whole = lowered("x[0, 0] = 1\n" + SUMS + "y[i] = t[7 - i]", **ARRAYS)
    (kernel,) = whole.kernels
    parts = kernel.body[:2], kernel.body[2:]
    apart = replace(whole, kernels=tuple(replace(kernel, body=part) for part in parts))
    assert [node.rank for node in sink(apart).program.locals] == [0]
    assert sink(apart).program.kernels[0] == apart.kernels[0]


def test_what_another_kernel_reads_too_stays() -> None:
    whole = lowered(SUMS + "y[i] = t[7 - i]\nw[0, i] = t[i]", **ARRAYS)
    (kernel,) = whole.kernels
    parts = kernel.body[:-1], kernel.body[-1:]
    apart = replace(whole, kernels=tuple(replace(kernel, body=part) for part in parts))
    assert sink(apart).program == apart


def test_a_number_is_no_array() -> None:
    k, m = symbols("k m")
    y, a, s = node(0, "y", 8), node(1, "a", 8, 8), node(2, "s")
    inner = For(m, const(0), const(8), 1, (Update(at(s), OPS["add"], read(a, k, m)),))
    nest = For(k, const(0), const(8), 1, (Store(at(s), num(0.0)), inner))
    made = program((y,), (a,), nest, Store(at(y, 0), read(s)), local=(s,))
    assert sink(made) == Decided(made, ())


def test_a_sum_keeps_its_terms_where_its_loop_has_the_variable_of_the_use() -> None:
    source = lowered(SUMS + "y[i] = t[7 - i] * 2", y="f32[8]", x="f32[8, 9]")
    (kernel,) = source.kernels
    nest, use = (stmt for stmt in kernel.body if isinstance(stmt, For))
    inner = next(stmt for stmt in nest.body if isinstance(stmt, For))
    renamed = rename(kernel.body, {use.symbol: inner.symbol}, {})
    sunk, _ = sink(replace(source, kernels=(replace(kernel, body=renamed),)))
    verify_program(sunk)
    assert "t += x[-j + 7, j_2]" in text_of(sunk)
