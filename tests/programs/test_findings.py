"""Findings are made small: the text, the sizes in it with those of arguments, and the ways."""

from __future__ import annotations

import re

import numpy as np
import pytest

from . import findings
from .check import Finding
from .model import ArgSpec, Program, plain
from .reduce import reduced
from .ways import Ways

PROGRAM = Program(
    """def f(x, y, out):
    for g in range(4):
        t = np.zeros((65, 9))
        for b in range(9):
            t[:, b] = x[g, b] * 2
        for k in range(1, 65):
            t[k] += t[k - 1]
        t = np.sort(t, axis=0)
        out[g] = t.T
    return out
""",
    (
        ArgSpec("x", "float64", (4, 9, 65), seed=7),
        ArgSpec("y", "float64", (9,)),
        ArgSpec("out", "float64", (4, 9, 65)),
    ),
)


def is_wrong(program: Program) -> bool:
    """Whether a compiler would be wrong that cannot sort three rows in scratch arrays."""
    if not re.search(r"for g in.*\n(.*\n)*.*np\.zeros.*\n(.*\n)*.*np\.sort", program.text):
        return False
    made = program.make()
    try:
        plain(program.text, {"np": np})(**made)
    except Exception:
        return False
    return "x" in made and made["x"].ndim == 3 and made["x"].shape[2] >= 3


def test_sizes_in_the_text_shrink_together_with_those_of_arguments() -> None:
    small = reduced(PROGRAM, is_wrong)
    assert is_wrong(small)
    assert max(e for spec in small.args for e in spec.shape) == 3
    assert "65" not in small.text
    assert len(small.text.splitlines()) <= 6
    assert [spec.name for spec in small.args][:1] == ["x"]
    assert "y" not in [spec.name for spec in small.args]


def test_ways_are_as_usual_as_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(program: Program, ways: Ways) -> Finding | None:
        wrong = ways.threads == 7 and ways.schedule and is_wrong(program)
        return Finding("cc", "result 0: [1] against [2]", program, ways) if wrong else None

    monkeypatch.setattr(findings, "finding_of", found)
    ways = Ways(
        threads=7,
        schedule=True,
        thresholds=5,
        poison=True,
        parallel_from=1,
        optimize=3,
        checked=True,
    )
    small = findings.smaller(Finding("cc", "result 0: [1] against [2]", PROGRAM, ways))
    assert small.ways == Ways(threads=7, schedule=True)
    assert is_wrong(small.program)
