"""Code for any size computes what code for its static sizes does, or sizes stay static."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import plusequals as pe

SIZES = (20, 21, 22, 23, 24, 25, 30, 40)
STATIC = [
    "x * 2**-len(x)", "2 ** (3 - len(x))", "x * 10**len(x)", "len(x)**16", "1 << len(x) * 3",
    "len(x) * 2**61", "max(len(x), 2.5)", "min([len(x), 30.0])", "x[len(x) - 25]",
    "x[2 - len(x) // 2]", "(len(x) - 2) * (len(x) + 1) * len(x) * 2**40", "2.0**len(x)",
    "math.exp(len(x) * 30)", "x ** len(x)", "int(1e18 * len(x) / 1e3)", "round(len(x) * 1e18)",
    "np.int8(len(x) * 5)", "np.uint8(len(x) - 24)",
]  # fmt: skip
DYNAMIC = [
    "x.sum() / len(x)", "x[len(x) // 2]", "x[-1]", "np.zeros(len(x) - 1)", "len(x) * 3",
    "1 / (len(x) - 1)", "x * len(x)**2", "x * len(x)**3", "len(x) * (len(x) - 1) // 2",
    "x[: int(0.8 * len(x))]", "x * len(x)**-0.5", "math.sqrt(len(x) - 1)", "max(len(x), 3)",
    "math.log(len(x))", "x[len(x) - 1 - len(x) // 2]", "0.9**len(x)", "x / (len(x) - 3)",
    "round(len(x) / 3)", "len(x) & 5", "int(math.log2(len(x)))", "1 << int(math.log2(len(x)))",
    "np.int8([1]) * len(x)", "np.int8([1]) * (len(x) * 4)", "np.int64(len(x))",
    "x[min(3, len(x) - 1)]", "1 / max(len(x) - 5, 1)", "pow(len(x), 2)",
    "np.linspace(0, 1, len(x))", "np.exp(2j * np.pi / len(x))", "5 // (len(x) - 3)", "x.nbytes",
]  # fmt: skip
STATEMENTS = {
    "k = len(x)\n    k = k**9\n    return k * k": False,
    "k = 2\n    if len(x) > 22:\n        k = 10\n    return k**len(x)": False,
    "s = 0.0\n    for i in range(3):\n        s += x[i - len(x) + 17]\n    return s": False,
    "s = 0.0\n    for i in range(len(x)):\n        s += x[i] / len(x)\n    return s": True,
    "k = 1\n    while k < len(x):\n        k = k * 2\n    return k, 5 // k": True,
    "y = np.zeros(30)\n    y[len(x) - 25] = 1\n    return y": False,
    "h = 1 / (len(x) - 1)\n    return (x[1:] - x[:-1]) / h**2": True,
}
"""Statements -> whether the sizes become dynamic."""
CASES = {
    **{f"return {one}": False for one in STATIC}, **{f"return {one}": True for one in DYNAMIC},
    **STATEMENTS,
}  # fmt: skip


def outcome(function: Any, *args: Any) -> Any:
    """Return the result of a call, as text, None for an exception."""
    try:
        result = function(*args)
    except (pe.CdError, ArithmeticError, IndexError, ValueError):
        return None
    if isinstance(result, np.ndarray):
        return result.dtype, result.round(9).tolist()
    return type(result), np.round(result, 9).tolist() if isinstance(result, float) else result


@pytest.mark.parametrize("body", CASES)
def test_sizes_are_dynamic_where_python_computes_the_same(body: str) -> None:
    names: dict[str, Any] = {"np": np, "math": math}
    text = f"def f(x):\n    {body}\n"
    f = pe.cd_from_source(text, names)
    g = pe.cd_from_source(f"def f(m):\n    x = m.x\n    {body}\n", names)
    scope = {**names}
    exec(text, scope)
    reason = ""
    for n in SIZES:
        x = np.arange(float(n)) % 7 + 1
        wanted = outcome(scope["f"], x)
        assert outcome(f, x) == wanted and outcome(g, SimpleNamespace(x=x)) == wanted, n
        if wanted is not None:
            reason = f.specialise(x).reason + g.specialise(SimpleNamespace(x=x)).reason
    assert (reason.count("any size"), CASES[body]) in ((2, True), (0, False))


@pytest.mark.parametrize("op", ["/", "//", "%"])
def test_a_divisor_that_may_be_zero_is_checked(op: str, backend: str) -> None:
    f = pe.cd_from_source(f"def f(x):\n    return 5 {op} (len(x) - 24)\n", backend=backend)
    for n in SIZES:
        if n == 24:
            with pytest.raises(pe.CdError, match="division by zero"):
                f(np.ones(n))
        else:
            assert f(np.ones(n)) == eval(f"5 {op} (n - 24)", {"n": n})
    assert "any size" in f.specialise(np.ones(25)).reason


def test_products_of_sizes_beyond_64_bits_are_refused() -> None:
    f = pe.cd_from_source("def f(x):\n    return len(x) * len(x)\n")
    for n in (2, 3, 4, 5):
        assert f(np.broadcast_to(1.0, n)) == n * n
    with pytest.raises(pe.CdError, match="too large for a whole number of 64 bits"):
        f(np.broadcast_to(1.0, 2**33))


def test_numbers_and_sizes_that_python_combines_otherwise_are_static() -> None:
    f = pe.cd_from_source("def f(m, x):\n    return x * 10 ** (m.n + len(x))\n")
    for n in (2, 3, 4, 5, 15, 20):
        for size in (2, 3, 4, 5, 6):
            x = np.ones(size)
            np.testing.assert_array_equal(f(SimpleNamespace(n=n), x), x * 10 ** (n + size))


def test_a_static_size_leaves_those_of_other_arrays_dynamic() -> None:
    f = pe.cd_from_source("def f(m):\n    return m.w * 10**len(m.v)\n")
    for n in (2, 3, 4, 5, 20, 24):
        m = SimpleNamespace(v=np.ones(n), w=np.ones(n + 1))
        np.testing.assert_array_equal(f(m), m.w * 10**n)
    assert "axis 0 of `m.w` came in more" in f.specialise(m).reason
    assert "m.v" not in f.specialise(m).reason
