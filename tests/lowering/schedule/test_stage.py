"""Panels: every part where its tile looks for it, and zeros where there is none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from plusequals.lowering.ir.assignments import Parameter
from plusequals.lowering.ir.fresh import fresh_for
from plusequals.lowering.ir.indexing import const
from plusequals.lowering.ir.interpret import run_program
from plusequals.lowering.ir.loops import For, Kernel
from plusequals.lowering.schedule.contraction import contraction
from plusequals.lowering.schedule.stage import Panels, Side, Sizes, over, rounds_of

from ..passes.shown import lowered

ROWS, TERMS, COLUMNS = 7, 5, 10
SIZES = Sizes(4, 8, 8, 16, TERMS, TERMS, 1)


@pytest.mark.parametrize("text", ["a[i, k] * b[k, j]", "at[k, i] * bt[j, k]"])
@pytest.mark.parametrize("side", ["row", "column"])
@pytest.mark.parametrize("first", [0, 2])
def test_panels_are_filled(text: str, side: Side, first: int) -> None:
    shapes = {"at": (TERMS, ROWS), "bt": (COLUMNS, TERMS)} if "at" in text else {
        "a": (ROWS, TERMS), "b": (TERMS, COLUMNS)
    }  # fmt: skip
    specs = {n: f"f32[{shape[0]}, {shape[1]}]" for n, shape in shapes.items()}
    program = lowered(f"c[i, j] = sum({text})", c=f"f32[{ROWS}, {COLUMNS}]", **specs)
    (nest,) = [stmt for stmt in program.kernels[0].body if isinstance(stmt, For)]
    fresh = fresh_for(program)
    found = contraction(nest, fresh)
    assert found is not None
    panels = Panels.of(fresh, found, SIZES)
    assert panels.holds(side)
    (part,) = [one for one in found.parts if one.side == side]
    body = panels.filled(side, const(0), const(first), const(TERMS))
    node = panels.nodes[part.node.id]
    parameters = (*program.parameters, Parameter(node, True))
    alone = replace(program, parameters=parameters, kernels=(Kernel("f", body),))
    rng = np.random.default_rng(1)
    arrays = {n: rng.standard_normal(shape).astype("f4") for n, shape in shapes.items()}
    panel = np.full(node.static_shape, np.nan, "f4")
    run_program(alone, [np.zeros((ROWS, COLUMNS), "f4"), *arrays.values(), panel], lambda _: None)
    flat = list(arrays.values())[side == "column"]
    rows = flat.T if (side == "column") != ("at" in text) else flat  # one for each lane
    lanes = panels.lanes(side)
    for at in range(-(-len(rows) // lanes) * lanes):
        for step in range(TERMS - first):
            place = at // lanes * lanes * SIZES.panel(side) + step * lanes + at % lanes
            assert panel[place] == (rows[at, first + step] if at < len(rows) else 0)


def test_a_loop_of_one_round_is_none() -> None:
    program = lowered("y[i] = x[i]", y="f32[8]", x="f32[8]")
    fresh = fresh_for(program)
    (loop,) = [stmt for stmt in program.kernels[0].body if isinstance(stmt, For)]
    assert rounds_of(loop) == 8
    assert over(fresh, loop.symbol, loop.lo, loop.hi, 8, lambda _: loop.body) == loop.body
    assert over(fresh, loop.symbol, loop.hi, loop.lo, 8, lambda _: loop.body) == ()
    (made,) = over(fresh, loop.symbol, loop.lo, loop.hi, 3, lambda _: loop.body)
    assert isinstance(made, For)
    assert made.step == 3
