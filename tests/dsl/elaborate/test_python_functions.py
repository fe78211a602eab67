"""Functions of Python's modules."""

from __future__ import annotations

import pytest

from .numpy_oracle import assert_same_as_numpy

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
