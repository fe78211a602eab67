"""Branches in rounds become choices: not a bit changes, and only where both sides may be done."""

from __future__ import annotations

import random

import numpy as np
import pytest

import plusequals as pe
from plusequals.lowering.cpu.masked_lanes import MaskReason, mask_lanes
from plusequals.lowering.ir.loops import If
from plusequals.lowering.ir.walk import statements
from plusequals.lowering.pipeline import optimize

from ..scheduled import function
from ..shown import lowered
from .masked import TARGET, arrays, decided, each, same_as_python, same_bits

BRANCHES = {
    "one side": "if x[i] > 0:\n    y[i] = x[i] * 2",
    "an update": "if x[i] > z[i]:\n    y[i] += x[i]\nelse:\n    y[i] *= 2",
    "scalars": (
        "u = 0.0\nif x[i] > 0.5:\n    u = x[i] * 2\nelif x[i] < -1:\n    u = -x[i]\ny[i] = u"
    ),
    "signs of zero": "if x[i] > 0:\n    u = 0.0\nelse:\n    u = -0.0\ny[i] = z[i] / (u + x[i] * 0)",
    "nested": (
        "u = x[i]\nv = z[i]\nif u > 0:\n    if v > u:\n        u, v = v, u\n    y[i] = u\n"
        "    v = v + 1\nz[i] = u * v"
    ),
    "to the next round": "y[i] = 1\nif x[i] > 0:\n    continue\ny[i] = x[i]\nz[i] = 3",
    "both and": (
        "if x[i] > 0 and z[i] > x[i]:\n    y[i] = x[i]\nelif x[i] < -1 or z[i] < -1:\n    y[i] = 2"
    ),
}
CLEARED = {
    "one side": "if b[p]:\n    b[p] = False\n    y[p] = x[p] * 2",
    "a scalar": "t = 1.0\nif b[p]:\n    b[p] = x[p] > 0\n    t = 2.0\ny[p] = t + x[p]",
    "both sides": "if b[p]:\n    b[p] = False\nelse:\n    b[p] = True\n    y[p] = x[p] * 2",
    "nested": (
        "if b[p]:\n    if x[p] > 0:\n        b[p] = False\n        y[p] = 1.0\n    y[p] += x[p]"
    ),
    "to the next": "if b[p]:\n    b[p] = x[p] > 1\n    y[p] = 1.0\n    continue\ny[p] = 2.0",
    "after a loop": (
        "t = abs(x[p])\nwhile t < 5:\n    t = t * 2 + 6\nif b[p]:\n    b[p] = False\n    y[p] = t"
    ),
    "another one": "if b[p]:\n    c[p] = not b[p]\n    y[p] = x[p]",
}
"""Tests of an element that the branch itself may change."""
STAY = {
    "where it is": "if i > 3:\n    y[i] = x[i]",
    "outside": "if i + 1 < len(x) and x[i] > 0:\n    y[i] = x[i + 1]",
    "where data says": "k = int(x[i])\nif k > 0 and k < len(x):\n    y[i] = x[k]",
    "whole numbers divided": "k = int(z[i])\nif x[i] > 0:\n    y[i] = 7 // (k + 9)",
    "the round before": "u = u + x[i]\nif u > 0:\n    y[i] = u",
    "steps": "if x[i] > 0:\n    w[i, 0] = x[i]",
}


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("size", [0, 1, 64, 97])
@pytest.mark.parametrize("name", BRANCHES)
def test_not_a_bit_changes(name: str, size: int, dtype: str) -> None:
    same_bits(each(BRANCHES[name]), size, dtype)


@pytest.mark.parametrize("name", BRANCHES)
def test_branches_become_choices(name: str) -> None:
    (decision,) = decided(BRANCHES[name])
    assert decision.reason is MaskReason.BRANCH


@pytest.mark.parametrize("name", STAY)
def test_what_stays_means_the_same(name: str) -> None:
    same_bits(each(STAY[name]), 48)
    assert not decided(STAY[name])


@pytest.mark.parametrize("name", CLEARED)
def test_tests_are_as_they_were_before_their_branch(name: str) -> None:
    lines = CLEARED[name].replace("\n", "\n        ")
    text = f"def f(x, y, b, c):\n    for p in range(len(x)):\n        {lines}\n"
    x, y, z, _ = arrays(97, "f8")
    same_as_python(text, [x, y, z > 0, z < 1])


def test_few_rounds_stay() -> None:
    assert not decided(BRANCHES["one side"], "4")
    assert decided(BRANCHES["one side"], "5")


def test_what_is_dear_stays() -> None:
    dear = " + ".join(f"exp(x[i] * {n})" for n in range(9))
    assert not decided(f"if x[i] > 0:\n    y[i] = {dear}")
    assert decided("if x[i] > 0:\n    y[i] = exp(x[i])")


COUNTS = {
    "one": "if x[i] > 0:\n    n += 1",
    "both and": "if x[i] > 0 and z[i] > x[i]:\n    n += 1",
    "several": (
        "if x[i] > 0:\n    n += 1\n    if z[i] > x[i]:\n        m += i\n"
        "    elif z[i] > 0:\n        m -= 3\nelse:\n    m -= 2 * i\nn += 5"
    ),
    "of data": "if x[i] > 0:\n    n += int(p[i])\nelse:\n    m -= p[i] * 3",
}
NO_COUNTS = {
    "of floats": "if x[i] > 0:\n    u += 1.0",
    "by what it counts": "if n < 5:\n    n += 1",
    "of what it counts": "if x[i] > 0:\n    n += m\n    m += 1",
    "times": "if x[i] > 0:\n    n *= 2",
    "divided": "if x[i] > 0:\n    n += 7 // p[i]",
    "further on": "if i + 1 < len(x) and x[i] > 0:\n    n += p[i + 1]",
    "where it is": "if i > 3:\n    n += 1",
    "until": "if x[i] > 1:\n    break\nn += 1",
}


def counting(body: str) -> str:
    """Return a function that counts over elements."""
    lines = "        " + body.replace("\n", "\n        ")
    start = "    n = 0\n    m = 0\n    u = 0.0\n    for i in range(len(x)):\n"
    return f"def f(x, z, p):\n{start}{lines}\n    return n, m, u\n"


@pytest.mark.parametrize("body", [*COUNTS.values(), *NO_COUNTS.values()])
def test_counts_are_those_of_the_branches(body: str) -> None:
    made = function(counting(body))
    for size in (0, 1, 48, 1000):
        x, z, _, _ = arrays(size)
        p = np.arange(size, dtype="i4") * 77777777 + 1
        expected = made.on("numpy")(x, z, p)
        with pe.settings.override(schedule=True):
            assert made.on("cc")(x, z, p) == expected


@pytest.mark.parametrize("body", [*COUNTS.values(), *NO_COUNTS.values()])
def test_loops_that_only_count_have_no_branches(body: str) -> None:
    text = "\n".join(line[4:] for line in counting(body).split("\n")[1:])
    program, _ = optimize(
        lowered(text, x="f32[48]", z="f32[48]", p="i32[48]"), TARGET, stop_after="annotate_private"
    )
    found = mask_lanes(program, TARGET)
    assert bool(found.decisions) is (body in COUNTS.values())
    assert all(decision.reason is MaskReason.COUNT for decision in found.decisions)
    inside = (s for kernel in found.program.kernels for s in statements(kernel.body))
    assert any(isinstance(stmt, If) for stmt in inside) is (body not in COUNTS.values())


# ------------------------------------------------------------------------------------ at random


class Writer:
    """Writes rounds of branches and loops that end, by numbers of one generator."""

    def __init__(self, seed: int) -> None:
        self.of = random.Random(seed)

    def value(self) -> str:
        plain = self.of.choice(["u", "v", "x[i]", "z[i]", "1", "-0.5", "0.25"])
        if self.of.random() < 0.5:
            return plain
        return f"({plain} {self.of.choice('+-*')} {self.value()})"

    def test(self) -> str:
        one = f"{self.value()} {self.of.choice(['<', '>=', '!='])} {self.value()}"
        return (
            one
            if self.of.random() < 0.7
            else f"{one} {self.of.choice(['and', 'or'])} {self.test()}"
        )

    def lines(self, depth: int, inside: bool) -> list[str]:
        """Return some statements; those inside of a loop write no array, and may leave it."""
        out: list[str] = []
        for _ in range(self.of.randint(1, 3)):
            kind = self.of.random()
            if depth and kind < 0.4:
                out.append(f"if {self.test()}:")
                out += [f"    {line}" for line in self.lines(depth - 1, inside)]
                if inside and self.of.random() < 0.4:
                    out.append(f"    {self.of.choice(['break', 'continue'])}")
                elif self.of.random() < 0.5:
                    out += ["else:", *(f"    {line}" for line in self.lines(depth - 1, inside))]
            elif depth and not inside and kind < 0.6:
                out.append(f"for n in range({self.of.randint(1, 6)}):")
                out += [f"    {line}" for line in self.lines(depth, True)]
            elif inside or kind < 0.8:
                out.append(f"{self.of.choice('uv')} = {self.value()}")
            else:
                place = self.of.choice(["y[i] =", "y[i] +=", "z[i] ="])
                out.append(f"{place} {self.value()}")
        return out


@pytest.mark.parametrize("seed", range(12))
def test_random_rounds(seed: int) -> None:
    for number in range(4):
        lines = Writer(100 * seed + number).lines(2, False)
        body = "\n".join(["u = x[i]", "v = z[i]", *lines, "y[i] += u", "z[i] = v"])
        same_bits(each(body), 45)
