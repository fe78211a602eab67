"""Loops in sections, and part by part: which are, and that every element stays as it is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from plusequals.lowering.cpu.masked_lanes import mask_lanes
from plusequals.lowering.ir.loops import For, If
from plusequals.lowering.ir.verify import verify_program
from plusequals.lowering.ir.walk import direct_writes, statements
from plusequals.lowering.target import Target
from plusequals.lowering.transform.split_index_set import (
    distribute_statements,
    split_and_rename,
    split_index_sets,
)

from ..gpu.kernels import Case, filled, ran
from ..shown import lowered

FLOYD = (
    "for k in range(12):\n    for i in range(12):\n        for j in range(12):\n"
    "            d[i, j] = min(d[i, j], d[i, k] + d[k, j])"
)
IN_SECTIONS = [
    (FLOYD, 12),
    ("for k in range(3, 12):\n    for i in range(12):\n        d[i, 0] += d[k, 0] * x[i, 0]", 3),
    ("for k in range(9):\n    for i in range(12):\n        d[k + 1, i] = d[k + 1, k + 2] - 1", 3),
]


@pytest.mark.parametrize(("text", "count"), IN_SECTIONS)
def test_sections_do_the_same(text: str, count: int) -> None:
    case = Case(text, True, d="f64[12, 12]", x="f64[12, 12]")
    made = split_index_sets(case.program, case.facts)
    inner = [stmt for stmt in statements(made.kernels[0].body) if isinstance(stmt, For)]
    assert len(inner) == 1 + count
    verify_program(made)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        arrays = [filled(p.node, rng) for p in case.program.parameters]
        got, want = ran(made, arrays), ran(case.program, arrays)
        assert [a.tobytes() for a in got] == [a.tobytes() for a in want]


@pytest.mark.parametrize(
    "text",
    [
        "for i in range(1, 12):\n    d[i, 0] += d[i - 1, 0]",  # each needs the one before
        "for k in range(12):\n    for i in range(11):\n        d[i, 0] += d[k, 0]",  # k = 11
        "for k in range(12):\n    for i in range(12):\n        d[i, 0] += d[k, 0] + d[i - 1, 0]",
        "for k in range(12):\n    for i in range(12):\n        x[i, k] = d[k, i]",  # is independent
    ],
)
def test_what_stays_in_one_section(text: str) -> None:
    case = Case(text, True, d="f64[12, 12]", x="f64[12, 12]")
    assert split_index_sets(case.program, case.facts) == case.program


APART = [
    ("s[i] = s[i - 1] + x[i]\n    t[i] = t[i - 1] * x[i]", 2),
    ("s[i] = s[i - 1] + x[i]\n    t[i] = s[i - 1] * s[i]", 2),
    ("x[i] = s[i + 1]\n    s[i] = s[i - 1] + 1\n    t[i] = s[i]", 3),
    ("s[i] = s[i - 1] + x[i]\n    t[i] = s[i + 1]", 1),  # before a later round writes it
    ("s[i] = s[i - 1] + t[i - 1]\n    t[i] = x[i] + 1", 1),  # what an earlier round wrote
    ("a = x[i] * 2\n    s[i] = s[i - 1] + a\n    t[i] = a * 3", 1),  # a scalar of the round
]


@pytest.mark.parametrize(("text", "count"), APART)
def test_parts_do_the_same(text: str, count: int) -> None:
    case = Case(f"for i in range(1, 36):\n    {text}", True, s="i64[37]", t="i64[37]", x="i64[37]")
    made = distribute_statements(case.loop(), case.facts) or (case.loop(),)
    assert len(made) == count
    case.assert_same(made)


def test_what_prints_stays_together() -> None:
    case = Case("for i in range(3):\n    s[i] = 1\n    print(t[i])", s="i64[9]", t="i64[9]")
    assert distribute_statements(case.loop(), case.facts) is None
    assert replace(case.loop(), kind="thread").kind == "thread"


def test_sections_become_vectors() -> None:
    """Each section has its own temporary, or its branch could be no choice."""
    program = lowered(
        "for k in range(150):\n    for i in range(150):\n        for j in range(150):\n"
        "            t = d[i, k] + d[k, j]\n            if t < d[i, j]:\n"
        "                d[i, j] = t",
        d="i32[150, 150]",
    )
    made = mask_lanes(split_and_rename(program), Target(schedule=True, vector_bits=256)).program
    verify_program(made)
    branches = [stmt for stmt in statements(made.kernels[0].body) if isinstance(stmt, If)]
    assert len(branches) == 3, "of j = k, in each section of i"


def test_the_first_section_keeps_the_temporaries() -> None:
    program = lowered(
        "for k in range(150):\n    for i in range(150):\n"
        "        t = d[i, k] + 1\n        if t < d[i, k]:\n            d[i, k] = d[k, k] + t\n"
        "for i in range(150):\n    t = d[i, 0]\n    d[i, 1] = t * t",
        d="i32[150, 150]",
    )
    made = split_and_rename(program)
    verify_program(made)
    sections = [stmt for stmt in made.kernels[0].body[0].body if isinstance(stmt, For)]
    own = {node.id for node in made.locals}
    first, *others = (
        {node.id for stmt in statements((loop,)) for node in direct_writes(stmt)} & own
        for loop in sections
    )
    before = {node.id for node in program.locals}
    assert len(sections) == 3 and first and first <= before
    assert all(part.isdisjoint(before) for part in others)
    assert made.kernels[0].body[1:] == program.kernels[0].body[1:], "is no copy"
