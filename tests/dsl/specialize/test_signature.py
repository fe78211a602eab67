"""Cheap keys: equal keys have equal specifications, and what differs has different keys."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.dsl.source.function_source import MISSING
from plusequals.dsl.specialize.signature import cheap_key, describe_input


def values() -> list[Any]:
    """Inputs of every kind."""
    big = np.zeros((4, 6))
    return [
        1, 2, 2**70, True, False, 1.0, -0.0, 0.0, float("nan"), 1j, "a", "b", None, ..., b"a",
        np.float32(1), np.float64(1), np.int8(1), np.bool_(True), np.pi, np, np.sin, max, len,
        np.float32, float, pe.f32, pe.f32[3], pe.pad, MISSING, lambda: 0,
        big, big[:2], big.T, big[:, ::2], big.astype("f4"), big.astype(">f8"), big[:0], big[0, 0],
        np.zeros(25, "u1")[1:].view("f8"), np.zeros(()), np.zeros(3).view(np.recarray),
        (1, 2), (1, 3), (1.0, 2), (), [1, 2], [1.0], [[1], [2]], [big, 1], (big, "a"),
        pe.tensor("p", (2,)), pe.tensor("q", (3,)), pe.tensor("p", (2,), fields=("vel",)),
    ]  # fmt: skip


@pytest.mark.parametrize("static", [False, True])
def test_equal_keys_have_equal_specifications(static: bool) -> None:
    found = [(cheap_key(v, static), describe_input(v, static)) for v in values()]
    for one_key, one in found:
        hash(one_key)
        for other_key, other in found:
            if one_key == other_key:
                assert one == other


def test_numbers_that_are_given_share_a_key_and_constants_do_not() -> None:
    assert cheap_key(1, False) == cheap_key(2, False) != cheap_key(1.0, False)
    assert cheap_key(1, True) != cheap_key(2, True) != cheap_key(2.0, True)
    assert cheap_key(True, False) != cheap_key(False, False) != cheap_key(0, False)


def test_an_array_is_named_where_it_is_refused() -> None:
    with pytest.raises(TypeError, match="`grid` has elements of type datetime64"):
        describe_input(np.zeros(2, "M8[s]"), False, "grid")


def holding(item: object) -> list[Any]:
    made = [item] if item is not None else []
    made.append(made)
    return made


@pytest.mark.parametrize(
    "value", [holding(None), holding(np.ones(3)), (holding(1.0),), [[holding(None)]]]
)
@pytest.mark.parametrize("static", [False, True])
def test_a_list_that_holds_itself_is_refused(value: object, static: bool) -> None:
    with pytest.raises(pe.CdError, match="CD0702.*holds itself"):
        cheap_key(value, static)


LISTS: list[Any] = [
    [1.0, 2.0], [3.0, 4], [1, 2], [True, False], [1, 2**63], [1.0, 2**63], [-(2**63), 0], [],
    [[1, 2], [3, 4]], [[1.0, 2], [3, 4]], [[1, 2]], [[[1.0]]], [1.0], [np.float32(1), 2.0],
    [(1, 2)], [(1.0, 2.0)], [(1, 3)], ["a", 1], ["a", 2], [[1], "a"],
    [np.float64(1.0), 2.0], [-0.0, np.inf],
]  # fmt: skip


@pytest.mark.parametrize("one", LISTS, ids=repr)
def test_keys_of_lists_tell_of_what_is_made_of_them(one: list[Any]) -> None:
    for other in LISTS:
        for static in (False, True):
            if cheap_key(one, static) == cheap_key(other, static):
                assert describe_input(one, static) == describe_input(other, static)


def test_values_in_a_list_of_numbers_do_not_matter() -> None:
    for one, other in (([1.0, 2.0], [3.0, 4]), ([[1, 2]], [[3, 4]]), ([7], [8])):
        assert cheap_key(one, False) == cheap_key(other, False)
        assert cheap_key(one, True) != cheap_key(other, True)
