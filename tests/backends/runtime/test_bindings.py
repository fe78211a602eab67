"""What a routine is bound to: only by names that it takes."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe
from plusequals import cd
from plusequals.backends.runtime.routine import Bindings
from plusequals.idx import i


def test_names_that_are_taken() -> None:
    bound = Bindings("step", ("x", "rate"))
    bound["rate"] = 2.0
    bound.update(x=3.0)
    assert dict(bound) == {"rate": 2.0, "x": 3.0}


@pytest.mark.parametrize("name", ["rates", "z"])
def test_any_other_name_is_refused(name: str) -> None:
    bound = Bindings("step", ("x", "rate"))
    with pytest.raises(NameError, match=f"CD0849.*takes no `{name}`"):
        bound[name] = 1.0
    with pytest.raises(NameError, match="CD0849"):
        bound.update({name: 1.0})
    assert not bound


@cd
def pick(p, table, row):
    p[i] = table[row, i]


@pytest.mark.parametrize("threaded", [False, True])
def test_trap_a_static_index_is_bound_by_name_and_checked_against_its_axis(
    threaded: bool, backend: str
) -> None:
    p, table = pe.tensor("p", 2, dtype="float64"), np.arange(6.0).reshape(3, 2)
    stream = pe.device(backend).stream(threaded)
    routine = pick.compile(p, table, 0).link(stream.context())
    routine.bindings["row"] = 2
    routine(table)
    assert p.numpy().tolist() == [4.0, 5.0]
    routine.bindings["row"] = 3
    with pytest.raises(IndexError, match="index 3 is out of range for axis 0 of `table`"):
        routine(table)
        stream.synchronize()
    assert p.numpy().tolist() == [4.0, 5.0], "nothing was written"
    routine(table, row=1)
    assert p.numpy().tolist() == [2.0, 3.0]
