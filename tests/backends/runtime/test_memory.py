"""Accounts of memory: what is alive is counted, whatever collects it."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.runtime.memory import Buffer, HostMemory, MemoryAccount, memory_guard


def test_arrays_are_counted_while_they_are_alive() -> None:
    account = MemoryAccount()
    one, two = Buffer("a", np.zeros(4), account), Buffer("b", np.zeros((2, 0)), account)
    assert account.used == 32 and two.array.size == 0
    kept = Buffer("c", np.zeros(1), account)
    del one
    assert account.used == 8 and repr(kept) == "<array of c, version 0>"


def test_arrays_in_circles_are_given_back_in_any_order() -> None:
    account = MemoryAccount()
    for _ in range(5):
        one, two = Buffer("a", np.zeros(4), account), Buffer("b", np.zeros(4), account)
        one.lent[None] = lambda two=two: None
        two.lent[None] = lambda one=one: None
    del one, two
    gc.collect()
    assert account.used == 0


def test_no_room_says_how_much_and_for_what() -> None:
    with pytest.raises(MemoryError, match="CD0705.*for `p`, which takes 8,000 bytes"):
        with memory_guard("`p`", 8000):
            raise MemoryError
    with pytest.raises(ValueError, match="x"):
        with memory_guard("`p`", 8000):
            raise ValueError("x")


def test_an_array_that_has_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    p = pe.tensor("p", 1000, dtype="float64")
    code = pe.cd_from_source("def f(p):\n    p.value += 1\n").compile(p)
    context = pe.device("numpy").stream(threaded=False).context()

    def full(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(HostMemory, "empty", full)
        with pytest.raises(MemoryError, match=r"CD0705.*`p` on numpy:0/s\d+, which takes 8,000"):
            code.link(context)
    code.link(context)()
    assert p.numpy()[0] == 1


def test_memory_of_the_host_has_no_streams_of_its_own() -> None:
    memory = HostMemory("cc:1", is_separate=True)
    assert memory.lane() is None
    assert memory.empty((2, 3), np.int8, "x", None).shape == (2, 3)
    assert memory.properties["uses host memory"] is False
    assert memory.suggested_streams >= 1
