"""From a fault to the error that is raised."""

from __future__ import annotations

import pytest

from plusequals.base.diagnostic import NOWHERE, CdZeroDivisionError
from plusequals.lowering.ir.assignments import Fault
from plusequals.lowering.ir.faults import error_class, raise_fault


def test_fault_becomes_the_error_it_names() -> None:
    fault = Fault("CD0402", "CdZeroDivisionError", "{0} / {1} at i = {1}", ("say where",))
    with pytest.raises(ZeroDivisionError) as caught:
        raise_fault(fault, (2.5, 0), NOWHERE)
    assert isinstance(caught.value, CdZeroDivisionError)
    assert str(caught.value) == "error[CD0402]: 2.5 / 0 at i = 0\n  = help: say where"


@pytest.mark.parametrize("name", ["ValueError", "Diagnostic", "NOWHERE", "render"])
def test_only_errors_of_the_family_are_found(name: str) -> None:
    with pytest.raises(KeyError):
        error_class(name)
