"""Accounts of memory: what is alive is counted, whatever collects it."""

from __future__ import annotations

import gc

import numpy as np

from plusequals.backends.runtime.memory import Account, Buffer


def test_arrays_are_counted_while_they_are_alive() -> None:
    account = Account()
    one, two = Buffer("a", np.zeros(4), account), Buffer("b", np.zeros((2, 0)), account)
    assert account.used == 32 and two.array.size == 0
    kept = Buffer("c", np.zeros(1), account)
    del one
    assert account.used == 8 and repr(kept) == "<array of c, version 0>"


def test_arrays_in_circles_are_given_back_in_any_order() -> None:
    account = Account()
    for _ in range(5):
        one, two = Buffer("a", np.zeros(4), account), Buffer("b", np.zeros(4), account)
        one.lent[None] = lambda two=two: None
        two.lent[None] = lambda one=one: None
    del one, two
    gc.collect()
    assert account.used == 0
