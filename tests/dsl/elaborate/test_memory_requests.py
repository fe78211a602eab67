"""`memory(t, "mode")` puts a request on a node; what else it is given is refused."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe
from plusequals.base.diagnostic import CdError
from plusequals.lowering.ir.assignments import Procedure


def _procedure(*lines: str) -> Procedure:
    text = "def f(y, x):\n    " + "\n    ".join(lines) + "\n"
    return pe.cd_from_source(text, {"pe": pe, "np": np}).procedure(np.zeros(4), np.zeros(4))


def _asked(procedure: Procedure) -> dict[str, str]:
    nodes = (*(p.node for p in procedure.parameters), *procedure.results, *procedure.locals)
    return {n.label: str(n.request.mode) for n in nodes if n.request is not None}


@pytest.mark.parametrize("word", ["memory", "pe.memory"])
def test_a_request_stands_on_the_node(word: str) -> None:
    made = _procedure("t[i] = x[i]", f'{word}(t, "local")', "y[i] = t[i]")
    assert _asked(made) == {"t": "local"}


def test_requests_are_joined() -> None:
    lines = "t[i] = x[i]", 'memory(t, "never virtual")', 'memory(t, "local")', "y[i] = t[i]"
    assert _asked(_procedure(*lines)) == {"t": "local"}


def test_arguments_results_and_arrays_of_array_notation_can_be_asked() -> None:
    assert _asked(_procedure('memory(x, "on-device")', "y[i] = x[i]")) == {"x": "on device"}
    made = _procedure("t = np.sqrt(x)", 'memory(t, "materialized")', "return t")
    assert _asked(made) == {"t": "materialized"}


def test_a_constant_tensor_asks_for_it_and_meets_it_or_is_refused(backend: str) -> None:
    t = pe.tensor("t", (3,), dtype="f8", init=1.0, constant=True)
    names = {"t": t, "pe": pe}
    f = pe.cd_from_source("def f():\n    return t * 2", names, backend=backend)
    assert _asked(f.procedure()) == {"t": "hosted constant"} and f().tolist() == [2.0] * 3
    for body, code in (("t.value += 1", "CD0804"), ('pe.memory(t.value, "on-device")', "CD0571")):
        with pytest.raises(CdError, match=code):
            pe.cd_from_source(f"def f():\n    {body}\n    return t * 1", names, backend=backend)()


def test_a_function_of_that_name_is_called() -> None:
    text = "def f(y, x):\n    memory(y, x)\n"
    names = {"memory": pe.cd_from_source("def memory(a, b):\n    a[i] = b[i]\n")}
    y = np.zeros(4)
    pe.cd_from_source(text, names)(y, np.ones(4))
    assert y.tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("memory(x)", "CD0574"),
        ('memory(3, "local")', "CD0574"),
        ('memory(x + 1, "local")', "CD0574"),
        ('memory(x, "lcal")', "CD0573"),
        ("memory(x, x)", "CD0573"),
    ],
)
def test_anything_else_is_refused(line: str, code: str) -> None:
    with pytest.raises(CdError) as caught:
        _procedure(line, "y[i] = x[i]")
    assert caught.value.code == code
