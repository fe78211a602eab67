"""Panels: every part where its tile looks for it, and zeros where there is none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from plusequals.lowering import thresholds
from plusequals.lowering.analysis.contraction import Side, find_contraction
from plusequals.lowering.cpu.gemm.axes import Axis
from plusequals.lowering.cpu.gemm.packing import Panels, Sizes, can_read_in_place
from plusequals.lowering.ir.assignments import Parameter
from plusequals.lowering.ir.fresh import fresh_for
from plusequals.lowering.ir.indexing import const
from plusequals.lowering.ir.interpret import run_program
from plusequals.lowering.ir.loops import For, Kernel

from ...shown import lowered

ROWS, COLUMNS = 7, 10


@pytest.mark.parametrize("text", ["a[i, k] * b[k, j]", "at[k, i] * bt[j, k]"])
@pytest.mark.parametrize("side", ["row", "column"])
@pytest.mark.parametrize(("first", "terms"), [(0, 5), (2, 5), (0, 16), (3, 30)])
@pytest.mark.parametrize("shared", [False, True])
def test_panels_are_filled(
    text: str, side: Side, first: int, terms: int, shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thresholds, "MAX_IN_PLACE_TILES", 0)  # none is read in place
    shapes = {"at": (terms, ROWS), "bt": (COLUMNS, terms)} if "at" in text else {
        "a": (ROWS, terms), "b": (terms, COLUMNS)
    }  # fmt: skip
    specs = {n: f"f32[{shape[0]}, {shape[1]}]" for n, shape in shapes.items()}
    program = lowered(f"c[i, j] = sum({text})", c=f"f32[{ROWS}, {COLUMNS}]", **specs)
    (nest,) = [stmt for stmt in program.kernels[0].body if isinstance(stmt, For)]
    fresh = fresh_for(program)
    found = find_contraction(nest, fresh)
    assert found is not None
    axes = Axis(found.rows, (4,), (8,), 4), Axis(found.columns, (8,), (16,), 8)
    panels = Panels.of(fresh, found, Sizes(*axes, terms, terms, 1, shared=shared))
    assert panels.holds(side)
    (part,) = [one for one in found.parts if one.side == side]
    body = panels.fill_panels(side, (const(0),), const(first), const(terms))
    node = panels.nodes[part.node.id]
    parameters = (*program.parameters, Parameter(node, True))
    filling = replace(program, parameters=parameters, kernels=(Kernel("f", body),))
    rng = np.random.default_rng(1)
    arrays = {n: rng.standard_normal(shape).astype("f4") for n, shape in shapes.items()}
    panel = np.full(node.static_shape, np.nan, "f4")
    given = [np.zeros((ROWS, COLUMNS), "f4"), *arrays.values(), panel]
    run_program(filling, given, lambda _: None)
    flat = list(arrays.values())[side == "column"]
    rows = flat.T if (side == "column") != ("at" in text) else flat  # one for each lane
    lanes = panels.sizes.axis(side).lanes
    for at in range(-(-len(rows) // lanes) * lanes):
        for step in range(terms - first):
            place = at // lanes * lanes * panels.sizes.panel(side) + step * lanes + at % lanes
            assert panel[place] == (rows[at, first + step] if at < len(rows) else 0)


def test_some_steps_of_all_tiles_are_copied_at_a_time_where_threads_do_not_share_them() -> None:
    program = lowered("c[i, j] = sum(a[i, k] * b[k, j])", c="f32[7, 48]", a="f32[7, 64]",
                      b="f32[64, 48]")  # fmt: skip
    (nest,) = [stmt for stmt in program.kernels[0].body if isinstance(stmt, For)]
    fresh = fresh_for(program)
    found = find_contraction(nest, fresh)
    assert found is not None
    axes = Axis(found.rows, (4,), (8,), 4), Axis(found.columns, (16,), (48,), 16)
    for shared, outermost in ((True, "j"), (False, "k")):
        panels = Panels.of(fresh, found, Sizes(*axes, 64, 64, 1, shared=shared))
        (loop,) = panels.fill_panels("column", (const(0),), const(0), const(64))
        assert isinstance(loop, For)
        assert loop.symbol.name == outermost


NEAR = {
    "c[i, j] = sum(a[i, k] * b[k, j])": True,
    "c[i, j] = sum(a[i, k] * w[k] * b[k, j])": False,  # what is computed is computed once
    "c[i, j] = sum(at[k, i] * b[k, j])": False,
    "c[i, j] = sum(far[i, k] * high[k, j])": False,
}


@pytest.mark.parametrize("text", NEAR)
def test_rows_that_are_read_in_place(text: str) -> None:
    shapes = {"a": "f32[7, 5]", "at": "f32[5, 7]", "b": "f32[5, 10]", "w": "f32[5]",
              "far": "f32[7, 1024]", "high": "f32[1024, 10]"}  # fmt: skip
    used = {name: shape for name, shape in shapes.items() if f"{name}[" in text}
    program = lowered(text, c=f"f32[{ROWS}, {COLUMNS}]", **used)
    (nest,) = [stmt for stmt in program.kernels[0].body if isinstance(stmt, For)]
    found = find_contraction(nest, fresh_for(program))
    assert found is not None
    axes = Axis(found.rows, (4,), (8,), 4), Axis(found.columns, (8,), (16,), 8)
    assert can_read_in_place(found, *axes) == NEAR[text]
