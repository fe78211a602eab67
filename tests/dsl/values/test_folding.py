"""Constant folding: Python's results, and what is too large to be one."""

from __future__ import annotations

import math
import operator

import numpy as np
import pytest

from plusequals import CdError, cd_from_source
from plusequals.dsl.values.folding import LONGEST, fold


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (operator.pow, (10, 10**30)),
        (pow, (-3, 1 << 60)),
        (operator.lshift, (1, 10**12)),
        (operator.mul, ("a", LONGEST + 1)),
        (operator.mul, (LONGEST, [0, 1])),
        (math.factorial, (10**9,)),
        (math.comb, (10**9, 5 * 10**8)),
        (math.perm, (10**9,)),
    ],
)
def test_results_of_no_end_are_refused(function: object, args: tuple[object, ...]) -> None:
    with pytest.raises(OverflowError, match="its result has more than 4,194,304"):
        fold(function, args)


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (operator.pow, (1, 10**30)),
        (operator.pow, (2, -(10**3))),
        (operator.pow, (2.0, 10)),
        (pow, (3, 10**30, 7)),
        (operator.lshift, (0, 10**12)),
        (operator.lshift, (5, 3)),
        (operator.mul, ("a", -5)),
        (operator.mul, (3, (1, 2))),
        (math.comb, (10**9, 10**9 - 1)),
        (math.perm, (10, 2)),
    ],
)
def test_others_are_pythons(function: object, args: tuple[object, ...]) -> None:
    assert fold(function, args) == function(*args)


@pytest.mark.parametrize("text", ["10 ** 10 ** 30", "1 << 10 ** 12", "(y[0, 0], 1) * 10 ** 8"])
def test_programs_are_told_at_their_line(text: str) -> None:
    f = cd_from_source(f"def f(y):\n    return {text}\n")
    with pytest.raises(CdError, match=r"more than 4,194,304 (bits|elements)(?s:.)*return"):
        f(np.ones((2, 2)))
