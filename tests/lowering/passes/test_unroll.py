"""Short loops that become the statements of their rounds."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe
from plusequals.lowering.ir.loops import For, If
from plusequals.lowering.ir.walk import statements
from plusequals.lowering.passes.unroll import unroll

from ..shown import lowered, text_of
from .agree import assert_agrees
from .traps import ARRAYS
from .traps.unroll import TRAPS as UNROLL

LEFT = {
    "neighbours": ["i"],
    "neighbours in two loops": ["i", "j"],
    "places that are computed": ["i"],
    "places in two loops": ["i"],
    "all but one": ["i"],
    "up to one": ["i"],
    "one side or the other": [],
    "downwards": [],
    "the data breaks": ["d"],
    "the data goes on": ["d"],
    "the data decides": ["d"],
    "a loop inside that is left": ["i", "i", "i"],
    "a loop inside that lasts": ["i", "i", "i"],
    "a test on both sides": ["i", "d"],
    "none of the rounds": ["d"],
    "many rounds": ["d", "e"],
    "a count in a loop that is left": [],
}
"""The loops that are left of each program."""


@pytest.mark.parametrize("name", UNROLL)
def test_only_loops_whose_rounds_decide(name: str) -> None:
    after = unroll(lowered(UNROLL[name], **ARRAYS))
    loops = [s for s in statements(after.kernels[0].body) if isinstance(s, For)]
    assert [loop.symbol.name for loop in loops] == LEFT[name], text_of(after)
    assert len({loop.symbol for loop in loops}) == len(loops), "each binds its own"


@pytest.mark.parametrize("name", UNROLL)
@pytest.mark.parametrize("n", [0, 2])
def test_nothing_else_changes(name: str, n: int) -> None:
    random = np.random.default_rng(3)
    arrays = [random.random(tuple(map(int, spec[4:-1].split(","))))
              for spec in ARRAYS.values() if spec.startswith("f64")]  # fmt: skip
    indices = [random.permutation(8), random.permutation(8)]
    assert_agrees(lowered(UNROLL[name], **ARRAYS), unroll, [*arrays, *indices, np.array(n)])


def test_no_test_is_left() -> None:
    for name in ("neighbours", "neighbours in two loops", "all but one", "up to one"):
        after = unroll(lowered(UNROLL[name], **ARRAYS))
        assert not any(isinstance(s, If) for s in statements(after.kernels[0].body)), name


def test_a_comment_heads_the_first_round_only() -> None:
    text = unroll(lowered(UNROLL["neighbours"], **ARRAYS))
    from_source = [s for s in statements(text.kernels[0].body) if type(s).__name__ == "Comment"]
    assert [c.text for c in from_source if "+=" in c.text] == ["s += x[i + d]"]


def test_the_game_of_life_by_loops() -> None:
    function = pe.cd_from_source(
        """
def life(u):
    h, w = u.shape
    out = np.zeros_like(u)
    for i in range(1, h - 1):
        for j in range(1, w - 1):
            n = 0
            for di in range(-1, 2):
                for dj in range(-1, 2):
                    if di != 0 or dj != 0:
                        n += u[i + di, j + dj]
            if n == 3 or (u[i, j] == 1 and n == 2):
                out[i, j] = 1
    return out
""",
        {"np": np},
    )
    for shape in ((0, 0), (1, 5), (3, 3), (17, 23)):
        u = (np.random.default_rng(1).random(shape) < 0.4).astype(np.int64)
        n = sum(np.roll(u, (a, b), (0, 1)) for a in (-1, 0, 1) for b in (-1, 0, 1) if a or b)
        want = np.zeros_like(u)
        want[1:-1, 1:-1] = ((n == 3) | ((u == 1) & (n == 2)))[1:-1, 1:-1]
        np.testing.assert_array_equal(function(u), want)


def test_a_grid_that_wraps_around_where_only_the_run_knows_its_size() -> None:
    function = pe.cd_from_source(
        """
def neighbours(out, u):
    h, w = u.shape
    for i in range(h):
        for j in range(w):
            n = 0
            for di in range(-1, 2):
                for dj in range(-1, 2):
                    if di == 0 and dj == 0:
                        continue
                    n += u[(i + di) % h, (j + dj) % w]
            out[i, j] = n
"""
    )
    for size in (3, 4, 5, 6, 7, 1):
        u = np.random.default_rng(1).integers(0, 9, (size, size + 1))
        out = np.zeros_like(u)
        function(out, u)
        n = sum(np.roll(u, (a, b), (0, 1)) for a in (-1, 0, 1) for b in (-1, 0, 1) if a or b)
        np.testing.assert_array_equal(out, n)


@pytest.mark.parametrize("size", ["4 - d", "n[d]"])
def test_rounds_with_arrays_of_their_own_sizes(size: str) -> None:
    function = pe.cd_from_source(
        f"""
def f(y, n):
    for d in range(1, 4):
        m = {size}
        u = np.zeros(m)
        for s in range(3):
            u[1:] = u[:-1] + 1
        if d != 2:
            y[:m] += u
""",
        {"np": np},
    )
    y = np.zeros(4)
    function(y, np.array([4, 3, 2, 1]))
    assert y.tolist() == [0.0, 1.0, 2.0, 0.0]
