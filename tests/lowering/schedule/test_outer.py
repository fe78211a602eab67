"""Which outer loops can be done in lanes: what they use, and how much of it."""

from __future__ import annotations

from dataclasses import replace

from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.expressions import Dynamic, Read
from plusequals.lowering.ir.indexing import Symbol, const, multiply, var
from plusequals.lowering.ir.loops import For, Update
from plusequals.lowering.ir.node import Node
from plusequals.lowering.ir.walk import statements
from plusequals.lowering.schedule.outer import Outer, places, step_of, symbols_in

from ..passes.shown import lowered

I, J = Symbol("i", 0), Symbol("j", 1)
X = Node(0, "x", (const(8), const(9)), dtypes.float32)


def outer(body: str, *around: For, **arrays: str) -> Outer:
    program = lowered(body, **arrays)
    loop = next(stmt for stmt in program.kernels[0].body if isinstance(stmt, For))
    return Outer(loop, False, around)


def test_steps_are_counted_in_elements() -> None:
    assert step_of(X, (var(I), var(J)), J) == 1
    assert step_of(X, (var(I) * 2, var(J)), I) == 18
    assert step_of(X, (var(J), var(J)), J) == 10
    assert step_of(X, (const(0), const(0)), J) == 0
    assert step_of(X, (const(0), multiply(var(I), var(J))), J) is None
    assert step_of(X, (const(0), Dynamic(Read(X, (var(I), var(J))))), J) is None
    wide = Node(1, "w", (const(8), var(Symbol("n", 2))), dtypes.float32)
    assert step_of(wide, (var(I), const(0)), I) is None
    assert symbols_in((var(I) + 1, Dynamic(Read(X, (var(J), const(0)))))) == {I}


def test_a_loop_without_loops_inside_is_none() -> None:
    assert not outer("y[i] = x[i]", y="f32[8]", x="f32[8]").is_plain()
    assert outer("y[i, j] = x[j, i]", y="f32[8, 9]", x="f32[9, 8]").is_plain()
    assert not outer("y[i, j] = x[j, i]", y="f16[8, 9]", x="f16[9, 8]").is_plain()


def test_sums_that_are_for_lanes_stay() -> None:
    found = outer("s[j] = sum(x[i, j])", s="f32[9]", x="f32[8, 9]")
    assert found.is_plain() and not Outer(found.loop, True).is_plain()


def test_what_is_used_is_counted() -> None:
    found = outer("s[j] += x[i, j] * w[i]", s="f64[9]", x="f32[8, 9]", w="f64[8]")
    assert found.touched() == 8 * 9 * 4
    assert {node.label for node in found.nodes()} == {"s", "x", "w"}
    inner = next(stmt for stmt in statements(found.loop.body) if isinstance(stmt, Update))
    assert [node.label for node, _ in places(inner)] == ["s", "x", "w"]
    assert not list(places(found.loop))
    assert (found.room(frozenset()), found.kept(frozenset())) == (0, 1)
    kept = frozenset(node.id for node in found.nodes() if node.label == "w")
    assert (found.room(kept), found.kept(kept)) == (64, 64)
    columns = frozenset(node.id for node in found.nodes() if node.label == "x")
    assert found.room(columns) is None


def test_far_elements_are_used_where_they_stay_and_are_surely_there() -> None:
    body = "s[i] += x[j] * w[i, 1]"
    inside = For(I, const(0), const(8), 1, ())
    assert outer(body, s="f32[8]", x="f32[9]", w="f32[8, 2]").is_near(frozenset())
    moved = outer("s[i] += x[j] * w[i, j]", s="f32[8]", x="f32[9]", w="f32[8, 9]")
    assert not moved.is_near(frozenset())
    beyond = outer("s[i] += x[j] * w[i, 1]", inside, s="f32[8]", x="f32[9]", w="f32[8, 2]")
    longer = replace(beyond, loop=replace(beyond.loop, hi=const(9)))
    assert beyond.is_near(frozenset()) and not longer.is_near(frozenset())
