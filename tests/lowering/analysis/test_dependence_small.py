"""Which loops may run in any order: compared with running through every round of small ones."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from plusequals.lowering.analysis.dependence import Dependent, find_dependence
from plusequals.lowering.ir.indexing import (
    Affine,
    Symbol,
    const,
    evaluate,
    floordiv,
    maximum,
    minimum,
    mod,
    var,
)
from plusequals.lowering.ir.loops import For, If, Stmt, Store
from plusequals.lowering.ir.rewrite import map_statements

from ..ir.build import ap, at, pos, read
from .test_dependence import GRID, ONE, X, Y, i, j, loop, why


def _cells(stmt: Stmt, values: dict[Symbol, int]) -> Iterator[tuple[tuple[int, ...], bool]]:
    """Each element that a statement uses, and whether it writes it."""
    match stmt:
        case For(symbol, lo, hi, step, body):
            for value in range(evaluate(lo, values), evaluate(hi, values), step):
                for inner in body:
                    yield from _cells(inner, {**values, symbol: value})
        case If(test, then):
            if evaluate(test.args[1].index - test.args[0].index, values) > 0:
                for inner in then:
                    yield from _cells(inner, values)
        case Store(access, value):
            yield tuple(evaluate(at, values) for at in access.index), True
            if not hasattr(value, "value"):
                yield tuple(evaluate(at, values) for at in value.index), False
        case _:
            raise AssertionError(stmt)


def _clash(one: For) -> bool:
    """Whether two rounds use an element that one of them writes, found by running all rounds."""
    rounds = range(one.lo.offset, one.hi.offset, one.step)
    used = [[cell for s in one.body for cell in _cells(s, {one.symbol: r})] for r in rounds]
    return any(
        cell == other and (writes or also)
        for number, first in enumerate(used)
        for second in used[number + 1 :]
        for cell, writes in set(first)
        for other, also in set(second)
    )


def _index(rng: random.Random, names: list[Symbol]) -> Affine:
    out = const(rng.randint(20, 22))
    for name in names:
        out += var(name) * rng.choice((0, 1, 1, -1, 2, 3))
    return out


def _random(rng: random.Random) -> For:
    """A loop of which all indices are inside of the arrays, with at most one loop inside."""
    names, rank = [i], rng.choice((1, 1, 2))
    nested = rng.random() < 0.7
    if nested:
        names.append(j)
    array = X if rank == 1 else GRID
    write = at(array, *(_index(rng, names) for _ in range(rank)))
    value = ONE
    if rng.random() < 0.6:
        value = read(array, *(_index(rng, names) for _ in range(rank)))
    body: Stmt = Store(write, value)
    if rng.random() < 0.4:
        body = If(ap("lt", pos(_index(rng, names)), pos(_index(rng, names))), (body,))
    if nested:
        lo = rng.choice((const(0), const(1), var(i), var(i) + 1))
        hi = rng.choice((const(3), const(4), var(i), var(i) + 2, const(5) - var(i)))
        if rng.random() < 0.3:
            body = For(j, hi, lo - 1, rng.choice((-1, -2)), (body,))
        else:
            body = For(j, lo, hi, rng.choice((1, 1, 1, 2, 3)), (body,))
    if rng.random() < 0.3:
        return loop(i, body, lo=rng.randint(3, 5), hi=rng.randint(-1, 2), step=-rng.randint(1, 2))
    return loop(i, body, lo=rng.randint(0, 2), hi=rng.randint(3, 7), step=rng.choice((1, 1, 2, 3)))


@pytest.mark.parametrize("seed", range(60))
def test_small_loops_are_decided_exactly(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(25):
        one = _random(rng)
        refusal = find_dependence(one)
        assert (refusal is not None) is _clash(one), (one, refusal)
        assert refusal is None or refusal.reason in (Dependent.CELL, Dependent.SCALAR)


def _wrapped(rng: random.Random, index: Affine) -> Affine:
    """An index of quotients and remainders, or cut off."""
    size = const(rng.randint(2, 5))
    return rng.choice(
        (
            index,
            floordiv(index, size),
            mod(index, size),
            floordiv(index, size) * size.offset + mod(index, size),
            minimum(index, const(22)),
            maximum(index, const(23)),
        )
    )


@pytest.mark.parametrize("seed", range(40))
def test_functions_of_indices_never_hide_a_clash(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(15):
        one = _random(rng)
        body = map_statements(one.body, lambda stmt: (_with_functions(rng, stmt),))
        one = replace(one, body=body)
        refusal = find_dependence(one)
        assert refusal is not None or not _clash(one), one
        if refusal is not None and refusal.reason is Dependent.CELL:
            assert _clash(one), (one, refusal)


def _with_functions(rng: random.Random, stmt: Stmt) -> Stmt:
    if not isinstance(stmt, Store):
        return stmt
    index = tuple(_wrapped(rng, one) for one in stmt.access.index)
    return replace(stmt, access=replace(stmt.access, index=index))


@pytest.mark.parametrize(
    ("lo", "hi", "step"), [(4, 1, -2), (2, 5, 2), (3, 1, -1), (2, 4, 1), (2, 3, 1), (3, 2, -1)]
)
def test_what_is_cut_off_is_apart_by_what_loops_run_through(lo: int, hi: int, step: int) -> None:
    cell = Store(at(X, maximum(var(i) * 2 + 20, const(23))), read(X, const(21) - var(i)))
    assert why(For(i, const(lo), const(hi), step, (cell,))) is None
    mixed = Store(at(X, maximum(var(i) * 2 + 20, const(27))), read(X, const(21) - var(i)))
    assert why(For(i, const(2), const(5), 1, (mixed,))) is not None


def test_quotient_and_remainder_together_are_one_element() -> None:
    cells = Store(at(GRID, floordiv(var(i), const(4)), mod(var(i), const(4))), ONE)
    assert why(loop(i, cells, hi=24)) is None
    assert why(loop(i, Store(at(Y, floordiv(var(i), const(4))), ONE))) is Dependent.CELL


def test_the_random_loops_are_of_both_kinds() -> None:
    rng = random.Random(1)
    made = [_clash(_random(rng)) for _ in range(300)]
    assert 40 < sum(made) < 260
