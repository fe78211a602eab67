"""Random statements on one array: whatever way they are lowered, they read the state before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plusequals.lowering import clash
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.assignments import Assign, For
from plusequals.lowering.ir.expressions import Apply, Const, Dynamic, Expr
from plusequals.lowering.ir.indexing import Affine, Range, const, var
from plusequals.lowering.ir.interpret import run_procedure, run_program
from plusequals.lowering.lower import lower

from ..backends.emit.programs import apply, assign, at, node, over, procedure, read, symbols

t, i, j, k = symbols("t i j k")
I64 = dtypes.int64
X = node(0, "x", (6, 6), I64)
DRAW = st.data()


def index(draw: Any, letters: list[Any]) -> Any:
    """Return an index into an axis of 6 that stays inside for letters in 0..3."""
    kind = draw(st.sampled_from(["shift", "shift", "back", "sum", "constant", "gather"]))
    letter = draw(st.sampled_from(letters))
    match kind:
        case "shift":
            return var(letter) + draw(st.integers(0, 2))
        case "back":
            return var(letter) * -1 + 3
        case "sum":
            return var(letter) + 2 if letter is k else var(letter) + var(k)
        case "constant":
            return const(draw(st.integers(0, 5)))
    cell = read(X, letter, draw(st.integers(0, 5)))
    return Dynamic(apply("mod", cell, Const(6, I64)))


def value(draw: Any, letters: list[Any]) -> Expr:
    reads = [read(X, index(draw, letters), index(draw, letters)) for _ in range(2)]
    return Apply(reads and apply("add", *reads).op, tuple(reads), I64)


@settings(max_examples=300, deadline=None)
@given(DRAW)
def test_any_statement_reads_the_state_before(data: Any) -> None:
    draw = data.draw
    hi = draw(st.sampled_from([const(4), var(i) + 1]))
    free = over((i, 0, 4), (j, 0, hi))
    letters = [t, i, j]
    if draw(st.booleans()):
        free = over((i, 0, 4), (j, 0, hi), where=apply("lt", value(draw, [t, i, j]), Const(9, I64)))
    op = draw(st.sampled_from([None, "add", "max", "mul"]))
    others: dict[str, Any] = {}
    if op is not None and draw(st.booleans()):
        others = {"reduced": over((k, 0, 2)), "initialize": draw(st.booleans())}
    place = (index(draw, [t, i, j]), index(draw, [t, i, j]))
    used = {s for a in place if isinstance(a, Affine) for s in a.symbols()}
    if k in used and "reduced" not in others:
        place = at(i, j)
    letters += [k] if "reduced" in others else []
    stmt = assign("x[...] = ...", X, place, _without_k(value(draw, letters), others), free, op,
                  **others)  # fmt: skip
    if stmt.free.where is not None:
        stmt = _guarded(stmt)
    whole = procedure("any", [(X, True)], [For(t, const(0), const(2), 1, (stmt,))])
    start = np.random.default_rng(3).integers(0, 9, (6, 6))
    first, second = start.copy(), start.copy()
    run_procedure(whole, [first], print)
    run_program(lower(whole), [second], print)
    np.testing.assert_array_equal(second, first)


def _without_k(expr: Expr, others: dict[str, Any]) -> Expr:
    """Return the expression, or a plain read where it uses the letter that nothing binds."""
    return expr if "reduced" in others or k not in clash.symbols_of(expr) else read(X, j, i)


def _guarded(stmt: Assign) -> Assign:
    test = stmt.free.where
    assert test is not None
    if k in clash.symbols_of(test):
        test = apply("lt", read(X, i, 0), Const(4, I64))
    ranges = [(r.symbol, r.lo, r.hi) for r in stmt.free.ranges]
    return assign("x[...] = ...", X, stmt.target.index, stmt.value, over(*ranges, where=test),
                  stmt.op.name if stmt.op else None, reduced=stmt.reduced,
                  initialize=stmt.initialize)  # fmt: skip


RANGES = (Range(i, const(1), const(5)), Range(j, const(0), var(i)))


@pytest.mark.parametrize(
    ("left", "right", "result"),
    [
        (at(var(t) + 1, i), at(t, i), True),
        (at(t, i), at(t, i), False),
        (at(i, 0), at(i, 7), True),
        (at(0, i), at(0, 0), True),
        (at(0, j), at(0, 5), True),
        (at(0, j), at(0, 3), False),
        (at(0, var(i) * -1), at(0, i), True),
        (at(Dynamic(read(X, 0, 0)), i), at(t, i), False),
    ],
)
def test_cells_are_apart_where_one_axis_says_so(left: Any, right: Any, result: bool) -> None:
    assert clash.apart(left, right, RANGES) is result


@pytest.mark.parametrize(
    ("place", "result"),
    [
        (at(i, j), True),
        (at(j, var(i) * 2 + 1), True),
        (at(i, var(i) + var(j)), False),
        (at(i, i), False),
        (at(i, Dynamic(read(X, 0, j))), False),
    ],
)
def test_an_index_is_injective_where_each_letter_stands_alone(place: Any, result: bool) -> None:
    assert clash.is_injective(place, RANGES) is result


def test_symbols_are_found_inside_indices_and_predicates() -> None:
    expr = apply("add", read(X, i, Dynamic(read(X, j, 0))), read(X, 0, var(k) + 1))
    assert clash.symbols_of(expr) == {i, j, k}
