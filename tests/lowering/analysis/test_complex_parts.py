"""Formulae of complex numbers: the interpreter finds the same numbers by them as without."""

from __future__ import annotations

import numpy as np
import pytest

from plusequals.lowering.analysis.complex_parts import has_formula, needs_no_temporaries
from plusequals.lowering.cpu.complex_pairs import scalarize_complex
from plusequals.lowering.ir.expressions import Apply, Const, Expr, Read
from plusequals.lowering.ir.interpret import run_program
from plusequals.lowering.ir.loops import Program, Store
from plusequals.lowering.ir.ops import OPS
from plusequals.lowering.ir.walk import statements

from ..shown import lowered

KINDS = {"x": "c128[100]", "y": "c128[100]", "z": "c128[100]", "n": "f64[100]"}
COMPLEX = (
    "x[i] + z[i] / z[i]", "x[i] - 1 / z[i]", "x[i] * z[i] / (x[i] + 2)", "-x[i] / z[i]",
    "conj(x[i]) / z[i]", "complex(x[i].imag, n[i]) / 2j", "x[i] / n[i]",
    "x[i] if n[i] > 0 else z[i]",
)  # fmt: skip
REAL = (
    "abs(x[i] / z[i])", "(x[i] / z[i]).real", "np.imag(1 / z[i])", "np.angle(x[i] / 2)",
    "1.0 * (x[i] / 1 == z[i])", "1.0 * (x[i] / 1 != x[i])", "1.0 * np.isnan(x[i] / z[i])",
    "1.0 * np.isinf(x[i] / z[i])", "1.0 * np.isfinite(x[i] / z[i])",
)  # fmt: skip
SPECIAL = np.array([0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 3e-300, 1e300, 0.3])


def _results(program: Program) -> list[np.ndarray]:
    x, z = np.empty((2, 100), np.complex128)
    x.real, x.imag = SPECIAL.repeat(10), np.tile(SPECIAL, 10)
    z.real, z.imag = np.roll(x.imag, 7), np.roll(x.real, 33)
    given = {"x": x, "y": np.zeros_like(x), "z": z, "n": np.roll(x.real, 13)}
    arrays = [given[parameter.node.label] for parameter in program.parameters]
    with np.errstate(all="ignore"):
        run_program(program, arrays, print)
    return [given["y"], given["n"]]


@pytest.mark.parametrize("target, value", [
    *(("y", value) for value in COMPLEX), *(("n", value) for value in REAL),
])  # fmt: skip
def test_parts_are_those_of_numpy(target: str, value: str) -> None:
    program = lowered(f"{target}[i] = {value}", **KINDS)
    made = scalarize_complex(program)
    assert made is not program
    for one, other in zip(_results(made), _results(program)):
        np.testing.assert_allclose(one, other, rtol=3e-16)  # NumPy has two ways to the size


@pytest.mark.parametrize("exponent", range(1, 9))
def test_powers_are_products(exponent: int) -> None:
    program = lowered(f"y[i] = x[i] ** {exponent} / 2", x="c128[3]", y="c128[3]")
    made, x = scalarize_complex(program), np.array([0.5 - 2j, -1 + 0.25j, 3j])
    found = np.zeros_like(x)
    run_program(made, [{"x": x, "y": found}[p.node.label] for p in made.parameters], print)
    np.testing.assert_allclose(found, x**exponent / 2, rtol=1e-14)
    assert made is not program


def _value(text: str) -> Expr:
    """Return what is stored by the only statement that stores into y."""
    program = lowered(f"y[i] = {text}", **KINDS)
    body = [stmt for kernel in program.kernels for stmt in statements(kernel.body)]
    (store,) = (s for s in body if isinstance(s, Store) and s.access.node.label == "y")
    return store.value


@pytest.mark.parametrize("text, formula, plain", [
    ("x[i] * z[i] + 2", True, True),
    ("x[i] * (z[i] + 2)", True, False),
    ("x[i] / z[i]", True, False),
    ("exp(x[i])", False, True),
    ("x[i] ** 9 + x[i] ** 2.5", False, True),
    ("x[i] * z[i] if n[i] > 0 else z[i]", True, False),
    ("x[i] / z[i] if n[i] > 0 else z[i]", False, False),
])  # fmt: skip
def test_what_has_a_formula(text: str, formula: bool, plain: bool) -> None:
    assert has_formula(_value(text)) is formula
    assert needs_no_temporaries(_value(text)) is plain


def test_an_operand_without_a_formula_is_found_below() -> None:
    one = _value("x[i] + 1")
    assert isinstance(one, Apply) and isinstance(one.args[0], Read)
    inside = Apply(
        OPS["add"], (Apply(OPS["exp"], (one,), one.dtype), Const(1j, one.dtype)), one.dtype
    )
    assert not has_formula(inside) and needs_no_temporaries(inside)
