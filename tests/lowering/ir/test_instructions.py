"""Instructions of devices: which elements a vector has."""

from __future__ import annotations

from plusequals.lowering.ir.instructions import vector_element

from .build import at, node, symbols

I, J = symbols("i j")


def test_elements_of_a_vector_follow_each_other_along_its_axis() -> None:
    x = node(0, "x", 8, 8)
    assert vector_element(at(x, I, J), -1, 0) == at(x, I, J)
    assert vector_element(at(x, I, 4), -1, 2) == at(x, I, 6)
    assert vector_element(at(x, 3, J), -2, 2) == at(x, 5, J)
