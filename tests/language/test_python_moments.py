"""What is evaluated when, and what a list, tuple or slice is: as in Python, or refused."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from ..compare import assert_same
from .ask import plain, refused, run

TICK = """
log = np.zeros(1, int)
def tick(v):
    log[0] = log[0] * 7 + v
    return v
"""


@functools.cache
def cached(n: Any) -> Any:
    return n * n + 1


ALIKE = {
    "slices of tuples": "return t[k:], t[:-k], t[k:k + 1], t[::-k], 'abc'[k:], sum(t[k:])",
    "shapes": "return x.reshape(2, 3).reshape(x.shape[:k - 1] + (-1,)), np.ones((k,) * 2)",
    "neighbours": "s = 0\nfor i in range(2):\n    a, b = t[i:i + 2]\n    s += a * b\nreturn s",
    "ranges": "r = range(k, 6)\nreturn r[0], len(r), list(r), 3 in r",
    "lists": "return 3 * (1,), [0] * k + [1], (k, 1) < (2, 5), [k] == [2], (k,) == [2], t.index(9)",
    "identity": "a = b = [1]\nreturn a is b, [1] is [1]",
    "elements": "return np.ones(2, np.float32) * v[0], v[1:][0], sum(v), max(v), "
    "[a * 2 for a in v]",
    "defaults": "j = 2\ndef g(a, by=j): return a * by\nj = 5\nreturn g(x) + j",
    "one array": "def g(a, s=np.zeros(6)):\n    s += a\n    return s\np = g(x) + 0\n"
    "return p, g(x) + 0",
    "lambdas": "o = [lambda a, c=c: a * c for c in (1, 2)]\nreturn o[0](x), o[1](x)",
    "late": "o = [lambda a: a * c for c in (1, 2)]\nreturn o[0](x)",
    "closures": "def g(a):\n    def h(b): return a * b\n    return h\nreturn g(2)(3), g(x)(k)",
    "rebound": "def g(): return x.sum()\np = g()\nx = x * 2\nreturn p, g()",
    "augmented": TICK + "x[tick(1)] += tick(2)\nx[log[0] % 6] -= tick(3)\nreturn x, log",
    "stored": TICK + "x[tick(1)] = log[0] + 0.5\nreturn x, log",
    "masked": "def g(a):\n    a[3] = -1\n    return 1.0\nx[x > 1] += g(x)\nreturn x",
    "items": TICK + "return [tick(c) + log[0] for c in t], log",
    "else": "for i in range(6):\n    if x[i] > 2:\n        at = i\n        break\n"
    "else: at = -1\nreturn at",
    "else, bool": "n = 0\nwhile n < 3:\n    if x[n] > 9:\n        b = x[n] > 1\n        break\n"
    "    n += 1\nelse: b = True\nreturn b",
    "else, unrolled": "for i in (0, 4):\n    if x[i] > 2:\n        at = i\n        break\n"
    "else: at = -1\nreturn at",
    "else, left": "for i in range(6):\n    if x[i] > 2:\n        at = i\n        break\n"
    "else: return -1\nreturn at",
    "nests": "u = (x, x + 1)\ns = 0.0\nfor i in range(k):\n"
    "    for j in range(3): s += u[i][j]\nreturn s",
    "grown": "u = [1]\nfor i in (1, 2): u += (i,)\nreturn u",
    "cached": "return x * cached(k), cached(3)",
    "powers": "return pow(k, 5, 7), pow(3, k - 3, 7), pow(-3, k, -7), pow(k, 0, 1), pow(x, 2)",
}  # fmt: skip


@pytest.mark.parametrize("name", ALIKE)
def test_it_is_what_python_gives(name: str) -> None:
    def given() -> tuple[Any, ...]:
        return np.arange(6.0), (5, 3, 9), 2, [1.5, 2.5]

    names = "x, t, k, v"
    found = run("numpy", names, ALIKE[name], *given(), cached=cached)
    assert_same(found, plain(names, ALIKE[name], *given(), cached=cached))


REFUSED = {
    "return v[1:] + v[:1]": "joins lists",
    "return [1.0] + v": "joins lists",
    "return v == v[:2]": "compares lists",
    "return v[1:]": "cannot be returned",
    "return v.copy()": "cannot be returned",
    "return (1,) + [2]": "`+` is not defined for",
    "u = [1]\nw = u\nu += [2]\nreturn w": "changes the list itself",
    "u = [[0] * k, [1] * k]\nfor i in range(k): u[i][0] = i\nreturn u": "cannot be assigned to",
    "return cached(x)": "has no hash",
    "return pow(2.0, k, 3)": "three Python integers",
}


@pytest.mark.parametrize("body", REFUSED)
def test_what_would_be_otherwise_is_refused(body: str) -> None:
    args = np.arange(6.0), (5, 3, 9), 2, [1.5, 2.5]
    refused("x, t, k, v", body, *args, says=(REFUSED[body],), cached=cached)


def test_large_moduli_and_powers_without_an_inverse() -> None:
    given = 7**20, 2**61, 2**62 + 1
    assert run("numpy", "a, b, m", "return pow(a, b, m)", *given) == pow(*given)
    refused("a, b, m", "return pow(a, b, m)", 6, -1, 4, says=("has no inverse",))
