"""Comprehensions over many numbers are arrays, and give what Python's lists give."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from tests.compare import assert_same

PARTS = (
    "np.array([x[i] - x[i - 1] for i in range(1, len(x))])",
    "np.array([k * v for k, v in enumerate(x)])",
    "np.array([u * v for u, v in zip(x, x[::-1])])",
    "np.array([x[i] for i in reversed(range(n))])",
    "np.array([x[i] for i in range(1, len(x), 3)])",
    "np.array([x[i] + i for i in range(len(x) - 1, -1, -2)])",
    "np.array([2 * i for i in range(0, 200, 2)]), sum([i for i in reversed(range(2, n, 5))])",
    "sum(v for v in x if v > 0)",
    "sum(math.exp(v) for v in x)",
    "len([v for v in x if v > 0 and v < 1])",
    "max([abs(v) for v in x])",
    "any(v > 2 for v in x), all([v < 9 for v in x])",
    "sum(1 for v in x if v > 0)",
    "sum(0.5 * i for i in range(n)) * x",
    "sum([n, 2.5]), sum([float(x[0]), n])",
    "max(*(v + 1 for v in (n, 3, 5))), min(2, *(k * n for k in range(3)))",
)


@pytest.mark.parametrize("part", PARTS)
def test_many_numbers_are_what_a_list_gives(part: str, backend: str) -> None:
    names = {"np": np, "math": math}
    f = pe.cd_from_source(f"lambda x, n: ({part},)", names, backend=backend)
    plain = eval(f"lambda x, n: ({part},)", names)
    for size in (1, 2, 3, 5, 7, 65, 200):
        x = np.random.default_rng(size).standard_normal(size).astype(np.float32)
        for one, other in zip(f(x, size), plain(x, size), strict=True):
            assert type(one) is type(other)
            assert np.asarray(one).dtype == np.asarray(other).dtype
            np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-6)


def test_a_generator_is_unpacked(backend: str) -> None:
    text = "def f(x):\n    a, b, c = (v * k for k, v in enumerate((x, x + 1, x[:1])))\n"
    text += "    [d, e] = (q for q in (a, b))\n    return a, b, c, d + e"
    scope: dict[str, Any] = {}
    exec(text, scope)
    x = np.arange(3.0)
    for one, other in zip(pe.cd_from_source(text, backend=backend)(x), scope["f"](x), strict=True):
        np.testing.assert_array_equal(one, other)


def test_no_index_is_checked_for_items_that_a_test_leaves_out(backend: str) -> None:
    f = pe.cd_from_source("lambda x, k: sum(x[j] for j in k if j < len(x))", {}, backend=backend)
    assert f(np.arange(4.0), np.arange(100)) == 6.0
    with pytest.raises(IndexError, match="index 4 is out of range"):
        pe.cd_from_source("lambda x, k: sum(x[j] for j in k)", {})(np.arange(4.0), np.arange(100))


def test_the_variable_of_a_comprehension_is_not_that_of_a_loop_before_it() -> None:
    text = """
def f(x):
    w = (0.5, 0.25, 2.0)
    for t in range(2):
        s = sum(x[k] for k in range(3))
        for k in range(3):
            x[k] += w[k] * s
    return s
"""
    wanted, found = np.ones(3), np.ones(3)
    scope: dict[str, Any] = {}
    exec(text, scope)
    s = scope["f"](wanted)
    assert pe.cd_from_source(text, {}, backend="numpy")(found) == s
    np.testing.assert_array_equal(found, wanted)


ITEMS = {
    "a number": "x[i] * 2",
    "a Python number": "i * 0.5 * n",
    "a bool": "x[i] > 0",
    "a call with a loop": "halves(x, i)",
    "a new array": "x[i:i + 4] * 2",
    "zeros": "np.zeros(3)",
    "a list": "[x[i + j] for j in range(10)]",
    "a reduction": "sum(x[i + j] * x[j] for j in range(20))",
    "an array of a call": "filled(x, i)",
    "a view": "x[i:i + 4]",
    "known": "i * 2",
}
USES = {
    "stacked": "return np.array(a)",
    "its sum": "return sum(a)",
    "items": "return a[3], a[-1], len(a)",
    "part": "return np.array(a[2:5])",
    "a loop": "s = 0\nfor v in a:\n    s = s + v\nreturn s",
    "counted": "s = 0\nfor k, v in enumerate(a):\n    s = s + k * v\nreturn s",
    "pairs": "return sum(p * q for p, q in zip(a, a))",
    "unpacked": "u, v, w = a[:3]\nreturn u, v, w",
    "joined": "return np.array(a + a)",
    "repeated": "return np.array(a * 2)",
    "extended": "a += [a[0]]\nreturn np.array(a)",
    "doubled": "a *= 2\nreturn np.array(a)",
    "returned": "return a",
    "a tuple": "return tuple(a)[1]",
    "another name": "b = a\nreturn b is a, np.array(b)",
    "a function": "def g(u):\n    return u[1], u[0]\nreturn g(a)",
    "kept": "x[2:6] = 9.0\nreturn np.array(a)",
}


def halves(x, i):
    s = 0.0
    for k in range(3):
        s += x[i + k] * 0.5
    return s


def filled(x, i):
    out = np.zeros(3)
    for k in range(3):
        out[k] = x[i + k] * k
    return out


def shown(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return type(value), [shown(item) for item in value]
    return type(value), np.asarray(value).dtype, np.asarray(value).tolist()


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("item", ITEMS)
def test_lists_of_few_and_many_items_are_pythons(item: str, use: str) -> None:
    """What is accepted gives what Python gives, to the types; up to 64 items all of it is."""
    for count in (5, 12, 70):
        text = f"def f(x, n):\n    a = [{ITEMS[item]} for i in range({count})]\n"
        text += "".join(f"    {line}\n" for line in USES[use].split("\n"))
        names: dict[str, Any] = {"np": np, "halves": halves, "filled": filled}
        exec(text, plain := dict(names))
        expected: Any
        try:
            expected = plain["f"](np.arange(200.0), 3)
        except Exception as problem:
            expected = problem
        compiled = pe.cd_from_source(text, names, backend="numpy")
        try:
            got = compiled(np.arange(200.0), 3)
        except pe.CdError as problem:
            assert isinstance(expected, Exception) or count > 5, problem
            continue
        if not isinstance(expected, Exception):
            assert shown(got) == shown(expected), count


def test_an_item_of_a_list_is_not_assigned_and_a_new_array_in_it_is_written() -> None:
    text = (
        "def f(x):\n    a = [x[i:i + 2] * 1 for i in range(12)]\n    {}\n    return np.array(a)\n"
    )
    with pytest.raises(pe.CdError, match="CD0451"):
        pe.cd_from_source(text.format("a[2] = a[1]"), {"np": np})(np.ones(20))
    f = pe.cd_from_source(text.format("a[2][0] = 5.0"), {"np": np}, backend="numpy")
    x = np.arange(20.0)
    expected = np.array([x[i : i + 2] for i in range(12)])
    expected[2, 0] = 5.0
    np.testing.assert_array_equal(f(x), expected)
    np.testing.assert_array_equal(x, np.arange(20.0))


def test_many_items_are_one_loop() -> None:
    f = pe.cd_from_source(
        "lambda x: np.array([sum(x[i] * x[i + k] for i in range(64)) for k in range(64)])",
        {"np": np},
    )
    assert len(f.explain(np.ones(200)).code.split("\n")) < 120


@pytest.mark.parametrize("name", ["max", "min"])
def test_extremes_of_lists_are_pythons(name: str, backend: str) -> None:
    """Python compares lists item by item."""
    text = f"lambda x: {name}([x[0], x[1]], [x[1], x[0]], [x[0], x[2]])"
    x = np.arange(3.0)
    assert_same(pe.cd_from_source(text, {}, backend=backend)(x), eval(text)(x))
    assert pe.cd_from_source(f"lambda x: {name}((1, 5), (2, 3))", {}, backend=backend)(1) == (
        max if name == "max" else min
    )((1, 5), (2, 3))


@pytest.mark.parametrize("count", [5, 70])
def test_lists_are_returned_with_their_types(count: int, backend: str) -> None:
    """Of NumPy's scalars, Python's numbers and new arrays; alone, in tuples, of run-time length."""
    texts = (
        "lambda x, n: [v * 2 for v in x]",
        "lambda x, n: ([0.5 * i * n for i in range(len(x))], 3)",
        "lambda x, n: [x[i:i + 2] * 2 for i in range(len(x) - 2)]",
    )
    x = np.linspace(0, 2, count).astype(np.float32)
    for text in texts:
        f, plain = pe.cd_from_source(text, {}, backend=backend), eval(text)
        for size in (count, count - 1, count - 2, count):
            assert shown(f(x[:size], 3)) == shown(plain(x[:size], 3)), text


SHARED = (
    "q = [np.full(2, v) for v in x]\nfor b in q[1:]:\n    b += 1\nreturn q",
    "q = [np.full(2, v) for v in x]\nfor a, b in zip(q, q[1:]):\n    b += a\nreturn q",
    "q = [np.full(2, v) for v in x]\np = q[1:]\np[0][:] = 50\nreturn q",
    "q = [np.full(2, v) for v in x]\np = q[::-1]\nfor r in p:\n    r += 1\nreturn p",
    "q = [np.full(2, v) for v in x]\np = q.copy()\nfor r in p:\n    r += 1\nreturn p",
    "q = [v * 2 for v in x]\ny = np.asarray(q)\ny[0] = 9\nreturn q[0], y",
    "q = [v * 2 for v in x]\ny = np.ravel(q)\ny[0] = 9\nreturn q[0], y",
    "q = [x[k:k + 1] * 2 for k in range(len(x))]\ny = np.asarray(q)\ny[0] = 9\nreturn q[0], y",
    "q = [np.full(2, v) for v in x]\nreturn q[0], q",
    "z = x.astype(np.float32)\nreturn z + [k * 0.5 for k in range(len(x))]",
    "z = x.astype(np.int8)\nreturn z + [k for k in range(len(x))]",
    "z = x.astype(np.int8)\nreturn z * np.reshape([k for k in range(len(x))], (-1, 1))",
    "z, q = x.astype('f4'), [k * 0.5 for k in range(len(x))]\nreturn np.maximum(q, z), z - q",
    "return [[a * b for a in x] for b in x], np.array([[a * b for a in x] for b in x])",
    "q = [[v, v * 2] for v in x]\nreturn q[2], q[2][1], len(q[1])",
    "return sum([x * k for k in range(len(x))]), sum([x > k for k in range(len(x))])",
)
REFUSED = (
    "k = 5\ng = lambda j: j + k\nreturn [g(k) for k in range(3)]",
    "v = 5\ndef g():\n    return v\nreturn [g() for v in range(2)]",
    "y = np.zeros(3)\nq = [y if v > 2 else y * 2 for v in x]\ny += 1\nreturn np.array(q)",
    "w = x * 2\nfor t in range(2):\n    w = [u + 1 for u in w]\nreturn len(w * 2)",
    "w = [v for v in x]\nfor t in range(2):\n    w = np.array(w) * 2\nreturn w",
    "w = [v for v in x]\nif x[0] > 4:\n    w = x\nreturn w",
)


@pytest.mark.parametrize("count", [5, 12, 70])
@pytest.mark.parametrize("body", SHARED)
def test_arrays_in_lists_are_shared_and_lists_are_copied_by_numpy(body: str, count: int) -> None:
    text = "def f(x):\n" + "".join(f"    {line}\n" for line in body.split("\n"))
    names: dict[str, Any] = {"np": np}
    exec(text, names)
    expected = names["f"](np.arange(float(count)))
    got = pe.cd_from_source(text, {"np": np}, backend="numpy")(np.arange(float(count)))
    assert shown(got) == shown(expected)


@pytest.mark.parametrize("count", [5, 70])
@pytest.mark.parametrize("body", REFUSED)
def test_what_would_be_another_list_is_refused(body: str, count: int) -> None:
    text = "def f(x):\n" + "".join(f"    {line}\n" for line in body.split("\n"))
    with pytest.raises(pe.CdError, match="CD0202|CD0208|CD0437"):
        pe.cd_from_source(text, {"np": np}, backend="numpy")(np.arange(float(count)))


@pytest.mark.parametrize(
    "body",
    [
        "return [v * 2 for v in range(n) if v % 2]",
        "r = [v for v in range(n) if v != 1]\n    return len(r), r, sum(r)",
        "return np.array([x[v] * 2 for v in range(n) if v != 1])",
        "return [x[v] for v in range(n) if v != k], np.array([v for v in range(k, n) if v > 1])",
        "return sum([v for v in range(n) if x[v] > 1]), [v for v in range(n) if v]",
    ],
)
def test_tests_of_integers_are_decided_where_a_list_is_needed(body: str) -> None:
    text = f"def f(x, n, k):\n    {body}\n"
    world: dict[str, Any] = {"np": np}
    exec(text, world)
    f = pe.cd_from_source(text, {"np": np}, backend="numpy")
    for n in (3, 5, 1, 4, 6, 7):
        x = np.arange(float(n))
        assert_same(f(x, n, 2), world["f"](x, n, 2))


def test_a_test_of_elements_needs_no_static_integer() -> None:
    f = pe.cd_from_source("lambda x, n: sum([x[v] for v in range(n) if v > 1])", backend="numpy")
    assert f(np.arange(4.0), 4) == 5 and f(np.arange(4.0), 3) == 2
    assert "`n` is" not in f.explain(np.arange(4.0), 2).why


@pytest.mark.parametrize(
    "text",
    [
        "[(r, k) for r in range(3) for k in range(3) if x[r] > 1]",
        "[3 * r + k for r in range(3) for k in range(3) if x[k] > r]",
        "[(v, 1) for v in x if v > 1]",
    ],
)
def test_a_list_whose_length_a_test_decides_names_its_limits(text: str) -> None:
    with pytest.raises(pe.CdError, match="CD0437.* has one `for`, and numbers as items"):
        pe.cd_from_source(f"lambda x: len({text})", {"np": np}, backend="numpy")(np.arange(3.0))
