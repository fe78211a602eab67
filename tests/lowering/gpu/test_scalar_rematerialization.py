"""Scalars that kernels compute for themselves: which, and that results are those of the program."""

from __future__ import annotations

import numpy as np
import pytest

from plusequals.lowering import thresholds
from plusequals.lowering.gpu.mapping import map_program
from plusequals.lowering.gpu.scalar_rematerialization import find_cheap_scalars
from plusequals.lowering.ir.printer import print_program
from plusequals.lowering.target import Target

from .kernels import Case, backwards, filled, ran

ARRAYS = {"y": "f64[40]", "z": "f64[40]", "x": "f64[40]", "s": "f64", "r": "f64[1]"}
MOST = thresholds.MAX_REMATERIALIZED_OPERATIONS
TWICE = "y[i] = x[i] * t\nz[i] = y[39 - i] + t"


def labels(text: str) -> list[str]:
    case = Case(text, **ARRAYS)
    found = find_cheap_scalars(case.body, case.program.locals)
    return [stmt.access.node.label for stmt in found.values()]


def test_few_operations_on_what_no_kernel_changes_are_copied() -> None:
    assert labels(f"t = s * 2 + 1\n{TWICE}") == ["t"]
    assert labels(f"u = s * 2\nt = u if u > 1 else 1.0\n{TWICE}\ny[i] += u") == ["u", "t"]


@pytest.mark.parametrize(
    "text",
    [
        f"t = exp(s)\n{TWICE}",
        f"t = {'(' * MOST}s{''.join(f' * {k} + s)' for k in range(2, MOST + 2))}\n{TWICE}",
        f"t = x[3] * 2\n{TWICE}",
        f"t = sum(x[i])\n{TWICE}",
        f"t = s * 2\n{TWICE}\nt = t + 1\nr[0] = t",
        f"t = s * 2\nwhile t > x[0]:\n    x[0] += 1\n{TWICE}",
    ],
)
def test_what_takes_long_or_changes_or_is_the_hosts_is_not(text: str) -> None:
    assert "t" not in labels(text)


@pytest.mark.parametrize(
    "text",
    [
        f"t = s * 2 + 1\n{TWICE}",
        f"u = s * 2\nt = u if u > 1 else 1.0\n{TWICE}\ny[i] += u",
        "t = s * 2\nr[0] = sum(x[i] * t)\nz[i] = x[i] + r[0] * t",
        "t = s * 2\nfor k in range(3):\n    y[i] = x[39 - i] * t\n    x[i] = y[i] + t",
    ],
)
def test_kernels_with_copies_compute_what_the_program_says(text: str) -> None:
    case = Case(text, **ARRAYS)
    made = map_program(case.program, Target("cuda"), exact=True)
    (number,) = (node.id for node in case.program.locals if node.label == "t")
    assert made.spaces[number] == "private"
    arrays = [filled(p.node, np.random.default_rng(1)) for p in case.program.parameters]
    want = ran(case.program, arrays)
    for one in (made.program, backwards(made.program)):
        for got, expected in zip(ran(one, arrays), want, strict=True):
            assert got.tobytes() == expected.tobytes(), print_program(one)
