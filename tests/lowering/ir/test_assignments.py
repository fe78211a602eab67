"""A print shows texts and values, each value in its own format."""

from __future__ import annotations

import pytest

from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.assignments import Print
from plusequals.lowering.ir.expressions import Const

ONE = Const(1.5, dtypes.float64)
TWO = Const(2, dtypes.int64)


@pytest.mark.parametrize(
    ("statement", "shown"),
    [
        (Print(("a ", ONE, " ", TWO)), "a 1.5 2\n"),
        (Print((ONE, TWO), formats=(".3f", "")), "1.5002\n"),
        (Print((ONE, "|", TWO), formats=("", "03d"), end=""), "1.5|002"),
        (Print(()), "\n"),
    ],
)
def test_a_print_shows_values_between_texts(statement: Print, shown: str) -> None:
    values = [p.value for p in statement.pieces if isinstance(p, Const)]
    assert statement.text(values) == shown
