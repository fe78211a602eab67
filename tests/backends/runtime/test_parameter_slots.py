"""What each parameter of a compiled function is."""

from __future__ import annotations

import numpy as np

import plusequals as pe
from plusequals.backends.runtime.parameter_slots import Argument, Resident


def test_tensors_stay_and_all_else_is_given() -> None:
    p = pe.tensor("p", 3, dtype="float64")
    text = "def f(p, x, rate):\n    p.grad[i] += p.grad.merge[i] + rate * x[i]\n"
    code = pe.cd_from_source(text).compile(p, np.zeros(3), 0.5)
    found = {str(parameter.node.label): slot for slot, parameter in code.parameters}
    assert found["p_grad"] == Resident(p.grad) and found["p_grad_merge"] == Resident(p.grad, True)
    assert isinstance(found["x"], Argument) and isinstance(found["rate"], Argument)
    assert code.names == ("x", "rate") or set(code.names) == {"x", "rate"}
    assert found["rate"].default == 0.5 and found["x"].default is None
