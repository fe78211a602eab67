"""The curve of compile time: its programs are ones, and its exponent is that of what grows."""

import ast
import math

import pytest

from benchmarks.lengths import KINDS, Point, exponent


@pytest.mark.parametrize("kind", KINDS)
def test_programs_have_about_so_many_statements(kind: str) -> None:
    lengths = [len(ast.parse(KINDS[kind](n)).body) for n in (3, 30)]
    assert lengths[0] == lengths[1] > 0


def test_exponent_is_the_power_of_what_comes_with_the_length() -> None:
    points = [Point("k", n, 2.0 + 1e-6 * (n * n - 100)) for n in (10, 100, 1000, 3000)]
    assert exponent(points) == pytest.approx(2, abs=0.01)
    assert math.isnan(exponent(points[:1]))
    assert math.isnan(exponent([*points[:2], Point("k", 1000, math.inf, why="not done")]))
