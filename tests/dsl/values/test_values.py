"""What values are: paths as text, places and views, elements at an index."""

from __future__ import annotations

import numpy as np
import pytest

from plusequals.dsl.values.values import Array, Path, Static, replace_in_index, replace_symbols
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.expressions import Dynamic, Position, Read
from plusequals.lowering.ir.indexing import Range, const, var
from plusequals.lowering.ir.node import Node

from ..elaborate.bench import Bench
from ..elaborate.points import I, J

N = Node(7, "n", (const(4),), dtypes.int64)


def test_a_path_reads_as_it_is_written() -> None:
    assert str(Path("model", ("layers", 2, "w"))) == "model.layers[2].w"


class Real(float):
    def __repr__(self) -> str:
        return "real"


@pytest.mark.parametrize(
    ("one", "two"),
    [(0.0, -0.0), (1, 1.0), (1, True), ((0.0,), (-0.0,)), (2, np.int64(2)), (Real(1), Real(2)),
     ((Real(1),), (Real(2),)), ([1, 2], [1]), ([1], [True]), (float("nan"), -float("nan"))],
)  # fmt: skip
def test_what_python_calls_equal_may_be_two_values(one: object, two: object) -> None:
    assert Static(one) != Static(two)
    assert Static(one) == Static(one) and Static(two) == Static(two)


def test_views_can_be_written_and_copies_cannot() -> None:
    base = Bench().array("x", np.zeros((2, 3)))
    copy = Array(base.axes, base.shape, base.body, base.kind, copied=True)
    assert base.element is not None and base.view is not None
    assert copy.element is None and copy.view is None
    gathered = Read(N, (Dynamic(Read(N, (var(base.axes[0]),))),))
    picked = Array(base.axes[:1], base.shape[:1], gathered, base.kind)
    assert picked.element == gathered and picked.view is None


def test_an_element_is_the_body_at_an_index() -> None:
    base = Bench().array("x", np.zeros((2, 3)))
    assert base.element is not None
    element = base.at((var(J), const(2)))
    assert element == Read(base.element.node, (var(J), const(2)))
    assert base.ranges == tuple(map(Range, base.axes, (const(0),) * 2, (const(2), const(3))))


def test_symbols_are_replaced_inside_of_data_dependent_indices() -> None:
    index = Dynamic(Read(N, (var(I) + 1,)))
    assert replace_in_index(index, {I: const(2)}) == Dynamic(Read(N, (const(3),)))
    assert replace_in_index(var(I), {I: var(J)}) == var(J)
    assert replace_symbols(Position(var(I) * 2), {I: const(4)}) == Position(const(8))
