"""Rounds in lockstep: each leaves a loop inside by itself, and not a bit changes."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe
from plusequals.lowering.cpu.masked_lanes import MaskReason

from ..scheduled import function
from .masked import arrays, decided, each, same_as_python, same_bits

EARLY = {
    "while": (
        "u = x[i]\nwhile u * u < 50:\n    u = abs(u) * 2 + 0.25\n    if u > 3:\n"
        "        u = u + z[i] / 8\ny[i] = u"
    ),
    "counted": "u = x[i]\nn = 0\nwhile n < 9 and u < 5:\n    u = u * u + 1\n    n += 1\ny[i] = n",
    "break": (
        "u = x[i]\nfor n in range(7):\n    if u > 9:\n        break\n    u = u * u + z[i]\ny[i] = u"
    ),
    "break behind": (
        "u = x[i]\nv = 0.0\nfor n in range(7):\n    v = v + u\n    u = u * u + n\n"
        "    if u > 9:\n        v = -v\n        break\ny[i] = v + u"
    ),
    "for ever": (
        "u = x[i]\nwhile True:\n    u = abs(u) * 2\n    if not (u * u < 99):\n        break\n"
        "    u += 1\ny[i] = u"
    ),
    "next round": (
        "u = x[i]\nfor n in range(9):\n    u = u + 1\n    if u < 0:\n        continue\n"
        "    u = u * 2\n    if u > 40:\n        break\ny[i] = u"
    ),
    "two loops": (
        "u = x[i]\nwhile u < 9:\n    u = abs(u) * 3 + 1\nv = u\nif v > 10:\n    v = v / 3\n"
        "for n in range(4):\n    v = v + u\nwhile v > 1:\n    v = v / 2\n    u = u + v\ny[i] = u"
    ),
    "rows": (
        "u = x[i]\nfor n in range(5):\n    if u > w[n, i]:\n        break\n    u = u + w[n, 0]\n"
        "y[i] = u"
    ),
    "exchanged": "u = x[i]\nv = z[i]\nwhile u < 4:\n    u, v = v + 3, u\ny[i] = u - v",
    "its number": "u = x[i]\nwhile u < i:\n    u = u + 5\ny[i] = u",
}
STAY = {
    "an array inside": "u = x[i]\nwhile u < 9:\n    u = abs(u) * 2 + 1\n    y[i] = u",
    "as many rounds as it says": (
        "u = x[i]\nfor n in range(i):\n    if u > 9:\n        break\n    u += 1\ny[i] = u"
    ),
    "where data says": "n = 0\nwhile n < 40 and x[n] < 1:\n    n += 1\ny[i] = n",
}


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("size", [0, 31, 64, 97])
@pytest.mark.parametrize("name", EARLY)
def test_not_a_bit_changes(name: str, size: int, dtype: str) -> None:
    same_bits(each(EARLY[name]), size, dtype)


@pytest.mark.parametrize("name", EARLY)
def test_loops_inside_are_left_by_lanes(name: str) -> None:
    (decision,) = decided(EARLY[name])
    assert decision.reason is MaskReason.LEAVE
    assert decision.sentence() == (
        "the iterations of the loop over `i` run in SIMD lanes: each iteration may leave an inner "
        "loop at another time, and needs no other one"
    )


@pytest.mark.parametrize("name", STAY)
def test_what_stays_means_the_same(name: str) -> None:
    same_bits(each(STAY[name]), 48)
    assert not decided(STAY[name])


def test_few_rounds_stay() -> None:
    assert not decided(EARLY["while"], "31")
    assert decided(EARLY["while"], "32")


def test_sizes_of_the_run() -> None:
    made, other = (function(each(EARLY["counted"])).on(name) for name in ("cc", "numpy"))
    with pe.settings.override(schedule=True):
        for size in (3, 40, 64, 33, 100, 7, 65):
            given = arrays(size)
            wanted, got = [a.copy() for a in given], [a.copy() for a in given]
            other(*wanted)
            made(*got)
            assert np.array_equal(wanted[1], got[1])


@pytest.mark.parametrize(
    ("inside", "after"),
    [("1", "t[1] + t[0]"), ("1 + abs(t[1])", "t[0]"), ("1 + abs(t[1])", "0.0"), ("1", "x[p]")],
)
def test_private_arrays_stay_those_of_an_iteration(inside: str, after: str) -> None:
    text = (
        "def f(x, y):\n    t = np.zeros(2)\n    for p in range(len(x)):\n"
        "        t[0] = abs(x[p])\n        t[1] = x[p] * 2\n        t[1] += t[0]\n"
        "        t[0] -= t[1]\n        u = 0.0\n        while u < 5:\n"
        f"            u = u * 2 + {inside}\n        y[p] = u + {after}\n"
    )
    same_as_python(text, arrays(97, "f8")[:2])
