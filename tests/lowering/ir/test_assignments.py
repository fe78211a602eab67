"""A print shows texts and values, each value in its own format."""

from __future__ import annotations

import pytest

from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.assignments import Print
from plusequals.lowering.ir.expressions import Const

ONE = Const(1.5, dtypes.float64)
TWO = Const(2, dtypes.int64)
FEW, HALF = Const(0.1, dtypes.float32), Const(1e4, dtypes.float32)


@pytest.mark.parametrize(
    ("statement", "shown"),
    [
        (Print(("a ", ONE, " ", TWO)), "a 1.5 2\n"),
        (Print((ONE, TWO), formats=(".3f", "")), "1.5002\n"),
        (Print((ONE, "|", TWO), formats=("", "03d"), end=""), "1.5|002"),
        (Print((FEW, " ", FEW), formats=(None, "")), "0.1 0.10000000149011612\n"),
        (Print((FEW,), formats=(None,), dtypes=(dtypes.float16,)), "0.1\n"),
        (
            Print((HALF, "|", HALF), formats=(None, ""), dtypes=(dtypes.float16,) * 2),
            "1e+04|10000.0\n",
        ),
        (Print(()), "\n"),
    ],
)
def test_a_print_shows_values_between_texts(statement: Print, shown: str) -> None:
    parts = [p for p in statement.fragments if isinstance(p, Const)]
    values = [p.dtype.numpy.type(p.value) for p in parts]
    assert statement.text(values) == shown
