"""Which outer loops can be done in lanes: what they use, and how much of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from plusequals.lowering.analysis.vectorizable import (
    OuterLoop,
    statement_accesses,
    subscript_symbols,
)
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.expressions import Dynamic, Read
from plusequals.lowering.ir.indexing import Symbol, const, var
from plusequals.lowering.ir.loops import Check, For, Update
from plusequals.lowering.ir.memory_mode import NEVER_VIRTUAL, Decision
from plusequals.lowering.ir.node import Node
from plusequals.lowering.ir.rewrite import rename
from plusequals.lowering.ir.walk import statements

from ..shown import lowered

I, J = Symbol("i", 0), Symbol("j", 1)
X = Node(0, "x", (const(8), const(9)), dtypes.float32)


def outer(body: str, *around: For, **arrays: str) -> OuterLoop:
    program = lowered(body, **arrays)
    loop = next(stmt for stmt in program.kernels[0].body if isinstance(stmt, For))
    return OuterLoop(loop, False, around)


def last_of(body: str, **arrays: str) -> OuterLoop:
    """Return the last loop, behind those that check."""
    program = lowered(body, **arrays)
    return OuterLoop([stmt for stmt in program.kernels[0].body if isinstance(stmt, For)][-1], False)


def test_symbols_are_those_of_plain_subscripts() -> None:
    assert subscript_symbols((var(I) + 1, Dynamic(Read(X, (var(J), const(0)))))) == {I}


def test_a_loop_without_loops_inside_is_none() -> None:
    assert not outer("y[i] = x[i]", y="f32[8]", x="f32[8]").is_plain()
    assert outer("y[i, j] = x[j, i]", y="f32[8, 9]", x="f32[9, 8]").is_plain()
    assert not outer("y[i, j] = x[j, i]", y="f16[8, 9]", x="f16[9, 8]").is_plain()


def test_sums_that_are_for_lanes_stay() -> None:
    found = outer("s[j] = sum(x[i, j])", s="f32[9]", x="f32[8, 9]")
    assert found.is_plain() and not OuterLoop(found.loop, True).is_plain()


def test_what_is_used_is_counted() -> None:
    found = outer("s[j] += x[i, j] * w[i]", s="f64[9]", x="f32[8, 9]", w="f64[8]")
    assert found.touched() == 8 * 9 * 4
    assert {node.label for node in found.nodes()} == {"s", "x", "w"}
    inner = next(stmt for stmt in statements(found.loop.body) if isinstance(stmt, Update))
    assert [node.label for node, _ in statement_accesses(inner)] == ["s", "x", "w"]
    assert not list(statement_accesses(found.loop))
    assert (found.private_bytes(frozenset()), found.lane_bytes(frozenset())) == (0, 1)
    kept = frozenset(node.id for node in found.nodes() if node.label == "w")
    assert (found.private_bytes(kept), found.lane_bytes(kept)) == (64, 64)
    columns = frozenset(node.id for node in found.nodes() if node.label == "x")
    assert found.private_bytes(columns) is None


def test_far_elements_are_used_where_they_stay_and_are_surely_there() -> None:
    body = "s[i] += x[j] * w[i, 1]"
    inside = For(I, const(0), const(8), 1, ())
    assert outer(body, s="f32[8]", x="f32[9]", w="f32[8, 2]").is_near(frozenset())
    moved = outer("s[i] += x[j] * w[i, j]", s="f32[8]", x="f32[9]", w="f32[8, 9]")
    assert not moved.is_near(frozenset())
    beyond = outer("s[i] += x[j] * w[i, 1]", inside, s="f32[8]", x="f32[9]", w="f32[8, 2]")
    longer = replace(beyond, loop=replace(beyond.loop, hi=const(9)))
    assert beyond.is_near(frozenset()) and not longer.is_near(frozenset())


@pytest.mark.parametrize(
    ("body", "is_plain"),
    [
        ("y[j] += x[i, j]", True),
        ("y[j] += x[i, j] ** 2.5", True),
        ("y[j] += sqrt(x[i, j]) / 2", True),
        ("y[j] += x[i, j] if x[i, j] > 0 else 1.0", True),  # data decides, in each lane
        ("y[j] += x[i, j] if i > j else 1.0", False),
        ("y[j] += x[i, j] % 3", False),
        ("y[j] += x[i, j] // 3", False),
        ("y[j] += n[i, j] + 1", True),
        ("y[j] += 3 ** i", False),  # of integers it is no operation of vectors
        ("y[j] += x[n[i, j], j]", False),
        ("y[n[i, j]] += x[i, j]", False),
        ("y[j] = -1.0\n        y[j] += x[i, j]", True),
        ("if x[i, j] > 0:\n            y[j] += x[i, j]", False),
        ("print(x[i, j])\n        y[j] += x[i, j]", False),
        ("pass", False),
    ],
)
def test_each_statement_has_to_be_one_for_vectors(body: str, is_plain: bool) -> None:
    text = f"for j in range(9):\n    for i in range(8):\n        {body}"
    found = last_of(text, y="f32[9]", x="f32[8, 9]", n="i64[8, 9]")
    assert found.is_plain() == is_plain


@pytest.mark.parametrize("body", ["y[n[i, j]] += x[i, j]", "y[j] += x[n[i, j], j]"])
def test_places_that_data_chooses_are_not_for_vectors(body: str) -> None:
    """Also where they were checked before."""
    found = last_of(body, y="f32[9]", x="f32[8, 9]", n="i64[8, 9]")
    assert not any(isinstance(stmt, Check) for stmt in statements(found.loop.body))
    assert not found.is_plain()


def test_a_number_that_is_kept_otherwise_than_it_is_computed_is_not_for_vectors() -> None:
    text = "for j in range(9):\n    for i in range(8):\n        y[j] += x[i, j]"
    assert not outer(text, y="f16[9]", x="f32[8, 9]").is_plain()
    assert not outer(text, y="f32[9]", x="f16[8, 9]").is_plain()
    assert outer(text, y="f64[9]", x="f32[8, 9]").is_plain()


def test_loops_inside_have_the_same_rounds_in_all_lanes() -> None:
    text = "for j in range(9):\n    for i in range({0}, {1}):\n        y[j] += x[i, j]"
    given = {"y": "f32[9]", "x": "f32[9, 9]"}
    assert outer(text.format(0, 9), **given).is_plain()
    assert not outer(text.format(0, "j"), **given).is_plain()
    assert not outer(text.format("j", 9), **given).is_plain()


def test_loops_of_other_kinds_are_none() -> None:
    found = outer("y[i, j] = x[j, i]", y="f32[8, 9]", x="f32[9, 8]")
    assert found.is_plain()
    (inner,) = (stmt for stmt in found.loop.body if isinstance(stmt, For))
    vectors = replace(found.loop, body=(replace(inner, kind="vector"),))
    others = [replace(found.loop, kind="parallel"), replace(found.loop, step=2), vectors]
    assert not any(OuterLoop(loop, False).is_plain() for loop in others)
    empty = replace(found.loop, body=(replace(inner, body=()),))
    assert not OuterLoop(empty, False).is_plain(), "there is nothing to do"


def test_rounds_are_counted_from_where_loops_begin() -> None:
    text = "for j in range(3, 9):\n    for i in range(2, 8):\n        y[j] += x[i, j]"
    assert outer(text, y="f32[9]", x="f32[8, 9]").touched() == 6 * 6 * 4
    text = "for j in range(9):\n    for i in range(8):\n        y[j] += x[i, j] * z[i, j]"
    wide = outer(text, y="f64[9]", x="f32[8, 9]", z="f64[8, 9]")
    assert wide.touched() == 8 * 9 * 8, "the most that one place takes"
    assert outer("y[j] += x[i]", y="f32[9]", x="f32[8]").touched() == 0, "of which some are used"
    loose = replace(wide.loop, hi=var(Symbol("n", 99)))
    assert OuterLoop(loose, False).touched() == 0, "nobody knows"


def test_loops_between_are_looked_through() -> None:
    text = """
for j in range(9):
    for b in range(2):
        for i in range(8):
            y[j] += x[b, i, j]
"""
    found = outer(text, y="f32[9]", x="f32[2, 8, 9]")
    assert found.is_plain() and found.is_near(frozenset())
    assert found.touched() == 8 * 9 * 4
    inside = "y[j] += x[b, i, j] * w[j, b]"
    far = outer(text.replace("y[j] += x[b, i, j]", inside), y="f32[9]", x="f32[2, 8, 9]",
                w="f32[9, 2]")  # fmt: skip
    assert far.is_near(frozenset()), "it stays in the innermost loop"
    (middle,) = (stmt for stmt in far.loop.body if isinstance(stmt, For))
    longer = replace(far.loop, body=(replace(middle, hi=const(3)),))
    assert not OuterLoop(longer, False).is_near(frozenset()), "and may not be there"


@pytest.mark.parametrize(
    ("body", "is_near"),
    [
        ("y[i, j] = x[j, i]", False),  # both are apart in one of the loops
        ("y[j, i] = x[j, i]", True),
        ("y[i, j] = x[i, j]", False),
        ("y[j, i] = 2 * x[j, i] + x[j, 0]", True),
        ("s[i] += x[j, i]", True),
        ("s[i] += x[0, j]", True),
        ("s[j] += x[j, 0]", False),  # vectors already
        ("y[j, i] = x[0, 2 * i]", True),  # stays, and is there
        ("y[j, i] = x[0, 2 * i + j]", False),
    ],
)
def test_neighbours_have_to_be_used(body: str, is_near: bool) -> None:
    text = f"for i in range(4):\n    for j in range(4):\n        {body}"
    found = outer(text, y="f32[4, 9]", x="f32[4, 9]", s="f32[4]")
    assert found.is_near(frozenset()) == is_near


def test_what_is_changed_does_not_stay() -> None:
    text = "for i in range(8):\n    for j in range(9):\n        s[i] += x[j] * w[i, 1]\n"
    given = {"s": "f32[8]", "x": "f32[9]", "w": "f32[8, 2]"}
    assert outer(text, **given).is_near(frozenset())
    assert not outer(text + "        w[i, 1] = 0.0\n", **given).is_near(frozenset())


def test_what_a_round_has_for_itself_may_lie_apart() -> None:
    text = (
        "for i in range(8):\n    for j in range(9):\n        t[j, j] = 1.0\n        s[i] += t[j, j]"
    )
    found = outer(text, s="f32[8]", t="f32[9, 9]")
    assert found.is_near(frozenset())
    text = text.replace("t[j, j]", "t[2 * i, j]")
    found = outer(text, s="f32[8]", t="f32[16, 9]")
    mine = frozenset(node.id for node in found.nodes() if node.label == "t")
    assert not found.is_near(frozenset()) and found.is_near(mine)
    assert (found.private_bytes(frozenset()), found.private_bytes(mine)) == (0, None), (
        "the round has a part in it"
    )


def test_room_is_counted_for_arrays_that_may_become_others() -> None:
    text = (
        "for i in range(8):\n    for j in range(9):\n        t[j] = x[j]\n        s[i] += t[j] * n"
    )
    found = outer(text, s="f32[8]", t="f64[9]", x="f32[9]", n="f32")
    ids = {node.label: node.id for node in found.nodes()}
    assert (
        found.private_bytes(frozenset((ids["t"],)))
        == found.lane_bytes(frozenset((ids["t"],)))
        == 72
    )
    assert found.private_bytes(frozenset((ids["n"],))) == 0, "it is one number"
    assert found.lane_bytes(frozenset((ids["n"],))) == 4

    def room(**change: Any) -> int | None:
        def other(node: Node) -> Node:
            return replace(node, **change) if node.id == ids["t"] else node

        nodes = {node.id: other(node) for node in found.nodes()}
        (loop,) = rename((found.loop,), {}, nodes)
        assert isinstance(loop, For)
        return OuterLoop(loop, False).private_bytes(frozenset((ids["t"],)))

    assert room() == 72
    assert room(request=Decision(NEVER_VIRTUAL, ())) is None, "its place was asked for"
    assert room(shape=(var(Symbol("n", 99)),)) is None


def test_places_of_statements_are_theirs_alone() -> None:
    found = outer("s[j] = sum(x[i, j] * w[i])", s="f32[9]", x="f32[8, 9]", w="f32[8]")
    (inner,) = (stmt for stmt in found.loop.body if isinstance(stmt, For))
    assert not list(statement_accesses(inner))
    told = [
        [node.label for node, _ in statement_accesses(stmt)] for stmt in statements(found.loop.body)
    ]
    assert [one for one in told if one] == [["s"], ["s", "x", "w"]]
