"""Functions whose loops a device of many threads runs in every way that there is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Arguments = Callable[[int, np.random.Generator], tuple[Any, ...]]


def reals(*shapes: Callable[[int], tuple[int, ...]]) -> Arguments:
    return lambda n, rng: tuple(rng.standard_normal(shape(n)) for shape in shapes)


def with_indices(n: int, rng: np.random.Generator) -> tuple[Any, ...]:
    return np.zeros(max(n, 1)), rng.integers(0, max(n, 1), 3 * n), rng.standard_normal(3 * n)


def one(n: int) -> tuple[int, ...]:
    return (n,)


def two(n: int) -> tuple[int, ...]:
    return (n, n + 2)


def wide(n: int) -> tuple[int, ...]:
    return (3, 40 * n)


def tall(n: int) -> tuple[int, ...]:
    return (9 * n, 3)


def many(n: int) -> tuple[int, ...]:
    return (30 * n + 3,)


def whole(n: int, rng: np.random.Generator) -> tuple[Any, ...]:
    return rng.integers(-9, 9, 30 * n + 3), rng.integers(-9, 9, 30 * n + 3)


def few(n: int, rng: np.random.Generator) -> tuple[Any, ...]:
    return rng.integers(-9, 9, n // 2 + 1), rng.integers(-9, 9, n // 2 + 1)


def square(n: int) -> tuple[int, ...]:
    return (n, n)


def even(n: int) -> tuple[int, ...]:
    return (2 * n, 2 * n)


NESTS: Mapping[str, tuple[str, Arguments]] = {
    "elements": ("y[i] = x[i] * 2 + 1", reals(one, one)),
    "planes": ("y[i, j] = x[j, i] - y[i, j]", reals(square, square)),
    "steps": ("y[1::2] = x[::-2][:len(y[1::2])]", reals(one, lambda n: (2 * n + 3,))),
    "softmax": (
        "m[i] = max(x[i, j])\ne[i, j] = exp(x[i, j] - m[i])\n"
        "y[i, j] = e[i, j] / sum[k](e[i, k])",
        reals(wide, wide),
    ),
    "norm": ("y[:] = x / np.sqrt((x * x).sum() + 1)", reals(wide, wide)),
    "columns": ("y[j] += x[i, j]", reals(lambda n: (n + 2,), two)),
    "product": ("y[i, j] = sum[k](x[i, k] * x[j, k])", reals(square, square)),
    "matrix product": (
        "y[i, j] = tanh(sum[k](x[i, k] * z[k, j]) + y[i, j])",
        reals(lambda n: (n, n + 30), lambda n: (n, 2 * n + 1), lambda n: (2 * n + 1, n + 30)),
    ),
    "batch": (
        "y[b, i, j] = sum[k](x[b, i, k] * z[j, k])",
        reals(lambda n: (2, n, 33), lambda n: (2, n, 20), lambda n: (33, 20)),
    ),
    "convolution": (
        "y[n, i, j] = sum[a, b, c](x[i + a, j + b, c] * z[a, b, c, n])",
        reals(lambda n: (9, n, 5), lambda n: (n + 2, 7, 4), lambda n: (3, 3, 4, 9)),
    ),
    "rows times": ("y[i] = sum[k](x[i, k] * x[0, k])", reals(lambda n: (3,), wide)),
    "recurrence": ("for t in range(1, len(y)):\n    y[t] = y[t - 1] * 0.5 + x[t]", reals(one, one)),
    "triangle across": (
        "for i in range(len(y)):\n    for j in range(i + 1, len(y)):\n"
        "        y[j, i] = x[j, i] - j",
        reals(square, square),
    ),
    "triangle in steps": (
        "for t in range(3):\n    for i in range(len(y)):\n        for j in range(i):\n"
        "            y[i, j] = y[i, j] * 0.5 + t\n    y[0, 0] = y[-1, 0]",
        reals(lambda n: (n + 1, n + 1), one),
    ),
    "triangle solved": (
        "for i in range(len(y)):\n    s = z[i]\n    for j in range(i):\n"
        "        s -= x[i, j] * y[j]\n    y[i] = s * 0.5",
        reals(one, square, one),
    ),
    "pivots": (
        "for k in range(len(y)):\n    p = k\n    for i in range(k + 1, len(y)):\n"
        "        if abs(y[i, k]) > abs(y[p, k]):\n            p = i\n"
        "    for j in range(len(y)):\n        t = y[k, j]\n        y[k, j] = y[p, j]\n"
        "        y[p, j] = t\n    for i in range(k + 1, len(y)):\n"
        "        y[i, k] /= y[k, k]\n        for j in range(k + 1, len(y)):\n"
        "            y[i, j] -= y[i, k] * y[k, j]",
        reals(square, one),
    ),
    "board": (
        "for i in range(1, len(y) - 1):\n    for j in range(1 + i % 2, len(y) - 1, 2):\n"
        "        y[i, j] = y[i - 1, j] + y[i + 1, j] + y[i, j - 1] + y[i, j + 1]",
        reals(square, square),
    ),
    "table": (
        "for i in range(1, len(y)):\n    for j in range(1, len(y)):\n        y[i, j] = "
        "max(y[i - 1, j], y[i, j - 1], y[i - 1, j - 1] + x[i, j])",
        reals(square, square),
    ),
    "sweep in place": (
        "for t in range(2):\n    for i in range(len(y) - 2, 0, -1):\n"
        "        for j in range(1, len(y) - 1):\n            y[i, j] = "
        "0.25 * (y[i - 1, j] + y[i + 1, j] + y[i, j - 1] + y[i + 1, j + 1])",
        reals(square, square),
    ),
    "columns in order": (
        "for t in range(1, len(y)):\n    y[t, i] = y[t - 1, i] * 0.5 + x[t, i]",
        reals(two, two),
    ),
    "rounds": (
        "for t in range(3):\n    y[1:-1] = 0.5 * (x[:-2] + x[2:])\n    x[:] = y",
        reals(lambda n: (n + 2,), lambda n: (n + 2,)),
    ),
    "many rounds": (
        "for t in range(3):\n    y[1:-1] = 0.5 * (x[:-2] + x[2:])\n    x[:] = y",
        reals(lambda n: (500 * n + 2,), lambda n: (500 * n + 2,)),
    ),
    "triangle": (
        "for a in range(len(y)):\n    for b in range(a):\n        y[a, b] = x[b, a] + 1",
        reals(square, square),
    ),
    "histogram": ("y[k[i]] += x[i]", with_indices),
    "last of all": ("y[k[i]] = x[i]", with_indices),
    "where is it": ("y[:] = x.argmax(axis=1) + x.argmin(axis=0)[:len(y)]",
                    reals(one, lambda n: (n, 40 * n))),
    "running total": ("y[:] = np.cumsum(x)", whole),
    "running maximum": ("y[:] = np.maximum.accumulate(x[::-1])", reals(many, many)),
    "running in steps": (
        "for t in range(len(y) - 1, 1, -2):\n    y[t - 2] = y[t] | x[t]", whole,
    ),
    "large sum": (
        "y[0] = (x * x).sum()\ny[0] -= x.max()", reals(lambda n: (1,), lambda n: (99, 100)),
    ),
    "few columns": (
        "y[j] = sum[i](x[i, j]) / 2", reals(lambda n: (3,), lambda n: (9000, 3)),
    ),
    "variance": (
        "m = x.mean(axis=0)\ny[:] = np.sqrt(((x - m) ** 2).mean(axis=0))",
        reals(lambda n: (2,), lambda n: (5000, 2)),
    ),
    "large argmax": ("y[0] = x.argmin()", reals(lambda n: (1,), lambda n: (97, 101))),
    "until": (
        "s = 0.0\nwhile s < 10.0:\n    y[:] = y + np.abs(x) + 1\n    s = s + y.sum() + 1",
        reals(one, one),
    ),
    "sorted": ("y[:] = np.sort(x)", reals(wide, wide)),
    "sorted columns": ("y[:] = np.argsort(x, axis=0)", reals(square, square)),
    "causal products": (
        "y[i, j] = where(j <= i, sum[k](x[i, k] * z[j, k]), -1)",
        reals(square, lambda n: (n, 20), lambda n: (n, 20)),
    ),
    "scaled rows": (
        "s = np.sqrt(np.abs(x))\ny[i, j] = z[i, j] * s[i]", reals(two, one, two),
    ),
    "mean of rows": ("y[0] = np.log(np.exp(x).sum(axis=1)).mean()", reals(lambda n: (1,), wide)),
    "running columns": ("y[:] = np.cumsum(x, axis=0)", reals(tall, tall)),
    "channels": (
        "m = x.mean(axis=(0, 2))\ny[:] = x - m[:, None]",
        reals(lambda n: (30, 3, 300), lambda n: (30, 3, 300)),
    ),
    "largest by keys": (
        "for i in range(len(k)):\n    y[k[i]] = max(y[k[i]], x[i])", with_indices,
    ),
    "means that move": (
        "for i in range(len(k)):\n    y[k[i]] = 0.5 * y[k[i]] + x[i]", with_indices,
    ),
    "selected": (
        "n = 0\nfor i in range(len(x)):\n    if x[i] > 0:\n        y[n] = x[i]\n        n += 1\n"
        "y[0] = n", whole,
    ),
    "greatest so far": (
        "m = x[0]\nfor i in range(len(x)):\n    m = max(m, x[i])\n    y[i] += m", reals(many, many),
    ),
    "shortest paths": (
        "n = len(y)\nfor k in range(n):\n    for i in range(n):\n        for j in range(n):\n"
        "            y[i, j] = min(y[i, j], y[i, k] + y[k, j])", reals(square, square),
    ),
    "factor": (
        "for j in range(len(y)):\n    y[j, j] = np.sqrt(abs(y[j, j]) + 1)\n"
        "    for i in range(j + 1, len(y)):\n        y[i, j] /= y[j, j]\n"
        "    for i in range(j + 1, len(y)):\n        for k in range(j + 1, i + 1):\n"
        "            y[i, k] -= y[i, j] * y[k, j]", reals(square, square),
    ),
    "two totals": (
        "for i in range(1, len(y)):\n    y[i] = y[i - 1] ^ x[i]\n    x[i] = x[i] * 3", whole,
    ),
    "first greatest": (
        "m = x[0]\nb = 0\nfor i in range(len(x)):\n    if x[i] > m:\n        m = x[i]\n"
        "        b = i\ny[0] = m\ny[1] = b", reals(many, many),
    ),
    "crossed out": (
        "for i in range(2, 9):\n    if y[i % len(y)] < 2:\n"
        "        for j in range(i * i, len(y), i):\n            y[j] = 7", reals(many),
    ),
    "greatest of a grid": (
        "m = x[0, 0]\na = 0\nb = 0\nfor i in range(y.shape[0]):\n"
        "    for j in range(y.shape[1]):\n        if abs(x[i, j]) > m:\n"
        "            m = abs(x[i, j])\n            a = i\n            b = j\n"
        "y[0, 0] = a\ny[0, 1] = b\ny[0, 2] = m", reals(wide, wide),
    ),
    "closest pair": (
        "d = np.inf\na = -1\nb = -1\nfor i in range(len(x)):\n"
        "    for j in range(i + 1, len(x)):\n        e = abs(x[i] - x[j])\n"
        "        if e < d:\n            d = e\n            a = i\n            b = j\n"
        "y[0] = a\ny[1] = b\ny[2] = d", reals(many, many),
    ),
    "first hit": (
        "b = -1\nfor i in range(len(x)):\n    if x[i] > 0.5:\n        b = i\n        break\n"
        "y[0] = b", reals(many, many),
    ),
    "last hit": (
        "b = -1\nv = 0.0\nfor i in range(len(x)):\n    d = x[i] - y[i]\n    if d > 0.5:\n"
        "        b = i\n        v = d * 2\ny[0] = b\ny[1] = v", reals(many, many),
    ),
    "last greatest": (
        "m = x[0]\nb = 0\nfor i in range(len(x)):\n    if x[i] >= m:\n        m = x[i]\n"
        "        b = i\ny[0] = m\ny[1] = b", whole,
    ),
    "greatest or least": (
        "hi = x[0]\nlo = x[0]\na = -1\nb = -1\nfor i in range(len(x)):\n    if x[i] > hi:\n"
        "        hi = x[i]\n        a = i\n    elif x[i] < lo:\n        lo = x[i]\n"
        "        b = i\ny[0] = hi\ny[1] = lo\ny[2] = a - b", reals(many, many),
    ),
    "first by a flag": (
        "b = -1\nfound = False\nv = 0.0\nfor i in range(len(x)):\n"
        "    if b < 0 and x[i] > 1.5:\n        b = i\n    if not found and x[i] < -1:\n"
        "        found = True\n        v = x[i]\ny[0] = b\ny[1] = v", reals(many, many),
    ),
    "first pair": (
        "a = -1\nb = -1\nfound = False\nfor i in range(len(x)):\n"
        "    for j in range(i + 1, len(x)):\n        if x[i] + x[j] == -17:\n"
        "            a = i\n            b = j\n            found = True\n            break\n"
        "    if found:\n        break\ny[0] = a\ny[1] = b", whole,
    ),
    "first of chosen": (
        "b = -1\nfor i in range(len(k)):\n    if x[k[i]] > 1:\n        b = i\n"
        "        break\ny[0] = b", with_indices,
    ),
    "bitonic": (
        "n = len(x)\nk = 2\nwhile k <= n:\n    j = k // 2\n    while j > 0:\n"
        "        for i in range(n):\n            l = i ^ j\n"
        "            if l > i and l < n and (i & k == 0) == (x[i] > x[l]):\n"
        "                t = x[i]\n                x[i] = x[l]\n                x[l] = t\n"
        "        j = j // 2\n    k = k * 2", reals(one, many),
    ),
    "levels": (
        "l = np.zeros(len(y), np.int64)\nl[0] = 1\nn = 1\nsome = True\nwhile some:\n"
        "    some = False\n    for e in range(len(k)):\n        if l[e % len(y)] == n:\n"
        "            if l[k[e]] == 0:\n                l[k[e]] = n + 1\n"
        "                some = True\n    n += 1\ny[:] = l", with_indices,
    ),
    "moved on": (
        "for i in range(len(y) - 2):\n    y[i] = y[i + 2] * 0.5 + x[i]\n"
        "for i in range(len(y) - 1, 0, -1):\n    if x[i] > 0:\n        y[i] += y[i - 1]",
        reals(many, many),
    ),
    "knapsack": (
        "for i in range(len(x)):\n    w = abs(int(x[i] * 9)) + 1\n"
        "    for c in range(len(y) - 1, w - 1, -1):\n        y[c] = max(y[c], y[c - w] + x[i])",
        reals(many, one),
    ),
    "until nothing changes": (
        "for t in range(5):\n    some = False\n    for i in range(len(y)):\n"
        "        if y[i] > x[i]:\n            y[i] -= 1\n            some = True\n"
        "    if not some:\n        break\n    x[0] += 1", reals(many, many),
    ),
    "any pair": (
        "ok = True\nfor i in range(len(y)):\n    for j in range(len(y)):\n"
        "        if abs(y[i, j] - y[j, i]) > 3.5:\n            ok = False\nx[0] = ok",
        reals(square, many),
    ),
    "nearest": (
        "for i in range(len(y)):\n    best = np.inf\n    at = -1\n    for j in range(len(x)):\n"
        "        d = (z[i] - x[j]) * (z[i] - x[j])\n        if d < best:\n"
        "            best = d\n            at = j\n    y[i] = at",
        reals(one, lambda n: (n // 2 + 1,), one),
    ),
    "sorted windows": (
        "for i in range(1, len(y) - 1):\n    w = np.zeros(3)\n    for a in range(3):\n"
        "        v = x[i + a - 1]\n        b = a\n        while b > 0 and w[b - 1] > v:\n"
        "            w[b] = w[b - 1]\n            b -= 1\n        w[b] = v\n    y[i] = w[1]",
        reals(one, one),
    ),
    "own counts": (
        "for i in range(len(y)):\n    c = np.zeros(4, np.float32)\n    for j in range(len(k)):\n"
        "        c[(k[j] + i) % 4] += x[j]\n    y[i] = c[i % 4] - c[1]", with_indices,
    ),
    "until it is close": (
        "for i in range(len(y)):\n    z = abs(x[i]) + 1\n    for k in range(20):\n"
        "        f = z * z - abs(x[i]) - 1\n        z = z - f / (2 * z)\n"
        "        if abs(f) < 1e-3: break\n    y[i] = f", reals(one, one),
    ),
    "guarded": ("y[i] = 1 / x[i] if x[i] > 0 else x[i]", reals(one, one)),
    "triples": (
        "for a in range(len(x)):\n    for b in range(a + 1, len(x)):\n"
        "        for c in range(b + 1, len(x)):\n            y[0] += x[a] * x[b] * x[c]", few,
    ),
    "checkerboard": (
        "n = len(y)\nfor p in range(2):\n    for i in range(n):\n        for j in range(n):\n"
        "            if (i + j) % 2 == p:\n"
        "                around = y[(i + 1) % n, j] + y[(i - 1) % n, j] + y[i, (j + 1) % n]\n"
        "                if around * y[i, j] < 0 or x[i, j] < 0.1:\n"
        "                    y[i, j] = -y[i, j]", reals(even, even),
    ),
    "paths by a test": (
        "n = len(y)\nfor k in range(n):\n    for i in range(n):\n        for j in range(n):\n"
        "            if y[i, k] + y[k, j] < y[i, j]:\n"
        "                y[i, j] = y[i, k] + y[k, j]\n                x[i, j] = x[i, k]",
        reals(square, square),
    ),
    "changed and summed": ("x += y\ny[0, 0] = (x * x).sum()", reals(wide, wide)),
    "totals": ("for a in range(len(y)):\n    for b in range(a):\n        y[a] += x[a, b]",
               reals(one, square)),
}  # fmt: skip

LARGE = ("channels", "large sum", "large argmax", "many rounds", "few columns", "variance")
"""Those that are too large to be interpreted often."""


def text_of(name: str) -> str:
    """Return the function of a nest."""
    text, made = NESTS[name]
    names = ["y", "x"]
    if made is with_indices:
        names = ["y", "k", "x"]
    elif "z[" in text:
        names = ["y", "x", "z"]
    body = "".join(f"    {line}\n" for line in text.splitlines())
    return f"def f({', '.join(names)}):\n{body}"
