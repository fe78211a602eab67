"""Numbers of people that leave 64 bits: they wrap, by functions, since a compiler of CUDA takes
the overflow of signed integers for impossible."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe

from .batch import compiled
from .on_cpu import needs_gxx, overflows

BODIES = [
    "y[0] = a + b > a",
    "y[0] = a * b",
    "y[i] = i * a + b * b - 3 * a",
    "y[(a * b) % 7] = 1",
    "y[0] = max(a * a, b) // 5",
    "for k in range(a * b, a * b + 3): y[0] += k",
    "m = a * a\ny[1] = m * m + 1 if m + b > k[1] else -m",
    "k[0] = a\ny[1] = k[0] * b - k[1]",
]
NUMBERS = [(2**63 - 1, 5), (2**40 + 1, 2**40 + 1), (-(2**63), 2**62 + 1), (3, -4)]


@needs_gxx
def test_nothing_overflows_and_all_wraps() -> None:
    procedures, calls = [], []
    for number, body in enumerate(BODIES):
        text = "".join(f"    {line}\n" for line in body.splitlines())
        function = pe.cd_from_source(f"def f{number}(y, k, a, b):\n{text}", backend="numpy")
        first = np.zeros(7, int), np.arange(2)
        procedures.append(function.procedure(*first, 1, 1))
        calls.append(function)
    codes = compiled(procedures)
    for body, code, function in zip(BODIES, codes, calls, strict=True):
        for a, b in NUMBERS:
            wanted, found = np.zeros(7, int), np.zeros(7, int)
            function(wanted, np.arange(2), a, b)
            given = {"y": found, "k": np.arange(2), "a": np.array(a), "b": np.array(b)}
            code.run([given[p.node.label] for p in code.parameters])
            np.testing.assert_array_equal(found, wanted, err_msg=f"{body} {a} {b}")
    assert overflows(codes[0]) == 0


@pytest.mark.parametrize("body", BODIES)
def test_a_call_refuses_none(body: str, backend: str) -> None:
    """The same numbers, through a call."""
    text = "".join(f"    {line}\n" for line in body.splitlines())
    function = pe.cd_from_source(f"def f(y, k, a, b):\n{text}")
    for a, b in NUMBERS:
        found, wanted = np.zeros(7, int), np.zeros(7, int)
        function.on(backend)(found, np.arange(2), a, b)
        function.on("numpy")(wanted, np.arange(2), a, b)
        np.testing.assert_array_equal(found, wanted, err_msg=f"{body} {a} {b}")
