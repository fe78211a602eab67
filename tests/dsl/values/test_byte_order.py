"""Arguments in another byte order: what NumPy copies is a new array, what it views is a view."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.base.diagnostic import CdTypeError

ARRAYS = (
    "x.astype(np.float64, copy=False)", "x.astype(x.dtype, copy=False)",
    "x[1:].astype(np.float64, copy=False)", "np.asarray(x, dtype=np.float64)",
    "np.asarray(x, x.dtype)", "np.asarray(x)", "np.array(x, dtype=float, copy=None)",
    "np.array(x, copy=None)", "np.float64(x)", "np.ascontiguousarray(x, dtype=float)",
    "np.asarray(x.T, dtype=float)", "np.asarray(x.reshape(2, 4), dtype=float)", "np.ravel(x)",
    "np.asarray(x[::-1], float)", "np.asarray(x + 1, float)",
    "np.zeros(3, dtype=x.dtype)", "np.zeros_like(x)", "x.astype('f4', copy=False)",
)  # fmt: skip
"""Arrays that a function makes of its argument."""
FACTS = (
    "x.dtype == np.float64", "x.dtype != float", "np.float64 == x.dtype", "x.dtype == 'f8'",
    "x.dtype is x.dtype", "x.dtype.isnative", "x.dtype.byteorder", "x.dtype.str", "x.dtype.kind",
    "x.dtype.itemsize", "x.dtype in (np.float32, np.float64)", "x.dtype.type is np.float64",
    "x.dtype == np.dtype('>f8'), x.dtype == np.dtype('<f8')", "np.dtype(x.dtype) == x.dtype",
    "np.result_type(x.dtype, np.float32) == np.float64", "np.asarray(x, float) is x",
    "np.asarray(x, x.dtype) is x",
)  # fmt: skip
"""What a function may ask of its argument."""


def made(text: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return a function of a text in Python, and compiled."""
    names: dict[str, Any] = {"np": np}
    exec(text, names)
    return names["f"], pe.cd_from_source(text, {"np": np})


@pytest.mark.parametrize("order", [">", "<"])
@pytest.mark.parametrize("expression", ARRAYS)
def test_what_numpy_copies_is_a_new_array(expression: str, order: str) -> None:
    plain, compiled = made(f"def f(x):\n    r = {expression}\n    r[...] = 5\n    return r\n")
    ours = np.arange(8.0).astype(f"{order}f8")
    theirs = ours.copy()
    mine, wanted = compiled(ours), plain(theirs)
    assert np.array_equal(mine, wanted) and mine.shape == wanted.shape
    assert np.array_equal(ours, theirs)
    assert np.shares_memory(mine, ours) == np.shares_memory(wanted, theirs)


@pytest.mark.parametrize("order", [">", "<"])
@pytest.mark.parametrize("expression", FACTS)
def test_facts_are_those_of_the_argument(expression: str, order: str) -> None:
    plain, compiled = made(f"def f(x):\n    return {expression}\n")
    x = np.arange(8.0).astype(f"{order}f8")
    assert compiled(x) == plain(x)


def test_a_part_of_complex_elements_has_their_byte_order() -> None:
    plain, compiled = made("def f(x):\n    r = np.asarray(x.real, float)\n    r[0] = 7\n")
    ours = np.arange(3.0).astype(">c16")
    theirs = ours.copy()
    compiled(ours), plain(theirs)
    assert np.array_equal(ours, theirs)


def test_calls_with_both_byte_orders_are_told_apart() -> None:
    plain, compiled = made("def f(v):\n    v = np.asarray(v, float)\n    v[0] = 9\n")
    for size in (3, 4, 5, 6, 7):
        for order in "<><":
            ours = np.arange(size).astype(f"{order}f8")
            theirs = ours.copy()
            compiled(ours), plain(theirs)
            assert np.array_equal(ours, theirs), (size, order)


@pytest.mark.parametrize(
    "body",
    [
        "z = np.zeros_like(x); w = np.asarray(z, float); w[0] = 5; return z",
        "z = x.copy(); w = z.astype(float, copy=False); w[0] = 5; return z",
    ],
)
def test_a_new_array_of_either_order_is_refused_where_it_would_show(body: str) -> None:
    _, compiled = made(f"def f(x):\n    {body}\n")
    assert compiled(np.ones(3))[0] == 5
    with pytest.raises(pe.CdError, match="CD0208"):
        compiled(np.ones(3, ">f8"))


@pytest.mark.parametrize("dtype", ["'>f8'", "np.dtype('>f8')"])
def test_a_new_array_in_another_byte_order_is_refused(dtype: str) -> None:
    _, compiled = made(f"def f(n):\n    return np.zeros(n, {dtype})\n")
    with pytest.raises(CdTypeError, match="this machine's byte order"):
        compiled(3)


def test_a_cast_that_swaps_bytes_is_none_under_the_rule_no() -> None:
    _, compiled = made("def f(x):\n    return x.astype(float, casting='no')\n")
    assert compiled(np.ones(2)).sum() == 2
    with pytest.raises(CdTypeError, match="CD0405"):
        compiled(np.ones(2, ">f8"))
