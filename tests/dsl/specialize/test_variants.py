"""How what a path leads to is found at every call, and which inputs are looked at in pairs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals import cd
from plusequals.dsl.specialize.variants import make_getter, written_pairs
from plusequals.dsl.values.values import Path

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
    assert make_getter(TYPED, SCOPE.__getitem__, path)({"x": OWNER}) is expected


def test_it_is_looked_up_anew_each_time() -> None:
    get = make_getter(TYPED, SCOPE.__getitem__, Path("x", ("rate",)))
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
        make_getter(TYPED, SCOPE.__getitem__, path)({"x": OWNER})


def test_pairs_of_which_one_is_written() -> None:
    assert written_pairs([False, False, False]) == ()
    assert written_pairs([True, False, False]) == ((0, 1), (0, 2))
    assert written_pairs([False, True, True]) == ((0, 1), (0, 2), (1, 2))


@cd
def axpy(y, x):
    y.value += 2.0 * x.value


@cd
def more(p):
    p.value += 1


@cd
def tenfold(p):
    return p.value * 10


@pytest.mark.parametrize("look", [axpy, axpy.explain, axpy.specialise, axpy.procedure])
def test_a_call_that_only_reads_changes_nothing_that_is_computed_later(look: Any) -> None:
    both = pe.tensor("both", 2)
    axpy(both, both)  # a form that writes its second argument as well
    p, q = pe.tensor("p", 2, init=[1.0, 2.0]), pe.tensor("q", 2)
    write = more.compile(p).link(pe.device("cc:1").stream(threaded=False).context())
    read = tenfold.compile(p).link(pe.device("cc").stream(threaded=False).context())
    write()
    look(q, p)
    assert read().tolist() == [10, 20]  # of the host's version, which nobody has written
    assert p.numpy().tolist() == [2, 3]


def test_what_only_asks_about_a_call_brings_no_array_up_to_date() -> None:
    p, q = pe.tensor("p", 2, init=[1.0, 2.0]), pe.tensor("q", 2)
    write = more.compile(p).link(pe.device("cc:1").stream(threaded=False).context())
    read = tenfold.compile(p).link(pe.device("cc").stream(threaded=False).context())
    write()
    for ask in (axpy.explain, axpy.specialise, axpy.procedure, axpy.compile):
        ask(p, q)
    assert read().tolist() == [10, 20]
    axpy(p, q)
    assert p.numpy().tolist() == [2, 3] and read().tolist() == [20, 30]
