"""Interval arithmetic bounds what operations give of numbers within their operands' intervals."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from plusequals.dsl.specialize import intervals
from plusequals.dsl.specialize.intervals import Interval
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.ops import OPS

ENDS = [(-3.0, -1.0), (-2.0, 5.0), (0.0, 4.0), (0.25, 0.75), (1.0, 6.0), (2.0, 2.0)]
INTEGERS = ["shl", "shr", "bitand", "bitor", "bitxor", "invert", "pow", "mul", "sub", "floordiv"]


def points(interval: Interval, step: float) -> list[float]:
    return list(np.arange(interval[0], interval[1] + step / 2, step))


@pytest.mark.parametrize("name", [op.name for op in OPS.values() if "f" in op.admits])
def test_results_of_floats_are_within(name: str) -> None:
    op = OPS[name]
    if op.arity > 2 or name in ("div", "floordiv", "mod", "fmod", "complex"):
        return
    for operands in itertools.product(ENDS, repeat=op.arity):
        if name.startswith("round"):
            operands = (operands[0], (1.0, 1.0))
        found = intervals.result(name, operands)
        if found is None:
            continue
        for values in itertools.product(*(points(ends, 0.25) for ends in operands)):
            with np.errstate(all="ignore"):
                result = float(op.meaning(*map(np.float64, values)))
            rounding = 1e-14 * abs(result)
            assert found[0] - rounding <= result <= found[1] + rounding, (operands, values, result)


@pytest.mark.parametrize("name", INTEGERS)
def test_results_of_integers_are_within(name: str) -> None:
    op, ends = OPS[name], [(-3.0, -1.0), (-2.0, 5.0), (0.0, 4.0), (1.0, 6.0)]
    for operands in itertools.product(ends, repeat=op.arity):
        if name == "pow" and operands[1][0] < 0:
            continue
        if name == "floordiv":
            found: Interval | None = intervals.quotient(name, *operands, True)
        else:
            found = intervals.result(name, operands)
        if found is None:
            continue
        for values in itertools.product(*(points(each, 1.0) for each in operands)):
            if name == "floordiv" and values[1] == 0:
                continue
            result = int(op.meaning(*map(np.int64, values)))
            assert found[0] <= result <= found[1], (operands, values, result)


@pytest.mark.parametrize("name", ["div", "floordiv", "mod", "fmod"])
def test_quotients_are_within(name: str) -> None:
    for left, right in itertools.product(ENDS, ENDS):
        found = intervals.quotient(name, left, right, False)
        for x, y in itertools.product(points(left, 0.25), points(right, 0.25)):
            if y:
                result = float(OPS[name].meaning(np.float64(x), np.float64(y)))
                assert found[0] <= result <= found[1], (left, right, x, y)


@pytest.mark.parametrize(
    ("name", "operands"),
    [
        ("sqrt", [(-1.0, 2.0)]), ("log", [(0.0, 2.0)]), ("exp", [(0.0, 800.0)]),
        ("pow", [(-2.0, 2.0), (0.5, 0.5)]), ("pow", [(2.0, 2.0), (1.0, 2000.0)]),
        ("pow", [(0.0, 2.0), (-1.0, -1.0)]), ("shl", [(1.0, 1.0), (-1.0, 2.0)]),
        ("arcsin", [(0.0, 2.0)]), ("recip", [(0.0, 1.0)]),
    ],
)  # fmt: skip
def test_outside_of_a_domain_nothing_is_known(name: str, operands: list[Interval]) -> None:
    assert intervals.result(name, operands) is None


def test_ends() -> None:
    assert intervals.of_type(dtypes.int8) == (-128.0, 128.0)
    assert intervals.of_type(dtypes.uint8) == (0.0, 256.0)
    assert intervals.clipped((-1.0, 9.0), (0.0, 5.0)) == (0.0, 5.0)
    assert intervals.clipped((7.0, 9.0), (0.0, 5.0)) == (0.0, 5.0)
    assert intervals.times((0.0, 2.0), (1.0, math.inf)) == (0.0, math.inf)
    assert intervals.quotient("div", (1.0, 2.0), (2.0, math.inf), False) == (0.0, 1.0)
    assert intervals.hull((0.0, 1.0), (-1.0, 0.5)) == (-1.0, 1.0)
