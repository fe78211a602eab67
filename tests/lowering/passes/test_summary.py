"""Summaries say of every statement what `reads` and `writes` say, whatever is inside of it."""

from __future__ import annotations

from plusequals.lowering.ir.loops import For, If, Store, Update
from plusequals.lowering.ir.walk import reads, statements, writes
from plusequals.lowering.passes.summary import summaries, summary

from .shown import lowered

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
    found = summaries(body)
    for stmt in statements(body):
        assert found[id(stmt)].reads == {node.id for node in reads((stmt,))}
        assert found[id(stmt)].writes == {node.id for node in writes((stmt,))}
        assert found[id(stmt)] == summary(stmt)
        assert found[id(stmt)].touches == found[id(stmt)].reads | found[id(stmt)].writes


def test_kinds_are_those_inside_too() -> None:
    (nest,) = (s for s in lowered("if x[i] > 0:\n    y[i] += 1", y="f32[8]", x="f32[8]")
               .kernels[0].body if isinstance(s, For))  # fmt: skip
    assert {For, If, Update} <= summary(nest).kinds and Store not in summary(nest).kinds
