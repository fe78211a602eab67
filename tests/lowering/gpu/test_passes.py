"""What programs are before kernels are made of them: all steps together change nothing."""

from __future__ import annotations

import numpy as np
import pytest

from plusequals.lowering.analysis.parallel_band import facts_of, find_band
from plusequals.lowering.gpu.passes import normalized
from plusequals.lowering.ir.loops import For
from plusequals.lowering.ir.verify import verify_program
from plusequals.lowering.ir.walk import statements

from .kernels import Case, filled, ran

TEXTS = [  # and how many loops there are in the end
    ("for i in range(1, 40):\n    for j in range(1, 50):\n"
     "        u[i, j] = max(u[i - 1, j], u[i, j - 1])", 2),
    ("for k in range(9):\n    for i in range(40):\n        u[i, 0] = u[k, 0] * u[k, 1]", 4),
    ("m = u[0, 0]\nfor i in range(40):\n    if u[i, 1] > m:\n        m = u[i, 1]\nu[0, 0] = m", 1),
    ("p = 0\nfor i in range(40):\n    if u[i, 1] > u[p, 1]:\n        p = i\nu[0, 0] = p", 2),
    ("for i in range(40):\n    m = u[i, 0]\n    for j in range(i):\n"  # is shared as a maximum
     "        m = max(m, u[i, j] * u[j, 49])\n    u[i, 49] = m", 2),
    ("for i in range(40):\n    m = u[i, 0]\n    for j in range(i):\n"
     "        m -= u[i, j] * u[j, 49]\n    u[i, 49] = m", 3),
    ("for k in range(40):\n    for i in range(40):\n        for j in range(40):\n"
     "            if u[i, k] + u[k, j] < u[i, j]:\n"  # each part of it has a sum of its own
     "                u[i, j] = u[i, k] + u[k, j]", 13),
]  # fmt: skip


@pytest.mark.parametrize(("text", "count"), TEXTS)
def test_steps_together_do_the_same(text: str, count: int) -> None:
    case = Case(text, True, u="f64[40, 50]")
    made = normalized(case.program)
    verify_program(made)
    assert sum(isinstance(stmt, For) for stmt in statements(made.kernels[0].body)) == count
    arrays = [filled(p.node, np.random.default_rng(3)) for p in case.program.parameters]
    got, want = ran(made, arrays), ran(case.program, arrays)
    assert [a.tobytes() for a in got] == [a.tobytes() for a in want]


BEST_OF_EACH = """
for i in range(40):
    m = 1e300
    p = -1
    for j in range(50):
        if u[i, j] < m:
            m = u[i, j]
            p = j
    k[i] = p
"""


def test_points_that_look_for_a_first_best_each_are_independent() -> None:
    made = normalized(Case(BEST_OF_EACH, True, u="f64[40, 50]", k="i64[40]").program)
    assert {"m_first", "m_at"} <= {node.label for node in made.locals}
    assert len({node.id for node in made.locals}) == len(made.locals), "nothing is declared twice"
    (loop,) = [stmt for stmt in made.kernels[0].body if isinstance(stmt, For)]
    found = find_band(loop, facts_of(made))
    assert found is not None and found.free == (loop,)


def test_parts_of_a_loop_have_temporaries_of_their_own() -> None:
    made = normalized(Case(TEXTS[-1][0], True, u="f64[40, 50]").program)
    facts = facts_of(made)
    (outer,) = [stmt for stmt in made.kernels[0].body if isinstance(stmt, For)]
    parts = [stmt for stmt in outer.body if isinstance(stmt, For)]
    assert len(parts) == 3
    assert all((found := find_band(part, facts)) and found.free == (part,) for part in parts)
