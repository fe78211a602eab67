"""Which loops ask whether the call is to end, and that asking changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from plusequals.backends.codegen import cancellation
from plusequals.backends.codegen.c_printer import print_program
from plusequals.backends.codegen.cancellation import (
    WORK_PER_POLL,
    Poll,
    StripMining,
    WorkCounter,
    choose_poll,
)
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.assignments import Access, Break, Continue, Let
from plusequals.lowering.ir.indexing import Affine, Symbol, maximum, multiply
from plusequals.lowering.ir.loops import For, If, Kernel, Program, Stmt, Store, Update, While
from plusequals.lowering.ir.ops import OPS
from plusequals.lowering.lower import lower
from plusequals.lowering.placement import place_nodes
from plusequals.lowering.target import Target

from . import programs as p
from .harness import compiled, needs_compiler

i, j, k, n = p.symbols("i j k n")
X, Y = p.node(1, "x", (8,)), p.node(0, "y", (8,))
STORE = Store(Access(Y, p.at(0)), p.read(X, 0))
LONG = 10**12


def loop(symbol: Symbol, hi: int | Affine, *body: Stmt, step: int = 1) -> For:
    return For(symbol, p.const(0), p.const(hi) if isinstance(hi, int) else hi, step, body)


def poll(one: For | While, is_outermost: bool = True, sizes: tuple[Symbol, ...] = ()) -> Poll:
    return choose_poll(one, is_outermost, frozenset(sizes))


def test_a_short_loop_asks_nobody() -> None:
    assert poll(loop(i, 1000, STORE)) is None
    assert poll(loop(i, 1000, loop(j, 1000, STORE))) is None


def test_a_long_loop_is_cut_and_a_nest_counts() -> None:
    assert poll(loop(i, LONG, STORE)) == StripMining(WORK_PER_POLL // 16)
    assert poll(loop(i, LONG, STORE), False) == StripMining(WORK_PER_POLL // 16)
    assert poll(loop(i, LONG, loop(j, 1000, STORE))) == WorkCounter(p.const(16_009))
    assert poll(While((), p.number(1, dtypes.bool_), (STORE,))) == WorkCounter(p.const(17))


def test_where_sizes_are_not_known_the_outermost_loop_asks() -> None:
    inner = loop(j, p.var(n), STORE)
    assert poll(inner) == StripMining(WORK_PER_POLL // 16)
    assert poll(inner, False, sizes=(n,)) is None
    assert poll(inner, False) == StripMining(WORK_PER_POLL // 16), "it may be any number"
    assert poll(loop(i, p.var(n), inner), sizes=(n,)) == WorkCounter(p.var(n) * 16 + 9)
    some = maximum(p.var(n), p.const(0))
    assert poll(loop(i, p.var(n), inner)) == WorkCounter(some * 16 + 9), "fewer than none are none"


def test_work_is_counted_once() -> None:
    sizes = (n,)
    row = loop(j, p.var(n), loop(k, p.var(n), STORE))
    assert poll(row, sizes=sizes) == WorkCounter(p.var(n) * 16 + 9)
    assert poll(loop(i, p.var(n), row), sizes=sizes) == WorkCounter(p.const(9)), "`row` counts"
    test = p.apply("gt", p.read(X, 0), p.number(0))
    branch = poll(loop(i, p.var(n), If(test, (row,))), sizes=sizes)
    assert isinstance(branch, WorkCounter) and not branch.work.symbols()
    turns = While((), p.number(1, dtypes.bool_), (row,))
    assert poll(turns, sizes=sizes) == WorkCounter(p.const(9))
    assert poll(loop(i, p.var(n), turns), sizes=sizes) == WorkCounter(p.const(9))
    shared = replace(row, kind="parallel")  # its threads begin to count at zero
    assert poll(loop(i, p.var(n), shared), sizes=sizes) == WorkCounter(
        multiply(p.var(n), p.var(n) * 16 + 8) + 9
    )


def test_a_loop_that_a_break_leaves_is_not_cut() -> None:
    leaves = If(p.apply("gt", p.read(X, 0), p.number(0)), (Break(),))
    assert isinstance(poll(loop(i, LONG, STORE, leaves)), WorkCounter)
    goes_on = If(p.apply("gt", p.read(X, 0), p.number(0)), (Continue(),))
    assert isinstance(poll(loop(i, LONG, goes_on, STORE)), StripMining)


def search(jump: type[Break] | type[Continue], step: int, inside: bool) -> Program:
    """Counts rounds, up to one that leaves or is left; perhaps in each round of another loop."""
    x, y = p.node(1, "x", (40,), dtypes.int64), p.node(0, "y", (2,), dtypes.int64)
    one = p.Const(1, dtypes.int64)
    counted = Update(Access(y, p.at(0)), OPS["add"], one)
    leaves = If(p.apply("eq", p.read(x, p.var(i)), p.Const(0, dtypes.int64)), (jump(),))
    at_end = Store(Access(y, p.at(1)), p.position(i))
    lo, hi = (0, 40) if step > 0 else (39, -1)
    found: Stmt = For(i, p.const(lo), p.const(hi), step, (counted, leaves, at_end))
    if inside:
        found = loop(j, 3, found)
    made = lower(p.procedure("search", [(y, True), (x, False)], []))
    return replace(made, kernels=(Kernel("search", (found,)),))


@needs_compiler
@pytest.mark.parametrize("jump", [Break, Continue])
@pytest.mark.parametrize("step", [1, 3, -1, -4])
@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("piece", [1, 6, 10**6])
def test_asking_changes_nothing(
    jump: type[Break] | type[Continue], step: int, inside: bool, piece: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(cancellation, "LONG_LOOP_WORK", 0)
    monkeypatch.setattr(cancellation, "WORK_PER_POLL", piece)
    code = compiled(search(jump, step, inside), Target(schedule=True))
    for zero in (0, 17, 18, 39, None):
        x, y = np.ones(40, np.int64), np.zeros(2, np.int64)
        if zero is not None:
            x[zero] = 0
        assert code(y, x).status == 0
        assert y.tolist() == expected(jump, step, inside, x)


def expected(
    jump: type[Break] | type[Continue], step: int, inside: bool, x: np.ndarray
) -> list[int]:
    count = last = 0
    for _ in range(3 if inside else 1):
        for at in range(*((0, 40) if step > 0 else (39, -1)), step):
            count += 1
            if x[at] == 0:
                if jump is Break:
                    break
                continue
            last = at
    return [count, last]


def test_the_text_of_loops_that_ask(golden: Callable[[str], Callable[[str], None]]) -> None:
    y, x = p.node(0, "y", (p.var(n), 9)), p.node(1, "x", (p.var(n), 9))
    flat = p.node(2, "z", (LONG,))
    value = p.apply("add", p.read(x, i, j), p.number(1))
    rows = For(i, p.const(0), p.var(n), 1, (
        For(j, p.const(0), p.const(9), 1, (Store(Access(y, p.at(i, j)), value),)),))  # fmt: skip
    long = loop(k, LONG, Store(Access(flat, p.at(k)), p.number(0)), step=2)
    turns = While(
        (Let(Symbol("m", 9), p.position(p.const(0))),), p.number(1, dtypes.bool_), (Break(),)
    )
    made = lower(p.procedure("asks", [(y, True), (x, False), (flat, True)], []))
    made = replace(made, kernels=(Kernel("asks", (rows, long, turns)),))
    source = print_program(made, replace(place_nodes(made), polls=True))
    assert source.asks
    golden("asks.c")(source.text)
