"""Sums scattered through windows that overlap, as sums over the windows."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe

WINDOWS = {
    "one axis": (
        "y[i] = sum[r](x[i + r] * w[r])",
        "sum[r](w[r] * d_x_padded[i - r + 2])",
    ),
    "a convolution with channels": (
        "y[h, v, o] = sum[r, q, c](a[h + r, v + q, c] * k[r, q, c, o])",
        "sum[r, q, o](k[r, q, c, o] * d_a_padded[h - r + 1, v - q + 2, o])",
    ),
    "strided windows that overlap": (
        "y[i] = sum[r in range(3)](x[i + 2 * r] * w[r])",
        "d_x_padded[i - 2*r + 4]",
    ),
    "reversed windows": (
        "y[i] = sum[r](x[i - r + 2] * w[r])",
        "sum[r](w[r] * d_x_padded[i + r])",
    ),
    "another array at the place": (
        "y[i] = sum[r](x[i + r] * w[r] * z[i])",
        "d_x_padded[i + 2] = d_y[i] * z[i]",
    ),
    "in a loop": (
        "u = x.copy()\n    for t in range(3):\n"
        "        v[i] = sum[r](u[i + r] * w[r])\n        u[1:-1] = v",
        "d_u_padded",
    ),
}
APART = {
    "apart": "y[i] = sum[r in range(2)](x[2 * i + r] * w[r])",
    "an array at place and distance": "y[i] = sum[r](x[i + r] * w[r] * x[i + r])",
    "longer windows": "y[i] = sum[r in range(3), q in range(4)](x[i + r + q] * w[r])",
    "under a test": "y[i] = sum[r](x[i + r] * w[r] if r <= i else 0.0)",
}


def _gradient(body: str, wrt: tuple[str, ...], *given: np.ndarray) -> str:
    """Return the source of a gradient that agrees with differences and with its own source."""
    result = "u" if "for t" in body else "y"
    text = f"def f(x, w, z, a, k):\n    {body}\n    return np.sum({result} * {result})\n"
    f = pe.cd_from_source(text, {"np": np})
    assert pe.check_gradient(f, given, wrt=wrt).digits > 7
    g = pe.gradient(f, wrt=wrt)
    found = g(*given)
    again = pe.cd_from_source(g.source, g.names)(*given)
    assert all(np.allclose(one, other, rtol=1e-12) for one, other in zip(found, again))
    return g.source


def _given() -> tuple[np.ndarray, ...]:
    shapes = (9,), (3,), (7,), (5, 6, 2), (2, 3, 2, 4)
    random = np.random.default_rng(7)
    return tuple(random.standard_normal(shape) for shape in shapes)


@pytest.mark.parametrize("name", WINDOWS)
def test_overlapping_windows_are_summed_at_each_element(name: str) -> None:
    body, expected = WINDOWS[name]
    x, w, z, a, k = _given()
    if name == "strided windows that overlap":
        z = z[:5]
    source = _gradient(body, ("a", "k") if "a[" in body else ("x", "w"), x, w, z, a, k)
    assert expected in source
    assert "_padded = np.zeros(" in source, "zeros are around it"


@pytest.mark.parametrize("name", APART)
def test_other_sums_stay(name: str) -> None:
    assert "padded" not in _gradient(APART[name], ("x",), *_given())


def test_windows_of_run_time_sizes() -> None:
    text = (
        "def f(x, w):\n    y[i] = sum[r in range(3)](x[i + r] * w[r])\n    return np.sum(y * y)\n"
    )
    f = pe.cd_from_source(text, {"np": np})
    g = pe.gradient(f, wrt=("x", "w"))
    for size in (9, 8, 7, 6, 5, 4, 3):
        given = np.linspace(-1.0, 1.0, size), np.array([0.5, -2.0, 1.0])
        assert pe.check_gradient(f, given, wrt=("x", "w")).digits > 7
        d_x, d_w = g(*given)
        assert d_x.shape == (size,) and d_w.shape == (3,)
    assert "d_x_padded" in g.source and "x.shape[0]" in g.source
