"""Random plans do what their serial meaning says, whatever the streams, delays and threads."""

from __future__ import annotations

import pytest

from plusequals.backends.runtime.plan import arena, driver
from plusequals.backends.runtime.plan.driver import OwnLane, QueueLane
from plusequals.backends.runtime.queue import DONE, WakeUps

from .random_plans import Sides
from .scenes import Scene


@pytest.mark.parametrize("seed", range(8))
def test_random_plans(seed: int) -> None:
    for number in range(12):
        Sides(1000 * seed + number).check()


def test_random_plans_notice_when_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    issue = QueueLane.issue
    monkeypatch.setattr(QueueLane, "issue", lambda lane, run, waits: issue(lane, run, ()))
    with pytest.raises(AssertionError):
        for seed in range(300):
            Sides(seed).check()


def test_random_plans_notice_arrays_that_do_not_change_places(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(driver.Carrying, "advance", lambda carrying: None)
    with pytest.raises(AssertionError):
        for seed in range(300):
            Sides(seed).check()


def test_random_plans_notice_temporaries_in_memory_that_is_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(arena.Overlaps, "at_once", lambda overlaps, life: 0)
    with pytest.raises(AssertionError):
        for seed in range(300):
            Sides(seed).check()


def test_the_drivers_own_steps_run_in_order_after_what_they_wait_for() -> None:
    order: list[int] = []
    lane, other = OwnLane(Scene("").stream, WakeUps()), OwnLane(Scene("").stream, WakeUps())
    before = other.issue(lambda: order.append(0), ())
    lane.issue(lambda: order.append(1), (before, DONE))
    last = lane.issue(lambda: order.append(2), ())
    assert not lane.run_next()
    assert other.run_next()
    assert lane.run_next()
    assert lane.run_next()
    assert not lane.run_next()
    assert last.done
    assert order == [0, 1, 2]


def test_a_failure_drops_what_comes_after_it() -> None:
    lane, progress = OwnLane(Scene("").stream, WakeUps()), []
    lane.issue(lambda: 1 // 0, ())
    last = lane.issue(lambda: progress.append(1), ())
    assert lane.run_next()
    assert lane.run_next()
    failure = last.failure
    assert failure is not None
    assert isinstance(failure.tell(), ZeroDivisionError)
    assert not progress
