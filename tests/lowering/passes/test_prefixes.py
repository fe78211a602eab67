"""Random programs do the same, bit for bit, wherever the pipeline is stopped."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

import plusequals as pe
from plusequals.base.diagnostic import CdError
from plusequals.lowering.ir.loops import Program
from plusequals.lowering.pipeline import PASSES, optimize
from plusequals.lowering.target import HOST

from ...compare import run_on
from ...programs.generate import generate
from .agree import NAME, Change, checking


def _until(name: str) -> Change:
    def change(program: Program) -> Program:
        return optimize(program, HOST, stop_after=name)[0]

    return change


PREFIXES = {step.name: _until(step.name) for step in PASSES}


def _agree(seed: int) -> int:
    """Run a random program with the pipeline stopped after each pass; return how many stops."""
    program = generate(random.Random(seed))
    with checking(PREFIXES) as backend:
        try:
            function = pe.cd_from_source(program.text, {"np": np, "math": math})
            run_on(NAME, function, *program.make().values())
        except CdError:  # refused, or a check failed; where it ran, the runs were compared
            return len(backend.changed)
    assert set(backend.changed) == set(PREFIXES)
    return len(backend.changed)


@pytest.mark.parametrize("seed", range(12))
def test_every_prefix_agrees(seed: int) -> None:
    assert _agree(seed) in (0, len(PREFIXES))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1010))
def test_every_prefix_agrees_long(seed: int) -> None:
    assert _agree(seed) in (0, len(PREFIXES))
