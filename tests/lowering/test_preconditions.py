"""What a program contains, and that passes do nothing where their preconditions do not hold."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from plusequals.lowering.ir.decision import Decided
from plusequals.lowering.ir.loops import Program
from plusequals.lowering.pass_table import PASSES
from plusequals.lowering.preconditions import (
    contents_of,
    has_accumulators,
    has_answers,
    has_arg_reductions,
    has_branches,
    has_checks,
    has_clamps,
    has_complex,
    has_contractions,
    has_equality_tests,
    has_functions,
    has_guarded_accumulators,
    has_local_arrays,
    has_locals,
    has_nested_loops,
    has_permutations,
    has_products,
    has_remainders,
    has_requests,
    has_short_loops,
    has_siblings,
    has_terms,
)
from plusequals.lowering.target import HOST, Target

from .passes.traps import ARRAYS, TRAPS
from .shown import lowered

ELEMENTS = "for i in range(900):\n    y[i] = x[i] * 2.0"
LONG = {"y": "f64[900]", "x": "f64[900]", "a": "f64[900, 900]", "p": "i64[900]", "q": "i64[900]"}
CASES = {
    has_accumulators: "for i in range(900):\n    y[3] = x[i]",
    has_answers: "b: bool\nb = any(x[i] > 0.0)\ny[i] = x[i] if b else 0.0",
    has_arg_reductions: "k: i64\nk = argmax(x[i])\np[3] = k",
    has_branches: "for i in range(900):\n    if x[i] > 0.0:\n        y[i] = 1.0",
    has_checks: "for i in range(900):\n    y[p[i]] = x[i]",
    has_clamps: "for i in range(900):\n    y[i] = x[i] if i > 3 else 1.0",
    has_contractions: "t[i] = x[i] * 2.0\ny[i] = t[i] + x[i]",
    has_equality_tests: "for i in range(900):\n    y[i] = x[i] if p[i] == 4 else 1.0",
    has_functions: "for i in range(900):\n    y[i] = exp(x[i])",
    has_guarded_accumulators: "for j in range(900):\n    q[j] = argmax(a[i, j])",
    has_local_arrays: "t[i] = x[i] * 2.0\ny[i] = t[i] + x[i]",
    has_locals: "t: f64\nt = x[3]\ny[i] = t",
    has_nested_loops: "for i in range(900):\n    for j in range(900):\n        a[i, j] = x[j]",
    has_remainders: "for i in range(900):\n    y[i] = x[i % 7]",
    has_short_loops: "for i in range(4):\n    y[i] = x[i]",
    has_siblings: "for i in range(900):\n    y[i] = 1.0\n    x[i] = 2.0",
    has_terms: "t: f64\nt = sum(x[i])\ny[i] = t",
}
"""A program with each property; `ELEMENTS` has none of them."""


def program_of(body: str) -> Program:
    arrays = {name: spec for name, spec in LONG.items() if re.search(rf"\b{name}\b", body)}
    return lowered(body, **arrays)


@pytest.mark.parametrize("test", CASES, ids=lambda test: test.__name__)
def test_programs_with_a_property_are_told_from_the_others(test: object) -> None:
    assert callable(test)
    assert test(program_of(CASES[test]))
    assert not test(program_of(ELEMENTS))


def test_a_loop_over_elements_contains_little() -> None:
    program = program_of(ELEMENTS)
    contents = contents_of(program)
    assert {kind.__name__ for kind in contents.kinds} >= {"For", "Store", "Apply", "Read", "Const"}
    assert contents.ops == {"mul"} and contents.loop_depth == contents.longest == 1
    assert contents.fewest == 900 and not contents.rewrites and not contents.counts_terms
    nothing = (has_complex, has_permutations, has_products, has_requests)
    assert not any(test(program) for test in nothing)
    assert has_complex(lowered("y[i] = x[i]", y="c128[8]", x="c128[8]"))


SHARING = replace(HOST, threads=4, parallel_from=1)


@pytest.mark.parametrize("target", [HOST, SHARING], ids=["one thread", "four threads"])
def test_a_pass_is_the_identity_where_its_precondition_does_not_hold(target: Target) -> None:
    unneeded = 0
    for name, body in TRAPS.items():
        specs = {key: spec for key, spec in ARRAYS.items() if re.search(rf"\b{key}\b", body)}
        program = lowered(body, **specs)
        for step in PASSES:
            if not step.needs(program):
                unneeded += 1
                assert step.run(program, target) == Decided(program), f"{step.name}: {name}"
            elif step.when(target):
                program = step.run(program, target).program
    assert unneeded > 20 * len(TRAPS)
