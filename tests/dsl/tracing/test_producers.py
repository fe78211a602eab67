"""Who wrote an element last, by the names that arrays have at the end of a run."""

from __future__ import annotations

import numpy as np

import plusequals as pe
from plusequals.dsl.tracing.producers import LastWriters


def test_the_last_record_before_a_place_and_what_was_given() -> None:
    f = pe.cd_from_source("def f(x, y):\n    for t in range(3):\n        y[i] = x[i] + t\n")
    with pe.trace() as trace:
        f(np.ones(2), np.zeros(2))
    made = LastWriters(trace, 0)
    (node,) = made.called("y")
    end = len(trace.runs[0].table), 0
    last = made.last((node.id, (1,)), end)
    assert last is not None and last.after == 3.0
    before = made.last((node.id, (1,)), (last.row, 0))
    assert before is not None and before.after == 2.0
    assert made.last((node.id, (1,)), (0, 0)) is None and made.given(node, (1,)) == 0.0
    assert (
        made.is_given(node)
        and made.called("x") == []
        and made.accumulated_with(last, 5) == ([last], 1)
    )


def test_an_array_has_the_name_that_it_has_at_the_end() -> None:
    text = "def f(x):\n    a = x * 2\n    b = x + 1\n    a, b = b, a\n    return a\n"
    with pe.trace() as trace:
        pe.cd_from_source(text)(np.ones(1))
    made = LastWriters(trace, 0)
    assert [node.label for node in made.called("a")] == ["b"]
    with pe.trace(arrays="a") as trace:
        pe.cd_from_source(text)(np.ones(1))
    assert LastWriters(trace, 0).called("a") == []


def test_many_elements_are_what_each_of_them_is_alone() -> None:
    text = """
def f(x, y):
    a, b = x * 2, y + 1
    for t in range(3):
        b[t] = a[t] - t
        a, b = b, a + x
    if x[0] > 0:
        c = a[::-1]
    else:
        c = b
    return c * 2
"""
    f = pe.cd_from_source(text, backend="numpy")
    with pe.trace() as trace:
        f(np.arange(1.0, 6.0), np.ones(5))
    made, rows = LastWriters(trace, 0), len(trace.runs[0].table)
    nodes = {g.statement.target.node.id: g.statement.target.node for g in made.groups}
    nodes |= {p.node.id: p.node for p in trace.runs[0].parameters}
    for node in (node for node in nodes.values() if node.rank == 1):
        for row in range(rows + 1):
            places = [(at,) for at in (3, 0, 4, 1, 2)]
            alone = [made.value((node.id, at), (row, 0)) for at in places]
            one = zip(alone, places, strict=True)
            wanted = [made.given(node, at) if value is None else value for value, at in one]
            assert made.values(node, places, row) == wanted
