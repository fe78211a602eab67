"""Types of ufuncs, `out=`, numbers that adapt."""

from __future__ import annotations

import math

import numpy as np
import pytest

import plusequals as pe
from plusequals.dsl.numpy.primitives.ufuncs import resolved
from plusequals.dsl.values.types import WEAK_FLOAT, WEAK_INT, Kind
from plusequals.lowering.ir import dtypes

from ...elaborate.numpy_oracle import SCOPE, assert_same_as_numpy

EXPRESSIONS = (
    "np.add(x, y, out=x)",
    "np.exp(v, out=v)",
    "np.add(x, 1, x)",
)


BIG = "h + N, N * h, h / N, N - h, h == N, N < h, np.maximum(h, N), np.where(b, h, N), N ** (h * 0)"


@pytest.mark.parametrize("number", ["2**63", "2**64 - 1", "-2**63 - 1", "10**30", "2**1000"])
def test_floats_of_16_bits_meet_integers_beyond_64(number: str) -> None:
    assert_same_as_numpy(BIG.replace("N", f"({number})"))


@pytest.mark.parametrize("body", EXPRESSIONS)
def test_it_is_what_numpy_says(body: str) -> None:
    assert_same_as_numpy(body)


@pytest.mark.parametrize(
    ("ufunc", "kinds", "result"),
    [
        (np.divide, (Kind(dtypes.int8), Kind(dtypes.int8)), dtypes.float64),
        (np.sqrt, (Kind(dtypes.int8),), dtypes.float16),
        (np.add, (Kind(dtypes.float32), WEAK_FLOAT), dtypes.float32),
        (np.add, (WEAK_INT, WEAK_INT), dtypes.int64),
        (np.less, (Kind(dtypes.int64), Kind(dtypes.uint64)), dtypes.bool_),
    ],
)
def test_results_have_the_type_that_numpy_chooses(
    ufunc: np.ufunc, kinds: tuple[Kind, ...], result: dtypes.DType
) -> None:
    assert resolved(ufunc, kinds)[-1] is result


def test_operands_without_a_meaning_are_a_type_error() -> None:
    with pytest.raises(TypeError, match="not defined"):
        resolved(np.bitwise_and, (Kind(dtypes.float32), Kind(dtypes.float32)))


def test_python_numbers_adapt_and_numpy_numbers_do_not() -> None:
    y = np.ones(3, "f4")
    text = "def f(y, s):\n    return y * s, y * math.sqrt(s), y * np.sqrt(s), y * np.float32(s)\n"
    with pe.override(backend="numpy"):
        got = pe.cd_from_source(text, globals=SCOPE)(y, 2.0)
    assert [part.dtype.name for part in got] == ["float32", "float32", "float64", "float32"]
    assert math.isclose(float(got[1][0]), math.sqrt(2.0), rel_tol=1e-6)
