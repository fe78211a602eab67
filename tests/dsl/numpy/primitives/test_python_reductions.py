"""Python's own reductions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from plusequals.base.diagnostic import CdTypeError
from tests.language.ask import plain, run

from ...elaborate.numpy_oracle import assert_same_as_numpy

EXPRESSIONS = (
    "abs(x)",
    "sum(v)",
    "sum(u)",
    "sum(b1)",
    "max(v)",
    "min(w)",
    "any(b1)",
    "all(b1)",
    "len(x)",
    "abs(v)",
    "max(v[0], v[1])",
    "min(i[0, 0], 2)",
    "len(x[b])",
    "len(v) + len(x[0])",
    "abs(-n), abs(-s), abs(i[0, 0])",
    "any([True, False]), all([b1[0], b1[1]])",
    "max(3, 7), min(2.5, 1), sum([1, 2, 3])",
    "sum((v[0], v[1]))",
)


@pytest.mark.parametrize("body", EXPRESSIONS)
def test_it_is_what_numpy_says(body: str) -> None:
    assert_same_as_numpy(body)


def test_a_product_goes_over_the_first_axis() -> None:
    x = np.arange(12.0).reshape(3, 4) - 5
    body = "return math.prod(x[0]), math.prod(x[x > 0]), math.prod([2, 3])"
    assert run("numpy", "x", body, x, math=math) == plain("x", body, x, math=math)
    for rows in ("x", "x[x[:, 0] > 0]"):
        with pytest.raises(CdTypeError, match="CD0553"):
            run("numpy", "x", f"return math.prod({rows})", x, math=math)
