"""Adjoints of all statements, against central differences."""

from __future__ import annotations

from textwrap import dedent, indent
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.lowering.adjoint.rules import NotDifferentiable

from .differences import agree, derived

RNG = np.random.default_rng(5)
VALUES: dict[str, Any] = {
    "x": RNG.random(6) + 0.1, "y": RNG.random(6) + 0.1, "a": RNG.random((4, 6)),
    "w": RNG.random((6, 3)), "b": RNG.random(3), "k": np.array([0, 2, 2, 1, 0, 3]), "n": 4,
    "s": 0.7, "labels": np.array([0, 1, 2, 0]),
}  # fmt: skip

FUNCTIONS = {
    "elementwise": "return np.tanh(x) * np.exp(-y) + x / y - np.sqrt(x * y)",
    "powers": "return x ** 3 + x ** 0.5 + x ** y + 2.0 ** y",
    "softmax": """
        z = np.maximum(a @ w + b, 0)
        p = np.exp(z - z.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        return -np.mean(np.log(p[np.arange(len(labels)), labels]))""",
    "in place": "x[1:-1] += 0.1 * (x[2:] - 2 * x[1:-1] + x[:-2]) ** 2; return x * y",
    "a loop in time": """
        for t in range(n):
            x[1:-1] += 0.1 * (x[2:] * x[:-2])
        return (x * x).sum()""",
    "carried numbers": """
        r = 1.0
        for v in x:
            if v > 0.5:
                r += np.sin(v) * r
            else:
                r -= v * r * r
        return r""",
    "a recurrence": """
        t = np.zeros(6)
        t[0] = x[0]
        for q in range(1, 6):
            t[q] = t[q - 1] * x[q] + y[q]
        return t""",
    "a triangle": """
        r = s
        for p in range(6):
            for q in range(p):
                r = r * 0.9 + x[p] * y[q] * r
        return r""",
    "backwards by two": """
        r = s
        for q in range(5, -1, -2):
            r = r * r + x[q]
        return r""",
    "product, maximum, minimum": "return np.prod(x) * x.max() + y.min()",
    "largest so far": "y[i] = max[j <= i](-x[j]); return y",
    "gather": "return x[k] * y",
    "scatter": "np.add.at(y, k, x * x); return y",
    "the last write": "y[k] = x * x; return y * y",
    "selects": "return np.where(x > 0.5, np.log(np.abs(x - 0.45)), x * y)",
    "windows": "t[i] = sum[j](x[i + j] * b[j]); return t",
    "edges": "y[i] = x[clamp(i - 1)] * x[wrap(i + 2)] + x[pad(i + 1)]; return y",
    "guards": """
        if i > 0:
            y[i] = x[i - 1] * y[i]
        return y""",
    "views": "q = a.T[1:, ::2]; q *= 2; return a * a",
    "scans": "return np.cumsum(x * x) * np.cumprod(y)",
    "statistics": "return np.std(x) * np.var(y)",
    "convolution": "return np.convolve(x, b)",
    "interpolation": "return np.interp(0.3, np.linspace(0, 1, 6), x)",
    "an inverse": "return np.linalg.inv(w[:3] + np.eye(3))",
    "matrices in a loop": """
        q = a.copy()
        for t in range(3):
            q = np.tanh(q @ (w @ w.T))
        return q""",
    "exchanged": """
        for t in range(3):
            x, y = y * s, x
        return x + 2 * y""",
}  # fmt: skip


def case_of(body: str, with_adjoint: bool = True) -> Any:
    """Return the adjoint of a function with this body, with values for its parameters."""
    lines = indent(dedent(body.strip("\n")), "    ")
    f = pe.cd_from_source(f"def f({', '.join(VALUES)}):\n{lines}\n", {"np": np}, backend="numpy")
    values = {name: np.copy(value) if np.ndim(value) else value for name, value in VALUES.items()}
    match, _ = f.matched(**values)
    return derived(match.specialization.typed.procedure, match.held, with_adjoint)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_along_a_direction_are_those_of_differences(name: str) -> None:
    case = case_of(FUNCTIONS[name])
    assert agree(case, 1) and agree(case, 2)


REFUSED = {
    "of complex numbers": "return np.sign(x * 1j).real",
    "an array that is read while its elements change": "x[m] *= x[j]; return x",
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_has_no_adjoint_is_refused(reason: str) -> None:
    with pytest.raises(NotDifferentiable, match=reason):
        case_of(REFUSED[reason])
