"""What may be called while compiling, and with what."""

from __future__ import annotations

import collections
import datetime
import enum
import functools
import math
import os
import time
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from plusequals.dsl.elaborate.captures.pure_calls import changes, is_pure, is_value, reads_only


class Color(enum.Enum):
    RED = 1


class Own:
    pass


DAY = datetime.date(2020, 1, 2)


@pytest.mark.parametrize(
    "value",
    [1, 2.5, "a", b"a", None, ..., (1, ("a",)), frozenset((1,)), range(3), np.dtype("f4"), DAY,
     np.float32(1), Color.RED, slice(1)],
)  # fmt: skip
def test_values_cannot_be_changed(value: object) -> None:
    assert is_value(value)
    assert is_value((value,))


@pytest.mark.parametrize("value", [[], {}, set(), ([],), Own(), Own, np.ones(2), len, np])
def test_others_can(value: object) -> None:
    assert not is_value(value)


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (abs, (1,)), (math.sin, (1.0,)), ("a".upper, ()), (str.upper, ("a",)), (type, (1,)),
        (isinstance, (1, (int, float))), (Color, (1,)), (datetime.timedelta, (1,)),
        (DAY.toordinal, ()), (int.from_bytes, (b"a", "big")), (functools.partial, (Own,)),
        ((1).__add__, (2,)), (int.__add__, (1, 2)), (np.gcd, (4, 6)), (np.add, (1.0, 2)),
    ],
)  # fmt: skip
def test_pure_functions(function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    assert is_pure(function, args)


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (abs, ([],)), (len, ([],)), (time.time, ()), (os.getcwd, ()), (id, (1,)), (type, ("A", ())),
        (datetime.datetime.now, ()), (DAY.strftime, ("%c",)), (Own, ()), (object, ()),
        ([].append, (1,)), ({}.get, (1,)), (dict.fromkeys, ("a",)), (print, ("a",)), (map, (abs,)),
        (getattr, (1, "real")), (list.append, ([], 1)), (lambda: 1, ()), (repr, (Own(),)),
        (np.frompyfunc(print, 1, 1), (1,)),
    ],
)  # fmt: skip
def test_others_are_not(function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    assert not is_pure(function, args)


def test_methods_that_read_and_that_change() -> None:
    queue = collections.deque([1])
    for method in (
        {}.get,
        {1}.isdisjoint,
        queue.count,
        types.MappingProxyType({}).get,
        DAY.weekday,
    ):
        assert reads_only(method)
        assert not changes(method)
    for method in ({}.pop, {1}.add, queue.popleft, [].append, bytearray().extend):
        assert not reads_only(method)
        assert changes(method)
    assert not reads_only({}.copy)
