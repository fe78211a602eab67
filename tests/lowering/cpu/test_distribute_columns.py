"""Loops down columns, apart from what waits for earlier iterations: bit-identical."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.base import settings
from plusequals.base.diagnostic import CdIndexError
from plusequals.lowering import thresholds
from plusequals.lowering.ir.loops import Program
from plusequals.lowering.target import Target

from ..scheduled import function, interpreted, of_any_size, scheduled
from ..shown import text_of

TINY = Target(vector_bits=128)
SUM = "s = 0.0\n        for i in range(len(x)):\n            s += x[i, j]\n        "
LOOP = "    for j in range(x.shape[1]):\n        "
TEXTS = {
    "a total": "    t = 0.0\n" + LOOP + SUM + "t += s * s\n    h[0] = t",
    "a scan": "    t = 0.5\n" + LOOP + SUM + "t = t * 0.5 + s\n        w[j] = t",
    "the best": "    m = -1e9\n    a = 0\n" + LOOP + SUM + "if s > m:\n            m = s\n"
    "            a = j\n    h[0] = m + a",
    "a histogram": LOOP + SUM + "h[k[j]] += s",
    "what is kept changes": "    t = 1.0\n"
    + LOOP
    + SUM
    + "s *= t\n        t = s - h[0]\n    h[1] = t",
    "two values": "    t = 0.0\n" + LOOP + SUM + "q = x[0, j]\n        for i in range(len(x)):\n"
    "            q = max(q, x[i, j] - s)\n        t = max(t * 0.5, q) + s\n    h[2] = t",
    "between": "    t = 1.0\n" + LOOP + SUM + "t = t * 0.5 + s\n        q = 0.0\n"
    "        for i in range(len(x)):\n            q += (x[i, j] - s) ** 2\n        w[j] = q\n"
    "    h[0] = t",
    "needed between": "    t = 1.0\n" + LOOP + SUM + "t = t * 0.5 + s\n        q = 0.0\n"
    "        for i in range(len(x)):\n            q += x[i, j] * s\n        h[0] = q - t\n"
    "    h[1] = t",
    "statistics": "    h[0] = np.sum(np.mean(x, axis=0) ** 2)",
    "a place": "    h[0] = np.argmax(np.sum(x, axis=0))",
    "any": "    h[0] = np.any(np.sum(x, axis=0) > 1.5)",
}
SIZES = [(3, 40), (9, 75), (5, 32), (6, 70), (4, 5), (1, 64), (0, 40)]


def _arrays(size: tuple[int, int]) -> list[Any]:
    rng = np.random.default_rng(size[1])
    columns = size[1]
    k = rng.integers(0, 3, columns)
    return [rng.standard_normal(size), np.zeros(3), np.zeros(columns), k]


def _made(text: str) -> pe.CdFunction[..., Any]:
    return function(f"def f(x, h, w, k):\n{text}\n")


def _is_split(program: Program) -> bool:
    return "_expanded" in text_of(program)


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thresholds, "MAX_COLUMN_EXPANDED_ITERATIONS", 32)


NO_ROWS = [name for name in TEXTS if name not in ("two values", "statistics")]
"""What needs no first row."""


@pytest.mark.parametrize(
    ("name", "size"),
    [(name, size) for name in TEXTS for size in SIZES if size[0] or name in NO_ROWS],
)
def test_results_are_bit_identical(name: str, size: tuple[int, int]) -> None:
    arrays = _arrays(size)
    procedure = _made(TEXTS[name]).procedure(*arrays)
    before = interpreted(scheduled(procedure, TINY), *arrays)
    program = scheduled(procedure, replace(TINY, schedule=True))
    after = interpreted(program, *arrays)
    assert [one.tobytes() for one in before] == [one.tobytes() for one in after]
    if size[0] > 1 and size[1] >= 32:
        assert _is_split(program)


@pytest.mark.parametrize("name", TEXTS)
def test_c_gives_the_bits_of_the_loops_for_sizes_of_the_run(name: str) -> None:
    arrays, made = _arrays((7, 75)), _made(TEXTS[name])
    plain = interpreted(scheduled(made.procedure(*arrays), TINY), *arrays)
    program = scheduled(of_any_size(made, *arrays), replace(TINY, schedule=True))
    assert _is_split(program)
    run = interpreted(program, *arrays)
    with settings.override(schedule=True, profile="strict"):
        made.on("cc")(*arrays)
    for one, other, third in zip(plain, run, arrays, strict=True):
        assert one.tobytes() == other.tobytes() == np.asarray(third).tobytes()


@pytest.mark.parametrize(("columns", "pieces"), [(32, 1), (70, 2), (96, 1)])
def test_each_piece_of_a_loop_is_done_in_lanes(columns: int, pieces: int) -> None:
    arrays, made = _arrays((9, columns)), _made(TEXTS["a histogram"])
    for procedure, left in ((made.procedure(*arrays), 0), (of_any_size(made, *arrays), 1)):
        lines = text_of(scheduled(procedure, replace(TINY, schedule=True))).splitlines()
        sums = ["lane" in line for line in lines if "x[" in line]
        assert sums.count(False) == left and sums.count(True) >= pieces + left


REFUSED = {
    "rows": "    t = 0.0\n    for j in range(len(x)):\n        s = 0.0\n"
    "        for i in range(x.shape[1]):\n            s += x[j, i]\n        t += s * s\n"
    "    h[0] = t",
    "it may be done in lanes": LOOP + SUM + "w[j] = s",
    "sums need earlier ones": LOOP + SUM.replace("s = 0.0", "s = w[j - 1]") + "w[j] = s",
    "it is left": "    t = 0.0\n" + LOOP + SUM + "t += s\n        if t > 2:\n            break\n"
    "    h[0] = t",
    "more than numbers cross": LOOP + "v = np.zeros(3)\n        for i in range(len(x)):\n"
    "            v[i % 3] += x[i, j]\n        h[0] = h[0] * v[1]",
}


@pytest.mark.parametrize("name", REFUSED)
def test_loops_that_stay(name: str) -> None:
    arrays = _arrays((9, 75))
    program = scheduled(_made(REFUSED[name]).procedure(*arrays), replace(TINY, schedule=True))
    assert not _is_split(program)


def test_what_is_seen_after_an_error_is_what_earlier_iterations_wrote() -> None:
    text = LOOP + "for i in range(len(x)):\n            x[i, j] += w[j]\n        h[k[j]] += w[j]"
    x, h, w, k = _arrays((4, 75))
    w += 1.0
    k[40] = 7
    seen = x.copy()
    with settings.override(schedule=True, profile="strict"), pytest.raises(CdIndexError):
        _made(text).on("cc")(x, h, w, k)
    np.testing.assert_array_equal(x, seen + (np.arange(75) <= 40))
