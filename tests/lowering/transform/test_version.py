"""Checks that sizes decide, ahead of loops: which are, and that the same ones fail."""

from __future__ import annotations

import numpy as np
import pytest

from plusequals.base.diagnostic import CdIndexError
from plusequals.lowering.analysis.parallel_band import facts_of
from plusequals.lowering.gpu.passes import normalized
from plusequals.lowering.ir.fresh import fresh_for
from plusequals.lowering.ir.loops import Check, Program
from plusequals.lowering.ir.printer import print_program
from plusequals.lowering.ir.verify import verify_program
from plusequals.lowering.ir.walk import statements
from plusequals.lowering.target import Target
from plusequals.lowering.transform.version import version_loops

from ..scheduled import function, interpreted, of_any_size, scheduled

TABLE = """
def f(u, a, b, k):
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            t = u[i - 1, j] + a[i - 1]
            u[i, j] = max(t, u[i, j - 1] + {})
"""


def given(rows: int, columns: int) -> list[np.ndarray]:
    rng = np.random.default_rng(rows)
    return [rng.integers(0, 9, (6, 7)), rng.integers(0, 9, rows), rng.integers(0, 9, columns),
            np.arange(9)]  # fmt: skip


def made_of(text: str) -> tuple[Program, Program]:
    """Return loops for any size, and what becomes of them."""
    program = scheduled(of_any_size(function(text), *given(5, 6)), Target("cuda"))
    fresh = fresh_for(program)
    return program, fresh.declared(version_loops(program, facts_of(program), fresh))


def left_in(program: Program, text: str) -> list[bytes] | str:
    try:
        return [array.tobytes() for array in interpreted(program, *given(*map(int, text.split())))]
    except CdIndexError as error:
        return str(error).splitlines()[0]


@pytest.mark.parametrize("term", ["b[j - 1]", "b[k[j]]"])
def test_the_same_checks_fail(term: str) -> None:
    program, made = made_of(TABLE.format(term))
    (branch,) = (stmt for stmt in made.kernels[0].body if hasattr(stmt, "then"))
    left = [stmt for stmt in statements(branch.then) if isinstance(stmt, Check)]
    assert bool(left) == ("k" in term)
    whole = normalized(program)
    assert ("front" in print_program(whole)) == ("k" not in term)
    for one in (made, whole):
        verify_program(one)
        for sizes in ("5 6", "5 7", "6 6", "9 9", "0 6", "2 3"):
            assert left_in(one, sizes) == left_in(program, sizes), sizes


@pytest.mark.parametrize(
    "body",
    [
        "for i in range(len(a)):\n        a[i] = b[i] * 2",  # in any order anyway
        "for i in range(1, len(a)):\n        a[i] = a[i - 1] * 2",  # there is nothing to check
    ],
)
def test_others_stay_as_they_are(body: str) -> None:
    program = scheduled(
        of_any_size(function(f"def f(u, a, b, k):\n    {body}"), *given(5, 6)), Target("cuda")
    )
    fresh = fresh_for(program)
    assert version_loops(program, facts_of(program), fresh) is program
