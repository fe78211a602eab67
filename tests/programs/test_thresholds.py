"""Every tuned constant of the schedules is drawn by the hunts, or kept for a reason."""

from __future__ import annotations

import pytest

from plusequals.backends.cc import cpu_info
from plusequals.lowering.analysis import cost, expression_cost
from plusequals.lowering.cpu import parallelize
from plusequals.lowering.gpu import thread_points
from plusequals.lowering.gpu.reductions import block_reduction, split_reduction

from .thresholds import CHOICES, KEPT, constants, lowered, users


def test_each_constant_is_drawn_or_kept_for_a_reason_and_none_is_both() -> None:
    drawn = [f"{file}.{name}" for file, names in CHOICES.items() for name in names]
    kept = [name for names in KEPT.values() for name in names]
    named = drawn + kept
    assert sorted(set(named)) == sorted(named), "a constant is named twice"
    there = set(constants())
    missing = sorted(there - set(named))
    assert not missing, f"add these to CHOICES or KEPT of tests/programs/thresholds.py: {missing}"
    assert not sorted(set(named) - there), "these are gone: take them out of the table"


def test_numbers_of_a_schedule_are_lowered_where_they_are_used_and_come_back() -> None:
    before = (
        thread_points.THREADS,
        block_reduction.THREADS,
        split_reduction.ROUNDS,
        parallelize.ROOM,
        cpu_info.target(),
    )
    seen = set()
    for seed in range(1, 9):
        with lowered(seed):
            assert block_reduction.THREADS == thread_points.THREADS, "which is taken from there"
            now = cpu_info.target()
            assert 64 <= now.l1_bytes <= now.l2_bytes <= now.l3_bytes <= 1 << 16
            seen.add(
                (
                    thread_points.THREADS,
                    split_reduction.ROUNDS,
                    parallelize.ROOM,
                    now.l1_bytes,
                    now.vector_bits,
                )
            )
    assert (
        thread_points.THREADS,
        block_reduction.THREADS,
        split_reduction.ROUNDS,
        parallelize.ROOM,
        cpu_info.target(),
    ) == before
    assert len(seen) > 4


def test_the_seed_zero_changes_nothing() -> None:
    with lowered(0):
        assert constants() == (before := constants())
    assert constants() == before


@pytest.mark.parametrize(
    ("file", "name"),
    [("analysis.expression_cost", "RECOMPUTE_COST"), ("gpu.thread_points", "THREADS")],
)
def test_modules_that_import_a_constant_have_the_same_one(file: str, name: str) -> None:
    found = users(file, name)
    assert len(found) > 1
    assert len({id(getattr(module, name)) for module in found}) == 1
    assert expression_cost in found or cost not in found
