"""Contributions to one cotangent on both sides of a sum."""

from __future__ import annotations

import numpy as np
import pytest

from plusequals.dsl.gradient.source_text import source_text
from plusequals.lowering.adjoint.contributions import with_joined_contributions

from .differences import run
from .test_simplify import procedure_of

START = "a = np.zeros((3, 3)); a[i, j] = x[i] * x[j] + n; b = a * 2.0; c = a + b; "
SUM = "s[i] = sum[j](a[i, j]); "
JOINED = {
    "assigned": (
        START + "y[i, j] = a[i, j] * n; " + SUM + "y[i, j] += s[i]; return y",
        "y[i, j] = a[i, j] * n + s[i]",
    ),
    "added": (
        START + "y = b * 1.0; y[i, j] += a[i, j]; " + SUM + "y[k, l] += s[k]; return y",
        "y[k, l] += a[k, l] + s[k]",
    ),
    "transposed": (
        START + "y[i, j] = a[j, i]; " + SUM + "y[l, k] += s[k]; return y",
        "y[l, k] = a[k, l] + s[k]",
    ),
    "one after the other": (
        START + "y[i, j] = a[i, j]; " + SUM + "y[i, j] += s[i]; "
        "t[j] = sum[i](a[i, j] * s[i]); y[i, j] += t[j]; return y",
        "y[i, j] = a[i, j] + s[i] + t[j]",
    ),
}
APART = {
    "no sum between them": START + "y[i, j] = a[i, j]; s = x * n; y[i, j] += s[i]; return y",
    "read between them": START + "y[i, j] = a[i, j]; s[i] = sum[j](y[i, j]); y[i, j] += s[i]; "
    "return y",
    "of what is overwritten": START + "y[i, j] = a[i, j]; " + SUM + "a[i, j] = 1.0; "
    "y[i, j] += s[i]; return y, a",
    "at some elements": START + "y = b * 1.0; y[i, j] += a[i, j]; " + SUM
    + "y[:2, :2] += s[:2]; return y",
    "of three arrays": START + "y[i, j] = a[i, j] * b[i, j] * c[j, i]; " + SUM
    + "y[i, j] += s[i]; return y",
    "that read what they add to": START + "y = b * 1.0; y[i, j] += y[j, i]; " + SUM
    + "y[i, j] += s[i]; return y",
}  # fmt: skip


def lines_of(body: str) -> tuple[list[str], list[str]]:
    before = procedure_of(body)
    after = with_joined_contributions(before)
    given = [np.array([1.0, 3.0, -2.0]), np.asarray(2.0)]
    for one, other in zip(run(before, given)[1], run(after, given)[1], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-14)
    texts = (source_text(one, "f", one.results).split("\n") for one in (before, after))
    first, second = texts
    return first, second


@pytest.mark.parametrize("name", JOINED)
def test_contributions_are_added_up_after_a_sum(name: str) -> None:
    body, expected = JOINED[name]
    before, after = lines_of(body)
    assert len(after) < len(before)
    assert [line for line in after if line.strip().endswith(expected)], "\n".join(after)


@pytest.mark.parametrize("name", APART)
def test_other_contributions_stay(name: str) -> None:
    before, after = lines_of(APART[name])
    assert before == after
