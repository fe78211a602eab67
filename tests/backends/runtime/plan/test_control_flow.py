"""Loops and branches while they are recorded: where each of their parts belongs."""

from __future__ import annotations

import pytest

import plusequals as pe

from .scenes import Scene, count_up, shift


def test_parts_are_recorded_where_they_belong() -> None:
    scene = Scene()
    step = scene.link(count_up, scene.a)
    with pe.plan() as plan:
        outer = plan.while_(lambda n: n < 2, name="outer")
        with pytest.raises(pe.CdError, match="CD0868.*`before` of `outer`"), outer.before():
            step()
        with outer:
            with plan.while_(lambda n: n < 2) as inner:
                with pytest.raises(pe.CdError, match="CD0868.*`before` of `outer`"):
                    outer.before().__enter__()
                step(), inner.before().__enter__
        with pytest.raises(pe.CdError, match="CD0868.*a second time"):
            outer.__enter__()
        case = plan.case_of(lambda: 0, name="choice")
        with case:
            pass
        with pytest.raises(pe.CdError, match="CD0868.*a branch of `choice`"):
            case.branch().__enter__()
        late = plan.while_(lambda: False)
    with pytest.raises(pe.CdError, match="CD0868.*after its plan has ended"):
        late.__enter__()


def test_counts_belong_to_their_loop() -> None:
    scene = Scene()
    step = scene.link(shift, scene.a, 0)
    with pe.plan() as plan:
        with plan.while_(lambda n: n < 2) as loop:
            step(amount=loop.count)
        with pytest.raises(pe.CdError, match="CD0868.*count of `while` is used outside"):
            step(amount=loop.count)
        with pytest.raises(pe.CdError, match="CD0868.*count of `while` is used outside"):
            plan.case_of(lambda n: 0, reads=[loop.count])


@pytest.mark.parametrize("most", [-1, 1.5, "x"])
def test_a_limit_is_a_number_of_iterations(most: object) -> None:
    with pe.plan() as plan, pytest.raises(pe.CdError, match="CD0868.*iterations at most"):
        plan.while_(lambda n: True, at_most=most)  # type: ignore[arg-type]  # that is the point


def test_pairs_of_tensors_and_lists_of_them_are_asked_for() -> None:
    scene = Scene()
    with pe.plan() as plan:
        for wrong in ({"carry": [scene.a]}, {"carry": {scene.a: 1}}, {"reads": scene.a}):
            with pytest.raises(pe.CdError, match="CD0852"):
                plan.while_(lambda *_: False, **wrong)  # type: ignore[arg-type]  # as above
        with pytest.raises(pe.CdError, match="CD0852"):
            plan.case_of(lambda *_: 0, otherwise=[scene.a])  # type: ignore[arg-type]  # as above


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        (["ab", "ba"], [1, 0, 2]),
        (["bc", "ab"], [1, 2, 2]),
        (["ab", "bc", "ca"], [1, 2, 0]),
        (["ca", "ab"], [1, 1, 0]),
    ],
)
def test_what_passes_through_is_copied_as_if_at_once(pairs: list[str], expected: list[int]) -> None:
    scene = Scene()
    with pe.plan() as plan:
        otherwise = {getattr(scene, y): getattr(scene, x) for y, x in pairs}
        with plan.case_of(lambda: -1, otherwise=otherwise):
            pass
    plan()
    assert scene.first(scene.a, scene.b, scene.c) == expected
