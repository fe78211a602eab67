"""Rounds that come in pairs: which are independent, and that it is so in any order."""

from __future__ import annotations

import numpy as np
import pytest

from plusequals.lowering.analysis.dependence import find_dependence
from plusequals.lowering.gpu.mapping import map_program
from plusequals.lowering.target import Target

from ..gpu.kernels import Case, backwards, ran

SWAP = "t = x[i]\n        x[i] = x[j]\n        x[j] = t\n        y[i] = j"
PAIRS = [
    f"j = i ^ k[0]\n    if j > i:\n        {SWAP}",
    f"j = k[0] ^ i\n    if j < i and x[i] > x[j]:\n        {SWAP}",
    f"j = i ^ k[0]\n    if i <= j:\n        {SWAP}",
    f"j = i ^ (k[0] & 15)\n    if i < j and y[i] < 9:\n        {SWAP}",
    f"j = i + k[0]\n    if i & k[0] == 0:\n        {SWAP}",
    f"if i & k[0] == 0:\n        j = i | k[0]\n        {SWAP}",
    f"if k[0] & i == 0:\n        j = i ^ k[0]\n        {SWAP}",
]
CLASH = [
    f"j = i ^ k[0]\n    if j != i:\n        {SWAP}",
    f"j = i ^ k[0]\n    if j > i:\n        {SWAP}\n    else:\n        x[i] = 2",
    f"j = i ^ k[i]\n    if j > i:\n        {SWAP}",
    f"j = i ^ k[0]\n    if j > k[0]:\n        {SWAP}",
    f"j = i | k[0]\n    if j > i:\n        {SWAP}",
    f"j = i + k[0]\n    if i & 3 == 0:\n        {SWAP}",
    f"j = i + k[0]\n    if i & k[0] == 1:\n        {SWAP}",
    f"j = i ^ k[0]\n    if j > i:\n        j = j - 1\n        {SWAP}",
    f"j = i ^ k[0]\n    if j > i:\n        {SWAP}\n        x[0] = 1",
    f"j = i ^ (y[0] & 15)\n    if j > i:\n        {SWAP}",
    f"j = i | (y[0] & 15)\n    if i & (y[0] & 15) == 0:\n        {SWAP}",
    "j = i ^ 3\n    l = i ^ 5\n    if j > i:\n        x[i] = x[j] + 1\n        x[l] = 2",
    "j = i ^ 3\n    l = i ^ 5\n    if l > i:\n        x[i] = x[j] + 1\n        x[l] = 2",
    "if i & 4 == 0:\n        x[i] = x[i + 4] + 1\n        x[i + 8] = 2",
    "if i & 8 == 0:\n        x[i] = x[i + 4] + 1\n        x[i + 8] = 2",
    "if i & 4 == 0:\n        x[i] = x[i + 4] + x[i - 4 + 2 * 2] * y[i + 5]\n        y[i] = 1",
]


def of(text: str) -> Case:
    return Case(f"for i in range(16):\n    {text}", True, x="f64[32]", y="i64[32]", k="i64[32]")


def is_free(case: Case) -> bool:
    loop = case.loop()
    return find_dependence(loop, case.facts.private(loop), case.facts.all_nodes) is None


@pytest.mark.parametrize("text", PAIRS)
def test_pairs_do_the_same_in_any_order(text: str) -> None:
    case = of(text)
    assert is_free(case)
    whole = map_program(case.program, Target("cuda"), exact=True).program
    for k in (0, 1, 2, 3, 4, 8, 12, 15):
        given = [np.sin(np.arange(32.0)), np.arange(32) % 11, np.full(32, k)]
        for program in (whole, backwards(whole)):
            got, want = ran(program, given), ran(case.program, given)
            assert [a.tobytes() for a in got] == [a.tobytes() for a in want], k


@pytest.mark.parametrize("text", CLASH)
def test_others_need_each_other(text: str) -> None:
    assert not is_free(of(text))
