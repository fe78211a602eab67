"""A trace as a tree of text."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import plusequals as pe

from .functions import CALLS

Golden = Callable[[str], Callable[[str], None]]


@pytest.mark.parametrize("name", CALLS)
def test_the_whole_tree(name: str, golden: Golden) -> None:
    function, make = CALLS[name]
    with pe.trace() as trace:
        function.on("numpy")(*make())
    assert str(trace).startswith(f"      {name} on numpy\n")
    golden(f"{name}.txt")(f"{trace}\n")


def test_rounds_elements_and_times_are_folded() -> None:
    f = pe.cd_from_source("def f(x):\n    for t in range(9):\n        x[i] += t\n")
    with pe.trace() as trace:
        f(np.zeros(20))
    text = trace.text(head=2, tail=1)
    assert "... 6 more iterations" in text and "... 17 more elements" in text
    assert "t = 8" in text and "x[19] += 8    28.0 -> 36.0" in text
    everything = trace.text(head=0)
    assert "more" not in everything and everything.count("->") == 180


def test_a_loop_in_a_loop_is_told_round_by_round() -> None:
    loops = "    for a in range(2):\n        for b in range(2):\n            x[a, b] = a + b\n"
    f = pe.cd_from_source(f"def f(x):\n{loops}")
    with pe.trace() as trace:
        f(np.zeros((2, 2)))
    lines = [line[6:].strip() for line in str(trace).splitlines()]
    assert [line for line in lines if line[:4] in ("a = ", "b = ")] == [
        "a = 0", "b = 0", "b = 1", "a = 1", "b = 0", "b = 1",
    ]  # fmt: skip


def test_colors_mark_what_is_no_number() -> None:
    f = pe.cd_from_source("def f(x):\n    x[i] = x[i] / 0.0\n")
    with pe.trace() as trace:
        f(np.array([0.0, 1.0]))
    assert "\033[31mnan\033[0m" in trace.text(color=True)
    assert "\033" not in str(trace)


def test_nothing() -> None:
    with pe.trace() as trace:
        pass
    assert str(trace) == "nothing was recorded" and len(trace) == 0 and trace.dropped == 0


WHILES = """def f(x, n):
    while n > 0:
        with comment("step"):
            n -= 1
    while n < 2:
        with comment("sides"):
            if n:
                x[0] = n
                n += 1
            else:
                n += 1
    while x[1] < 2:
        for t in range(2):
            x[t + 1] += 1
"""


def test_iterations_of_a_while_whose_body_is_one_comment_branch_or_loop() -> None:
    f = pe.cd_from_source(WHILES, {"comment": pe.comment}, backend="numpy")
    with pe.trace() as trace:
        f(np.zeros(3), 2)
    told = [line[6:].strip() for line in str(trace).splitlines()]
    kinds = ("iteration", "step", "sides", "if n:", "t =")
    once = ["iteration 0", "step", "iteration 1", "step"]
    once += ["iteration 0", "sides", "if n:  does not hold", "iteration 1", "sides", "if n:  holds"]
    once += ["iteration 0", "t = 0", "t = 1", "iteration 1", "t = 0", "t = 1"]
    assert [line for line in told if line.startswith(kinds)] == once
