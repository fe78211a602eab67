"""Rounds abreast, in detail: which strips there are, what is put side by side, and who stays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from plusequals.lowering.analysis.dependence import find_privatizable, loop_local_nodes
from plusequals.lowering.cpu.outer_vectorize import vectorize_outer
from plusequals.lowering.ir.decision import Decided
from plusequals.lowering.ir.indexing import const
from plusequals.lowering.ir.loops import Comment, For, Program
from plusequals.lowering.ir.rewrite import map_kernels
from plusequals.lowering.ir.verify import verify_program
from plusequals.lowering.lower import lower
from plusequals.lowering.passes.contract_arrays import contract_arrays
from plusequals.lowering.target import Target

from ...scheduled import function, interpreted, of_any_size
from ...shown import lowered, text_of
from ..test_outer_vectorize import STRICT, is_abreast, loops, numbers, plain

DOWN = "for j in range({0}, {1}):\n    for i in range(9):\n        y[j] = y[j] * 0.5 + x[i, j]"
OWN = """
for j in range({0}):
    t = np.zeros(9)
    for i in range(9):
        t[i] = x[i, j] * 0.5
    for i in range(1, 9):
        t[i] += t[i - 1]
    y[j] = t[8]
"""
SIDE = """
for j in range(40):
    for i in range(3):
        for k in range(4):
            y[j] += x[i, j] * w[j, 0] * w[j, i] * v[k]
"""


def down(first: int, last: int, dtype: str = "f32", target: Target = STRICT) -> list[str]:
    """Return the loops in which columns are added up."""
    wide = max(last, 1)
    return outermost(DOWN.format(first, last), target, y=f"{dtype}[{wide}]",
                     x=f"{dtype}[9, {wide}]")  # fmt: skip


def made_of(body: str, target: Target = STRICT, **arrays: str) -> Program:
    made = vectorize_outer(contract_arrays(lowered(body, **arrays)).program, target).program
    verify_program(made)
    return made


def outermost(body: str, target: Target = STRICT, **arrays: str) -> list[str]:
    """Return the bounds and steps of the outermost loops."""
    body_of = made_of(body, target, **arrays).kernels[0].body
    return [f"{loop.lo}..{loop.hi} by {loop.step}" for loop in body_of if isinstance(loop, For)]


@pytest.mark.parametrize(
    ("first", "last", "strips"),
    [
        (0, 7, ["0..7 by 1"]),
        (0, 8, ["0..8 by 8"]),
        (0, 9, ["0..8 by 8", "8..9 by 1"]),
        (0, 31, ["0..24 by 8", "24..31 by 1"]),
        (0, 32, ["0..32 by 32"]),
        (0, 33, ["0..32 by 32", "32..33 by 1"]),
        (0, 40, ["0..32 by 32", "32..40 by 8"]),
        (0, 97, ["0..96 by 32", "96..97 by 1"]),
        (5, 12, ["5..12 by 1"]),
        (5, 13, ["5..13 by 8"]),
        (5, 50, ["5..37 by 32", "37..45 by 8", "45..50 by 1"]),
    ],
)
def test_every_round_is_in_one_strip(first: int, last: int, strips: list[str]) -> None:
    assert down(first, last) == strips


def test_strips_are_as_wide_as_registers() -> None:
    assert down(0, 23, "f64") == ["0..16 by 16", "16..20 by 4", "20..23 by 1"]
    short, none = replace(STRICT, vector_bits=128), replace(STRICT, vector_bits=64)
    assert down(0, 23, "f32", short) == ["0..16 by 16", "16..20 by 4", "20..23 by 1"]
    assert down(0, 4, "f64", short) == ["0..4 by 2"]
    assert down(0, 40, "f64", none) == ["0..40 by 1"], "there are no vectors"
    mixed = DOWN.format(0, 23), STRICT
    assert outermost(*mixed, y="f32[23]", x="f64[9, 23]")[0] == "0..16 by 16", "the widest counts"


@pytest.mark.parametrize(
    ("l1", "l2", "strips"),
    [
        (72 * 16, 72 * 4, ["0..32 by 16", "32..40 by 4"]),
        (72 * 16 - 1, 72 * 4, ["0..40 by 4"]),
        (72 * 16, 72 * 4 - 1, ["0..40 by 1"]),
    ],
)
def test_what_rounds_have_for_themselves_has_to_fit(l1: int, l2: int, strips: list[str]) -> None:
    """Nine numbers of 8 bytes for each lane: in the nearest memory where strips are wide."""
    target = replace(STRICT, l1_bytes=l1, l2_bytes=l2)
    assert outermost(OWN.format(40), target, y="f64[40]", x="f64[9, 40]") == strips


def test_rounds_without_arrays_of_their_own_need_no_room() -> None:
    assert down(0, 40, target=replace(STRICT, l1_bytes=0)) == ["0..32 by 32", "32..40 by 8"]


@pytest.mark.parametrize(
    ("change", "longest"),
    [
        ({}, 512),
        ({"l2_bytes": 9 * 1000 * 4}, 32),  # all of it is near
        ({"l2_bytes": 9 * 1000 * 4 - 1}, 512),
        ({"threads": 2}, 256),  # each has some
        ({"threads": 7}, 128),
        ({"threads": 8}, 64),
        ({"threads": 16}, 32),
        ({"l1_bytes": 2 * 4 * 256}, 256),  # of each round a float, and half of the room is used
        ({"l1_bytes": 2 * 4 * 256 - 1}, 128),
        ({"l1_bytes": 2 * 4 * 32}, 32),
    ],
)
def test_strips_are_long_where_memory_is_far(change: dict[str, int], longest: int) -> None:
    target = replace(STRICT, **{"l2_bytes": 1024, **change})
    text = "y[j] = sum(x[i, j])"
    made = outermost(text, target, y="f32[1000]", x="f32[9, 1000]")
    assert made[0].endswith(f" by {longest}")


@pytest.mark.parametrize("l2_bytes", [1024, 1 << 20])
def test_only_lanes_of_registers_are_vectors(l2_bytes: int) -> None:
    made = made_of("y[j] = sum(x[i, j])", replace(STRICT, l2_bytes=l2_bytes),
                   y="f32[1000]", x="f32[9, 1000]")  # fmt: skip
    found = {(str(loop.hi), loop.kind) for loop in loops(made) if loop.symbol.name == "lane"}
    kept = {(node.static_shape, node.purpose) for node in made.locals if node.rank}
    if l2_bytes == 1024:
        assert found == {("512", "serial"), ("32", "vector"), ("8", "vector")}
        assert kept == {((512,), "panel"), ((32,), "tile"), ((8,), "tile")}
    else:
        assert found == {("32", "vector"), ("8", "vector")}
        assert kept == {((32,), "tile"), ((8,), "tile")}


def test_arrays_of_each_round_are_panels() -> None:
    made = made_of(OWN.format(16), y="f64[16]", x="f64[9, 16]")
    assert [(n.static_shape, n.purpose) for n in made.locals if n.purpose] == [((9, 16), "panel")]


def test_what_lies_apart_is_put_side_by_side_where_it_stays() -> None:
    """Before the outermost loop in which it stays, once for each place."""
    made = made_of(SIDE, y="f32[40]", x="f32[3, 40]", w="f32[40, 3]", v="f32[4]")
    assert (
        text_of(made).split("for j in 32")[0]
        == """\
for j in 0..32 step 32:
    for lane in 0..32 vector:
        y_acc_lanes[lane] = y[j + lane]
        w_lanes[lane] = w[j + lane, 0]
    for i in 0..3:
        for lane in 0..32 vector:
            w_lanes_2[lane] = w[j + lane, i]
        for k in 0..4:
            for lane in 0..32 vector:
                y_acc_lanes[lane] += x[i, j + lane] * w_lanes[lane] * w_lanes_2[lane] * v[k]
    for lane in 0..32 vector:
        y[j + lane] = y_acc_lanes[lane]
"""
    )


def test_it_is_read_once_for_the_loops_that_follow() -> None:
    body = """
for j in range(40):
    for i in range(9):
        y[j] += x[i, j] * w[j, 0]
    for i in range(9):
        y[j] -= x[i, j] * w[j, 0] * w[j, 1] / w[j, 1]
"""
    made = made_of(body, y="f32[40]", x="f32[9, 40]", w="f32[40, 2]")
    assert sum(node.label == "w_lanes" for node in made.locals) == 4, "two in each strip"
    text = text_of(made)
    assert text.count("= w[j + lane, 0]") == text.count("= w[j + lane, 1]") == 2, "in each strip"


def test_what_is_near_is_read_where_it_is() -> None:
    body = (
        "for j in range(40):\n    for i in range(3):\n        y[j] += x[i, j] * x[0, j] * w[2, 0]"
    )
    made = made_of(body, y="f32[40]", x="f32[3, 40]", w="f32[3, 2]")
    assert is_abreast(made)
    assert {node.label for node in made.locals if node.rank} == {"y_acc_lanes"}


@pytest.mark.parametrize(("last", "count"), [(40, 2), (48, 0)])
def test_what_may_not_be_there_is_not_read_before_the_loop(last: int, count: int) -> None:
    """The loop inside may have no rounds, in which nobody would have asked for it."""
    body = """
for j in range(40):
    for i in range(3):
        y[j] -= w[j, 1]
        for k in range(4):
            y[j] += x[i, j] * v[k]
"""
    program = lowered(body, y="f32[40]", x="f32[3, 40]", w="f32[40, 3]", v="f32[4]")
    (loop,) = (stmt for stmt in program.kernels[0].body if isinstance(stmt, For))
    longer = replace(loop, hi=const(last))
    made = vectorize_outer(map_kernels(program, lambda _: (longer,)), STRICT).program
    assert is_abreast(made)
    assert text_of(made).count("[lane] = w[j + lane, 1]") == count


def test_the_outermost_loop_that_can_is_abreast() -> None:
    body = """
for b in range(3):
    for j in range(40):
        for i in range(9):
            y[b, j] = y[b, j] * 0.5 + x[b, i, j]
"""
    made = made_of(body, y="f32[3, 40]", x="f32[3, 9, 40]")
    assert [(l.symbol.name, l.step) for l in loops(made) if l.symbol.name != "lane"] == [
        ("b", 1), ("j", 32), ("i", 1), ("j", 8), ("i", 1),
    ]  # fmt: skip


def test_what_was_done_is_told_once() -> None:
    text = OWN.format(40)
    program = contract_arrays(lowered(text, y="f32[40]", x="f32[9, 40]")).program
    (told,) = vectorize_outer(program, STRICT).decisions
    assert told.node is not None and told.node.label == "y", "and not what a round has for itself"
    assert "its iterations are independent, and the inner loops stay in order" in told.sentence()
    plain = lowered("y[i] = x[i]", y="f32[40]", x="f32[40]")
    assert vectorize_outer(plain, STRICT) == Decided(plain, ())


def test_lines_for_the_reader_stay_outside_of_lanes() -> None:
    made = made_of(DOWN.format(0, 40), y="f32[40]", x="f32[9, 40]")
    assert any(isinstance(stmt, Comment) for loop in loops(made) for stmt in loop.body)
    lanes = [loop for loop in loops(made) if loop.symbol.name == "lane"]
    assert not any(isinstance(stmt, Comment) for loop in lanes for stmt in loop.body)


@pytest.mark.parametrize(
    ("body", "arrays"),
    [
        # rounds that need something of each other
        ("for j in range(1, 40):\n    for i in range(9):\n        y[j] += x[i, j] * y[j - 1]",
         {"y": "f32[40]", "x": "f32[9, 40]"}),
        ("for j in range(40):\n    for i in range(9):\n        y[i] += x[i, j]",
         {"y": "f32[9]", "x": "f32[9, 40]"}),
        ("t = 0.0\nfor j in range(40):\n    for i in range(9):\n        t = 0.5 * t + x[i, j]\n"
         "        y[i, j] = t", {"y": "f32[9, 40]", "x": "f32[9, 40]"}),
        # rounds that may be skipped, counted down, or stepped
        ("for j in range(39, -1, -1):\n    for i in range(9):\n        y[j] = y[j] * 0.5 + x[i, j]",
         {"y": "f32[40]", "x": "f32[9, 40]"}),
        ("for j in range(0, 40, 2):\n    for i in range(9):\n        y[j] = y[j] * 0.5 + x[i, j]",
         {"y": "f32[40]", "x": "f32[9, 40]"}),
        ("for j in range(40):\n    for i in range(9):\n        if x[i, j] > 0:\n"
         "            y[j] += x[i, j]", {"y": "f32[40]", "x": "f32[9, 40]"}),
        # rows, of which neighbours lie apart
        ("for j in range(40):\n    for i in range(9):\n        y[j] += x[j, i]",
         {"y": "f32[40]", "x": "f32[40, 9]"}),
        # loops inside whose rounds differ from lane to lane
        ("for j in range(40):\n    for i in range(j, 40):\n        y[j] += x[i, j]",
         {"y": "f32[40]", "x": "f32[40, 40]"}),
    ],
)  # fmt: skip
def test_loops_of_other_kinds_stay(body: str, arrays: dict[str, str]) -> None:
    program = contract_arrays(lowered(body, **arrays)).program
    assert vectorize_outer(program, STRICT).program is program


@pytest.mark.parametrize("first", ["3", "len(w)"])
def test_rounds_that_a_size_decides_begin_where_they_should(first: str) -> None:
    """Also where the loop has none, and ends before it begins."""
    made = function(f"""
def f(x, w):
    y = np.zeros(len(x[0]) + 3)
    for j in range({first}, len(x[0])):
        for i in range(len(x)):
            y[j] = y[j] * 0.5 + x[i, j]
    return y
""")
    procedure = of_any_size(made, np.ones((2, 5)), w := np.ones(3))
    before = plain(procedure, STRICT)
    new = vectorize_outer(before, STRICT).program
    verify_program(new)
    assert is_abreast(new)
    for size in (0, 1, 2, 3, 4, 6, 7, 8, 19, 23, 41):
        (got,) = interpreted(new, x := numbers(2, size, dtype=np.float64), w)
        (want,) = interpreted(before, x, w)
        np.testing.assert_array_equal(got.view(np.uint64), want.view(np.uint64))


CHANGED = """
for j in range(40):
    for i in range(3):
        w[j, 0] = w[j, 0] * 0.5 + x[i, j]
        for k in range(4):
            y[j] += x[i, j] * v[k]
        y[j] += w[j, 0]
"""


@pytest.mark.parametrize("text", [OWN.format("len(y)"), SIDE, CHANGED])
def test_bits_stay_with_arrays_of_rounds_and_what_is_put_side_by_side(text: str) -> None:
    names = "y, x" if "w" not in text else "y, x, w, v"
    made = function(f"def f({names}):\n" + text.replace("\n", "\n    "))
    given = [numbers(40), numbers(9, 40), numbers(40, 3), numbers(4)][: names.count(",") + 1]
    procedure = made.procedure(*given)
    before = lower(procedure)  # in which no register holds an element
    new = vectorize_outer(before, STRICT).program
    verify_program(new)
    assert is_abreast(new)
    for got, want in zip(interpreted(new, *given), interpreted(before, *given), strict=True):
        np.testing.assert_array_equal(got.view(np.uint32), want.view(np.uint32))


def test_loops_of_few_rounds_stay() -> None:
    """Where they begin does not count."""
    given = {"y": "f32[40]", "x": "f32[9, 40]"}
    for first, last in ((0, 0), (0, 7), (5, 12), (33, 40)):
        program = contract_arrays(lowered(DOWN.format(first, last), **given)).program
        assert vectorize_outer(program, STRICT).program is program
    body = DOWN.format(-9, 3).replace("[j]", "[j + 9]").replace(", j]", ", j + 9]")
    assert outermost(body, **given) == ["-9..-1 by 8", "-1..3 by 1"]


def test_loops_around_tell_how_many_rounds_there_are() -> None:
    body = """
for t in range(3):
    for j in range(t, 40):
        for i in range(9):
            y[j] = y[j] * 0.5 + x[i, j] * w[j + t, 0]
"""
    made = made_of(body, y="f32[40]", x="f32[9, 40]", w="f32[42, 2]")
    assert is_abreast(made), "and that `w` is there"
    assert "max" not in text_of(made), "there is a round"
    turned = made_of(body.replace("(t, 40)", "(40 * t - 40, 40 - t)").replace("[j", "[j + 40"),
                     y="f32[80]", x="f32[9, 80]", w="f32[99, 2]")  # fmt: skip
    assert not is_abreast(turned) or "max(" in text_of(turned), "there may be none"


def test_a_round_with_an_element_of_its_own_in_a_shared_array_stays() -> None:
    body = """
t = np.zeros((40, 9))
for j in range(40):
    for i in range(9):
        t[j, i] = x[i, j]
    for i in range(1, 9):
        t[j, i] += t[j, i - 1]
    y[j] = t[j, 8]
"""
    program = lowered(body, y="f64[40]", x="f64[9, 40]")
    program = map_kernels(program, lambda body: body[-1:])  # but for the loop that fills it
    loop = loops(program)[0]
    assert find_privatizable(loop, loop_local_nodes(program)[id(loop)])
    assert vectorize_outer(program, STRICT).program is program


def test_what_is_used_between_two_loops_alone_is_one_number() -> None:
    """An array has elements for each lane even there: lanes are done at once."""
    body = """
t = np.zeros(9)
for j in range(16):
    s = x[0, j] * 2.0
    y[j] = s + s * s
    for i in range(9):
        t[i] = x[i, j] * 0.5
        y[j] += t[i] * t[i]
"""
    program = lowered(body, y="f64[16]", x="f64[9, 16]")
    program = map_kernels(program, lambda body: body[-1:])  # but for the loop that fills it
    made = vectorize_outer(program, STRICT).program
    verify_program(made)
    assert (
        text_of(made)
        == """\
for j in 0..16 step 16:
    for lane in 0..16 vector:
        s = x[0, j + lane] * 2.0
        y[j + lane] = s + s * s
    for i in 0..9:
        for lane in 0..16 vector:
            t_lanes[i, lane] = x[i, j + lane] * 0.5
            y[j + lane] += t_lanes[i, lane] * t_lanes[i, lane]\
"""
    )
