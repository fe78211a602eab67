"""What captured values are in words: different where code may differ, the same in all processes."""

from __future__ import annotations

import functools
import itertools
import math
import operator
import subprocess
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.dsl.source import fingerprint as identity
from plusequals.dsl.source.fingerprint import (
    NotPortable,
    definition_text,
    describe,
    fingerprint,
    resolve,
    try_describe,
)
from plusequals.dsl.source.function_source import MISSING, lines_of
from plusequals.idx import i, j


def helper(v: Any, by: float = 2.0) -> Any:
    return v * by


@pe.cd
def kernel(v: Any) -> Any:
    return v + 1


class Own:
    k = 1.0


DIFFERENT: list[Any] = [
    MISSING, None, ..., True, 1, 2, 1.0, 0.0, -0.0, math.inf, 1j, complex(-0.0, 0), complex(0, 0),
    "1", b"1", (), (1,), (1.0,), ((1,),), (1, None), np.float32(1), np.float64(1), np.int64(1),
    np.bool_(1), np.dtype("f4"), np.dtype("f8"), np.float32, np.sum, np.add, np.add.reduce,
    np.multiply.reduce, abs, math.sin, operator.add, np, math, np.linalg, np.ones(2), np.ones(3),
    np.ones(2, "f4"), np.ones((2, 1)), np.ones(4)[::2], np.ones(2)[::-1],
    np.broadcast_to(1.0, (2,)), pe.f32, pe.f32[3], pe.f64, i, j, pe.clamp, helper, kernel,
    lambda v: v,
    lambda v, w=1: v,
]  # fmt: skip


def test_what_differs_is_described_differently_and_what_is_equal_alike() -> None:
    for one, two in itertools.combinations(DIFFERENT, 2):
        assert describe(one) != describe(two), (one, two)
    for one in DIFFERENT:
        assert describe(one) == describe(one) == try_describe(one)
    assert describe(np.zeros(3)) == describe(np.ones(3))
    fixed = np.ones(3)
    fixed.flags.writeable = False
    assert describe(fixed) != describe(np.ones(3))


@pytest.mark.parametrize(
    "value",
    [
        object(), Own, Own(), [1], {}, {1: 2}, {1}, functools.partial(helper, by=1.0),
        functools.cache(helper), Own().__eq__, np.ones(2, "i4,f4"), np.ones(2).view(np.recarray),
        np.dtype([("a", "f4")]), np.ones(2, ">f4"), np.array([None]), types.ModuleType("numpy"),
        types.ModuleType("nowhere"), (1, [2]), iter(()), range(3), eval("lambda v: v"),
        pe.cd_from_source("lambda v: v"), sys.stdout, np.random.default_rng(0),
    ],
)  # fmt: skip
def test_what_has_no_words(value: object) -> None:
    with pytest.raises(NotPortable):
        describe(value)
    assert try_describe(value) is None


def test_objects_that_say_what_they_are_not() -> None:
    class Liar:
        __module__, __qualname__ = "numpy", "sum"

        def __getattr__(self, name: str) -> Any:
            raise ValueError(name)

    @functools.wraps(np.sum)
    def wrapped(v: Any) -> Any:
        return v

    for one in (Liar, Liar(), wrapped):
        assert try_describe(one) is None


def test_words_mean_the_same_in_another_process() -> None:
    program = (
        "import math, numpy as np, plusequals as pe\n"
        "from plusequals.dsl.source.fingerprint import describe\n"
        "print([describe(x) for x in (1.5, np.float32(2), np.sum, math, np.add.reduce, pe.f32[3],"
        " np.ones((2, 3)).T, (1, 'a'), frozenset.union and abs)])"
    )
    told = [
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
        ).stdout
        for seed in ("1", "2")
    ]  # fmt: skip
    assert told[0] == told[1] and "reduce" in told[0]


def test_a_fingerprint_is_of_text_code_and_defaults(module: Callable[..., Any]) -> None:
    text = "def f(v, a=1.0, *, b=2):\n    t: x\n    return v * a + 0.0, {'p', 'q'}, -0.0\n"
    first = fingerprint(module(text).f)
    assert fingerprint(module("\n# more\n\n" + text + "\n\nx = 1\n").f) == first
    assert fingerprint(module(text + "    # a comment of its own\n").f) != first
    for old, new in (
        ("a=1.0", "a=2.0"), ("b=2", "b=2.0"), ("t: x", "t: y"), ("+ 0.0", "+ -0.0"), ("'q'", "'r'"),
        ("v * a", "v*a"), ("f(v,", "f(w,"), ("def f", "@(lambda g: g)\ndef f"),
    ):  # fmt: skip
        assert fingerprint(module(text.replace(old, new)).f) != first, new
    changed = module(text).f
    changed.__defaults__ = (3.0,)
    assert fingerprint(changed) != first
    changed.__defaults__ = (1.0,)
    assert fingerprint(changed) == first
    changed.__kwdefaults__["b"] = 3
    assert fingerprint(changed) != first
    changed.__defaults__ = (changed,)
    with pytest.raises(NotPortable):
        fingerprint(changed)
    with pytest.raises(NotPortable):
        fingerprint(len)


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("def f(v):\n    return v\ng = 1\n", "    return v"),
        ("def f(v):\n    return (v\n+ 1)\ng = 1\n", "+ 1)"),
        ("def f(v):\n    return v\n    t: 'x'\n\n    # more\ng = 1\n", "    # more"),
        ("def f(v): return v\ng = 1\n", "def f(v): return v"),
        ("if 1:\n    def f(v):\n        return v\n        u: int\n    g = 1\n", "        u: int"),
        ("f = (lambda v:\n    v\n  + 1\n)\ng = 1\n", "  + 1"),
        ("async def f(v):\n    pass\n    u: int", "    u: int"),
    ],
)
def test_the_lines_of_a_function(module: Callable[..., Any], text: str, last: str) -> None:
    f = module(text).f
    assert definition_text(f.__code__, lines_of(f)).split("\n")[-1] == last


@pytest.mark.parametrize(
    "text",
    [
        "def f(v):\n    return v\n    t: [\n'x',\n]\n",
        "def f(v):\n    t: [\n1]\n",
        "def f(v):\n    '''\nall of it'''\n",
        "def f(v):\n    return v; u: \\\nint\n",
        "def f(v): return v; g = 1\nf.__code__ = f.__code__.replace(co_firstlineno=9)\n",
    ],
)
def test_lines_that_may_not_be_all(module: Callable[..., Any], text: str) -> None:
    f = module(text).f
    try:
        found = definition_text(f.__code__, lines_of(f))
    except NotPortable:
        return
    assert found == text.rstrip()  # all of it after all


def test_only_libraries_are_taken_by_name(monkeypatch: Any) -> None:
    assert all(
        map(identity.is_library, ("numpy", "numpy.linalg", "math", "os.path", "plusequals.idx"))
    )
    assert not any(map(identity.is_library, ("__main__", "", "scipy", "numpyish", "tests")))
    monkeypatch.setattr(sys.modules["string"], "__file__", "/somewhere/string.py")
    assert not identity.is_library("string")


def test_words_lead_back() -> None:
    for value in (np, math, np.sum, np.float32, operator.add):
        assert resolve(describe(value)) is value
    for wrong in (
        ["module", "nowhere", True],
        ["library", "numpy", "nothing"],
        ["constant", "int", "1"],
    ):
        with pytest.raises(NotPortable):
            resolve(wrong)
    assert identity.read_attribute(np, "pi") is np.pi
    with pytest.raises(NotPortable):
        identity.read_attribute(np, "nothing")


def test_of_some_values_nobody_changes_attributes() -> None:
    assert all(
        map(identity.is_immutable, (1.0, np.float32(1), np.dtype("f4"), "a", np.finfo("f4")))
    )
    assert not any(map(identity.is_immutable, (np, np.add, helper, Own, Own(), np.ones(1))))
