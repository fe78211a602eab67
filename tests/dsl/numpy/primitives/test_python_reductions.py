"""Python's own reductions."""

from __future__ import annotations

import math

import numpy as np
import pytest

import plusequals as pe
from plusequals.base.diagnostic import CdTypeError
from tests.language.ask import plain, run

from ...elaborate.numpy_oracle import assert_same_as_numpy
from ...elaborate.strict_oracle import assert_as_plain

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


@pytest.mark.parametrize("dtype", ["i1", "?", "f4", "f8"])
@pytest.mark.parametrize(
    "body", ["math.prod(a)", "math.prod(a, start=2.5)", "math.prod([a, b]) * b", "sum(a, 0.0)"]
)
def test_a_product_of_python_has_the_type_of_the_items(body: str, dtype: str) -> None:
    assert_as_plain(body, np.array([100, 3, 1]).astype(dtype), np.array([2], dtype))


def test_a_product_of_python_numbers_adapts() -> None:
    assert_as_plain("math.prod([a, 2]) * b, math.prod((a, a))", 3, np.array([1.5], "f4"))
    assert_as_plain("math.prod(a) * b", [3, 2], np.array([1.5], "f4"))
    assert_as_plain("math.prod([x * 2 for x in a])", np.array([1.5, 2.5], "f4"))
    with pytest.raises(pe.CdError, match="CD0553"):
        pe.cd_from_source("def f(x): return math.prod(x)", {"math": math})(np.ones((2, 2)))
