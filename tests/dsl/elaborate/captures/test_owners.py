"""The owner of a method is found from the method, in each call anew, and so is what functions that
are inlined consist of."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import pytest

import plusequals as pe
from plusequals import cd

ONES = np.ones(2)


class Scale:
    def __init__(self, rate: float, w: float) -> None:
        self.rate, self.w, self.other = rate, np.full(2, w), self.times

    def times(self, x):
        return x * self.rate + self.w

    @cd(backend="numpy")
    def step(self, x):
        return self.other(x)


def test_a_method_of_another_object_is_that_objects() -> None:
    x = np.ones(2)
    one, two = Scale(2.0, 1.0), Scale(2.0, 5.0)
    assert one.step(x).tolist() == [3.0, 3.0] and two.step(x).tolist() == [7.0, 7.0]
    form = Scale.step.specialise(one, x)
    one.other = two.times
    assert one.step(x).tolist() == [7.0, 7.0]
    assert Scale.step.specialise(one, x) is form
    one.other = Scale(3.0, 0.0).times
    assert one.step(x).tolist() == [3.0, 3.0]


def test_what_no_path_leads_to_is_the_very_object() -> None:
    @cd(backend="numpy")
    def f(g, x):
        return g(x)

    x = np.ones(2)
    for rate, w in ((2.0, 1.0), (2.0, 5.0)):
        part = functools.partial(Scale(rate, w).times)
        assert f(part, x).tolist() == [rate + w] * 2


def helper(v, by=3.0, more=ONES, *, add=1.0):
    return v * by + more + add


def other(v, by=3.0, more=ONES, *, add=1.0):
    return v - by * add * more


class Layer:
    def __init__(self, w: float) -> None:
        self.w = w

    def __call__(self, x):
        return x * self.w


part = functools.partial(helper, by=2.0)


@cd
def kernel(x, by=2.0, *, add=1.0):
    return x * by + add


CHANGES: dict[str, Callable[[], object]] = {
    "a partial's keyword": lambda: part.keywords.update(by=6.0),
    "a partial's new keyword": lambda: part.keywords.update(add=6.0),
    "a partial's function": lambda: part.__setstate__((other, (ONES,), {"add": 2.0}, None)),
    "a default under `@cd`": lambda: setattr(kernel, "__defaults__", (7.0,)),
    "a keyword's under `@cd`": lambda: kernel.__wrapped__.__kwdefaults__.update(add=7.0),
    "an attribute": lambda: setattr(helper, "rate", 7.0),
    "a number": lambda: setattr(helper, "__defaults__", (5.0, ONES)),
    "an array of another type": lambda: setattr(helper, "__defaults__", (5.0, [2, 3])),
    "an array like it": lambda: setattr(helper, "__defaults__", (5.0, ONES * 4)),
    "a keyword's": lambda: setattr(helper, "__kwdefaults__", {"add": 7.0}),
    "in its place": lambda: helper.__kwdefaults__.update(add=8.0),
    "code": lambda: setattr(helper, "__code__", other.__code__),
    "a class's call": lambda: setattr(Layer, "__call__", lambda self, x: x + self.w),
    "its code": lambda: setattr(Layer.__call__, "__code__", (lambda self, x: x - self.w).__code__),
}


@pytest.mark.parametrize("what", CHANGES)
def test_functions_that_are_changed_in_place_are_noticed(
    what: str, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("__code__", "__defaults__", "__kwdefaults__"):
        monkeypatch.setattr(helper, name, getattr(helper, name))
    monkeypatch.setattr(helper, "__kwdefaults__", dict(helper.__kwdefaults__))
    for name in ("__defaults__", "__kwdefaults__"):
        monkeypatch.setattr(kernel, name, getattr(kernel, name))
    monkeypatch.setattr(kernel, "__kwdefaults__", dict(kernel.__kwdefaults__))
    monkeypatch.setattr(helper, "rate", 2.0, raising=False)
    monkeypatch.setitem(globals(), "part", functools.partial(helper, by=2.0))
    monkeypatch.setattr(Layer.__call__, "__code__", Layer.__call__.__code__)
    monkeypatch.setattr(Layer, "__call__", Layer.__call__)

    @cd(backend=backend)
    def f(layer, x):
        return helper(layer(x)) + helper(x, by=helper.rate) + part(x) + kernel(x)

    x, layer = np.arange(2.0), Layer(2.0)
    for _ in range(2):
        for _ in range(4):  # the long way, then the short one
            np.testing.assert_array_equal(f(layer, x), f.__wrapped__(layer, x))
        CHANGES[what]()


def test_own_parts_that_are_replaced_hold_from_then_on(backend: str) -> None:
    @cd(backend=backend)
    def f(x, by=2.0, *, add=1.0):
        return x * by + add

    x = np.arange(2.0)
    for _ in range(4):
        assert f(x).tolist() == [1.0, 3.0]
    f.__defaults__ = (5.0,)
    assert [f(x).tolist() for _ in range(4)] == [[1.0, 6.0]] * 4
    f.__wrapped__.__kwdefaults__.update(add=3.0)
    assert [f(x).tolist() for _ in range(4)] == [[3.0, 8.0]] * 4
    assert f(x, add=0.0).tolist() == [0.0, 5.0]
    f.__code__ = other.__code__
    f.__defaults__ = (1.0, ONES)
    assert [f(x).tolist() for _ in range(4)] == [[-3.0, -2.0]] * 4


def test_a_default_value_under_cd_is_that_of_the_definition() -> None:
    rate = 2.0

    @cd(backend="numpy")
    def inner(x, by=rate):
        return x * by

    text = pe.cd_from_source("def g(x, by=k):\n    return x * by\n", {"k": 3.0})

    @cd(backend="numpy")
    def f(x):
        return inner(x) + text(x)

    rate = 7.0
    assert f(np.ones(2)).tolist() == [5.0, 5.0]
    with pytest.raises(AttributeError, match="has no `__defaults__`"):
        text.__defaults__ = (4.0,)


def test_default_values_that_are_gone_are_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helper, "__defaults__", (3.0, ONES))

    @cd
    def f(x):
        return helper(x)

    x = np.arange(2.0)
    for _ in range(4):
        assert f(x).tolist() == [2.0, 5.0]
    helper.__defaults__ = (ONES * 7,)
    with pytest.raises(pe.CdError, match="without its argument `by`"):
        f(x)


def test_an_array_by_default_is_none_to_be_written() -> None:
    def count(x, total=ONES):
        total += x
        return total

    @cd
    def f(x):
        return count(x)

    with pytest.raises(pe.CdError, match="CD0207"):
        f(np.arange(2.0))
