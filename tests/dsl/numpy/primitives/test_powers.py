"""Powers: products, roots, and what integers may not be raised to."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import plusequals as pe

from ...elaborate.numpy_oracle import assert_same_as_numpy, compiled
from ...elaborate.strict_oracle import assert_as_plain

EXPRESSIONS = (
    "x ** 2",
    "y ** 3",
    "i ** 2",
    "k ** 3",
    "x ** -1",
    "np.abs(x) ** 0.5",
    "x ** 2.5",
    "np.power(p, 1.7)",
    "np.float_power(k, 2)",
    "zf ** 2",
    "z ** 2",
    "k ** 2 + i",
    "2 ** k",
    "2.0 ** x",
    "n ** x",
    "np.power(k, 2)",
    "x ** 3 - x ** 4 + x ** 0",
    "k ** 0",
    "x ** n",
    "np.float_power(2.0, x)",
    "np.pow(x, 2)",
    "x ** 20",
    "np.power(p, 9.0)",
    "x ** 33 - x ** 64",
    "zf ** 12",
    "k ** 20",
)


@pytest.mark.parametrize("body", EXPRESSIONS)
def test_it_is_what_numpy_says(body: str) -> None:
    assert_same_as_numpy(body)


@pytest.mark.parametrize("body", ["i ** -1", "i ** i", "k ** (k - 4)"])
def test_integers_to_negative_powers_are_errors(body: str) -> None:
    with pytest.raises(pe.CdError, match="negative integer powers") as caught:
        compiled(body)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("body", ["np.power(x, y)", "x ** y"])
def test_a_power_of_the_run_is_that_of_c(body: str, backend: str) -> None:
    power = pe.cd_from_source(f"def f(x, y):\n    return {body}", globals={"np": np})
    with pe.override(backend=backend), np.errstate(all="ignore"):
        found = power(np.array([-np.inf, -0.0, 4.0]), np.full(3, 0.5))
    np.testing.assert_array_equal(found, [np.inf, 0.0, 2.0])
    assert not np.signbit(found).any()


ON_DEVICES = {np.float32: 4, np.float64: 2}
"""How far what the library of CUDA finds may be from what is rounded right, as its guide says: in
units in the last place. NumPy's may be another one off."""


@pytest.mark.parametrize("exponent", [9, 20, 33, 63, 64, -2, -3, -20])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_whole_exponents_keep_the_bound_of_pow(exponent: int, dtype: type, backend: str) -> None:
    power = pe.cd_from_source(f"def f(x):\n    return x ** {exponent}", globals={})
    near = np.linspace(0.5, 2, 301).astype(dtype)
    far = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e30, -1e30, 1e-30, -1e-30], dtype)
    with pe.override(backend=backend), np.errstate(all="ignore"):
        found, ends = power(np.concatenate([near, -near])), power(far)
        exact = [Fraction(float(x)) ** exponent for x in near]
        wanted = np.power(far, dtype(exponent))
    more = ON_DEVICES[dtype] if backend == "cuda" else 0
    finite = np.isfinite(wanted)
    np.testing.assert_array_equal(ends[~finite], wanted[~finite])
    apart = np.abs(ends[finite] - wanted[finite])
    assert (apart <= (more + (more > 0)) * np.spacing(np.abs(wanted[finite]))).all()
    sign = -1 if exponent % 2 else 1
    np.testing.assert_array_equal(found[301:], sign * found[:301])
    np.testing.assert_array_equal(np.signbit(ends[:2]), [False, exponent % 2 == 1])
    units = [Fraction(float(unit)) for unit in np.spacing(found[:301])]
    for y, z, unit in zip(found[:301], exact, units, strict=True):
        assert abs(Fraction(float(y)) - z) < (1.2 + more) * unit


def test_powers_in_place_have_the_rules_of_powers(backend: str) -> None:
    text = "def f(x, n, m):\n    x **= 2\n    x[m] **= n\n    x[1:] **= 3\n"
    f, x = pe.cd_from_source(text, backend=backend), np.array([1.5, -2.0, 3.0])
    f(x, 2, x > 0)
    np.testing.assert_array_equal(x, [1.5**4, (4.0) ** 3, (81.0) ** 3])
    assert "pow" not in pe.cd_from_source("def f(x):\n    x **= 2\n").explain(x).code
    g = pe.cd_from_source("def f(x, n):\n    x **= n\n", backend=backend)
    with pytest.raises(ValueError, match="integers to negative integer powers"):
        g(np.array([2]), -1)
    with pytest.raises(pe.CdError, match="CD0464|CD0404"):
        pe.cd_from_source("def f(x):\n    x **= 300\n", backend=backend)(np.array([2], np.uint8))


def test_halves_of_complex_arrays_are_square_roots() -> None:
    z = np.array([complex(0, np.inf), complex(-np.inf, 1), -1, -4, 3 + 4j, complex(np.nan, 0)])
    text = "def f(z):\n    y = z.copy()\n    y **= 0.5\n    return z ** 0.5, y, np.power(z, 0.5)"
    with np.errstate(all="ignore"):
        wanted = z**0.5
        found = pe.cd_from_source(text, {"np": np}, backend="numpy")(z)
    for got in found[:2]:
        np.testing.assert_array_equal(got, wanted)
    assert found[2][3] != found[0][3], "NumPy's function takes the general way"


_ENDS = np.array([-np.inf, -0.0, 4.0, 2.25, np.nan, np.inf, 0.0])


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2"])
@pytest.mark.parametrize(
    "body",
    [
        "a ** 0.5, a ** b, pow(a, 0.5), pow(a, b), a ** np.array(0.5)",
        "np.power(a, 0.5), np.power(a, b), np.float_power(a, 0.5), np.float_power(a, b)",
        "a[0] ** 0.5, a[1] ** b, pow(a[0], 0.5), math.pow(a[1], 0.5), a[0] ** np.array(0.5)",
        "np.float_power(a[0], 0.5), a[1] ** -0.5, a ** -0.5, a ** 1.5, (a[0] * a[0]) ** 0.5",
        "a ** c, a ** a, float(a[0]) ** 0.5, float(a[1]) ** b",
        "z = a.copy()\nz **= 0.5\ny = a.copy()\ny **= b\nz, y",
    ],
)
def test_a_half_is_a_root_where_numpy_takes_one(body: str, dtype: str) -> None:
    x = _ENDS.astype(dtype)
    assert_as_plain(body, x, 0.5, np.full(7, 0.5, dtype))


@pytest.mark.parametrize("base", [-np.inf, -0.0, 4, np.float64(-np.inf), np.array(-np.inf)])
def test_halves_of_numbers(base: object) -> None:
    assert_as_plain("a ** 0.5, a ** b", base, 0.5)


def test_halves_of_elements() -> None:
    """In index notation they are those of the array, in a loop over `range` of numbers."""
    notation = pe.cd_from_source("def f(x, y, c):\n    y[i] = x[i] ** 0.5 + 0 * x[i] ** c\n")
    y = np.zeros(3)
    with np.errstate(all="ignore"):
        notation(np.array([-np.inf, 4.0, -0.0]), y, 0.5)
    np.testing.assert_array_equal(y[:2], [np.nan, 2.0])
    loop = "for k in range(len(a)):\n        b[k] = a[k] ** 0.5\nb"
    assert_as_plain(loop, _ENDS, np.zeros(7))


def test_a_root_of_squares_needs_no_correction() -> None:
    codes = [
        pe.cd_from_source(f"def f(x, y): return ({base}) ** 0.5").explain(1.0, 2.0).code
        for base in ("x * x + abs(y)", "x + y")
    ]
    assert ["half_pow" in code for code in codes] == [False, True]
