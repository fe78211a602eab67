"""Copies that names have across rounds and after branches are never told from Python's one array.

Each program runs as Python would run it, or is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from textwrap import indent
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.base.diagnostic import CdError

HELPERS = """
def bump(u):
    u[0] += 1

def same(u):
    return u

def swapped(u, v):
    for t in range(1):
        u, v = v, u
    return u + 0

def swept(u, v):
    for t in range(3):
        v[1:-1] = u[1:-1] + 1
        u, v = v, u
    return u

def raised(u):
    for t in range(2):
        u[0] += 1
        u = u + 1
    return u

def chosen(u, s):
    if s > 0:
        w = u
    else:
        w = u * 2
    w[0] = 9
    return w
"""

RUN = {
    "a call writes what every round makes anew": """
        for t in range(3):
            bump(x)
            x = x * 2
        return x
    """,
    "the array of before stays under its other name": """
        k = x
        for t in range(3):
            x, y = y, x
        return x, y, k
    """,
    "and in a tuple": """
        g = (x, y)
        for t in range(3):
            x, y = y, x
        return x, y, g[0]
    """,
    "and where the function was called from": """
        z = swapped(x, y)
        return x, y, z
    """,
    "a name that each round sets anew": """
        for t in range(3):
            w = x
            x, y = y, x
        return x, y, w
    """,
    "nobody looks at what a call has exchanged": """
        z = swept(x, y)
        return z
    """,
    "what a call returns is the same array": """
        for t in range(3):
            w = same(x)
            x = x + 1
            bump(w)
            x[1] += w[0]
        return x, w
    """,
    "a function inside writes what it is given": """
        def g(z):
            z[0] += 1
        for t in range(3):
            g(x)
            x = x + 1
        g(x)
        return x
    """,
    "every round makes the name another array": """
        k = x
        for t in range(3):
            x = x * 2
        k[1] = 5
        return x, k
    """,
    "a copy in every round is another array": """
        for t in range(3):
            old = x
            x = old.copy()
            x[1:] = old[:-1] + y[1:]
        return x
    """,
    "a copy under its own name is another array": """
        k = x
        for t in range(3):
            x = x.copy()
            x[0] += 1
        return x, k
    """,
    "a function inside writes what is around it": """
        def g(k):
            x[k] += 1
            return x
        w = g(0)
        g(1)
        w[2] = 9
        return x, w
    """,
    "one of two arrays, read only": """
        w = x if y[0] > 1 else y
        return w * 2
    """,
    "a new array is written before it gets the old name": """
        for t in range(3):
            n = x + y
            n[0] = 0
            x = n
        return x, n
    """,
}

REFUSED = {
    "another name, written by a call": """
        k = x
        for t in range(3):
            bump(k)
            x = x * 2
        return x, k
    """,
    "another name, looked at": """
        k = x
        for t in range(3):
            bump(x)
            x = x * 2
        return x, k
    """,
    "a view": """
        k = x[1:]
        for t in range(3):
            x, y = y, x
            y[1] += 1
        return x, y, k
    """,
    "a list": """
        g = [x, y]
        for t in range(3):
            x[0] += 1
            x = x + 1
        return x, g[0]
    """,
    "written by NumPy": """
        k = x
        for t in range(3):
            np.add(x, y, out=k)
            x = x + 1
        return x, k
    """,
    "filled": """
        k = x
        for t in range(3):
            k.fill(3)
            x = x + 1
        return x, k
    """,
    "in a function that is called": """
        z = raised(x)
        return x, z
    """,
    "after a branch in such a function": """
        z = chosen(x, y[1])
        return x, z
    """,
    "after a branch": """
        if y[0] > 0:
            w = x
        else:
            w = y
        bump(x)
        return x, y, w
    """,
    "exchanged and written by a call, and looked at": """
        z = swept(x, y)
        return z, x
    """,
    "one of two arrays": """
        w = x if y[0] > 1 else y
        w[0] = 3
        return x, y, w
    """,
    "a view of one of two arrays": """
        w = (x if y[0] > 1 else y * 2)[::-1].T
        w[0] = 3
        return x, y, w
    """,
    "tuples of arrays": """
        v, w = (x, y) if y[0] > 1 else (y, x)
        w[0] = 3
        return x, y, v
    """,
    "part of one of two arrays, in a function": """
        bump((x if y[0] > 1 else y)[1:])
        return x, y
    """,
    "in a loop that may be left": """
        k = x
        for t in range(3):
            bump(x)
            if x[0] > 2:
                break
            x = x * 2
        return x, k
    """,
    "when a loop begins again": """
        k = x
        s = 0.0
        while s < 9:
            s = s + k[0]
            x = x * 2
            if s > 5:
                x = k
            bump(x)
        return x
    """,
}


def _function(body: str) -> str:
    lines = "".join(line[4:] for line in body.splitlines(keepends=True))
    return f"def f(a, b):\n    x = a + 1\n    y = b + 2\n{lines}"


def _scope() -> dict[str, Any]:
    scope: dict[str, Any] = {"np": np}
    exec(HELPERS, scope)
    return scope


def _compiled(body: str) -> Callable[..., object]:
    names = [line[4 : line.index("(")] for line in HELPERS.splitlines() if line.startswith("def")]
    helpers = {n: pe.cd_from_source(h, {"np": np}) for n, h in zip(names, HELPERS.split("\n\n"))}
    return pe.cd_from_source(_function(body), {"np": np, **helpers}, backend="numpy")


@pytest.mark.parametrize("name", RUN)
def test_runs_as_in_python(name: str) -> None:
    scope = _scope()
    exec(_function(RUN[name]), scope)
    a, b = np.arange(1.0, 5.0), np.arange(4.0) * 10
    expected = scope["f"](a, b)
    got = _compiled(RUN[name])(a, b)
    np.testing.assert_array_equal(np.array(got), np.array(expected))


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    with pytest.raises(CdError) as caught:
        _compiled(REFUSED[name])(np.arange(1.0, 5.0), np.arange(4.0) * 10)
    assert caught.value.code == "CD0208"
    assert "through the function, two on others" in str(caught.value)


@pytest.mark.parametrize("layouts", ["CF", "FC", "FF", "CR"])
def test_arrays_that_lie_differently_are_exchanged_or_refused(layouts: str, backend: str) -> None:
    text = "def f(u, v):\n    for t in range(3):\n        u, v = v, u\n    return u * 1, v + 1"
    lay = {"C": np.ascontiguousarray, "F": np.asfortranarray, "R": lambda a: a.copy()[::-1]}
    arrays = [lay[one](np.arange(12.0).reshape(3, 4) * k) for k, one in enumerate(layouts, 1)]
    function = pe.cd_from_source(text, backend=backend)
    for got, expected in zip(function(*arrays), (arrays[1] * 1, arrays[0] + 1)):
        np.testing.assert_array_equal(got, expected)
    written = text.replace("        u, v", "        v[1:] = u[:-1]\n        u, v", 1)
    function, scope = (
        pe.cd_from_source(written, backend=backend),
        dict[str, Callable[..., object]](),
    )
    exec(written, scope)
    mine = [one.copy(order="K") for one in arrays]
    if layouts == "FF":
        np.testing.assert_array_equal(np.array(function(*arrays)), np.array(scope["f"](*mine)))
    else:
        with pytest.raises(CdError, match="CD0208") as caught:
            function(*arrays)
        told = "different orders: such arrays do not trade places in a loop" in str(caught.value)
        assert told == ("C order: `np.ascontiguousarray(" in str(caught.value))
        assert told == (layouts == "FC")  # else what was written lies as what is read


@pytest.mark.parametrize(
    ("body", "instead"),
    [
        (
            "t = a[0:2]\nfor i in range(1, 3):\n    t = a[i : i + 2]\n    t += 1\nreturn t.sum()",
            "k = 0\nfor i in range(1, 3):\n    k = i\n    a[k : k + 2] += 1\n"
            "return a[k : k + 2].sum()",
        ),
        (
            "t = a[0:2]\nif b[1] > 1:\n    t = a[2:4]\nt += 1\nreturn a.sum()",
            "k = 0\nif b[1] > 1:\n    k = 2\na[k : k + 2] += 1\nreturn a.sum()",
        ),
    ],
)
def test_a_part_at_a_run_time_position_is_said_to_be_one(body: str, instead: str) -> None:
    body, instead = (indent(text, " " * 8) for text in (body, instead))
    with pytest.raises(CdError, match="CD0208.*`t` is a part of `a` in Python") as caught:
        _compiled(body)(np.arange(1.0, 5.0), np.arange(4.0) * 10)
    assert "copy" not in str(caught.value) and "a[k : k + 2]" in str(caught.value)
    scope = _scope()
    exec(_function(body), scope)
    ours, pythons = np.arange(1.0, 5.0), np.arange(1.0, 5.0)
    expected = scope["f"](pythons, np.arange(4.0) * 10)
    assert _compiled(instead)(ours, np.arange(4.0) * 10) == expected
    np.testing.assert_array_equal(ours, pythons)
