"""Functions of Python's modules."""

from __future__ import annotations

import cmath
import math

import numpy as np
import pytest

import plusequals as pe

from ...elaborate.numpy_oracle import assert_same_as_numpy

EXPRESSIONS = (
    "y * math.sqrt(2.0)",
    "divmod(x, 0.5)",
    "math.exp(v[0])",
    "math.log(p[0], 2)",
    "math.hypot(v[0], 3.0)",
    "math.erf(s)",
    "math.pow(s, 2)",
    "divmod(n, 3)",
    "pow(n, 2)",
    "math.sin(s) + math.cos(s) * math.pi + math.atan2(s, 2.0) + math.fabs(-s) + math.sqrt(n)",
    "math.isnan(s), math.inf, math.tau",
    "np.pi * x",
    "np.gcd(12, 18)",
    "np.lcm(4, 6)",
    "math.gcd(n, 12), math.comb(n + 2, 2)",
)


@pytest.mark.parametrize("body", EXPRESSIONS)
def test_it_is_what_numpy_says(body: str) -> None:
    assert_same_as_numpy(body)


def test_of_single_numbers_they_make_python_s(backend: str) -> None:
    given = "lambda x: (math.sqrt(x[0]), math.isnan(x[1]), math.log(x[0], 2), cmath.sqrt(x[1]))"
    x = np.array([2.0, -3.0], np.float32)
    names = {"math": math, "cmath": cmath}
    got, wanted = pe.cd_from_source(given, names, backend=backend)(x), eval(given, names)(x)
    assert list(map(type, got)) == list(map(type, wanted))
    np.testing.assert_allclose(got, wanted, rtol=1e-15)
    with pytest.raises(TypeError, match="`math.sqrt` of a complex number"):
        pe.cd_from_source("lambda z: math.sqrt(z[0])", names)(np.array([1j]))
