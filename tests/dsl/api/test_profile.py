"""`pe.profile()` notes plain calls, compilations, routines, copies and merges where they ran."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe
from plusequals import cd
from plusequals.base.diagnostic import CdError
from plusequals.idx import i
from tests.backends.runtime.test_device import merge, step


@cd
def twice(x):
    return x * 2


@cd
def picked(t, p):
    t.value[i] = t.value[p[i]]


def test_routines_copies_and_merges_are_noted() -> None:
    p = pe.tensor("p", (3,), dtype="float64", init=1.0)
    one, two = pe.device("cc").stream(), pe.device("cc").stream()
    code = step.compile(p, np.ones(3))
    first, second = code.link(one.context()), code.link(two.context())
    merging = merge.compile(p).link(first.context)
    with pe.profile() as timeline:
        first(np.ones(3))
        second(np.ones(3))
        second.context.merge_into(merging, p.grad)
        merging()
    noted = [(work.name, work.kind) for work in timeline.works]
    assert sorted(noted) == [
        ("merge", "routine"), ("merge p.grad", "merge"), ("step", "routine"), ("step", "routine"),
    ]  # fmt: skip
    places = {work.name: work.where for work in timeline.works}
    assert places["merge"] == one.name
    order = {work.name: work for work in timeline.works}
    assert order["merge p.grad"].ended <= order["merge"].started


def test_a_plain_call_and_its_compilation_are_noted() -> None:
    twice(np.ones(4))
    with pe.profile() as timeline:
        twice(np.ones(4))
        twice(np.ones((4, 5)))
    kinds = [(work.name, work.kind) for work in timeline.works]
    assert kinds.count(("twice", "call")) == 2
    assert ("compile twice", "compile") in kinds


def test_looks_of_the_host_are_noted() -> None:
    p = pe.tensor("p", (3,), dtype="float64", init=1.0)
    routine = step.compile(p, np.ones(3)).link(pe.device("cc:1").stream().context())
    with pe.profile() as timeline:
        routine(np.ones(3))
        assert p.grad.numpy().tolist() == [1.0, 1.0, 1.0]
    assert [w.kind for w in timeline.works if w.where == "the host"] == ["host"]


def test_the_inner_profile_notes_and_nothing_after_it() -> None:
    with pe.profile() as outer:
        with pe.profile() as inner:
            twice(np.ones(4))
        twice(np.ones(4))
    twice(np.ones(4))
    assert [len([w for w in t.works if w.kind == "call"]) for t in (inner, outer)] == [1, 1]


def test_what_fails_is_noted_and_raised_where_it_is_waited_for() -> None:
    t = pe.tensor("t", (2,), dtype="float64")
    stream = pe.device("cc").stream()
    routine = picked.compile(t, np.zeros(2, np.int64)).link(stream.context())
    with pe.profile() as timeline:
        routine(np.array([0, 7]))
    assert [w.name for w in timeline.works if w.kind == "routine"] == ["picked"]
    with pytest.raises(CdError, match="out of range"):
        stream.synchronize()
