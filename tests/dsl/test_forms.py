"""How what a path leads to is found at every call, and which inputs are looked at in pairs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.dsl.elaborate.values import Path
from plusequals.dsl.forms import getter, pairs_with

OWNER = SimpleNamespace(w=[np.zeros(1), np.ones(2)], table={"a": 5, 3: 6}, p=pe.tensor("p", (4,)))
SCOPE: dict[str, Any] = {"owner": OWNER, "rate": 2.0}
TYPED: Any = SimpleNamespace(constants={"1:held": OWNER}, roots={"f:0:": {"rate": 9.0}.__getitem__})


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (Path("x"), OWNER),
        (Path("x", ("w", 1)), OWNER.w[1]),
        (Path("x", ("table", ("a",))), 5),
        (Path("x", ("table", (3,))), 6),
        (Path("x", ("p", "@grad")), OWNER.p.array("grad")),
        (Path("rate", (), True), 2.0),
        (Path("owner", ("table", ("a",)), True), 5),
        (Path("f:0:rate", (), True), 9.0),
        (Path("1:held", ("w", 0), True), OWNER.w[0]),
    ],
)
def test_what_a_path_leads_to(path: Path, expected: Any) -> None:
    assert getter(TYPED, SCOPE.__getitem__, path)({"x": OWNER}) is expected


def test_it_is_looked_up_anew_each_time() -> None:
    get = getter(TYPED, SCOPE.__getitem__, Path("x", ("rate",)))
    assert [get({"x": SimpleNamespace(rate=n)}) for n in (1, 2)] == [1, 2]


@pytest.mark.parametrize(
    ("path", "error"),
    [
        (Path("x", ("nothing",)), AttributeError),
        (Path("x", ("w", 7)), IndexError),
        (Path("x", ("table", ("b",))), KeyError),
    ],
)
def test_a_path_that_leads_nowhere(path: Path, error: type[Exception]) -> None:
    with pytest.raises(error):
        getter(TYPED, SCOPE.__getitem__, path)({"x": OWNER})


def test_pairs_of_which_one_is_written() -> None:
    assert pairs_with([False, False, False]) == ()
    assert pairs_with([True, False, False]) == ((0, 1), (0, 2))
    assert pairs_with([False, True, True]) == ((0, 1), (0, 2), (1, 2))
