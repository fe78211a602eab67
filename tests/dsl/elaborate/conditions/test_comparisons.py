"""Tuples and lists are compared item by item, an object with itself as equal, in Python's types."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from tests.compare import assert_same
from tests.language.ask import compiled, plain, refused, run

NAN = float("nan")
BOOLS = (
    "([x[0]] == [1.0]) + ([x[2]] == [3.0])", "~((x[0],) == (1.0,))", "-(x[0] in (1,))",
    "(x[0] in (1,)) + (x[2] in [3])", "-(x[0] not in (1,))", "-((x[0],) != (1,))",
    "((n,) == (m,)) + ((n,) == (n,))", "~(n in (m,))", "(n, 1) < (m, 2)", "-((n,) <= (m,))",
    "(x[0] in (1,)) * 2.5, (x[1] in (n, m)) - True", "((x[0], 1), 2) == ((1, 1), 2)",
    "not (n, x[0]) < (2, 3)", "1 if (x[0], n) < (1, 4) < (2, 0) else 2", "n in (x[0], m)",
    "(x[0], 1, 2) > (x[1], 1)  and 5 or 6", "(n, m) >= (n, m), (n, m) > (n, m, 1)",
)  # fmt: skip


@pytest.mark.parametrize("test", BOOLS)
def test_comparisons_of_sequences_give_pythons_bool(test: str, backend: str) -> None:
    test = f"True if {test} else False" if " > " in test and "x" in test else test
    for n, m in ((1, 2), (2, 2), (3, 1)):
        args = np.array([1.0, 2.0, 3.0]), n, m
        found = run(backend, "x, n, m", f"return {test}", *args)
        assert pickle.dumps(found) == pickle.dumps(plain("x, n, m", f"return {test}", *args))


@pytest.mark.parametrize("test", ["(n, x[0]) < (2, 3)", "(x[0], n) >= (x[1], 2)", "(x,) > ()"])
def test_a_bool_of_pythons_or_of_numpys_is_refused_unless_it_is_a_test(test: str) -> None:
    if test == "(x,) > ()":
        assert run("numpy", "x, n", f"return {test}", np.ones(2), 2) is True
        return
    found = refused(
        "x, n", f"return {test}", np.arange(3.0), 2,
        says=("a bool of Python's or one of NumPy's",), offers=("True if a < b else False",),
    )  # fmt: skip
    assert found.code == "CD0463"
    for body in (f"if {test}: return 1\nreturn 2", f"assert {test} or n > 0\nreturn not {test}"):
        args = np.arange(3.0), 2
        assert run("numpy", "x, n", body, *args) == plain("x, n", body, *args)


SAME = (
    "a in (a, 1.0), a not in (a,), (a,) == (a,), (a,) != (a,), [a] == [a]",
    "(a, 1) < (a, 2), (a,) <= (a,), (1, a) >= (1, a), (a,) < (a,)",
    "(lambda p, q: p in (q,))(a, a), (lambda p, q: p in (q,))(x[0], x[0])",
    "x[0] in (x[0],), (x[0],) == (x[0],), -a in (-a,), a + 0 in (a + 0,)",
    "a in (b,), (a, b) == (b, a), b in (1.0, 2.0)",
    "t == t, t[0] in t, t != t, (t, 1) == (t, 1), t in (t,)",
    "(x, 1) == (x, 1), x in (x,), [x] != [x], (x, 1) < (x, 2)",
)


@pytest.mark.parametrize("test", SAME)
@pytest.mark.parametrize("kind", [float, np.float64])
def test_an_object_equals_itself_in_a_sequence(test: str, kind: Any, backend: str) -> None:
    f = compiled("a, b, t, x", f"return {test}").on(backend)
    nan = kind(NAN)
    for a, b in ((nan, nan), (nan, kind("nan")), (kind(1), kind(1)), (nan, kind(2)), (nan, nan)):
        x, t = np.array([NAN, 1.0]), (NAN, 1.0)
        assert f(a, b, t, x) == plain("a, b, t, x", f"return {test}", a, b, t, x)


NAMES = {
    "a variable": "v = x[0]\nreturn v in (v, 2), (v, 2) == (v, 2)",
    "another name": "v = x[0]\nw = v\nx[0] = 3\nreturn v in (w,), (v, x[1]) == (w, 1)",
    "a new number": "v = x[0]\nw = v + 0\nreturn v in (w,), v in (x[0],)",
    "in a tuple": "v = x[0]\nt = (v, x[1])\np, q = t\nreturn v in t, t == t, p in t, q in (p,)",
    "returned": "def g(p):\n    return p\nv = x[0]\nreturn g(v) in (v,), g(v) in (g(v),)",
    "unpacked": "v, w = x\nreturn v in (v,), v in (w,), (v, w) == (v, w)",
    "in a loop": "s = 0\nfor k in range(2):\n    v = x[k]\n    s += v in (v, 5)\nreturn s",
    "no NaN": "s = 0\nfor v in x:\n    s += v in (1.0, 2.0)\nreturn s",
}


@pytest.mark.parametrize("body", NAMES.values(), ids=NAMES)
def test_names_of_one_number_are_one_object(body: str, backend: str) -> None:
    for first in (NAN, 1.0):
        found = run(backend, "x", body, np.array([first, 1.0]))
        assert found == plain("x", body, np.array([first, 1.0]))


OPEN = {
    "a loop's": "v = x[0]\nw = v\nfor k in range(2):\n    w = v\n    v = x[k]\nreturn w in (v,)",
    "a branch's": "v = x[0]\nw = v\nif x[1] > 1:\n    w = x[1]\nreturn w in (v,)",
    "a choice": "v = x[0]\nw = v if x[1] > 1 else x[1]\nreturn w in (v,)",
    "a loop's target": "s = 0\nfor v in x:\n    s += v in (v,)\nreturn s",
    "a constant": "return a in (np.nan, 1.0)",
}


@pytest.mark.parametrize("body", OPEN.values(), ids=OPEN)
def test_what_may_be_one_nan_or_two_is_refused(body: str) -> None:
    found = refused(
        "x, a", body, np.array([NAN, 1.0]), NAN, says=("may be one number or two",),
        offers=("a == b", "np.isnan"),
    )  # fmt: skip
    assert found.code == "CD0404"


def test_whole_numbers_need_no_identity() -> None:
    body = "m = n\nif x[0] > 0:\n    m = n + 1\nreturn m in (n,), n in (m, 7)"
    assert run("numpy", "x, n", body, np.ones(1), 3) == (False, False)


@pytest.mark.parametrize("x", [
    np.array([3.0, 1.0, np.nan, 3.0]), np.array([3, 1, 255], np.uint8), np.zeros(0),
    np.array([[True, False]]), np.array(3), np.array([1 + 2j, 3.0]),
])  # fmt: skip
@pytest.mark.parametrize("v", [3, 3.0, 300, -1, True, np.float32(3), np.int8(-1), np.nan])
def test_a_number_is_in_an_array_where_an_element_equals_it(x: Any, v: Any) -> None:
    test = "v in x and 3 in x or v not in x.ravel()[1:]"
    body = (
        f"n = 0\nif {test}:\n    n = 1\n"
        "return v in x, v not in x, 3 in x, (v in x) + 1, v in x.ravel()[x.ravel() == 1], n"
    )
    assert_same(run("numpy", "x, v", body, x, v), plain("x, v", body, x, v))


SORTED = (
    "sorted((x[0], x[1], x[2])), sorted([x[2], x[0]], reverse=True)",
    "sorted([(x[1], 0), (x[3], 1), (x[0], 2)], key=lambda t: t[0], reverse=True)",
    "sorted([(x[1], 0), (x[3], 1), (x[0], 2)], key=lambda t: t[0])",
    "sorted((3, 1, 2)), sorted(range(5), key=lambda k: -k), sorted([]), sorted((x[0],))",
    "min((3, 1, 2), key=lambda k: (k - 2) ** 2), max([3, 1, 2], key=lambda k: -k)",
    "min(x[0], x[1], x[2], key=abs), max(range(4), key=lambda k: x[k])",
    "min([(x[0], 1), (x[1], 2), (x[2], 1)], key=lambda t: t[1]), min((2.0, 1.0), key=None)",
    "sorted(abs(v) for v in (x[0] - 2, x[1], x[2]))[1], sorted([-x[0], -x[1]], key=abs)",
    "sorted(zip((x[0], x[1]), (2, 1))), max(sorted([(x[0], 1), (x[2], 0)]))",
)


@pytest.mark.parametrize("body", SORTED)
def test_a_few_items_are_sorted_in_place_where_they_are_equal(body: str, backend: str) -> None:
    for x in (np.array([2.0, -1.0, 0.5, -1.0]), np.array([1.0, 1.0, -3.0, 1.0])):
        assert_same(run(backend, "x", f"return {body}", x), plain("x", f"return {body}", x))


def test_the_largest_pairs_of_a_loop() -> None:
    body = (
        "best = [(-np.inf, -1)] * 3\nfor i, v in enumerate(x):\n    if v > best[2][0]:\n"
        "        best = sorted(best + [(v, i)], reverse=True)[:3]\nreturn best"
    )
    x = np.array([0.5, 3.0, -1.0, 2.0, 7.0, 2.5, 2.0])
    assert_same(run("cc", "x", body, x), plain("x", body, x))
