"""Outcomes are compared by what is expected, however large what came is."""

from __future__ import annotations

import numpy as np
import pytest

from .outcomes import Outcome, difference, unlike


def one(*values: float, dtype: str = "f8") -> Outcome:
    return Outcome((np.array(values, dtype),))


@pytest.mark.parametrize("wrong", [-5.3e303, np.nan, np.inf, 1.001])
def test_one_wrong_number_is_no_measure_of_the_others(wrong: float) -> None:
    assert difference(one(wrong, 2.0), one(1.0, 2.0), rtol=1e-5) is not None


def test_numbers_are_as_near_as_the_largest_that_is_expected_allows() -> None:
    assert difference(one(1.0, 1e6), one(1.5, 1e6), rtol=1e-5) is None
    assert difference(one(1.0, 1e6), one(1.5, 1e6)) is not None
    assert difference(one(1.0, 2.0), one(1.0, 2.0, dtype="f4"), rtol=1e-5) is not None


def test_signs_of_zeros_count_where_nothing_rounds() -> None:
    assert difference(one(0.0), one(-0.0)) is not None
    assert difference(one(0.0), one(-0.0), signs=False) is None


def test_lists_and_tuples_are_alike_item_by_item() -> None:
    assert unlike((1, [2.0, np.ones(2)]), (1, [2.0, np.ones(2)])) is None
    for one, other in (([1], (1,)), ((1,), (1, 2)), ((1,), (1.0,)), ([True], [1]), ((), 0)):
        assert unlike(one, other) is not None
