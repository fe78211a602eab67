"""The program that measures what the machine can do, and rooflines made of it."""

from __future__ import annotations

import pytest

from benchmarks import ceilings
from benchmarks.ceilings import Ceilings

SAID = """peak f32 2e11
peak f64 1e11
triad 12288 2e11
read 12288 1e11
triad 24576 4e11
read 24576 1e11
triad 49152 1e10
read 49152 2e10
"""


def test_what_the_program_says_is_read() -> None:
    found = ceilings.read(SAID, 2)
    assert found.peak == {"f32": 2e11, "f64": 1e11}
    assert found.triad == {12288: 2e11, 24576: 4e11, 49152: 1e10}
    assert found.bandwidth == {12288: 4e11, 24576: 4e11, 49152: 2e10}, "never rises with size"


def test_rooflines() -> None:
    known = ceilings.read(SAID, 1)
    assert known.seconds(2e11, 0.0, 100.0, "f32") == 1.0
    assert known.seconds(2e11, 0.0, 100.0, "f64") == 2.0
    assert known.seconds(0.0, 4e10, 1e9, "f32") == 2.0, "memory"
    assert known.seconds(0.0, 4e11, 30000.0, "f32") == 1.0, "what fits the size below"
    assert known.seconds(0.0, 4e11, 10.0, "f32") == 1.0, "smaller than any"


def test_the_program_runs_here() -> None:
    found = ceilings.measure(1, seconds=1e-4, largest=24576)
    assert isinstance(found, Ceilings)
    assert set(found.bandwidth) == {12288, 24576}
    assert min(found.peak.values()) > 0 and min(found.bandwidth.values()) > 0


def test_a_program_that_fails_is_told() -> None:
    with pytest.raises(ceilings.NotMeasured, match="ended with 1"):
        ceilings.measure(257)
