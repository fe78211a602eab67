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
    "of a product": "m[i] = max[j](a[i, j + 1] * x[j]); return m[2] + np.max(x * y) ** 2",
    "a position": "k = np.argmax(x * y); return x[k] * y[k] + np.argmin(x + a[0, 1:]) * x[0]",
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

JUMPS = {
    "a return inside of a loop": """
        s = 0.0
        for t in range(len(x)):
            s = s + x[t] * x[t]
            if s > lim:
                return s * 2.0
            if y[t] < 0.4:
                continue
            s = s * y[t] + 1.0
        return s""",
    "a return at once": """
        if lim > 0.5:
            return np.sum(x * x)
        return np.sum(a) * lim""",
    "a return inside of two loops": """
        for p in range(len(x)):
            for q in range(len(y)):
                if x[p] * y[q] > lim:
                    return x[p] * y[q] * a[p, q]
                x[p] = x[p] + 0.5 * y[q] * x[p]
        return np.sum(x)""",
    "a break with values read again": """
        s = 1.0
        for t in range(len(x) - 1, -1, -2):
            x = np.sin(x * s + y)
            s = s * x[t] + 0.3
            if s > 1.2:
                break
            y[t] *= s
        return s * np.sum(x * y)""",
    "a break of no iterations": """
        s = x[0]
        for t in range(0):
            s = s * s
            if s > 1:
                break
        return s * s""",
    "a break in the first iteration": """
        s = x[0]
        for t in range(5):
            s = s * s
            if s > -1:
                break
            s = s * 3
        return s""",
    "continue in nested loops": """
        s = 0.1
        for p in range(len(x)):
            for q in range(p, -1, -1):
                if a[p, q] < 0.3:
                    continue
                s = s * a[p, q] + x[q]
                if s > 1.5:
                    break
                if s > 1.0:
                    s = s * 0.9
                    continue
                s = s + y[p]
            if s > lim + 1:
                continue
            s = s * 1.1
        return s""",
    "jumps on both sides": """
        s = 1.0
        for t in range(6):
            if s > 2.0:
                s = s * x[1] + 0.1
                if s > 2.2:
                    break
            else:
                s = s + x[0]
                if s * lim < 0.1:
                    continue
            s = s * 1.2
            with comment("more"):
                if s > 4:
                    break
                s = s + y[0]
            s = s * s * 0.7
        return s""",
    "a break of an index": """
        k = 0
        for t in range(len(x)):
            k = t
            if x[t] > 0.5:
                break
        return x[k] ** 3 * y[k]""",
    "a break in a loop that is constant": """
        k = 0
        s = 0.0
        for p in range(len(x)):
            for t in range(len(y)):
                k = t
                if y[t] > 0.5:
                    break
            s = s + x[p] * x[k] * s + x[p]
        return s""",
}

WHILES = {
    "a while": """
        v = x[0]
        n = 0
        while v * v < 100.0 and n < 10:
            v = v * (x[1] + 1.0)
            n += 1
        return v * n""",
    "a while of no iterations": """
        v = x[0]
        while v < -1.0:
            v = v * v
        return v * v""",
    "a while of one iteration": """
        v = x[0]
        while v > 0:
            v = v * v - 5.0
        return v * v""",
    "a while of an array": """
        while np.sum(x * x) > 0.1:
            x = np.sin(x) * 0.8
            y += x * y
        return np.sum(x * y)""",
    "Newton's method": """
        r = 1.0
        while abs(r * r - x[0] - 1.0) > 1e-12:
            r = 0.5 * (r + (x[0] + 1.0) / r)
        return r * y[0]""",
    "jumps of a while": """
        s = 0.0
        k = 0
        while True:
            k = k + 1
            if k % 3 == 0:
                continue
            s = s + x[k % 2] * (s + 1.0)
            if s > 3.0:
                break
            if k > 8:
                return s * y[0]
            s = s + 0.1 * y[1]
        return s * s""",
    "a while in a for": """
        s = 0.1
        for p in range(len(x)):
            n = p
            while n > 0:
                s = s * (1.0 + x[p] * y[n])
                n -= 2
            s = s + a[p, 0]
        return s""",
    "a for in a while in a for": """
        s = 0.1
        for p in range(3):
            while s < p + 1.0:
                for q in range(len(x)):
                    if x[q] < 0.2:
                        continue
                    s = s + 0.3 * x[q] * (s + 0.1)
                    if s > 3.5:
                        return s * y[q]
                s = s + 0.2 * y[p]
            y = y * s * 0.5
        return s + np.sum(y)""",
    "a while in a while": """
        s = lim
        while s < 10.0:
            r = 1.0 + x[0]
            while r < s + 2.0:
                r = r * (1.5 + y[0])
            s = s + 0.3 * r
        return s""",
    "a while under a test": """
        s = x[0] + 0.1
        if lim > 0.5:
            while s < 3.0:
                s = s * (1.2 + y[0])
        else:
            s = s * s
        return s""",
    "arrays that change places": """
        n = 0
        while n < 3:
            z = x * y + 0.1
            x, y = y, z
            n += 1
        return np.sum(x * x * y)""",
    "a maximum in a while": """
        n = 0
        s = 0.0
        while n < 4 and s < 10.0:
            m[i] = max[j](a[i, j] * (1.0 + s))
            s = s + m.min()
            a[0] *= -0.5
            n += 1
        return s""",
    "one after another": """
        s = x[0] + 0.2
        while s < 2.0:
            s = s * 1.3 + 0.01
        t = s * y[0] + 0.1
        while t < s:
            t = t * (1.1 + x[1])
        return t * s""",
    "an array of a length that is known inside": """
        s = 0.0
        k = 1
        while k < 4:
            z = x[:k] * y[:k]
            s = s * np.sum(z) + np.sum(z * z)
            k += 1
        return s""",
    "an array of a length that is known under a test": """
        s = 0.1
        k = 1
        for t in range(2):
            if a[t, 0] > 0.1:
                k = k + 1
        if lim < 2.0:
            z = x[:k] * y[:k]
            s = s + np.sum(z * z)
        if lim > 2.0:
            z = y[:k] * s
            s = s + np.sum(z * z)
        return s""",
    "an array of a length that is known after a while under a test": """
        s = 0.2
        if lim < 2.0:
            n = 0
            while n < 2 and s < 30.0:
                n += 1
                s = s * (x[0] + 1.0)
            z = x[:n] * y[:n] * s
            s = s + np.sum(z * z)
        return s""",
    "lengths that are known inside": """
        s = 0.0
        for t in range(len(x)):
            n = int(a[t, 0] * 3) + 1
            z = np.zeros(n)
            for q in range(n):
                z[q] = x[q % len(x)] * (s + 1.0)
                s = s + z[q] * y[t]
            s = s * 0.5 + np.prod(z)
            for q in range(n, -2, -2):
                s = s * (0.9 + 0.1 * y[t])
        return s""",
    "a triangle of arrays": """
        s = 0.1
        for t in range(1, len(x)):
            z = x[:t] * s
            s = s + np.sum(z * z) * np.max(y[:t] * s)
        return s""",
    "a gather in a while": """
        k = 0
        s = 1.0
        while x[k % len(x)] < 0.8 and k < 12:
            s = s * (y[k % len(y)] + 0.5)
            x[(k + 1) % len(x)] *= s
            k = k + 1
        return s * np.sum(x)""",
}

SORTS = {
    "on one side of a test": """
        if lim > 0.2:
            a[0, 1:] *= np.cos(np.sort(y + a[2, 1:]))
        return np.sum(a * a)""",
    "a sort": "return np.sum(np.sort(x) ** 2 * np.arange(len(x)))",
    "of rows": "return np.sum(np.sort(a, axis=1) ** 2 * np.arange(a.shape[1]))",
    "of columns": "return np.sum(np.sort(a, axis=0) ** 2 * a)",
    "of all elements": "q = np.sort(a, axis=None); return q[0] * q[-1] + q[2] ** 2",
    "a stable one": "return np.sum(np.sort(x, kind='stable') ** 2 * np.arange(len(x)))",
    "in place": "x.sort(); return np.sum(x * y)",
    "of a sort": "return np.sum(np.sort(np.sin(5 * np.sort(x))) * y)",
    "medians": "return np.median(a) + np.sum(np.median(a * a, axis=0) ** 2)",
    "quantiles": "return np.percentile(x, 30.0) ** 2 + np.quantile(a, 0.6)",
    "partitions": "q = np.partition(x, 1); return q[1] * q[0]",
    "positions": "p = np.argsort(x); q = np.argpartition(y, 1); return np.sum(x[p] * y) * y[q[0]]",
    "a search": "return x[np.searchsorted(np.sort(x), 0.5) % len(x)] ** 2",
    "sorts in a loop": """
        s = 0.0
        for t in range(3):
            if t != 1:
                y = np.sort(y * x)
            s = s + np.sum(y * np.arange(len(x)))
            x = x * 0.9 + 0.1 * y[::-1]
        return s""",
    "sorts in a while": """
        s = 0.0
        while s < 4.0:
            y = np.sort(y + x)
            s = s + y[0] * y[1] + 0.1
            if s > 3.5:
                break
            x[0] = s * 0.3
        return s""",
}


def function_of(body: str, backend: str | None = None) -> Any:
    """Return the function of these parameters with a body."""
    lines = indent(dedent(body.strip("\n")), "    ")
    text = f"def f({', '.join(PARAMETERS)}):\n{lines}\n"
    return pe.cd_from_source(text, {"np": np, "comment": pe.comment}, backend=backend)


def values_of(size: int) -> tuple[Any, ...]:
    """Return arguments for the parameters."""
    rng = np.random.default_rng(size)
    return rng.random((size, size + 1)), rng.random(size), rng.random(size), float(rng.random())
