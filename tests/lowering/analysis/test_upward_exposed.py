"""What is needed from before, against running through the accesses one by one."""

from __future__ import annotations

import numpy as np
import pytest

from plusequals.lowering import thresholds
from plusequals.lowering.analysis import upward_exposed
from plusequals.lowering.analysis.accesses import Accesses, Site, collect_accesses
from plusequals.lowering.analysis.iteration_domains import CallValues, Points
from plusequals.lowering.ir.indexing import var
from plusequals.lowering.ir.loops import Fill, For, If, Stmt, Store, While

from ..ir.build import aff, ap, at, node, num, pos, read, symbols

t, i, j = symbols("t i j")
Y, Z = node(0, "y", 6), node(1, "z", 6, 6)


def loop(symbol: object, lo: object, hi: object, *body: Stmt, step: int = 1) -> For:
    return For(symbol, aff(lo), aff(hi), step, body)  # type: ignore[arg-type]


def same(points: Points) -> Points:
    return points


def sites_of(*body: Stmt, of: int = 0) -> tuple[list[Site], list[Site]]:
    found = collect_accesses(body).sites[of]
    return [s for s in found if s.reads], [s for s in found if s.writes]


def needed(*body: Stmt, of: int = 0, shape: tuple[int, ...] = (6,)) -> list[int] | None:
    found = upward_exposed.upward_exposed(*sites_of(*body, of=of), shape, CallValues(), same)
    return None if found is None else np.flatnonzero(found).tolist()


def step(index: object, earlier: object) -> Store:
    return Store(at(Y, index), read(Y, earlier))  # type: ignore[arg-type]


def test_a_recurrence_needs_what_it_starts_from() -> None:
    assert needed(loop(t, 1, 6, step(t, aff(t) - 1))) == [0]
    assert needed(loop(t, 4, -1, step(t, aff(t) + 1), step=-1)) == [5]
    assert needed(loop(t, 0, 5, step(t, aff(t) + 1))) == [1, 2, 3, 4, 5]


def test_a_statement_reads_before_it_writes() -> None:
    assert needed(loop(t, 0, 6, step(t, t))) == [0, 1, 2, 3, 4, 5]
    assert needed(loop(t, 0, 6, Store(at(Y, t), num(0)), step(t, t))) == []


def test_rounds_of_outer_loops_come_first() -> None:
    inner = loop(i, 1, 5, step(i, aff(i) + 1))
    assert needed(loop(t, 0, 3, inner)) == [2, 3, 4, 5]
    zeros = loop(j, 0, 6, Store(at(Y, j), num(0)))
    assert needed(loop(t, 0, 3, zeros, inner)) == []
    assert needed(loop(t, 0, 3, inner, zeros)) == [2, 3, 4, 5]


def test_fills_write_all_of_it() -> None:
    body = Fill(Y, num(0)), step(2, 3)
    assert needed(loop(t, 0, 2, *body)) == []
    assert needed(loop(t, 0, 2, *reversed(body))) == [3]


def test_a_test_is_made_before_what_it_guards() -> None:
    test = ap("lt", read(Y, t), num(3))
    guarded = If(test, (Store(at(Y, t), num(0)),))
    assert needed(loop(t, 0, 6, guarded)) == [0, 1, 2, 3, 4, 5]


def test_triangles() -> None:
    inner = loop(j, 0, i, Store(at(Z, i, j), read(Z, j, i)))
    assert needed(loop(i, 0, 3, inner), of=1, shape=(6, 6)) == [1, 2, 8]
    two = loop(j, 0, i, Store(at(Z, i, j), read(Z, i, aff(j) - 1)))
    assert needed(loop(i, 1, 3, two), of=1, shape=(6, 6)) == []


@pytest.mark.parametrize("lo,hi", [(0, 0), (3, 1)])
def test_no_rounds_need_nothing(lo: int, hi: int) -> None:
    assert needed(loop(t, lo, hi, step(t, t))) == []


def test_what_is_unclear_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    around = While((), ap("lt", pos(3), pos(4)), (step(1, 0),))
    assert needed(around) is None
    looked_up = Store(at(Y, t), read(Y, read(Y, t)))
    assert needed(loop(t, 0, 6, looked_up)) is None
    monkeypatch.setattr(thresholds, "MAX_TIMED_ACCESSES", 10)
    assert needed(loop(t, 1, 6, step(t, aff(t) - 1))) == [0]
    assert needed(loop(t, 1, 7, step(aff(t) - 1, aff(t) - 1))) is None


def test_what_is_plain() -> None:
    assert upward_exposed.are_in_place_updates(*sites_of(loop(t, 0, 6, step(t, t))))
    assert not upward_exposed.are_in_place_updates(*sites_of(loop(t, 1, 6, step(t, aff(t) - 1))))


def test_what_a_round_wrote_itself_is_not_from_before() -> None:
    body = (loop(t, 0, 6, Store(at(Y, t), num(0)), step(t, t)),)
    found: Accesses = collect_accesses(body)
    assert not any(upward_exposed.may_read_entry_value(found, site) for site in found.of(Y))


def test_indices_of_their_own_make_a_box() -> None:
    (site,) = collect_accesses((loop(i, 0, 3, loop(j, 0, 3, Store(at(Z, i, j), num(0)))),)).of(Z)
    assert upward_exposed.is_box(site)
    diagonal = loop(i, 0, 3, Store(at(Z, i, var(i)), num(0)))
    assert not upward_exposed.is_box(collect_accesses((diagonal,)).of(Z)[0])
