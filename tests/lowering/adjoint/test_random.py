"""Random programs: their gradients are right; `python -m tests.hunt` takes many more."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.backends.cuda.on_cpu import needs_gxx

from .random_losses import answers, program_of, settings_of

FEW = 5


@pytest.mark.parametrize("kind", ["control", "mixed"])
def test_gradients_of_random_programs(kind: str) -> None:
    ways = replace(settings_of(1, 0), optimize=0, thresholds=5, threads=2, parallel_from=1)
    found = answers([program_of(7, n, kind) for n in range(FEW)], ways)
    assert not [str(one) for one in found if one.wrong]
    assert any(one.kind == "right" for one in found)
    assert all(one.seen for one in found if one.kind == "right")


@needs_gxx
def test_gradients_of_random_programs_as_kernels() -> None:
    found = answers([program_of(8, n) for n in range(FEW)], settings_of(8, 0, cuda=True))
    assert not [str(one) for one in found if one.wrong]
    assert any(one.kind == "right" for one in found)
