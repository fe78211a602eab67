"""Comprehensions over many numbers are arrays, and give what Python's lists give."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import plusequals as pe

PARTS = (
    "np.array([x[i] - x[i - 1] for i in range(1, len(x))])",
    "np.array([k * v for k, v in enumerate(x)])",
    "np.array([u * v for u, v in zip(x, x[::-1])])",
    "np.array([x[i] for i in reversed(range(n))])",
    "np.array([x[i] for i in range(1, len(x), 3)])",
    "np.array([x[i] + i for i in range(len(x) - 1, -1, -2)])",
    "np.array([2 * i for i in range(0, 200, 2)]), sum([i for i in reversed(range(2, n, 5))])",
    "sum(v for v in x if v > 0)",
    "sum(math.exp(v) for v in x)",
    "len([v for v in x if v > 0 and v < 1])",
    "max([abs(v) for v in x])",
    "any(v > 2 for v in x), all([v < 9 for v in x])",
    "sum(1 for v in x if v > 0)",
    "sum(0.5 * i for i in range(n)) * x",
    "sum([n, 2.5]), sum([float(x[0]), n])",
)


@pytest.mark.parametrize("part", PARTS)
def test_many_numbers_are_what_a_list_gives(part: str, backend: str) -> None:
    names = {"np": np, "math": math}
    f = pe.cd_from_source(f"lambda x, n: ({part},)", names, backend=backend)
    plain = eval(f"lambda x, n: ({part},)", names)
    for size in (1, 2, 3, 5, 7, 65, 200):
        x = np.random.default_rng(size).standard_normal(size).astype(np.float32)
        for one, other in zip(f(x, size), plain(x, size), strict=True):
            assert type(one) is type(other)
            assert np.asarray(one).dtype == np.asarray(other).dtype
            np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-6)


def test_no_index_is_checked_for_items_that_a_test_leaves_out(backend: str) -> None:
    f = pe.cd_from_source("lambda x, k: sum(x[j] for j in k if j < len(x))", {}, backend=backend)
    assert f(np.arange(4.0), np.arange(100)) == 6.0
    with pytest.raises(IndexError, match="index 4 is out of range"):
        pe.cd_from_source("lambda x, k: sum(x[j] for j in k)", {})(np.arange(4.0), np.arange(100))


def test_the_variable_of_a_comprehension_is_not_that_of_a_loop_before_it() -> None:
    text = """
def f(x):
    w = (0.5, 0.25, 2.0)
    for t in range(2):
        s = sum(x[k] for k in range(3))
        for k in range(3):
            x[k] += w[k] * s
    return s
"""
    wanted, found = np.ones(3), np.ones(3)
    scope: dict[str, Any] = {}
    exec(text, scope)
    s = scope["f"](wanted)
    assert pe.cd_from_source(text, {}, backend="numpy")(found) == s
    np.testing.assert_array_equal(found, wanted)
