"""Partial sums side by side: what starts them, and what puts them together."""

from __future__ import annotations

import pytest

from plusequals.lowering.cpu.reductions.partials import Partials
from plusequals.lowering.ir.fresh import Fresh
from plusequals.lowering.ir.loops import For, Store, Update
from plusequals.lowering.ir.ops import OPS

from ...ir.build import at, read, symbols
from ...ir.build import node as array

(i,) = symbols("i")
X, S = array(0, "x", 96), array(1, "s")
SUM = Update(at(S), OPS["add"], read(X, i))


def test_arrays_are_named_after_what_they_are_sums_of() -> None:
    nodes = Partials(Fresh(9, 9)).arrays(SUM, 3, 8)
    assert [node.label for node in nodes] == ["s_lanes", "s_blocks", "s_total"]
    assert all(node.static_shape == (8,) and node.purpose == "lanes" for node in nodes)


@pytest.mark.parametrize(
    ("width", "halves"), [(1, []), (2, [1]), (8, [4, 2, 1]), (9, [1, 4, 2, 1])]
)
def test_the_upper_half_goes_to_the_lower_one(width: int, halves: list[int]) -> None:
    lanes = Partials(Fresh(9, 9))
    (node,) = lanes.arrays(SUM, 1, width)
    *folds, last = lanes.fold_lanes(SUM, node)
    sizes = [stmt.hi.constant if isinstance(stmt, For) else 1 for stmt in folds]
    assert sizes == halves
    assert isinstance(last, Update) and last.access == SUM.access


def test_one_lane_needs_no_loop() -> None:
    lanes = Partials(Fresh(9, 9))
    one, many = (lanes.arrays(SUM, 1, width)[0] for width in (1, 4))
    assert isinstance(lanes.initialize(SUM, one), Store)
    assert isinstance(lanes.initialize(SUM, many), For)
    assert isinstance(lanes.add_arrays(SUM, one, one), Update)
