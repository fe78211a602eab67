"""Mistakes with plans. Each function makes one, and raises its error."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import plusequals as pe


def _two() -> tuple[Any, Any, Any]:
    """Return a function and two tensors."""
    double = pe.cd_from_source("def double(y, x):\n    y[i] = x[i] * 2.0\n")
    return double, pe.tensor("x", 3, init=1.0), pe.tensor("y", 3)


def looks_while_a_plan_is_recorded() -> object:
    """Read a tensor that the plan will compute."""
    double, x, y = _two()
    with pe.plan():
        double(y, x)
        return y.numpy()


def no_truth_of_a_predicate() -> object:
    """Ask with a whole array."""
    double, x, y = _two()
    with pe.plan() as plan:
        with plan.while_(lambda count, values: values < 3, reads=[y]):
            double(y, x)
    plan()
    return plan


def a_branch_that_is_not_there() -> object:
    """Choose the second of one branch."""
    double, x, y = _two()
    with pe.plan() as plan:
        with plan.case_of(lambda values: 1, reads=[x]) as case:
            with case.branch():
                double(y, x)
    plan()
    return plan


def a_loop_without_end() -> object:
    """Go on for ever, with a limit."""
    double, x, y = _two()
    with pe.plan() as plan:
        with plan.while_(lambda count: True, at_most=10):
            double(y, x)
    plan()
    return plan


def two_arrays_of_what_a_test_reads() -> object:
    """Ask for a tensor that has an array in each of two contexts."""
    double, x, y = _two()
    streams = [pe.device("numpy").stream(threaded=False) for _ in range(2)]
    one, two = (double.compile(y, x).link(stream.context()) for stream in streams)
    with pe.plan() as plan:
        with plan.while_(lambda count, values: count < 3, reads=[y]):
            one()
            two()
    return plan


def carried_between_shapes() -> object:
    """Let arrays of two sizes change places."""
    double, x, y = _two()
    z = pe.tensor("z", 4)
    with pe.plan() as plan:
        with plan.while_(lambda count: count < 3, carry={x: z}):
            double(y, x)
    return plan


def a_plan_run_before_it_is_recorded() -> object:
    """Run a plan inside of its own `with`."""
    double, x, y = _two()
    with pe.plan() as plan:
        double(y, x)
        plan()
    return plan


def an_input_that_no_routine_has() -> object:
    """Misspell an argument of a run."""
    shift = pe.cd_from_source("def shift(y, amount):\n    y[i] += amount\n")
    y = pe.tensor("y", 3)
    with pe.plan() as plan:
        shift(y, 1.0)
    plan(amonut=2.0)
    return plan


def a_look_at_what_only_a_plan_sees() -> object:
    """Read a tensor of a plan after its run."""
    double, x, _ = _two()
    z, plan = pe.tensor("z", 3), pe.plan(name="step")
    y = plan.tensor("y", 3)
    with plan:
        double(y, x)
        double(z, y)
    plan()
    return y.numpy()


def a_plan_that_no_graph_can_hold() -> object:
    """Capture a loop whose predicate is a function."""
    double, x, y = _two()
    with pe.plan() as plan:
        with plan.while_(lambda count, values: count < 3, reads=[y]):
            double(y, x)
    return plan.capture()


ON_PLANS: dict[str, Callable[[], object]] = {
    name: value
    for name, value in vars().copy().items()
    if isinstance(value, types.FunctionType) and value.__module__ == __name__ and name[0] != "_"
}
