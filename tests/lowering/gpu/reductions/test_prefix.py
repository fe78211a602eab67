"""Loops that carry totals and use them: which are taken in pieces, and that these do the same."""

from __future__ import annotations

import pytest

from plusequals.lowering import thresholds
from plusequals.lowering.analysis.parallel_band import facts_of
from plusequals.lowering.gpu.reductions.prefix import map_prefix_sums
from plusequals.lowering.gpu.thread_points import DeviceCode
from plusequals.lowering.ir.loops import For
from plusequals.lowering.transform.recognize_updates import recognize_updates

from ..kernels import Case


def of(case: Case) -> DeviceCode | None:
    """Return what a loop becomes."""
    loop = case.loop()
    (one,) = recognize_updates((loop,))
    assert isinstance(one, For)
    case.facts.tell((one,), case.facts.temporaries_in(loop))
    return map_prefix_sums(one, case.facts, case.fresh, case.nodes)


COUNT = "n = 0\nfor i in range(len(x)):\n    "
TAKEN = [
    "m = x[0]\nfor i in range(len(x)):\n    m = max(m, x[i])\n    y[i] = m",
    COUNT + "if x[i] > 2:\n        n += 1\n    y[i] = n",
    COUNT + "y[i] = n\n    n += x[i]",
    COUNT + "if x[i] > 2:\n        y[n] = x[i]\n        n += 1\ny[0] = n",
    COUNT + "if i == 0 or x[i] != x[i - 1]:\n        y[n] = x[i]\n        n += 1",
    COUNT + "t = x[i] % 3\n    if t == 1:\n        y[n] = t\n        z[n] = i\n        n += 2",
    COUNT + "if x[i] > 2:\n        continue\n    n += x[i]\n    y[i] = n",
    COUNT + "y[i] = n\n    if x[i] > 2:\n        y[i] = 7\n        continue\n    n += x[i]\n"
    "    if x[i] < -2:\n        n += 3",
    COUNT + "n += x[i]\n    y[i] = n\n    if y[i] > 2:\n        continue\n    y[i] = 7",
    COUNT + "for j in range(3):\n        if x[i] > j:\n            continue\n        n += x[i]\n"
    "    y[i] = n",
    COUNT + "for j in range(9):\n        if x[i] < j:\n            break\n        n += 1\n"
    "    y[i] = n",
    "n = 0\nm = 0\nfor i in range(len(x)):\n    if x[i] > 2:\n        y[n] = x[i]\n        n += 1\n"
    "    else:\n        z[m] = x[i]\n        m += 1",
    "n = 0\nm = 0\nfor i in range(len(x) - 1, -1, -1):\n    n += x[i]\n    m = min(m, x[i])\n"
    "    y[i] = n * m",
    "n = 0\nfor i in range(0, len(x), 2):\n    for j in range(3):\n        n += x[i] * j\n"
    "        y[i] = n",
]


@pytest.mark.parametrize(
    "n",
    [2 * thresholds.MIN_SCAN_CHUNK_ITERATIONS, 2 * thresholds.MIN_SCAN_CHUNK_ITERATIONS + 1, 300],
)
@pytest.mark.parametrize("text", TAKEN)
def test_pieces_do_the_same(text: str, n: int) -> None:
    if "0, len(x), 2" in text:
        n *= 2
    case = Case(text, True, y=f"i64[{2 * n}]", x=f"i64[{n}]", z=f"i64[{2 * n}]")
    made = of(case)
    assert made is not None
    case.assert_same(made.body)


@pytest.mark.parametrize(
    "text",
    [
        COUNT + "if n < 5:\n        n += 1\n    y[i] = n",  # what is added needs the total
        COUNT + "y[n] = x[i]\n    if x[i] > 2:\n        n += 1",  # rounds write one element
        COUNT + "n += x[i]\n    y[n % 5] = x[i]",
        "n = 0\nm = 9\nfor i in range(len(x)):\n    if x[i] > 2:\n        y[n] = x[i]\n"
        "        n += 1\n    else:\n        y[m] = x[i]\n        m += 1",  # one element by both
        COUNT + "y[i] = n\n    if y[i] > 9:\n        continue\n    n += x[i]",
        COUNT + "y[n] = x[i]\n    n += x[i]",
        COUNT + "if x[i] > 2:\n        y[n] = x[i]\n        n += 1\n    x[i] = y[0]",
        COUNT + "if x[i] > 2:\n        y[n] = x[i]\n        n += 1\n    n -= 1",
        "s = 0.0\nfor i in range(len(x)):\n    s += z[i]\n    z[i] = s",  # in its order
        COUNT + "n = n * 2 + x[i]\n    y[i] = n",
    ],
)
def test_what_needs_more_stays(text: str) -> None:
    case = Case(text, True, y="i64[900]", x="i64[300]", z="f64[300]")
    assert of(case) is None


def test_how_many_pieces_there_are() -> None:
    for rounds, pieces in (
        (2 * thresholds.MIN_SCAN_CHUNK_ITERATIONS - 1, 0),
        (10 * thresholds.MIN_SCAN_CHUNK_ITERATIONS, 10),
        (
            2 * thresholds.MAX_SCAN_CHUNKS * thresholds.MIN_SCAN_CHUNK_ITERATIONS,
            2 * thresholds.MAX_SCAN_CHUNKS,
        ),
    ):
        case = Case(TAKEN[0], y=f"i64[{rounds}]", x=f"i64[{rounds}]")
        made = of(case)
        assert (made is not None) is bool(pieces)
        if made is not None:
            last = made.body[-1]
            assert isinstance(last, For) and last.hi.constant == pieces
    assert facts_of(case.program) is not None


@pytest.mark.parametrize("text", TAKEN)
def test_totals_of_many_pieces_run_themselves(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(thresholds, "MAX_SCAN_CHUNKS", 2)
    n = 3 * thresholds.MIN_SCAN_CHUNK_ITERATIONS * (2 if "0, len(x), 2" in text else 1)
    case = Case(text, True, y=f"i64[{2 * n}]", x=f"i64[{n}]", z=f"i64[{2 * n}]")
    made = of(case)
    assert made is not None
    assert any(isinstance(s, For) and s.kind == "serial" for s in made.body[1:2])
    case.assert_same(made.body)
