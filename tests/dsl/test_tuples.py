"""Named tuples go the short way; tuples that give other items than they hold are refused."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import plusequals as pe

pytestmark = pytest.mark.usefixtures("short_way")


def made(text: str) -> Any:
    """The function that a text defines."""
    return pe.cd_from_source(text, {"np": np})


class State(NamedTuple):
    mean: np.ndarray
    spread: np.ndarray
    rate: float = 2.0


class Turned(NamedTuple):
    spread: np.ndarray
    mean: np.ndarray
    rate: float = 2.0


class Backwards(tuple[Any, ...]):
    """A tuple that gives its items in another order."""

    __slots__ = ()

    def __getitem__(self, at: Any) -> Any:
        return tuple.__getitem__(self, -1 - at)


def test_named_tuples_go_the_short_way_by_their_class(long_ways: list[str]) -> None:
    f = made("def f(p, s):\n    for a in s:\n        p[...] += a.mean - a.rate * a.spread")
    one, two = np.arange(3.0), np.arange(3.0) * 10
    for kind, first, second in ((State, one, two), (Turned, two, one), (State, two, one)):
        for rate in (2.0, 3.5):
            states = kind(first, second, rate), kind(second.copy(), first.copy())
            wanted = sum(each.mean - each.rate * each.spread for each in states)
            p = np.zeros(3)
            for _ in range(3):
                f(p, states)
            long_ways.clear()
            f(p, states)
            assert long_ways == []
            np.testing.assert_array_equal(p, 4 * wanted)


def test_tuples_that_give_other_items_are_refused_between_others() -> None:
    f = made("def f(s):\n    return s[0] - 2 * s[1]")
    parts = [np.ones(3), np.zeros(3)]
    for _ in range(4):
        np.testing.assert_array_equal(f(tuple(parts)), parts[0] - 2 * parts[1])
        for given in (Backwards(parts), Backwards((1, 2))):
            with pytest.raises(pe.CdError, match="CD0701.*overrides `__getitem__`"):
                f(given)
