"""What index notation refuses names the axis or the letter, and offers text that can be typed."""

from __future__ import annotations

import numpy as np
import pytest

from plusequals.base.diagnostic import CdError, Diagnostic
from plusequals.dsl.elaborate.index.refusals import partials
from tests.language.ask import run

from ..scenes import parsed

X = np.arange(6.0).reshape(2, 3)


def _problem(body: str) -> Diagnostic:
    with pytest.raises(CdError) as caught:
        run("numpy", "y, x", body, X.copy(), X)
    return caught.value.diagnostics[0]


def test_a_partial_target_is_completed_with_a_letter_and_without() -> None:
    problem = _problem("y[i] = x[i, 0]")
    assert problem.code == "CD0513" and "1 of 2 axes" in problem.message
    assert "y[i, j] = x[i, j]" in problem.helps[0] and "y[:] = x" in problem.helps[1]


def test_an_implied_sum_is_written_out_in_both_forms() -> None:
    problem = _problem("y[i, 0] = x[i, k] * x[0, k]")
    assert problem.code == "CD0516" and "`k`" in problem.message
    assert "y[i, 0] = sum(x[i, k] * x[0, k])" in problem.helps[0]
    assert "y[i, 0] += x[i, k] * x[0, k]" in problem.helps[1]


def test_the_offered_text_is_accepted() -> None:
    for body in (
        "y[i, j] = x[i, j]", "y[:] = x", "y[i, 0] = sum(x[i, k] * x[0, k])",
        "y[i, 0] += x[i, k] * x[0, k]",
    ):  # fmt: skip
        y = np.zeros((2, 3))
        run("numpy", "y, x", body, y, X)
        assert y.any()


def test_names_and_subscripts_of_an_expression_are_found_in_order() -> None:
    (statement,) = parsed("x", "return f(x[i], -y) + z.T").body
    assert [part.span.text for part in partials(statement)] == ["f", "x[i]", "y", "z"]
