"""Sizes that only a call knows: each once, with the first parameter and axis that have it."""

from __future__ import annotations

from dataclasses import replace

from plusequals.lowering.ir.dynamic_sizes import Size, run_time_sizes
from plusequals.lowering.ir.indexing import Symbol, const, var

from ..shown import lowered

N, M = Symbol("n", 98), Symbol("m", 99)


def test_each_symbol_once_where_it_is_first() -> None:
    program = lowered("y[i] += x[i, j]", y="f32[9]", x="f32[9, 8]")
    shapes = (var(N),), (var(N), var(M))
    parameters = tuple(
        replace(one, node=replace(one.node, shape=shape))
        for one, shape in zip(program.parameters, shapes, strict=True)
    )
    found = run_time_sizes(replace(program, parameters=parameters))
    assert found == (Size(N, 0, 0), Size(M, 1, 1))


def test_sizes_that_are_static_are_none_of_them() -> None:
    program = lowered("y[i] = 1", y="f32[9]")
    assert program.parameters[0].node.shape == (const(9),)
    assert run_time_sizes(program) == ()
