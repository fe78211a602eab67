"""Random programs over streams and devices do what their serial meaning says."""

from __future__ import annotations

import pytest

from plusequals.backends.runtime import hazards
from tests.backends.runtime.random_program import Program


@pytest.mark.parametrize("seed", range(12))
def test_random_programs(seed: int) -> None:
    programs = [Program(1000 * seed + n) for n in range(10)]
    assert all(program.run(40) > 0 for program in programs)


@pytest.mark.parametrize("seed", range(3))
def test_random_programs_on_the_interpreter(seed: int) -> None:
    assert Program(seed, "numpy").run(40) > 0


def test_programs_notice_when_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hazards, "dependences_of", lambda queue, reads, writes: [])
    with pytest.raises(AssertionError):
        for seed in range(200):
            Program(seed).run(60)
