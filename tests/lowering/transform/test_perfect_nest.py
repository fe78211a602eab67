"""What stands between loops and is done for each point: where, and that it means the same."""

from __future__ import annotations

import pytest

from plusequals.lowering import thresholds
from plusequals.lowering.analysis.parallel_band import perfect_nest
from plusequals.lowering.ir.loops import For
from plusequals.lowering.transform.perfect_nest import make_perfect_nests

from ..gpu.kernels import Case

SCALED = "s = np.sqrt(v)\ny[i, j] = x[i, j] * s[i]"


def moved(case: Case) -> bool:
    """Return whether the last loop becomes another one, after it was seen to mean the same."""
    body = make_perfect_nests(case.program, case.facts).kernels[0].body
    (loop,) = [stmt for stmt in body[case.last :] if isinstance(stmt, For)]
    case.assert_same(body[case.last :])
    return len(perfect_nest(loop)[0]) > len(perfect_nest(case.loop())[0])


@pytest.mark.parametrize(
    ("n", "moves"),
    [
        (8, True),
        (thresholds.ENOUGH_BLOCK_POINTS - 1, True),
        (thresholds.ENOUGH_BLOCK_POINTS, False),
    ],
)
def test_a_short_loop_inside_gets_what_stands_before_it(n: int, moves: bool) -> None:
    case = Case(SCALED, y=f"f32[4, {n}]", x=f"f32[4, {n}]", v="f32[4]")
    assert moved(case) is moves


def test_so_does_one_with_long_sums_in_it() -> None:
    text = "y[i, j] = sum[k](x[i, k] * w[k, j]) / v[i]"
    kinds = {
        "y": f"f16[2, {thresholds.ENOUGH_BLOCK_POINTS}]",
        "x": "f16[2, 40]",
        "w": f"f16[40, {thresholds.ENOUGH_BLOCK_POINTS}]",
        "v": "f16[2]",
    }
    assert moved(Case(text, **kinds))


def test_what_is_dear_or_changes_inside_stays() -> None:
    dear = Case("s = np.exp(v)\ny[i, j] = x[i, j] * s[i]", y="f32[4, 8]", x="f32[4, 8]", v="f32[4]")
    assert not moved(dear)
    sums = Case("y[i] = sum[j](x[i, j])", y="f32[4]", x="f32[4, 8]")
    assert not moved(sums)
