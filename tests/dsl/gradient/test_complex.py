"""Gradients of real numbers in complex ones: `Re(conj(d) dz)` is the change along `dz`."""

from __future__ import annotations

from textwrap import dedent, indent

import numpy as np
import pytest

import plusequals as pe

PROGRAMS = {
    "squares": "return np.sum(np.abs(z) ** 2 * x)",
    "parts": "w = z * z * (1 + 2j) * x; return np.sum(np.abs(w)) + w[0].real * w[1].imag",
    "quotients": "w = z / (z + x); return np.sum((w * np.conj(w)).real)",
    "functions": """
        w = np.exp(1j * x) * np.sin(z) + np.log(z) * np.sqrt(z)
        return np.sum(w.real * w.imag)""",
    "more functions": "return np.sum((np.cosh(z) * np.sinh(z) * np.cos(z) * np.tan(z)).real)",
    "angles": "return np.sum(np.angle(z) * x)",
    "a loop": """
        s = 0j
        for t in range(3):
            s = s * z[t] + np.tanh(z[t] * x[0])
            z[0] = z[0] * s
        return np.abs(s + z[0])""",
    "a while": """
        s = z[0]
        n = 0
        while np.abs(s) < 3.0 and n < 10:
            s = s * (z[1] + 1.0)
            n += 1
        return s.real * s.imag""",
    "matrices": "w = np.outer(z, z) @ z; return np.sum(np.abs(w) ** 2)",
    "real ones": """
        w = np.zeros(len(x), complex)
        w[:] = x * x
        w[1] *= z[1]
        return np.sum(w.imag * w.real)""",
    "products": "return np.prod(z).real + np.abs(np.sum(z - 2j * z))",
    "selects": "return np.sum(np.where(x > 0.3, z, np.conj(z) * 2j).imag * x)",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_are_those_of_differences(name: str) -> None:
    lines = indent(dedent(PROGRAMS[name].strip("\n")), "    ")
    f = pe.cd_from_source(f"def f(z, x):\n{lines}\n", {"np": np}, backend="numpy")
    rng = np.random.default_rng(3)
    z, x = rng.random(3) + 1j * rng.random(3), rng.random(3)
    value, (d_z, d_x) = pe.value_and_gradient(f, wrt=("z", "x"))(z.copy(), x.copy())
    assert value == pytest.approx(f(z.copy(), x.copy()), rel=1e-12) and d_z.dtype == z.dtype
    move_z = rng.standard_normal(3) + 1j * rng.standard_normal(3)
    move_x = rng.standard_normal(3)
    ends = [f(z + h * move_z, x + h * move_x) for h in (1e-6, -1e-6)]
    along = np.sum((np.conj(d_z) * move_z).real) + np.sum(d_x * move_x)
    assert along == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-5)


def test_a_step_against_the_gradient_is_the_steepest() -> None:
    f = pe.cd_from_source("def f(z):\n    return np.abs(z[0] - (1 + 2j)) ** 2\n", {"np": np})
    z = np.array([3 - 1j])
    assert pe.gradient(f, wrt="z")(z) == pytest.approx(2 * (z - (1 + 2j)))
    assert pe.gradient(f, wrt="z")(np.array([1 + 2j])) == pytest.approx([0])  # of abs at 0


def test_complex_numbers_without_a_rule_are_refused() -> None:
    f = pe.cd_from_source("def f(z):\n    return np.sum(np.sign(z).real)\n", {"np": np})
    with pytest.raises(TypeError, match="of complex numbers has no derivative here"):
        pe.gradient(f, wrt="z")(np.array([1j]))
