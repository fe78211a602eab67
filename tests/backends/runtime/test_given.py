"""What calls of routines give: by place, by name, bound; copied, refused."""

from __future__ import annotations

import numpy as np
import pytest

from plusequals.backends.runtime.given import by_name, fitting, require_apart
from plusequals.lowering.diagnostic import NOWHERE
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.assignments import Parameter
from plusequals.lowering.ir.indexing import const
from plusequals.lowering.ir.node import Node


def parameter(written: bool) -> Parameter:
    return Parameter(Node(1, "x", (const(3),), dtypes.float64), written)


def test_what_is_given_comes_before_what_is_bound() -> None:
    found = by_name("f", ("a", "b", "c"), {"a": 1, "b": 2, "c": 3}, (10,), {"c": 30}, NOWHERE)
    assert found == {"a": 10, "b": 2, "c": 30}
    for args, kwargs in (((), {}), ((1, 2), {}), ((1,), {"b": 2})):
        with pytest.raises(TypeError, match="CD0436"):
            by_name("f", ("a",), {}, args, kwargs, NOWHERE)


def test_what_is_only_read_is_copied_and_what_is_written_is_not() -> None:
    array = np.arange(3.0)
    assert fitting("x", array, parameter(True)) is array
    copy = fitting("x", array, parameter(False))
    assert not np.shares_memory(copy, array) and copy.tolist() == [0, 1, 2]
    for other in (np.arange(4.0), np.arange(3)):
        with pytest.raises(TypeError, match="CD0702"):
            fitting("x", other, parameter(False))


def test_arrays_of_one_call_are_apart() -> None:
    array = np.zeros(6)
    require_apart([array[:3], array[3:]], "f")
    with pytest.raises(ValueError, match="CD0708"):
        require_apart([array[:4], array[3:]], "f")
