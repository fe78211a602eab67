"""Rows and columns of several loops: every round of all is in one lane of one tile of one block."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from plusequals.lowering.cpu.gemm.axes import Axis, Point, strided_loop, trip_count_of
from plusequals.lowering.ir.fresh import Fresh, fresh_for
from plusequals.lowering.ir.indexing import Affine, Symbol, const, evaluate, var
from plusequals.lowering.ir.loops import Comment, For, Stmt

from ...shown import lowered

CASES: list[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], int]] = [
    ((10,), (4,), (8,), 4),
    ((8,), (4,), (4,), 4),
    ((5, 7), (1, 4), (2, 7), 4),
    ((5, 7), (2, 7), (4, 7), 16),
    ((3, 5, 7), (1, 2, 7), (1, 4, 7), 16),
    ((3, 4, 2), (3, 4, 2), (3, 4, 2), 24),
]


def axis_of(counts: tuple[int, ...], box: Any, block: Any, lanes: int) -> Axis:
    loops = [
        For(Symbol(f"x{n}", n), const(n), const(n + count), 1, ()) for n, count in enumerate(counts)
    ]
    return Axis(tuple(loops), box, block, lanes)


def run(body: tuple[Stmt, ...], values: dict[Symbol, int], seen: list[dict[Symbol, int]]) -> None:
    for stmt in body:
        if isinstance(stmt, Comment):
            seen.append(dict(values))
        assert isinstance(stmt, For | Comment)
        if isinstance(stmt, For):
            for at in range(evaluate(stmt.lo, values), evaluate(stmt.hi, values), stmt.step):
                run(stmt.body, {**values, stmt.symbol: at}, seen)


@pytest.mark.parametrize("case", CASES)
def test_every_round_has_a_lane_of_its_own(case: Any) -> None:
    axis, fresh = axis_of(*case), Fresh(0, 100)
    found: list[tuple[Affine, Point, Point]] = []

    def block(start: Point) -> tuple[Stmt, ...]:
        def tile(at: Point) -> tuple[Stmt, ...]:
            def element(lanes: Point) -> tuple[Stmt, ...]:
                place = axis.before(at, start) + axis.lane(lanes)
                rounds = tuple(one + lane for one, lane in zip(at, lanes, strict=True))
                found.append((place, rounds, start))
                return (Comment("here"),)

            return axis.elements(fresh, "lane", axis.width(at), element)

        return axis.tiles(fresh, start, tile)

    body = axis.blocks(fresh, block)
    ((place, rounds, start),) = found
    seen: list[dict[Symbol, int]] = []
    run(body, {}, seen)
    numbers = [tuple(evaluate(one, values) for one in rounds) for values in seen]
    every = itertools.product(*[range(n, n + count) for n, count in enumerate(case[0])])
    assert sorted(numbers) == sorted(every)
    places = {
        (tuple(evaluate(one, values) for one in start), evaluate(place, values))
        for values in seen
    }  # fmt: skip
    assert len(places) == len(seen)
    assert all(0 <= place < axis.block_lanes for _, place in places)


def test_what_is_even() -> None:
    assert [axis_of(*case).is_even for case in CASES] == [False, True, False, False, False, True]
    assert axis_of(*CASES[4]).partial_loop == 1


def test_a_loop_whose_end_is_not_known() -> None:
    end = Symbol("n", 7)
    loop = For(Symbol("i", 0), const(0), var(end), 1, ())
    axis = Axis((loop,), (4,), (8,), 4)
    assert not axis.is_even
    assert evaluate(axis.width((const(8),))[0], {end: 10}) == 2
    assert evaluate(axis.end((const(8),))[0], {end: 10}) == 10


def test_a_loop_of_one_round_is_none() -> None:
    program = lowered("y[i] = x[i]", y="f32[8]", x="f32[8]")
    fresh = fresh_for(program)
    (loop,) = [stmt for stmt in program.kernels[0].body if isinstance(stmt, For)]
    assert trip_count_of(loop) == 8
    assert strided_loop(fresh, loop.symbol, loop.lo, loop.hi, 8, lambda _: loop.body) == loop.body
    assert strided_loop(fresh, loop.symbol, loop.hi, loop.lo, 8, lambda _: loop.body) == ()
    (made,) = strided_loop(fresh, loop.symbol, loop.lo, loop.hi, 3, lambda _: loop.body)
    assert isinstance(made, For)
    assert made.step == 3
