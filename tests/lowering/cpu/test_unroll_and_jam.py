"""Short loops in the long ones inside of them: the same bits, and only where rounds are apart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from plusequals.lowering.analysis.dependence import find_privatizable, loop_local_nodes
from plusequals.lowering.cpu.unroll_and_jam import unroll_and_jam
from plusequals.lowering.ir.fresh import fresh_for
from plusequals.lowering.ir.loops import For, Program
from plusequals.lowering.ir.verify import verify_program
from plusequals.lowering.ir.walk import direct_reads, direct_writes, statements
from plusequals.lowering.pipeline import optimize
from plusequals.lowering.target import Target

from ..scheduled import interpreted
from ..shown import lowered

PULLS = "w[i, j] = exp(x[j] * x[i])\ny[i, k] = sum(w[i, j] * (z[j, k] - z[i, k]))"
EACH = """
for i in range(5):
    t = np.zeros(9)
    for j in range(9):
        {0}
    for k in range({1}):
        s = 0.0
        for j in range(9):
            s += {2}
        y[i, k] = s
    {3}
"""


def sums(
    made: str = "t[j] = exp(x[j] * x[i])", count: str = "2", term: str = "t[j] * z[j, k]",
    after: str = "pass",
) -> str:  # fmt: skip
    """A loop of a few sums of what a loop before computes."""
    return EACH.format(made, count, term, after)


def jam(body: str, rounds: int) -> tuple[Program, Program]:
    """Return a program before and after its loop over `i` was done so."""
    arrays = {"y": f"f64[5, {rounds}]", "x": "f64[9]", "z": f"f64[9, {rounds}]"}
    program, _ = optimize(lowered(body, **arrays), Target(), stop_after="eliminate_dead_code 2")
    fresh, own = fresh_for(program), frozenset(node.id for node in program.locals)
    only, (kernel,) = loop_local_nodes(program), program.kernels
    (loop,) = (s for s in kernel.body if isinstance(s, For))
    mine = find_privatizable(loop, only[id(loop)])
    made, more = unroll_and_jam(loop, fresh, mine, only, own)
    assert mine <= more
    changed = tuple(made if stmt is loop else stmt for stmt in kernel.body)
    after = fresh.declared(replace(program, kernels=(replace(kernel, body=changed),)))
    verify_program(after)
    return program, after


def inner(program: Program) -> list[str]:
    """The variables of the loops, outermost first."""
    return [s.symbol.name for s in statements(program.kernels[0].body) if isinstance(s, For)]


def assert_same(before: Program, after: Program, rounds: int) -> None:
    draw = np.random.default_rng(rounds)
    arrays = np.zeros((5, rounds)), draw.normal(size=9), draw.normal(size=(9, rounds))
    for one, other in zip(interpreted(before, *arrays), interpreted(after, *arrays), strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("rounds", [2, 3, 4])
def test_sums_run_side_by_side_with_what_feeds_them(rounds: int) -> None:
    before, after = jam(sums(count=str(rounds)), rounds)
    assert inner(before)[-4:] == ["i", "j", "k", "j"] and inner(after)[-2:] == ["i", "j"]
    assert_same(before, after, rounds)
    inside = statements(after.kernels[0].body)
    used = {n.label for s in inside for n in (*direct_reads(s), *direct_writes(s))}
    assert "t_at" in used and "t" not in used


STAYS = [
    (sums(count="5"), 5, "too many rounds"),
    (sums(count="1"), 1, "one round"),
    (sums(term="t[j] * z[j, k] + y[i, 1 - k]"), 2, "a round needs another one"),
    (sums().replace("s += t", "for m in range(2):\n                s += t"), 2, "a loop inside"),
    (sums().replace("for j in range(9):\n            s", "for j in range(k, 9):\n            s"),
     2, "its length depends on the round"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "rounds", "why"), STAYS, ids=[why for *_, why in STAYS])
def test_other_loops_stay(body: str, rounds: int, why: str) -> None:
    before, after = jam(body, rounds)
    assert before.kernels == after.kernels, why
    assert len(before.locals) == len(after.locals), "nothing is made for it"


APART = [
    (sums(term="t[8 - j] * z[j, k]"), "an element is needed before it is there"),
    (sums("t[j] = exp(x[j] * x[i])\n        y[i, 0] = t[j]"), "what is between reads it"),
    (sums().replace("for j in range(9):\n            s", "for j in range(1, 9):\n            s"),
     "they run through other values"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "why"), APART, ids=[why for _, why in APART])
def test_the_long_loop_stays_apart(body: str, why: str) -> None:
    before, after = jam(body, 2)
    assert inner(after)[-3:] == ["i", "j", "j"], why
    assert_same(before, after, 2)


KEPT = [
    (sums(after="y[i, 0] += t[3]"), "it is read later"),
    (sums(term="t[j] * z[j, k] + t[0]"), "another element is read, too"),
]


@pytest.mark.parametrize(("body", "why"), KEPT, ids=[why for _, why in KEPT])
def test_an_array_of_which_more_is_used_stays(body: str, why: str) -> None:
    before, after = jam(body, 2)
    assert "t_at" not in {node.label for node in after.locals}, why
    assert_same(before, after, 2)
