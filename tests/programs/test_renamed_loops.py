"""What renames loops, and the test that no pass decides by their names."""

from __future__ import annotations

import random
from unittest.mock import patch

from plusequals.backends.cc.cpu_info import target
from plusequals.lowering.analysis import fusion
from plusequals.lowering.ir.loops import For
from plusequals.lowering.ir.walk import statements
from tests.lowering.shown import lowered

from .renamed_loops import difference, with_own_variables, with_shared_variables

BODY = (
    "y[i] = x[i]\nfor k in range(8):\n    z[k] = y[k]\n    for l in range(8):\n        a[k, l] = 0"
)
ARRAYS = {"y": "f32[8]", "z": "f32[8]", "x": "f32[8]", "a": "f32[8, 8]"}


def test_loops_have_variables_of_their_own_or_share_them() -> None:
    program = lowered(BODY, **ARRAYS)
    own, shared = with_own_variables(program), with_shared_variables(program, random.Random(1))
    for renamed, count in ((own, 3), (shared, 2)):
        loops = [
            s for kernel in renamed.kernels for s in statements(kernel.body) if isinstance(s, For)
        ]
        assert len(loops) == 3
        assert len({loop.symbol for loop in loops}) == count


def test_a_pass_that_takes_one_variable_for_another_is_found() -> None:
    program = lowered("a[i, j] += 1\ny[j] = sum(a[i, 7 - j])", y="f32[8]", a="f32[8, 8]")
    rng = random.Random(3)
    assert difference(program, target(), rng) is None
    with patch.object(fusion, "bound_symbols", lambda body: frozenset()):
        found = [difference(program, target(), random.Random(seed)) for seed in range(6)]
    assert any(why is not None and why.startswith("fuse\n") for why in found)
