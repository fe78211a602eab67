"""Which terms are made of neighbours, by what is done to many at once."""

from __future__ import annotations

import pytest

from plusequals.lowering.cpu.reductions.arg_reduction import is_vector_term
from plusequals.lowering.ir.expressions import Cast, Dynamic, Expr, Read, Select
from plusequals.lowering.ir.indexing import var

from ...ir.build import ap, f32, f64, i64, node, num, pos, read, symbols

I, J = symbols("i j")
X, Y = node(0, "x", 9, dtype=f32), node(1, "y", 9, dtype=f64)
N, M = node(2, "n", 9, dtype=i64), node(3, "m", 9, 9, dtype=f32)
NEAR = read(X, var(I) + 1)
NEAR_OR_NOT: list[tuple[Expr, bool]] = [
    (num(2.0, f32), True),
    (NEAR, True),
    (read(X, J), True),
    (read(X, var(I) * 2), False),
    (read(M, J, I), True),
    (read(M, I, J), False),
    (Read(X, (Dynamic(read(N, I)),)), False),
    (pos(J), True),
    (pos(I), False),
    (ap("mul", NEAR, read(X, J)), True),
    (ap("exp", NEAR), False),
    (ap("bitand", read(N, I), num(1, i64)), True),
    (ap("floordiv", read(N, I), num(2, i64)), False),
    (ap("lt", NEAR, num(2.0, f32)), True),
    (ap("and", ap("lt", NEAR, NEAR), ap("lt", NEAR, NEAR)), False),
    (Cast(NEAR, f64), True),
    (Cast(read(Y, I), f32), False),
    (Cast(read(N, I), f64), False),
    (Select(ap("lt", NEAR, NEAR), NEAR, NEAR), False),
]


@pytest.mark.parametrize("at", range(len(NEAR_OR_NOT)))
def test_what_is_made_of_neighbours(at: int) -> None:
    expr, is_near = NEAR_OR_NOT[at]
    assert is_vector_term(expr, I) is is_near
