"""Which integers fit their types: compared with Python's own, which have no limits."""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np
import pytest

import plusequals as pe
from plusequals.base.diagnostic import CdError

INTS = (-128, -127, -65, -64, -12, -2, -1, 0, 1, 2, 11, 12, 63, 64, 126, 127)


@pytest.mark.parametrize(
    ("sign", "exact"),
    [("+", operator.add), ("-", operator.sub), ("*", operator.mul), ("//", operator.floordiv)],
)
def test_two_bytes_fit_where_the_exact_result_does(
    sign: str, exact: Callable[[int, int], int]
) -> None:
    f = pe.cd_from_source(f"def f(a, b):\n    return a {sign} b\n", backend="numpy")
    for a in INTS:
        for b in INTS:
            if sign == "//" and b == 0:
                continue
            x, y = np.array([a], np.int8), np.array([b], np.int8)
            assert _is_refused(f, x, y) == (not -128 <= exact(a, b) <= 127), (a, b)


@pytest.mark.parametrize("dtype", ["i1", "i4", "i8", "u1", "u8"])
def test_a_float_fits_where_it_has_a_nearest_integer_below_or_above(dtype: str) -> None:
    info = np.iinfo(dtype)
    low, high = float(info.min), float(info.max) + (info.bits < 64)
    inside = [low, 0.0, 1.9, -0.9, np.nextafter(high, 0)]
    below = 2 * low if dtype == "i8" else low - 1
    outside = [np.nan, np.inf, -np.inf, high, 2 * high + 1, below]
    name = f"{'int' if dtype[0] == 'i' else 'uint'}{info.bits}"
    f = pe.cd_from_source(f"def f(a):\n    return a.astype('{name}')\n", backend="numpy")
    for value in inside:
        assert not _is_refused(f, np.array([value])), value
    for value in outside:
        assert _is_refused(f, np.array([value])), value


def _is_refused(function: pe.CdFunction, *arguments: np.ndarray) -> bool:
    with pe.checked(overflow=True):
        try:
            function(*arguments)
        except CdError as why:
            assert why.code == "CD0766"
            return True
    return False
