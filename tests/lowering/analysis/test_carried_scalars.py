"""Which scalars reach another iteration, or what comes after a loop."""

from __future__ import annotations

import pytest

from plusequals.lowering.analysis.carried_scalars import carried_scalars, stores_carried
from plusequals.lowering.ir.loops import For
from plusequals.lowering.ir.walk import statements

from ..shown import lowered


@pytest.mark.parametrize(
    ("body", "carried"),
    [
        ("d = x[t] * 2\n    y[t] = d * d", ""),
        ("y[t] = d\n    d = x[t]", "d"),
        ("d = d * 0.5 + x[t]\n    y[t] = d", "d"),
        ("d = x[t]\n    e = d + 1\n    y[t] = e", ""),
        ("if x[t] > 0:\n        d = x[t]\n    y[t] = d", "d"),
        ("d = 0.0\n    if x[t] > 0:\n        d = x[t]\n    y[t] = d", ""),
        ("d = x[t]\n    for u in range(3):\n        d = d * x[u]\n    y[t] = d", "d"),
    ],
)
def test_what_an_iteration_assigns_first_is_not_carried(body: str, carried: str) -> None:
    text = f"d = 1.0\nfor t in range(9):\n    {body}\n"
    program = lowered(text, y="f64[9]", x="f64[9]")
    found = carried_scalars(program)
    names = {node.label for node in program.locals if node.id in found and not node.rank}
    assert "".join(sorted(names)) == carried


def test_what_is_read_after_a_loop_is_carried() -> None:
    program = lowered("d = 1.0\nfor t in range(9):\n    d = x[t]\ny[0] = d", y="f64[9]", x="f64[9]")
    found = carried_scalars(program)
    (loop,) = [s for s in statements(program.kernels[0].body) if isinstance(s, For)]
    assert stores_carried(loop.body, found)
    assert not stores_carried(loop.body, frozenset())
