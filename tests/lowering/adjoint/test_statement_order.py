"""The order of adjoint statements."""

from __future__ import annotations

import numpy as np
import pytest

from plusequals.dsl.gradient.source_text import source_text
from plusequals.lowering.adjoint.statement_order import with_column_sums_last

from .differences import run
from .test_simplify import procedure_of

START = "a = np.zeros((3, 3)); a[i, j] = x[i] * x[j] + n; "
MOVED = START + "s[j] = sum[i](a[i, j] * x[i]); y[i, j] = a[i, j] * 2.0; return s, y"
KEPT = {
    "of a row": START + "s[i] = sum[j](a[i, j]); y[i, j] = a[i, j] * 2.0; return s, y",
    "read later": START + "s[j] = sum[i](a[i, j]); y[i, j] = a[i, j] * s[i]; return s, y",
    "of what is overwritten": (
        START + "s[j] = sum[i](a[i, j]); y[i, j] = a[i, j] * 2.0; a[i, j] = 0.0; return s, y"
    ),
    "a product": START + "s[i, k] = sum[j](a[j, i] * a[j, k]); y[i] = s[i, i]; return s, y",
}


def lines_of(body: str) -> tuple[list[str], list[str]]:
    before = procedure_of(body)
    after = with_column_sums_last(before)
    given = [np.array([1.0, 3.0, -2.0]), np.asarray(2.0)]
    for one, other in zip(run(before, given)[1], run(after, given)[1], strict=True):
        np.testing.assert_array_equal(one, other)
    texts = (source_text(one, "f", one.results).split("\n") for one in (before, after))
    first, second = texts
    return first, second


def test_a_sum_over_rows_comes_last() -> None:
    before, after = lines_of(MOVED)
    (line,) = (line for line in before if "s[j] = sum[i]" in line)
    assert before.index(line) + 1 < len(before) - 2 and after.index(line) == len(after) - 3


@pytest.mark.parametrize("name", KEPT)
def test_other_statements_stay(name: str) -> None:
    before, after = lines_of(KEPT[name])
    assert before == after
