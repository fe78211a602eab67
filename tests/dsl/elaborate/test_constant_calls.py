"""What is called while compiling follows from its arguments; all else is asked for or refused."""

from __future__ import annotations

import cmath
import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import logging
import math
import operator
import os
import random
import sys
import time
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals import cd
from plusequals.base.diagnostic import CdTypeError, CdValueError

X = np.ones(2)


class Mode(enum.Enum):
    FAST = "fast"


@dataclasses.dataclass
class Data:
    a: float = 1.0
    b: int = 2


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: float = 1.0


@dataclasses.dataclass
class Checked:
    a: float = 1.0

    def __post_init__(self) -> None:
        self.a = time.time()


class Plain:
    def __init__(self, k: int) -> None:
        self.k = k


def world(**names: Any) -> dict[str, Any]:
    modules = (
        cmath, datetime, decimal, fractions, functools, logging, math, operator, os, random, sys,
        time, warnings,
    )  # fmt: skip
    known = {module.__name__: module for module in modules}
    return known | {"np": np, "collections": collections, "Mode": Mode} | names


PURE = [
    "abs(-3), chr(65), ord('a'), hex(3), int('12', 16), isinstance(1, int), callable(len)",
    "math.gcd(4, 6), math.isqrt(17), cmath.phase(1j), operator.floordiv(7, 2), type(1) is int",
    "'abc'.upper(), str.lower('ABC'), 'a b'.split(), '{:.2f}'.format(2.5), 'abc'.startswith('a')",
    "float.fromhex('0x1p3'), range(3).count(2), slice(1, 2).indices(5), bytes(2)",
    "datetime.timedelta(seconds=3).total_seconds(), datetime.date(2020, 1, 2).toordinal()",
    "fractions.Fraction(1, 2).numerator, str(decimal.Decimal('1.5'))",
    "np.dtype('f4').itemsize, np.finfo(np.float32).eps, Mode('fast') is Mode.FAST",
    "Data(3.0).a, Data(b=7).b, Frozen(2.0).a, Frozen(2.0)",
    "functools.partial(operator.mul, 3)(4), operator.floordiv(-7, 2)",
]


@pytest.mark.parametrize("text", PURE)
def test_pure_calls_are_computed(text: str) -> None:
    names = world(Data=Data, Frozen=Frozen)
    f = pe.cd_from_source(f"lambda: ({text},)", names, backend="numpy")
    expected = eval(f"({text},)", names)
    for _ in range(3):
        assert [*map(repr, f())] == [*map(repr, expected)]


def test_a_list_is_a_new_one_in_each_call() -> None:
    f = cd(backend="numpy")(lambda: "a b".split())
    f().append("c")
    assert f() == ["a", "b"]


IMPURE = {
    "sys.getrecursionlimit()": "`getrecursionlimit` is not known",
    "os.getcwd()": "`getcwd` is not known",
    "datetime.datetime.now().microsecond": "`now` is not known",
    "datetime.date.today().day": "`today` is not known",
    "decimal.getcontext().prec": "`getcontext` is not known",
    "time.time()": "the time",
    "time.perf_counter()": "the time",
    "random.random()": "random numbers",
    "warnings.warn('a')": "`warn` is not known",
    "logging.info('a')": "error",
    "sys.stdout.write('a')": "`sys.stdout.write` changes an object",
    "emit(3)": "`emit` changes an object of type `list`",
    "seen.add(3)": "`seen.add` changes an object of type `set`",
    "queue.popleft()": "`queue.popleft` changes an object of type `deque`",
    "settings.pop('k')": "`settings.pop` changes an object of type `dict`",
    "settings.setdefault('k', 3)": "`settings.setdefault` changes",
    "settings.copy()": "`copy` is not known",
    "object()": "`object` is not known",
    "Plain(3).k": "`Plain` is not known",
    "Checked().a": "`Checked` is not known",
    "vars(Plain)": "`vars` is not known",
    "globals()": "`globals` is not known",
    "id(3)": "`id` is not known",
    "str.maketrans('a', 'b')": "`maketrans` is not known",
    "operator.call(os.getcwd)": "`call` is not known",
}


@pytest.mark.parametrize("text", IMPURE)
def test_other_calls_are_refused_and_nothing_is_done(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    results, seen, queue, settings = [1], {1}, collections.deque([1, 2]), {"k": 1}
    names = world(
        emit=results.append, seen=seen, queue=queue, settings=settings, Plain=Plain,
        Checked=Checked,
    )  # fmt: skip
    f = pe.cd_from_source(f"def f(x):\n    {text}\n    y = {text}\n    return x", names)
    with warnings.catch_warnings(record=True) as told:
        for ask in (f.explain, f, f):
            with pytest.raises(pe.CdError, match=IMPURE[text]):
                ask(X)
    assert [str(warning.message) for warning in told] == []
    assert (results, seen, settings) == ([1], {1}, {"k": 1})
    assert [*queue] == [1, 2]
    assert capsys.readouterr().out == ""


def test_a_mutable_object_of_constants_is_not_returned() -> None:
    with pytest.raises(CdTypeError, match="would be one object in all calls"):
        cd(backend="numpy")(lambda: Data(2.0))()
    with pytest.raises(CdTypeError, match="would be one object in all calls"):
        cd(backend="numpy")(lambda: zip((1, 2), (3, 4)))()


def test_the_constructor_of_a_dataclass_is_compared() -> None:
    kind = dataclasses.make_dataclass("Made", [("a", float, 1.0)])
    f = pe.cd_from_source("lambda: Made().a", {"Made": kind}, backend="numpy")
    assert f() == 1.0
    other = dataclasses.make_dataclass("Made", [("a", float, 5.0)])
    setattr(kind, "__init__", other.__init__)  # noqa: B010 - of a class that was made now
    assert f() == 5.0


def test_a_cached_function_is_inlined_with_constants_too() -> None:
    @functools.cache
    def table(n):
        return tuple(k * k for k in range(n))

    calls = []

    @functools.cache
    def counted(n):
        calls.append(n)
        return n

    assert cd(backend="numpy")(lambda: table(3))() == (0, 1, 4)
    with pytest.raises(CdTypeError, match="do not grow"):
        cd(backend="numpy")(lambda: counted(3))()
    assert calls == []


READING: dict[str, tuple[Callable[[], Any], Callable[[Any], None], str]] = {
    "an item": (lambda: {"k": 1}, lambda c: c.update(k=2), "c.get('k')"),
    "a missing one": (dict, lambda c: c.update(k=2), "c.get('k', 7)"),
    "one of another type": (lambda: {1: 1}, lambda c: c.update({1: 2.5}), "c.get(True, 1.0)"),
    "its absence": (lambda: {"k": 1}, lambda c: c.clear(), "c.get('k') is None"),
    "an array": (lambda: {"k": X}, lambda c: c.update(k=np.ones((2, 2))), "c.get('k').shape"),
    "a method": (lambda: {"k": 1}.get, lambda c: c.__self__.update(k=2), "c('k')"),
    "a set": (lambda: {1, 2}, lambda c: c.add(3), "c.isdisjoint((3,))"),
    "a queue": (lambda: collections.deque([1]), lambda c: c.append(1), "c.count(1)"),
    "a view of a dictionary": (
        lambda: types.SimpleNamespace(d={"k": 1}), lambda c: c.d.update(k=3),
        "c.d.get('k')",
    ),
    "a duration": (
        lambda: types.SimpleNamespace(t=datetime.timedelta(seconds=5)),
        lambda c: setattr(c, "t", datetime.timedelta(seconds=7)), "c.t.total_seconds()",
    ),
    "an object that is replaced": (
        lambda: types.SimpleNamespace(d={"k": 1}), lambda c: setattr(c, "d", {"k": 4}),
        "c.d.get('k')",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", READING)
def test_what_methods_in_c_read_is_asked_for_in_each_call(name: str, backend: str) -> None:
    make, change, text = READING[name]
    held = make()
    names = {"c": held, "X": X}
    captured = pe.cd_from_source(f"def f(x):\n    return x, {text}", names, backend=backend)
    passed = pe.cd_from_source(f"def f(x, c):\n    return x, {text}", {}, backend=backend)
    for step in range(4):
        for _ in range(4):  # the short way, too
            expected = eval(text, names)
            for found in (captured(X), passed(X, held)):
                assert repr(found[1]) == repr(expected)
        if step == 1:
            change(held)


def test_numbers_that_come_with_many_values_are_given_in_each_call() -> None:
    settings = {"k": 0.5}
    f = pe.cd_from_source("def f(x):\n    return x * s.get('k')", {"s": settings}, backend="numpy")
    for value in range(8):
        settings["k"] = value + 0.25
        np.testing.assert_array_equal(f(X), X * (value + 0.25))


def test_an_array_that_a_method_gives_is_written_in_place() -> None:
    class Holder:
        def __init__(self) -> None:
            self.parts = {"w": np.zeros(2)}

    @cd
    def f(o, x):
        o.parts.get("w")[:] = x

    holder = Holder()
    for n in (1.0, 2.0):
        f(holder, X * n)
        assert holder.parts["w"].tolist() == [n, n]


def test_a_property_with_another_value_each_time_is_told_of() -> None:
    kind = type("Own", (), {"v": property(lambda self: random.random())})
    f = pe.cd_from_source("def f(x):\n    return x * p.v", {"p": kind()}, backend="numpy")
    with pytest.raises(CdValueError, match="`p.v` is another one each time it is looked up"):
        f(X)


MODULES: dict[str, tuple[str, Callable[[Any], None]]] = {
    "the environment": ("os.environ['PE_TEST'] == '1'", lambda p: p.setenv("PE_TEST", "2")),
    "the arguments": ("len(sys.argv)", lambda p: p.setattr(sys, "argv", [*sys.argv, "more"])),
    "an argument": ("sys.argv[0]", lambda p: p.setattr(sys, "argv", ["other"])),
    "a number": ("sys.maxsize", lambda p: p.setattr(sys, "maxsize", 5)),
    "a function": ("math.floor(operator.index(2))", lambda p: None),
    "a container of NumPy's": ("np.typecodes['Float']", lambda p: p.setitem(
        np.typecodes, "Float", "e")),
    "a version": ("sys.version_info.major, sys.version_info >= (3, 10)", lambda p: p.setattr(
        sys, "version_info", (2, 7))),
}  # fmt: skip


@pytest.mark.parametrize("name", MODULES)
def test_what_modules_of_python_hold_is_compared_in_each_call(
    name: str, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, change = MODULES[name]
    monkeypatch.setenv("PE_TEST", "1")
    f = pe.cd_from_source(f"def f(x):\n    return x, {text}", world(), backend=backend)
    for _ in range(3):
        assert repr(f(X)[1]) == repr(eval(f"(0, {text})", world())[1])
    change(monkeypatch)
    if name == "a version":
        text, f = (
            "sys.version_info[0]",
            pe.cd_from_source(
                "def f(x):\n    return x, sys.version_info[0]", world(), backend=backend
            ),
        )
    for _ in range(3):
        assert repr(f(X)[1]) == repr(eval(f"(0, {text})", world())[1])


def test_arguments_with_one_repr_are_asked_for_each() -> None:
    class Level(enum.IntEnum):
        ONE = 1
        TWO = 2

        def __repr__(self) -> str:
            return "level"

    table = {1: 1.0, 2: 5.0}

    @pe.cd
    def f(x: Any) -> Any:
        return x * table.get(Level.ONE) + table.get(Level.TWO)

    x = np.arange(3.0)
    assert (f(x) == x + 5.0).all()
    table[2] = 7.0
    assert (f(x) == x + 7.0).all()
