"""Random calls between random changes: the short way does what the long way does."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

import plusequals as pe

pytestmark = pytest.mark.usefixtures("short_way")

TEXTS = (
    "def f(y, x, a):\n    y[:] = a * x + y",
    "def f(y, x, a):\n    return x + y * a",
    "def f(y, x, a):\n    y[0] = a\n    return y, np.sum(x), x * K",
    "def f(y, x, a):\n    s = np.sort(x)\n    y[:] = s + obj.k\n    return s[0] * a",
    "def f(y, x, a):\n    return np.dot(A, x) + len(y) * a",
    "def f(y, x, a):\n    y[:] = x[::-1]\n    return obj.w[0] + a",
    "def f(y, x, a=3, *, b=1.0):\n    return x * a + y * b",
)
NUMBERS = (2.0, 5, True, -1.5, np.float32(2), 1 + 1j, np.float64(0.1), 2**63)


class World:
    """A function, what it captures, and arrays to give it; two are alike if made alike."""

    def __init__(self, text: str) -> None:
        self.obj = SimpleNamespace(k=2.0, w=[np.arange(3.0), 1])
        self.names = {"np": np, "K": 2, "A": np.arange(4.0), "obj": self.obj}
        self.f = pe.cd_from_source(text, self.names)
        base = np.arange(12.0)
        self.arrays = [
            np.arange(4.0), base[:4], base[2:6], base[7:3:-1], np.arange(4, dtype=np.float32),
            np.ones((4, 1)), np.zeros(0), np.arange(4.0).astype(">f8"),
        ]  # fmt: skip

    def state(self) -> list[Any]:
        return [(a.dtype.str, a.shape, a.strides, a.flags.num, a.tobytes()) for a in self.arrays]

    def mutate(self, what: str, at: int, value: int) -> None:
        array = self.arrays[at % len(self.arrays)]
        match what:
            case "resize":
                fresh = array.flags.owndata and array.flags.c_contiguous
                if fresh and array.flags.writeable:  # or NumPy leaves what is new as it finds it
                    array.resize(2 + value % 4, refcheck=False)
            case "shape":
                if array.size == 4 and array.flags.c_contiguous:
                    array.shape = (4,) if value % 2 else (2, 2)
            case "write":
                if array.flags.owndata or value % 2 == 0:
                    array.flags.writeable = bool(value % 2)
            case "dtype":
                if array.dtype in (np.float64, np.int64) and array.flags.c_contiguous:
                    array.dtype = np.int64 if value % 2 else np.float64
            case "fill":
                if array.flags.writeable:
                    array[...] = value
            case "captured":
                self.names["K"] = (2, 3, 2.5, np.arange(4.0), 2)[value % 5]
            case "array":
                self.names["A"] = (np.arange(4.0), np.ones(4), np.arange(8.0)[::2])[value % 3]
            case "attribute":
                self.obj.k = (2.0, 2, 3.5, np.float32(1))[value % 4]
            case "item":
                self.obj.w[0] = (np.arange(3.0), np.ones(2), 4.0)[value % 3]


def outcome(call: Callable[..., Any], arrays: Any, number: Any, form: int) -> Any:
    """What a call returns or raises, so that it can be compared."""
    try:
        return seen(_called(call, *arrays, number, form))
    except pe.CdError as problem:
        return type(problem).__name__, str(problem)


def seen(value: Any) -> Any:
    match value:
        case tuple() | list():
            return type(value), [seen(item) for item in value]
        case np.ndarray() | np.generic():
            return type(value), value.dtype.str, value.shape, value.strides, value.tobytes()
        case _:
            return type(value), repr(value)


WHATS = ("resize", "shape", "write", "dtype", "fill", "captured", "array", "attribute", "item")
CHANGES = st.tuples(st.sampled_from(WHATS), st.integers(0, 7), st.integers(0, 11))
CALLS = st.tuples(
    st.integers(0, 7), st.integers(0, 7), st.sampled_from(NUMBERS), st.integers(0, 3),
    st.sampled_from(("", "", "", "checked", "threads", "profile", "trace")),
)  # fmt: skip
STEPS = st.lists(st.tuples(CALLS, st.lists(CHANGES, max_size=2)), max_size=8)


@pytest.mark.filterwarnings("ignore")
@given(st.sampled_from(TEXTS), STEPS)
@hypothesis_settings(max_examples=12)
def test_both_ways_do_the_same(text: str, steps: list[Any]) -> None:
    short, long = World(text), World(text)
    for (y, x, number, form, mode), changes in steps:
        for _ in range(3):  # the third takes the short way, where there is one
            results = []
            for world, call in ((short, short.f), (long, functools.partial(_long, long.f))):
                arrays = world.arrays[y], world.arrays[x]
                with ExitStack() as stack:
                    _enter(stack, mode)
                    results.append(outcome(call, arrays, number, form))
            assert results[0] == results[1]
            assert short.state() == long.state()
        for change in changes:
            short.mutate(*change)
            long.mutate(*change)


def _long(function: Any, *args: Any, **kwargs: Any) -> Any:
    function._plans.clear()
    return function._call(*args, **kwargs)


def _called(call: Any, y: Any, x: Any, a: Any, form: int) -> Any:
    match form:
        case 0 | 1:
            return call(y, x, a)
        case 2:
            return call(y, a=a, x=x)
        case _:
            return call(x=x, y=y, a=a)


def _enter(stack: ExitStack, mode: str) -> None:
    match mode:
        case "checked":
            stack.enter_context(pe.override(checked=True))
        case "threads":
            stack.enter_context(pe.override(threads=1))
        case "profile":
            stack.enter_context(pe.profile())
        case "trace":
            stack.enter_context(pe.trace())
