"""Which temporaries are private to an iteration, or confined to a loop."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from plusequals.lowering.analysis.dependence import (
    find_dependence,
    find_privatizable,
    loop_local_nodes,
)
from plusequals.lowering.ir.assignments import Permute
from plusequals.lowering.ir.loops import For, Store, Update
from plusequals.lowering.ir.ops import OPS

from ..ir.build import ap, at, program, read
from .test_dependence import GRID, ONE, S, T, X, Y, i, j, k, loop, n


def test_an_array_is_private_where_its_loop_has_it_for_itself() -> None:
    part = loop(j, Update(at(T, j), OPS["add"], read(X, j)))
    apart = loop(i, loop(k, part))
    inner, only = apart.body[0], frozenset({T.id})
    assert isinstance(inner, For)
    for noted, expected in (
        ([], (False, False)),
        ([(T.id, i)], (True, False)),
        ([(T.id, k)], (True, True)),
        ([(T.id, j)], (True, True)),
        ([(T.id, n), (T.id, k)], (True, True)),
        ([(T.id, n)], (False, False)),
        ([(Y.id, i), (Y.id, k)], (False, False)),
    ):
        assert (
            tuple(bool(find_privatizable(one, only, noted)) for one in (apart, inner)) == expected
        )
    beside = replace(apart, body=(*apart.body, Store(at(Y, 0), read(T, 0))))
    assert find_privatizable(beside, only, [(T.id, k)]) == frozenset()
    assert find_privatizable(beside, only, [(T.id, i)]) == only
    assert find_privatizable(apart, frozenset(), [(T.id, i)]) == frozenset()
    assert find_privatizable(apart, frozenset({T.id, GRID.id}), [(T.id, i)]) == only


@pytest.mark.parametrize("purpose", ["tile", "panel", "lanes", "stage"])
def test_what_schedules_fill_is_private(purpose: Any) -> None:
    made = replace(T, purpose=purpose)
    assert find_privatizable(loop(j, Update(at(made, j), OPS["add"], ONE)), frozenset({T.id})) == {
        T.id
    }


def test_a_temporary_of_a_round_is_private() -> None:
    body = (
        Store(at(S), read(X, i)),
        loop(j, Store(at(T, j), ap("mul", read(S), read(X, j))), hi=64),
        loop(j, Update(at(GRID, i, j), OPS["add"], read(T, j)), hi=64),
    )
    whole = program((GRID,), (X,), loop(i, *body), local=(S, T))
    one = whole.kernels[0].body[0]
    assert isinstance(one, For)
    only = loop_local_nodes(whole)[id(one)]
    assert only == {S.id, T.id}
    assert find_privatizable(one, only) == {S.id, T.id}
    assert find_dependence(one, find_privatizable(one, only)) is None
    assert loop_local_nodes(whole)[id(one.body[1])] == set()


def test_a_temporary_that_a_round_takes_over_is_not_private() -> None:
    carried = loop(i, Store(at(Y, i), read(S)), Store(at(S), read(X, i)))
    whole = program((Y,), (X,), carried, local=(S,))
    assert find_privatizable(carried, loop_local_nodes(whole)[id(carried)]) == set()
    used = program((Y,), (X,), loop(i, Store(at(S), read(X, i))), Store(at(Y, 0), read(S)),
                   local=(S,))  # fmt: skip
    (first, _) = used.kernels[0].body
    assert loop_local_nodes(used)[id(first)] == set()


def test_what_trades_places_is_confined_to_no_loop() -> None:
    swap = loop(i, Store(at(T, i), read(X, i)), Permute((T, X), (X, T)))
    assert loop_local_nodes(program((), (), swap, local=(T, X)))[id(swap)] == set()
