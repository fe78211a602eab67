"""Functions that return one number, for derivatives of constructs: control flow, extremes, sorts.

Their parameters are a matrix `a`, vectors `x` and `y`, and a number `lim`.
"""

from __future__ import annotations

from textwrap import dedent, indent
from typing import Any

import numpy as np

import plusequals as pe

PARAMETERS = ("a", "x", "y", "lim")

EXTREMES = {
    "over a part of an axis": "m = max[k in range(1, 3)](x[k]); return m * m",
    "over parts of two axes": "return max[i in range(1, 3), j in range(1, i + 2)](a[i, j]) ** 2",
    "of a matrix": "return a.max() ** 2 - 3 * a.min()",
    "inside of loops": """
        s = 0.0
        for t in range(3):
            s = s + x.max() * x[t] + x.min()
            x[t] = s * 0.1
        return s""",
    "of rows, inside of loops": """
        s = 0.0
        for t in range(3):
            m[i] = max[j](a[i, j] * x[t])
            for u in range(2):
                s = s + np.sum(m) * x[u] - np.min(a[t])
            a[t] += m[t] * x[0]
            a[1] *= -1.0
        return s""",
    "under guards": """
        s = 0.0
        for t in range(2):
            m[i] = max[j, j != t](a[i, j])
            if i > 0:
                r[i] = max[j](a[i, j])
            s = s + np.sum(m) * s + np.sum(np.sin(r)) + m.max()
            a *= 0.7
        return s""",
    "in triangular loops": """
        s = 0.0
        for t in range(2, -1, -1):
            for u in range(t):
                m = np.max(a[:, u])
                x[u] = x[u] * m + np.min(x)
                s = s + x.max() * m
        return s""",
    "under a test": """
        s = 1.0
        for v in x:
            if v > 0.3:
                s = s * a.max() + v
                a *= 0.9
        return s""",
    "going on from an earlier one": """
        m = a[:, 0] * 1.0
        for t in range(3):
            m[i] = max(m[i], a[i, t] * m[0])
        np.maximum.at(m, [0, 1, 0], y[:3] * 2.0)
        return np.sum(m ** 2)""",
}


def function_of(body: str, backend: str | None = None) -> Any:
    """Return the function of these parameters with a body."""
    lines = indent(dedent(body.strip("\n")), "    ")
    text = f"def f({', '.join(PARAMETERS)}):\n{lines}\n"
    return pe.cd_from_source(text, {"np": np}, backend=backend)


def values_of(size: int) -> tuple[Any, ...]:
    """Return arguments for the parameters."""
    rng = np.random.default_rng(size)
    return rng.random((size, size + 1)), rng.random(size), rng.random(size), float(rng.random())
