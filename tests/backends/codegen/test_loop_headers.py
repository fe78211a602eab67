"""Heads of loops as text, and the loops of a fill."""

from __future__ import annotations

import doctest
from dataclasses import replace

import pytest

from plusequals.backends.codegen import loop_headers
from plusequals.backends.cuda.dialect import CUDA
from plusequals.base.diagnostic import NOWHERE
from plusequals.lowering.ir.indexing import Symbol, const, var
from plusequals.lowering.ir.loops import For, Store

from .programs import node, number

LOOP = For(Symbol("i", 1), const(0), const(8), 1, (), "thread", NOWHERE)


def test_the_examples_are_true() -> None:
    assert doctest.testmod(loop_headers) == (0, 4)


@pytest.mark.parametrize(
    ("step", "lo", "expected"),
    [
        (1, "0", "i = (int64_t)threadIdx.x; i < n; i += (int64_t)blockDim.x"),
        (3, "2", "i = 2 + (int64_t)threadIdx.x*3; i < n; i += (int64_t)blockDim.x*3"),
        (-1, "9", "i = 9 - (int64_t)threadIdx.x; i > n; i -= (int64_t)blockDim.x"),
    ],
)
def test_a_loop_is_dealt_out_in_its_direction(step: int, lo: str, expected: str) -> None:
    text = loop_headers.distributed_header(replace(LOOP, step=step), "i", lo, "n", CUDA)
    assert text == f"for (int64_t {expected})"


def test_the_innermost_loop_of_a_kind_is_that_of_x() -> None:
    outer = replace(LOOP, symbol=Symbol("j", 2), body=(LOOP,))
    assert "threadIdx.y" in loop_headers.distributed_header(outer, "j", "0", "n", CUDA)


def test_where_threads_take_turns_the_rounds_alone_tell_the_place() -> None:
    rounds = replace(LOOP, symbol=Symbol("k", 2), lo=var(LOOP.symbol), step=8, kind="serial")
    assert loop_headers.progress(replace(LOOP, body=(rounds,)), "i") == "0"
    assert loop_headers.progress(replace(LOOP, body=(replace(rounds, step=4),)), "i") == "i"
    assert loop_headers.progress(replace(LOOP, body=(rounds,), kind="serial"), "i") == "i"
    assert loop_headers.progress(replace(LOOP, step=-1), "i") == "-i"


def test_a_fill_is_a_loop_for_each_axis() -> None:
    array = node(0, "y", (2, 3))
    found = loop_headers.fill_loops(array, number(0), NOWHERE)
    extents = []
    while isinstance(found, For):
        extents.append(found.hi.constant)
        (found,) = found.body
    assert extents == [2, 3]
    assert isinstance(found, Store)
    assert found.access.node is array
