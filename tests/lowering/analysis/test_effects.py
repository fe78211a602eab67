"""Summaries say of every statement what `reads` and `writes` say, whatever is inside of it."""

from __future__ import annotations

from dataclasses import replace

from plusequals.lowering.analysis.effects import (
    alloc_sizes_use,
    bound_symbols,
    change_touching,
    summarize,
    touched_nodes,
)
from plusequals.lowering.ir.loops import For, If, Store, Update
from plusequals.lowering.ir.walk import binds, reads, statements, writes

from ..shown import lowered

BODY = """
t[i] = sum(x[i, j])
u = t
for s in range(3):
    if t[s] > 0:
        u, t = t, u
        y[s] += x[s, p[s]]
"""


def test_summaries_agree_with_walks() -> None:
    body = lowered(BODY, y="f32[8]", x="f32[8, 9]", p="i64[8]").kernels[0].body
    for stmt in statements(body):
        found = summarize(stmt)
        assert found.reads == {node.id for node in reads((stmt,))}
        assert found.writes == {node.id for node in writes((stmt,))}
        assert found.bound == {symbol for one in statements((stmt,)) for symbol in binds(one)}
        assert found.touches == found.reads | found.writes
    assert touched_nodes(body) == {node.id for node in (*reads(body), *writes(body))}
    assert bound_symbols(body) == {symbol for stmt in statements(body) for symbol in binds(stmt)}


def test_a_changed_statement_has_a_summary_of_its_own() -> None:
    (nest,) = (s for s in lowered("y[i] = x[i]", y="f32[8]", x="f32[8]").kernels[0].body
               if isinstance(s, For))  # fmt: skip
    before = summarize(nest)
    assert summarize(nest) is before, "it is found once"
    assert summarize(replace(nest, body=())).touches == frozenset() != before.touches


def test_kinds_are_those_inside_too() -> None:
    (nest,) = (s for s in lowered("if x[i] > 0:\n    y[i] += 1", y="f32[8]", x="f32[8]")
               .kernels[0].body if isinstance(s, For))  # fmt: skip
    assert {For, If, Update} <= summarize(nest).kinds and Store not in summarize(nest).kinds


def test_only_what_touches_a_node_is_changed() -> None:
    body = lowered(BODY, y="f32[8]", x="f32[8, 9]", p="i64[8]").kernels[0].body
    ids = touched_nodes(body)
    assert change_touching(ids, body, lambda part: ()) == tuple(
        s for s in body if not touched_nodes((s,))
    )
    assert change_touching((), body, lambda part: ()) == body


def test_which_symbols_size_an_array() -> None:
    body = "for k in range(3):\n    t = np.sort(x[k:])\n    y[k:] += t"
    (loop,) = (s for s in lowered(body, y="f32[8]", x="f32[8]").kernels[0].body
               if isinstance(s, For))  # fmt: skip
    assert alloc_sizes_use((loop,), frozenset({loop.symbol}))
    assert not alloc_sizes_use((loop,), bound_symbols(loop.body))
