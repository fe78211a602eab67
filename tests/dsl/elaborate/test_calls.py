"""Functions are inlined: arguments bound as Python binds them, computed once, blocks named."""

from __future__ import annotations

import functools
import operator

import numpy as np
import pytest

import plusequals as pe
from plusequals.base.diagnostic import CdError
from plusequals.lowering.ir.assignments import Assign, Block
from tests.compare import assert_same
from tests.language.ask import plain, run

from .scenes import found, typed

X = np.arange(6.0).reshape(2, 3) + 1.0


def scaled(x, /, factor=2.0, *rest, shift=0.0):  # type: ignore[no-untyped-def]
    total = shift
    for part in rest:
        total = total + part
    return x * factor + total


def doubled_in_place(v):  # type: ignore[no-untyped-def]
    v *= 2.0


def endless(n):  # type: ignore[no-untyped-def]
    return endless(n - 1)


class Scale:
    """An owner of a method."""

    def __init__(self, by: float) -> None:
        self.by = by

    def apply(self, x):  # type: ignore[no-untyped-def]
        return x * self.by


NAMES = {
    "scaled": scaled, "doubled_in_place": doubled_in_place, "endless": endless,
    "operator": operator, "three": functools.partial(scaled, factor=3.0), "scale": Scale(4.0),
}  # fmt: skip
CALLS = (
    "return scaled(x)",
    "return scaled(x, 3.0)",
    "return scaled(x, factor=0.5, shift=1.0)",
    "return scaled(x, 1.0, 2.0, 3.0)",
    "return scaled(x, *(5.0, 6.0))",
    "return three(x)",
    "return scale.apply(x)",
    "doubled_in_place(x[0])\nreturn x",
    "f = lambda a, b=2.0: a - b\nreturn f(x), f(x, b=1.0)",
    "def g(a):\n    return a + k\nk = 1.0\ny = g(x)\nk = 5.0\nreturn y, g(x)",
    "def g():\n    pass\nreturn g()",
    "y = [scaled(r, n) for n, r in ((1, x[0]), (2, x[1]))]\nreturn y[0], y[1]",
    "return [i * 2 for i in (1, 2, 3, 4) if i % 2 == 0]",
    "return tuple(range(3)), list((1, 2))",
)


@pytest.mark.parametrize("body", CALLS)
def test_calls_give_what_python_gives(body: str) -> None:
    mine, pythons = X.copy(), X.copy()
    assert_same(run("numpy", "x", body, mine, **NAMES), plain("x", body, pythons, **NAMES))
    assert_same(mine, pythons)


def test_an_argument_is_computed_once_however_often_it_is_read() -> None:
    body = "def cube(a):\n    return a * a * a\nreturn cube(np.exp(x[0, 0]))"
    procedure = typed("x", body, X).procedure
    computed = [one for one in found(procedure, Assign) if "exp" in repr(one.value)]
    assert len(computed) == 1


def test_a_call_of_several_statements_is_a_block_of_its_own_name() -> None:
    body = "def twice(v):\n    v += 1.0\n    v *= 2.0\ntwice(x[0])\ndoubled_in_place(x[1])"
    procedure = typed("x", body, X, **NAMES).procedure
    assert [block.comment for block in found(procedure, Block)] == ["twice(...)"]


def test_another_cd_function_is_inlined_with_its_own_scope() -> None:
    inner = pe.cd_from_source("def inner(v):\n    return v * k\n", {"k": 10.0})
    got = run("numpy", "x", "k = 2.0\nreturn inner(x) + k", X, inner=inner)
    assert_same(got, X * 10.0 + 2.0)


def test_an_error_inside_names_the_way_to_it() -> None:
    body = "def g(a):\n    return a + nothing\ndef f2(a):\n    return g(a)\nreturn f2(x)"
    with pytest.raises(CdError) as caught:
        run("numpy", "x", body, X)
    assert [span.text for span in caught.value.diagnostics[0].stack] == ["f2(x)", "g(a)"]


SUMS = {
    "a list": [1, 2, 3],
    "a list of floats": [1.5, 2.0],
    "a tuple": (1, 2),
    "an array": np.arange(3),
}
STARTS = (5, 0.5, True, np.float32(5), np.int64(3))


@pytest.mark.parametrize("start", STARTS, ids=repr)
@pytest.mark.parametrize("items", SUMS.values(), ids=SUMS)
@pytest.mark.parametrize("call", ["sum(x, s)", "sum(x, start=s)", "sum([v for v in x], s)"])
def test_a_sum_has_pythons_type_from_any_start(items: object, start: object, call: str) -> None:
    for params, values in (("x, s", (items, start)), ("x", (items,))):
        got = run("numpy", params, f"return {call}", *values, s=start)
        expected = plain(params, f"return {call}", *values, s=start)
        assert (type(got), got) == (type(expected), expected)


COMPREHENSIONS = {
    "over rows": "return [row * 2 for row in x]",
    "over elements": "return np.array([v * v + 1 for v in x[0]]), sum(v * v for v in x[1])",
    "of two loops": "return [i * j for i in range(3) for j in range(i, 3) if i != 1]",
    "in one another": "return np.array([[i * j for j in range(3)] for i in range(2)])",
    "over pairs": "return [i * v for i, v in enumerate(x[0], start=2)]",
    "over two arrays": "return [v + w for v, w in zip(x[0], x[1], strict=False)]",
    "of bools": "return any(v > 1 for v in x[0]), all(v > 1 for v in x[0])",
    "around a function with a loop": (
        "def total(k):\n    s = 0.0\n    for j in range(3):\n        s += x[k, j]\n    return s\n"
        "return sum([x[k, 0] * total(k) for k in range(2)])"
    ),
    "and the name outside": "k = 7\na = [k for k in range(3)]\nreturn a, k",
}


@pytest.mark.parametrize("body", COMPREHENSIONS.values(), ids=COMPREHENSIONS)
def test_comprehensions_are_written_out(body: str, backend: str) -> None:
    assert_same(run(backend, "x", body, X.copy()), plain("x", body, X.copy()))


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("return scaled()", "CD0429"),
        ("return scaled(x, nope=1)", "CD0429"),
        ("f = lambda a: a\nreturn f(x, x)", "CD0429"),
        ("return endless(3)", "CD0430"),
        ("return x(1)", "CD0427"),
        ("return operator.length_hint(x)", "CD0427"),
        ("return open(x)", "CD0428"),
        ("l = [1]\nl.append(2)", "CD0438"),
        ("return [x[v:] for v in range(300)]", "CD0437"),
        ("a = [v for v in range(300)]\nreturn a, a", "CD0434"),
        ("return [i for i in (1, 2) if x[0, i] > 0]", "CD0431"),
        ("return np.random.rand(3)", "CD0428"),
    ],
)
def test_what_cannot_be_called_is_refused(body: str, code: str) -> None:
    with pytest.raises(CdError, match=code):
        run("numpy", "x", body, X, **NAMES)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("a, b = range(10**15)\nreturn x", "CD0406"),
        ("a, b = np.arange(7, 2**62)\nreturn x", "CD0406"),
        ("return list(range(10**15))", "CD0406"),
        ("return max(*np.zeros(10**9))", "CD0406"),
        ("for t in len(range)(3):\n    x[t] = 1\nreturn x", "CD0402"),
    ],
)
def test_more_items_than_can_be_written_out_are_refused_at_once(body: str, code: str) -> None:
    text = "def f(x):\n" + "".join(f"    {line}\n" for line in body.split("\n"))
    with pytest.raises(pe.CdError, match=code):
        pe.cd_from_source(text, {"np": np}, backend="numpy")(np.ones(3))


@pytest.mark.parametrize(
    "text",
    ["np.array(range(5))", "np.asarray(range(5, 0, -2))", "x + range(3)", "np.sum(range(4))",
     "any(range(3)), all(range(3)), any(range(1)), all(range(1, 9)), any(range(0))",
     "np.array(range(-3, 2**62, 2**61))", "range(3) * x[1]", "np.sin(range(3))",
     "np.mean(range(7))", "x[list(range(2))]"],
)  # fmt: skip
def test_ranges_are_arrays_as_in_numpy(text: str, backend: str) -> None:
    x = np.arange(3, dtype=np.float32)
    got = pe.cd_from_source(f"lambda x: ({text})", {"np": np}, backend=backend)(x)
    expected = eval(text, {"np": np, "x": x})
    assert type(got) is type(expected)
    np.testing.assert_array_equal(got, expected)
    assert np.asarray(got).dtype == np.asarray(expected).dtype
