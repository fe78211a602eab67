"""Tuples and lists that loops carry by their items, and None before a first iteration."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from tests.compare import assert_same
from tests.language.ask import plain, refused, run

P = namedtuple("P", "x y")


def exchanged_arrays(x: Any) -> Any:
    s = (x.copy(), x * 2)
    for _k in range(3):
        s = (s[1], s[0] + s[1])
    return s


def old_tuple(x: Any) -> Any:
    s = (0.0, 1.0)
    old = s
    for v in x:
        old = s
        s = (s[1], s[0] + v)
    return old, s


def nested(x: Any) -> Any:
    s = ((0.0, 1), (2.0, (3, 4.0)))
    for i in range(len(x)):
        s = ((s[1][0], i), (x[i], (s[0][1], s[1][1][0] * 0.5)))
    return s


def named_tuple(x: Any) -> Any:
    p = P(0.0, 0.0)
    for v in x:
        p = P(p.y + v, p.x)
        if p.x > 2:
            p = p._replace(y=7.0)
    return p


def with_jumps(x: Any) -> Any:
    b = (0, 0.0)
    for i in range(len(x)):
        if x[i] < -1:
            continue
        b = (i, x[i])
        if x[i] > 1:
            break
    else:
        b = (-1, b[1])
    return b


def while_and_inner_loop(x: Any) -> Any:
    st = (0, 1.0)
    while st[0] < 5:
        for v in x[:3]:
            st = (st[0], st[1] + v)
        st = (st[0] + 1, st[1])
    return st


def read_by_a_function(x: Any) -> Any:
    t = (1.0, 2.0)

    def h():
        return t[0]

    y = 0.0
    for _v in x:
        y += h()
        t = (y, 5.0)
    return y


def list_by_comprehension(x: Any) -> Any:
    p = [0.0, 0.0, 0.0]
    for v in x:
        p = [q * 0.5 + v * k for k, q in enumerate(p)]
    return p


def array_written_in_place(x: Any) -> Any:
    m = np.zeros(3)
    s = (m, 0.0)
    for v in x:
        m[0] += v
        s = (m, s[1] + m[0])
    return s


def unpacked_arrays(x: Any) -> Any:
    s = (np.zeros(3), np.ones(3))
    for v in x:
        a, b = s
        c = a + b * v
        s = (b, c)
    return s


def array_of_the_caller(x: Any) -> Any:
    s = (x, 0.0)
    for _k in range(3):
        y = s[0]
        y[0] += 1
        s = (y, s[1] + 1)
    return s


def empty(x: Any) -> Any:
    t = ()
    for _v in x:
        t = ()
    return t


def closest_pair(x: Any) -> Any:
    best = (np.inf, -1, -1)
    n = len(x)
    for i in range(n):
        for j in range(i + 1, n):
            d = abs(x[i] - x[j])
            if d < best[0]:
                best = (d, i, j)
    return best


def extremes_with_positions(x: Any) -> Any:
    lo, hi = (x[0], 0), (x[0], 0)
    for i in range(1, len(x)):
        lo, hi = min(lo, (x[i], i)), max(hi, (x[i], i))
    return lo, hi


def exchanged_tuples(x: Any) -> Any:
    a, b = (1, 2), (3, 4)
    for _v in x:
        a, b = b, (a[0] + 1, a[1] + b[0])
    return a, b


def with_a_text(x: Any) -> Any:
    s = (0, "a")
    for i in range(3):
        s = (s[0] + i, "a")
    return s


def with_none(x: Any) -> Any:
    s = (0, None)
    for i in range(3):
        s = (s[0] + i, None)
    return s[0], s[1] is None


def items_while_it_changes(x: Any) -> Any:
    r = 0
    s = (1, 2)
    for _i in range(4):
        for q in s:
            s = (s[1], q + 1)
            r = r * 3 + q
    return r, s


def turned(x: Any) -> Any:
    s = (x[0], x[1])
    for _i in range(3):
        s = s[::-1]
    return s


def with_an_array_that_stays(x: Any) -> Any:
    s = (0.0, x)
    for i in range(3):
        s = (s[0] + s[1][i], x)
    return s[0]


def complex_numbers(x: Any) -> Any:
    c = 1 + 1j
    s = (0, c)
    for i in range(3):
        s = (s[0] + x[i], s[1] * c)
    return s


def narrow_types(x: Any) -> Any:
    s = (np.int8(100), np.float32(1))
    for _i in range(3):
        s = (s[0] + np.int8(1), s[1] / np.float32(3))
    return s


def on_both_sides(x: Any) -> Any:
    s = (1, 2)
    for i in range(3):
        if x[i] > 0:
            s = (s[1], s[0])
        else:
            u = s
            s = (u[0] * 2, u[1])
            s = (s[0], s[1] + u[0])
    return s


def unrolled(x: Any) -> Any:
    r = []
    s = (1, 2)
    for _i in (0, 1, 2):
        s = (s[1], s[0] + s[1])
        r = r + [s]
    return r


def returned_from_a_loop(x: Any) -> Any:
    s = (0.0, 0)
    k = 0
    while True:
        s = (s[0] + x[k], k)
        k += 1
        if s[0] > 1.0 or k == len(x):
            return s


def filter_state(x: Any) -> Any:
    y = np.zeros(len(x))
    s = (0.0, 0.0)
    for i in range(len(x)):
        s = (s[1], x[i])
        y[i] = s[0] - s[1]
    return y


def chosen_row(A: Any) -> Any:
    s = (A[0], 0)
    for i in range(1, len(A)):
        s = (A[i], s[1] + 1) if A[i].sum() > s[0].sum() else s
    return s


def exchanged_views(x: Any) -> Any:
    s = (x[0:3], x[3:6])
    for _i in range(2):
        s = (s[1], s[0])
    return s[0] + 2 * s[1]


def items_written_in_place(x: Any) -> Any:
    s = (x[0:3].copy(), x[3:6].copy())
    for _i in range(3):
        s[0][0] += 1
        s = (s[1], s[0])
    return s


def other_names(x: Any) -> Any:
    q = (0, 1)
    for v in x:
        p = q
        q = (p[1], p[0] + 1)
        if v > 0:
            q = p
    return p, q


def lists_of_other_names(x: Any) -> Any:
    q = [0, 1]
    for v in x:
        p = q
        q = [p[1], p[0] + 1]
        if v > 0:
            q = p
    return p, q


def none_then_array(x: Any) -> Any:
    w = None
    for k in range(3):
        w = k * x
    return w


def none_then_tuple(x: Any) -> Any:
    prev = None
    out = np.zeros(len(x))
    for i, v in enumerate(x):
        out[i] = 0.0 if prev is None else v - prev[0]
        prev = (v, i)
    return out, prev


def number_then_array(A: Any) -> Any:
    s = (0.0, 0)
    for i in range(len(A)):
        s = (s[0] + A[i], i)
    return s


def number_then_array_in_a_later_iteration(A: Any) -> Any:
    s = [0.0, 0]
    for i in range(len(A)):
        if i > 0:
            s = [s[0] + A[i], i]
    return s


def best_or_none(x: Any) -> Any:
    best = None
    for i in range(len(x)):
        if best is None or x[i] > best:
            best = x[i]
    return best


def sum_of_differences(x: Any) -> Any:
    previous, s = None, 0.0
    for v in x:
        if previous is not None:
            s += abs(v - previous)
        previous = v
    return s


def largest_pair(x: Any) -> Any:
    best = None
    for i in range(len(x)):
        candidate = (x[i], i)
        if best is None or candidate > best:
            best = candidate
    return best


def none_among_the_items(x: Any) -> Any:
    t, u = (None, 0.0), ((None, 2), None)
    for k in range(4):
        t = (x[k], t[1] + (0.0 if t[0] is None else t[0]))
        u = ((x[k : k + 2], 3), u[0][1])
    return t, u


def none_among_the_items_of_nested_loops(A: Any) -> Any:
    t = (None, 0)
    for k in range(4):
        for j in range(2):
            t = (A[k, j], k) if t[0] is None or A[k, j] > t[0] else t
    return t


def none_beside_numbers_that_are_found_late(x: Any) -> Any:
    best, state = None, [0.0]
    for k in range(3):
        for v in x:
            state = [state[0] + v]
        if best is None or state[0] > best[0]:
            best = (state[0], k)
    return best


def one_tuple(x: Any) -> Any:
    a = (0, 1)
    b = a
    for v in x:
        if v > 0:
            a = b
        b = a
    return a is b


def matrix_power(x: Any) -> Any:
    def times(a: Any, b: Any) -> Any:
        return tuple(tuple(u[0] * b[0][k] + u[1] * b[1][k] for k in (0, 1)) for u in a)

    n, r, b = 11, ((1, 0), (0, 1)), ((1, 1), (1, 0))
    while n > 0:
        if n % 2:
            r = times(r, b)
        b = times(b, b)
        n //= 2
    return r


PROGRAMS = [
    value for value in list(globals().values())
    if callable(value) and getattr(value, "__module__", "") == __name__ and value is not P
]  # fmt: skip


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: str(f.__name__))
def test_a_loop_carries_the_items(f: Callable[[Any], Any], backend: str) -> None:
    x = np.array([0.5, -0.25, 1.75, -1.5, 2.25, 0.125, 3.5, -2.0])
    if "A" in f.__code__.co_varnames:
        x = x.reshape(4, 2)
    given, mine = x.copy(), x.copy()
    assert_same(pe.cd(f, backend=backend)(mine), f(given))
    assert_same(mine, given)


@pytest.mark.parametrize("n", [13, 40])
def test_any_number_of_names_become_floats(n: int) -> None:
    names = [f"s{k}" for k in range(n)]
    adds = "\n".join(f"    {name} += v * {k}" for k, name in enumerate(names))
    body = f"{' = '.join(names)} = 0\nfor v in x:\n{adds}\nreturn {', '.join(names)}"
    x = np.arange(5.0)
    assert_same(run("numpy", "x", body, x), plain("x", body, x))


def test_numbers_that_become_wider_on_the_way_through_a_loop() -> None:
    body = (
        "a = b = c = 0\nfor k in range(3):\n    for v in x:\n        c += b\n        b += a\n"
        "        if v > 1: a += v\n        else: a += 1\nreturn a, b, c"
    )
    x = np.array([0.5, 2.0, 1.5])
    assert_same(run("cc", "x", body, x), plain("x", body, x))


@pytest.mark.parametrize("n", [0, 1, 7])
def test_a_run_time_number_of_iterations(n: int) -> None:
    body = "s = (0, 1)\nfor i in range(n):\n    s = (s[1], s[0] + s[1])\nreturn s"
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    assert run("cc", "n", body, n) == (a, b)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("s = (0, 1)\nfor v in x:\n    s = s + (v,)\nreturn s",
         "tuple of 2 before the loop and a tuple of 3 inside"),
        ("s = []\nfor v in x:\n    s = s + [v]\nreturn s",
         "list of 0 before the loop and a list of 1 inside"),
        ("s = (0, 'a')\nfor v in x:\n    s = (s[0], 'b')\nreturn s[0]",
         "`s[1]` is str 'a' before the loop, and str 'b' inside"),
        ("s = ((0, 1), 2.0)\nfor v in x:\n    s = (3, 2.0)\nreturn s",
         "`s[0]` is a tuple of 2 before the loop and int 3 inside"),
        ("s = (1, 2)\nt = s\nfor v in x:\n    s = (2, 3)\nreturn 1.0 if s is t else 0.0",
         "one tuple or list on some paths"),
        ("w = None\nfor v in x:\n    if v > 0: w = v\nreturn w", "None before the loop"),
        ("s = ('a', 1)\nfor v in x:\n    s = (v, 1)\nreturn s[0]",
         "`s[0]` is str 'a' before the loop, and a run-time float64 inside"),
        ("s = (None, 1)\nwhile s[1] < 3:\n    s = (x[0], s[1] + 1)\nreturn s[0]",
         "`s[0]` is None before the loop, and a run-time float64 inside"),
        ("s = (x[x > 0], 1)\nfor v in x:\n    s = (x[x > v], 1)\nreturn s[0].sum()",
         "before the loop, and another inside"),
    ],
)  # fmt: skip
def test_what_has_no_slots_is_refused(body: str, says: str) -> None:
    assert refused("x", body, np.arange(3.0), says=(says,))


@pytest.mark.parametrize("a", [-3, 0, 2])
def test_none_that_no_iteration_reads_needs_no_first_iteration(a: int) -> None:
    body = "y = None\nfor k in range(a, a + 3):\n    y = x * k\nreturn y"
    assert_same(run("numpy", "x, a", body, np.arange(3.0), a), np.arange(3.0) * (a + 2))


def test_the_smallest_and_largest_of_tuples() -> None:
    body = (
        "a = min((x[0], 0), (x[1], 1), (x[2], 2))\n"
        "return a, max([(x[0], 3), (x[0], 4)]), max((1, 2), (1, 3))"
    )
    x = np.array([2.0, 1.0, 1.0])
    assert_same(run("cc", "x", body, x), ((x[1], 1), (x[0], 4), (1, 3)))
