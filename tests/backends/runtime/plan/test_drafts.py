"""Loops and branches before it is known which arrays they mean."""

from __future__ import annotations

import pytest

import plusequals as pe
from plusequals.backends.runtime.plan.drafts import PredicateSpec

from .scenes import Scene, add, count_up, double


def test_predicates_are_functions_or_tensors() -> None:
    tensor = pe.tensor("t", ())
    assert PredicateSpec.of(tensor, ()) == PredicateSpec(None, (tensor.field(),))
    assert PredicateSpec.of(lambda a: a, [tensor]).reads == (tensor,)
    with pytest.raises(pe.CdError, match="CD0852"):
        PredicateSpec.of(3, ())


def test_the_predicate_of_a_loop_takes_the_count_if_it_takes_one_argument_more() -> None:
    tensor = pe.tensor("t", ())
    for function, reads, counted in (
        (lambda count: True, 0, True), (lambda: True, 0, False), (lambda a: True, 1, False),
        (lambda count, a: True, 1, True), (lambda *a: True, 2, True),
        (lambda a, b=1: True, 1, True),
    ):  # fmt: skip
        spec = PredicateSpec.of(function, [tensor] * reads, in_loop=True)
        assert spec.counted is counted
    for function in (lambda: True, lambda a, b, c: True):
        with pytest.raises(pe.CdError, match="CD0863.*a predicate that takes"):
            PredicateSpec.of(function, [tensor], in_loop=True)
    with pytest.raises(pe.CdError, match="CD0863.*2 arguments or more is given 1 values"):
        PredicateSpec.of(lambda count, a: 0, [tensor])


def test_a_predicate_reads_the_array_that_was_written_last() -> None:
    """A function writes the host's array, a routine that of its context."""
    scene = Scene()
    step = scene.link(count_up, scene.a)
    for first, second, expected in ((step, None, 7), (None, step, 8)):
        seen: list[float] = []
        with pe.plan() as plan:
            for each in (first, second):
                if each is None:
                    double(scene.a, scene.b)
                else:
                    each()
            with plan.case_of(lambda a, seen=seen: seen.append(a[0]) or -1, reads=[scene.a]):
                pass
        scene.b[...] = 3.5
        plan()
        assert seen == [expected]


def test_what_two_kinds_of_arrays_would_write_in_a_loop_is_refused() -> None:
    scene = Scene()
    step = scene.link(count_up, scene.a)
    with pe.plan() as plan, pytest.raises(pe.CdError, match="CD0866.*functions and routines"):
        with plan.while_(lambda n: n < 2):
            step()
            add(scene.b, scene.a, scene.a)
