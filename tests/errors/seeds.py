"""Valid functions that the fuzzer mutates, each with a maker of arguments that it takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import plusequals as pe


@dataclass(frozen=True)
class Seed:
    """A function's text, and a maker of its arguments."""

    text: str
    arguments: Callable[[], tuple[object, ...]]


def _ones(*shape: int) -> np.ndarray:
    return np.arange(1.0, np.prod(shape) + 1).reshape(shape)


def _seed(head: str, body: str, arguments: Callable[[], tuple[object, ...]]) -> Seed:
    lines = "\n".join("    " + line for line in body.strip("\n").split("\n"))
    return Seed(f"def f({head}):\n{lines}\n", arguments)


def _matrices() -> tuple[object, ...]:
    return _ones(3, 5), _ones(3, 4), _ones(4, 5)


def _lines() -> tuple[object, ...]:
    return _ones(5), _ones(5)


def _gather() -> tuple[object, ...]:
    return _ones(4), np.array([0, 2, 2, 1]), _ones(4)


SEEDS = (
    _seed("y, a, x", "y[i, j] = sum(a[i, k] * x[k, j])", _matrices),
    _seed("y, a, x", "y[i, j] += a[i, k] * x[k, j] - 2 * y[i, j]", _matrices),
    _seed("y, a, x", "y[:] = a @ x\ny += np.maximum(y, 0)\nreturn y.sum(axis=0)", _matrices),
    _seed("y, x", "y[i] = x[pad(i - 1)] + x[i] + x[clamp(i + 1)]", _lines),
    _seed("y, x", "if i > 0 and i < 4:\n    y[i] = x[i - 1] - x[i + 1]\nelse:\n    y[i] = 0", _lines),
    _seed("y, x", "y[1:-1] = 0.5 * (x[:-2] + x[2:])\ny[0], y[-1] = x[0], x[-1]", _lines),
    _seed("y, x", "m = max(x[i])\ne[i] = exp(x[i] - m)\ny[i] = e[i] / sum[k](e[k])", _lines),
    _seed("y, x", "for t in range(3):\n    s = 0.0\n    for k in range(t, 5):\n"
          "        s += x[k] * y[t]\n    y[t] = s if s > 0 else -s\nreturn s", _lines),
    _seed("y, x", "t = x + 1\nrow = y[::-1]\nrow[:] = t * 2\nreturn row, t.mean(), len(t)", _lines),
    _seed("y, x", "g = lambda v, w=2: v * w\nreturn [g(y), g(x, 3), g(y[0])]", _lines),
    _seed("y, x", "def g(v):\n    if v > 0:\n        return v\n    return 0.0\n"
          "y[i] = g(x[i]) + g(-x[i])", _lines),
    _seed("h, x, w", "h[x[n]] += w[n]\nreturn h[x].max()", _gather),
    _seed("h, x, w", "h[h > 1] = 0\nw[x] = h[x]\nreturn w[w > 0].sum(), np.where(h > 0, w, 1)", _gather),
    _seed("y, a, x", "assert a.shape[0] == 3, 'rows'\nif x[0, 0] < 0:\n"
          "    raise ValueError(f'bad {x[0, 0]}')\nreturn np.concatenate([a, y], axis=1)", _matrices),
    _seed("x, n", "t: f64[3, 4]\nfor k in range(n):\n    t[k, :] = x[k] * k\nreturn t.T", lambda: (_ones(3), 3)),
    _seed("x, n", "z = np.zeros((n, n))\nfor k, v in enumerate(x):\n    z[k, k] = v\n"
          "print('sum', z.sum())\nreturn z.reshape(-1)", lambda: (_ones(3), 3)),
    _seed("x, n", "k = 0\nwhile k < n and x[k] > 0:\n    k += 1\n    if k == 2:\n        break\nreturn k", lambda: (_ones(3), 3)),
    _seed("x", "a = np.sort(x)\nb = np.cumsum(a)[::-1]\nreturn np.stack([a, b]), np.argmax(b)", lambda: (_ones(4),)),
    _seed("x", "with comment('norm'):\n    n = np.sqrt((x ** 2).sum())\nreturn x / n, x.astype(np.int64) // 2", lambda: (_ones(4),)),
    _seed("x", "q, r = divmod(7, 3)\nreturn x[q:, None] * np.arange(r), np.einsum('i,i->', x, x)", lambda: (_ones(4),)),
    _seed("p, lr", "g = p.grad + 0.1 * p.value\np.value -= lr * g", lambda: (pe.tensor("p", (3,)), 0.1)),
    _seed("x", "label[n] = argmin[c]((x[n] - x[c]) ** 2)\nreturn label", lambda: (_ones(4),)),
    _seed("a, n", "for j in range(n):\n    a[j, j] = sqrt(a[j, j] + sum[k < j](a[j, k] ** 2))\n"
          "    if i > j:\n        a[i, j] /= a[j, j]", lambda: (_ones(3, 3), 3)),
    _seed("x", "a, b = x, x * 2\nfor t in range(4):\n    b[1:-1] = a[:-2] + a[2:]\n    a, b = b, a\nreturn a", lambda: (_ones(5),)),
)  # fmt: skip
