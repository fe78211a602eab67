"""What a function bound to its tensors has, and what it wants of a context."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe
from plusequals import cd
from plusequals.idx import i
from tests.backends.runtime.test_device import context, tensor


@cd
def moves(p, t, x, rate):
    t[i] = x[i] * rate
    p.grad[i] = t[i] + p.merge[i]


def bound(p: pe.Tensor, t: pe.Tensor) -> pe.Compiled:
    return moves.compile(p, t, np.ones(2), 0.5)


def test_it_knows_what_its_parameters_are() -> None:
    p, t = tensor(), pe.tensor("t", 2, dtype="float64", memory="virtual")
    code = bound(p, t)
    assert code.names == ("x", "rate") and len(code.merged) == 1
    assert [one.label for one in code.fleeting] == ["t"] == [one.label for one in code.computed]
    assert code.computed[0].tensor is t and repr(code) == "<compiled moves>"
    written = [slot for slot, parameter in code.parameters if parameter.written]
    assert [getattr(slot, "field", None) for slot in written] == [p.grad]


def test_it_wants_a_context_that_lives_and_has_what_is_merged() -> None:
    code, here = bound(tensor(), tensor("t")), context()
    with pytest.raises(TypeError, match="CD0847"):
        code.require_context(None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="CD0842"):
        code.require_source(here)
    here.finalize()
    with pytest.raises(pe.CdError, match="CD0845"):
        code.require_context(here)


def test_it_leaves_word_of_what_it_writes_and_lets_go() -> None:
    p, t = tensor(), pe.tensor("t", 2, dtype="float64", memory="virtual")
    code, here = bound(p, t), context()
    code.settle(here, "one")
    code.settle(here, "two")
    assert here.find_note(p.grad) == "one" == here.find_note((t, "value"))
    assert here.find_note(p.value) is None is here.find_note((t, "grad"))
    code.require_retained_inputs(here)  # it computes what it lets go itself
    reads = pe.cd_from_source("def f(p, t):\n    p[i] = t[i]\n").compile(p, t)
    with pytest.raises(TypeError, match="CD0851.*`one`"):
        reads.require_retained_inputs(here)
