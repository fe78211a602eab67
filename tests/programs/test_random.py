"""Random programs: interpreter, loops, C and plain Python agree, bit by bit where that can be."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.backends.cuda.on_cpu import needs_gxx

from . import pairs_text
from .check import check_all
from .hunt import program_of
from .layouts import lay
from .model import Program
from .outcomes import unlike
from .strategies import layouts, programs
from .ways import Ways, drawn, usual, usual_and_interpreted

FEW = 15
"""Programs of a test; `python -m tests.hunt` takes as many as there is time for."""


@pytest.mark.parametrize("kind", ["array", "index", "mixed"])
def test_random_programs(kind: str) -> None:
    programs = [program_of(0, n, kind) for n in range(FEW)]
    cases = check_all(programs)
    findings = [str(case.finding) for case in cases if case.finding is not None]
    assert not findings, "\n".join(findings)
    refused = [case.refused for case in cases if case.refused]
    assert len(refused) < FEW // 3, "\n".join(refused)


@pytest.mark.parametrize("number", range(3))
def test_random_programs_after_every_pass_and_under_random_settings(number: int) -> None:
    programs = [program_of(2, n) for n in range(number * FEW, (number + 1) * FEW)]
    cases = check_all(programs, drawn(random.Random(number), passes=True))
    findings = [str(case.finding) for case in cases if case.finding is not None]
    assert not findings, "\n".join(findings)


@needs_gxx
@pytest.mark.parametrize("thresholds", [0, 1, 2])
def test_random_programs_as_kernels_of_a_device(thresholds: int) -> None:
    programs = [program_of(6, n) for n in range(thresholds * FEW, (thresholds + 1) * FEW)]
    profile: Literal["strict", "default"] = "default" if thresholds == 2 else "strict"
    ways = Ways(c=False, cuda=True, plain=False, profile=profile, thresholds=thresholds)
    findings = [str(case.finding) for case in check_all(programs, ways) if case.finding is not None]
    assert not findings, "\n".join(findings)


@pytest.mark.parametrize("seed", [1])
def test_nests_with_scratch_arrays_under_drawn_policy_numbers(seed: int) -> None:
    programs = [program_of(seed, n, "nest") for n in range(10)]
    cases = check_all(programs, drawn(random.Random(seed), passes=False, shared=1.0))
    findings = [str(case.finding) for case in cases if case.finding is not None]
    assert not findings, "\n".join(findings)


def test_large_nests_as_users_run_them() -> None:
    cases = check_all(
        [program_of(2, n, "large") for n in range(3)], replace(usual(random.Random(1)), optimize=1)
    )
    findings = [str(case.finding) for case in cases if case.finding is not None]
    assert not findings, "\n".join(findings)
    assert not all(case.refused for case in cases)


@settings(max_examples=25, derandomize=True, database=None,
          suppress_health_check=list(HealthCheck))  # fmt: skip
@given(programs())
def test_interpreters_agree(program: Program) -> None:
    (case,) = check_all([program], Ways(c=False, passes=True))
    assert case.finding is None, str(case.finding)


@settings(max_examples=50, derandomize=True, database=None)
@given(layouts(), st.integers(0, 2**31), st.sampled_from(["f8", "i4", "?", "c8", "u1"]))
def test_layouts_hold_what_they_are_given(layout: str, seed: int, dtype: str) -> None:
    rng = random.Random(seed)
    shape = tuple(rng.randrange(5) for _ in range(rng.randrange(4)))
    values = np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
    laid = lay(values, layout)
    repeats = layout == "zero" and values.size and values.ndim
    expected = np.broadcast_to(values[:1], shape) if repeats else values
    assert unlike(laid.array, expected) is None
    assert laid.array.flags.writeable == (layout not in ("zero", "readonly"))


def test_functions_of_plain_python_are_what_python_makes_of_them() -> None:
    programs = [program_of(3, n, "python") for n in range(12)]
    cases = check_all(programs, Ways(c=False, numbers=True))
    assert not [str(case.finding) for case in cases if case.finding is not None]
    assert not all(case.refused for case in cases)


def test_pairs_of_idioms_as_users_run_them() -> None:
    ways = usual_and_interpreted(random.Random(1))
    cases = check_all([program_of(1, n, "pairs") for n in range(FEW)], ways)
    findings = [str(case.finding) for case in cases if case.finding is not None]
    assert not findings, "\n".join(findings)
    assert sum(bool(case.refused) for case in cases) < FEW // 3


def test_numbers_of_programs_visit_all_pairs_of_idioms() -> None:
    count = len(pairs_text.IDIOMS)
    pairs = {pairs_text.pair_of(number)[:2] for number in range(count**2)}
    assert len(pairs) == count**2
    first = [pairs_text.pair_of(number)[:2] for number in range(40)]
    assert len({one.name for pair in first for one in pair}) > 40, "consecutive ones are mixed"
    rounds = range(len(pairs_text.FORMS))
    forms = {pairs_text.pair_of(number * count**2)[2] for number in rounds}
    assert forms == set(pairs_text.FORMS), "a pair comes in every form"


@pytest.mark.parametrize("number", range(2))
def test_scalars_that_loops_carry_beside_reductions(number: int) -> None:
    programs = [program_of(21, n, "carried") for n in range(number * FEW, (number + 1) * FEW)]
    ways = replace(drawn(random.Random(number), passes=True), schedule=True, profile="default")
    cases = check_all(programs, ways)
    findings = [str(case.finding) for case in cases if case.finding is not None]
    assert not findings, "\n".join(findings)
    assert sum(bool(case.refused) for case in cases) < FEW // 3
