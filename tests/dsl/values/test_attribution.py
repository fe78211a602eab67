"""What a function of the library assigns says of which call it is."""

from __future__ import annotations

import numpy as np

import plusequals as pe
from plusequals.lowering.ir.assignments import Assign
from plusequals.lowering.ir.walk import statements


def test_all_that_sorting_assigns_is_of_its_call_but_the_copy_that_it_sorts() -> None:
    text = "def f(x):\n    return np.sort(x)\n"
    procedure = pe.cd_from_source(text, {"np": np}).procedure(np.zeros(9, "f4"))
    found = [one for one in statements(procedure.body) if isinstance(one, Assign)]
    assert [one.target.node.label for one in found if one.call is None] == ["sorted"]
    assert {one.call.text for one in found if one.call is not None} == {"np.sort(x)"}
