"""Linear systems over integers, compared with trying all small numbers."""

from __future__ import annotations

import random
from itertools import product

import pytest

from plusequals.lowering.analysis.presburger import solve
from plusequals.lowering.ir.indexing import (
    Affine,
    Symbol,
    const,
    evaluate,
    floordiv,
    maximum,
    minimum,
    mod,
    multiply,
    var,
)

from ..ir.build import symbols

i, j, k = symbols("i j k")
BOX = 5


def _row(rng: random.Random, names: list[Symbol]) -> Affine:
    row = const(rng.randint(-6, 6))
    for name in names:
        row += var(name) * rng.choice((0, 0, 1, -1, 1, -1, 2, -2, 3, 4))
    return row


def _boxed(names: list[Symbol]) -> list[Affine]:
    return [row for s in names for row in (var(s), const(BOX) - var(s))]


def _holds(zero: list[Affine], least: list[Affine], values: dict[Symbol, int]) -> bool:
    return all(evaluate(row, values) == 0 for row in zero) and all(
        evaluate(row, values) >= 0 for row in least
    )


@pytest.mark.parametrize("seed", range(300))
def test_a_system_is_solved_where_numbers_solve_it(seed: int) -> None:
    rng = random.Random(seed)
    names = [i, j, k][: rng.randint(1, 3)]
    zero = [_row(rng, names) for _ in range(rng.randint(0, 2))]
    least = [_row(rng, names) for _ in range(rng.randint(0, 4))] + _boxed(names)
    tried = (dict(zip(names, p, strict=True)) for p in product(range(BOX + 1), repeat=len(names)))
    exists = any(_holds(zero, least, values) for values in tried)
    found = solve(zero, least)
    assert found != "unclear", "small systems are always decided"
    assert exists is (found != "none")
    if isinstance(found, dict):
        assert _holds(zero, least, {s: found.get(s, 0) for s in names}), "a solution solves it"


@pytest.mark.parametrize("seed", range(100))
def test_functions_never_hide_a_solution(seed: int) -> None:
    rng = random.Random(seed)
    names = [i, j]
    make = rng.choice((minimum, maximum, lambda a, b: floordiv(a, const(3)),
                       lambda a, b: mod(a, const(3))))  # fmt: skip
    zero = [make(_row(rng, names), _row(rng, names)) - _row(rng, names)]
    tried = (dict(zip(names, p, strict=True)) for p in product(range(BOX + 1), repeat=2))
    exists = any(_holds(zero, [], values) for values in tried)
    found = solve(zero, _boxed(names))
    assert not exists or found != "none"
    if isinstance(found, dict):
        assert _holds(zero, _boxed(names), {s: found.get(s, 0) for s in names})


def test_quotients_and_remainders_are_exact() -> None:
    """No two numbers below 24 have both the same quotient and the same remainder."""
    one, other = floordiv(var(i), const(4)), mod(var(i), const(4))
    two, three = floordiv(var(j), const(4)), mod(var(j), const(4))
    apart = [var(j) - var(i) - 1, var(i), const(23) - var(j)]
    assert solve([one - two, other - three], apart) == "none"
    assert isinstance(solve([one - two], apart), dict)


def test_neighbours_are_not_of_one_colour() -> None:
    """As a board has no two fields of one colour beside each other."""
    one, other = mod(var(i), const(2)), mod(var(i) + 1, const(2))
    assert solve([one - other + (var(j) - var(k)) * 2], []) == "none"
    assert isinstance(solve([one - other + (var(j) - var(k)) * 3 + 2], _boxed([i, j, k])), dict)


def test_of_products_nothing_is_claimed() -> None:
    product = multiply(var(i), var(j))
    assert solve([product - 6], [var(i) - 2, var(j) - 2]) in ("unclear", {i: 2, j: 3})
    assert solve([product - multiply(var(j), var(i)) - 1], []) == "none"


def test_a_system_without_bounds_has_small_solutions() -> None:
    found = solve([var(i) * 6 + var(j) * 10 + var(k) * 15 - 1], [])
    assert isinstance(found, dict)
    assert found[i] * 6 + found[j] * 10 + found[k] * 15 == 1


def test_integers_between_fractions_are_not_there() -> None:
    assert solve([], [var(i) * 3 - 1, var(i) * -3 + 2]) == "none"
    assert solve([var(i) * 4 - var(j) * 6 - 2, var(i) - var(j) * 3 - 1], []) == "none"
