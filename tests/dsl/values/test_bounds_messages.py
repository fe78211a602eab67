"""What is said of an index that leaves its axis can be typed."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import plusequals as pe

NEIGHBOURS = "def f(s):\n    e = 0.0\n    for i in range({0}):\n        e += {1}\n    return e\n"


@pytest.mark.parametrize(
    ("size", "read"),
    [
        ("len(s)", "s[i - 1, 0]"),
        ("s.shape[1]", "s[:, i - 2].sum()"),
        ("len(s)", "s.T[1, i - 1]"),
        ("len(s)", "s[i - 1].sum()"),
        ("s.shape[1]", "s[0, -i]"),
    ],
)
def test_what_is_proposed_for_an_index_below_0_is_what_numpy_reads(size: str, read: str) -> None:
    s = np.arange(12.0).reshape(3, 4)
    text = NEIGHBOURS.format(size, read)
    with pytest.raises(IndexError, match="is out of range") as caught:
        pe.cd_from_source(text)(s)
    (end,) = re.findall("that is `(.*)`", str(caught.value))
    names: dict[str, Any] = {}
    exec(text, names)
    got = pe.cd_from_source(text.replace(read.removesuffix(".sum()"), end))(s)
    assert got == names["f"](s)
    others = re.findall("outside: `(.*)`, `(.*)`", str(caught.value))
    for other in others[0]:
        pe.cd_from_source(text.replace(read.removesuffix(".sum()"), other))(s)


def test_what_is_proposed_for_any_other_index_is_in_its_words() -> None:
    f = pe.cd_from_source("def f(y, k):\n    return y[1, k[0] + 1]", backend="numpy")
    way = r"`y\[1, clamp\(k\[0\] \+ 1\)\]`, `y\[1, pad"
    with pytest.raises(IndexError, match=way):
        f(np.ones((2, 3)), np.array([5]))


def test_a_negated_index_does_not_count_from_the_end() -> None:
    f = pe.cd_from_source("def f(y, n, k):\n    return y[-n], y[-k[0]]", backend="numpy")
    with pytest.raises(IndexError, match=r"that is `y\[\(-n\) % len\(y\)\]`"):
        f(np.ones(3), 2, np.array([0]))
    with pytest.raises(IndexError, match=r"that is `y\[\(-k\[0\]\) % len\(y\)\]`"):
        f(np.ones(3), 0, np.array([1]))


def test_a_new_axis_is_no_index() -> None:
    with pytest.raises(IndexError, match=r"that is `x\[\(i - 1\) % len\(x\)\]`"):
        pe.cd_from_source(NEIGHBOURS.format(3, "s[None, i - 1].sum()"))(np.ones(3))
