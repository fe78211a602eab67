"""Loops changed from the outside in: which are asked, and how they are cut."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from plusequals.lowering.ir.bounds import Bounds
from plusequals.lowering.ir.decision import Decision, Reason
from plusequals.lowering.ir.fresh import fresh_for
from plusequals.lowering.ir.indexing import Affine, const, maximum
from plusequals.lowering.ir.loops import For, Program, Stmt
from plusequals.lowering.ir.walk import statements
from plusequals.lowering.lower import lower
from plusequals.lowering.target import Target
from plusequals.lowering.transform.outermost import Body, OutermostRewriter

from ..scheduled import function, of_any_size
from ..shown import lowered, text_of

TARGET = Target(schedule=True)
NEST = """
for i in range(2):
    for j in range(3):
        for k in range(4):
            y[i, j, k] = 1
    if i > 0:
        for k in range(4):
            y[i, 0, k] = 2
"""
CUBE = {"y": "f32[2, 3, 4]"}


class Why(Reason):
    """What the schedules of these tests decide."""

    DONE = "as a test"


class Apart(OutermostRewriter):
    """Loops over `k` go, and it is told how many are around them."""

    __slots__ = ()

    def nest(self, loop: For, outer: tuple[For, ...]) -> Body | None:
        if loop.symbol.name != "k":
            return None
        self.decisions.append(Decision("lanes", Why.DONE, detail=str(len(outer))))
        return ()


class First(OutermostRewriter):
    """The first loop is in the way; loops inside are not asked."""

    __slots__ = ()

    def nest(self, loop: For, outer: tuple[For, ...]) -> Body | None:
        self.decisions.append(Decision("lanes", Why.DONE, detail=loop.symbol.name))
        return (loop, loop)


class Untouched(OutermostRewriter):
    """Every loop stays."""

    __slots__ = ()

    def nest(self, loop: For, outer: tuple[For, ...]) -> Body | None:
        return None


class Cut(OutermostRewriter):
    """Outermost loops are in strips of 8, 4 and 2."""

    __slots__ = ()

    def nest(self, loop: For, outer: tuple[For, ...]) -> Body | None:
        self.decisions.append(Decision("lanes", Why.DONE))

        def strip(width: int, first: Affine, last: Affine) -> Stmt:
            return replace(loop, lo=first, hi=last, step=width)

        return self.strip_mine(loop, self.end(loop, outer), (8, 4, 2), strip)


def pieces(program: Program) -> list[str]:
    """Return bounds and steps of the outermost loops, cut."""
    body = Cut.on(program, TARGET).program.kernels[0].body
    return [f"{loop.lo}..{loop.hi} by {loop.step}" for loop in body if isinstance(loop, For)]


def test_loops_are_asked_below_those_that_stay() -> None:
    program, told = Apart.on(lowered(NEST, **CUBE), TARGET)
    assert [decision.detail for decision in told] == ["2", "1"]
    assert "for k" not in text_of(program) and "for j in 0..3" in text_of(program)


def test_what_takes_the_place_of_a_loop_is_not_looked_into() -> None:
    program, told = First.on(lowered(NEST, **CUBE), TARGET)
    assert [decision.detail for decision in told] == ["i"]
    assert text_of(program).count("for i") == 2


def test_where_every_loop_stays_the_program_is_the_same() -> None:
    program = lowered(NEST, **CUBE)
    assert Untouched.on(program, TARGET).program is program


@pytest.mark.parametrize(
    ("first", "last", "wanted"),
    [
        (0, 0, []),
        (0, 1, ["0..1 by 1"]),
        (0, 2, ["0..2 by 2"]),
        (0, 7, ["0..4 by 4", "4..6 by 2", "6..7 by 1"]),
        (0, 16, ["0..16 by 8"]),
        (3, 20, ["3..19 by 8", "19..20 by 1"]),
        (3, 10, ["3..7 by 4", "7..9 by 2", "9..10 by 1"]),
    ],
)
def test_strips_are_widest_first(first: int, last: int, wanted: list[str]) -> None:
    program = lowered(f"for i in range({first}, {last}):\n    y[i] = 1", y="f32[32]")
    assert pieces(program) == wanted


@pytest.mark.parametrize(
    ("size", "end"), [("x.shape[0]", "x_0"), ("x.shape[0] - 2", "max(0, x_0 - 2)")]
)
def test_a_loop_that_may_have_no_rounds_ends_where_it_begins(size: str, end: str) -> None:
    made = function(f"def f(x):\n    for i in range({size}):\n        x[i] = 1\n")
    program = lower(of_any_size(made, np.ones(6)))
    last = pieces(program)[-1]
    assert last.endswith(f"..{end} by 1")


def test_loops_around_tell_where_a_loop_has_rounds() -> None:
    """`i` runs to `k + 1`: without the loop over `k` that might be less than nothing."""
    text = "for k in range(6):\n    for i in range(k + 1):\n        y[i] = 1"
    program = lowered(text, y="f32[6]")
    outer, inner = [s for s in statements(program.kernels[0].body) if isinstance(s, For)]
    work = Untouched(fresh_for(program), TARGET, frozenset(), {}, Bounds())
    assert work.end(inner, (outer,)) == inner.hi
    assert work.end(inner, ()) == maximum(inner.hi, const(0))
