"""Children, walks and rebuilding of expressions."""

from __future__ import annotations

from math import nan

import pytest

from plusequals.lowering.ir import dtypes, expressions, indexing
from plusequals.lowering.ir.expressions import Cast, Expr, Reduce, Select
from plusequals.lowering.ir.ops import OPS, PAIR_OPS
from plusequals.lowering.ir.printer import print_expr

from .build import aff, ap, f32, f64, i64, node, num, over, pos, read, rng, symbols

I, J, N = symbols("i j n")
X, W = node(0, "x", 4, 4), node(1, "w", 4, dtype=i64)
GATHER = read(X, I, read(W, J))
TEST = ap("lt", pos(I), pos(N))
TOTAL = Reduce(OPS["add"], over(rng(J, 0, I), where=TEST), GATHER, f32)
BEST = Reduce(PAIR_OPS["argmin"], over(rng(J, 0, N)), GATHER, i64, aff(J) + aff(N))
EVERY: list[Expr] = [
    num(1.0), GATHER, pos(I), ap("neg", GATHER), Cast(GATHER, f64),
    Select(TEST, GATHER, num(0.0)), TOTAL, BEST,
]  # fmt: skip


def test_walk_goes_into_subscripts_and_predicates() -> None:
    kinds = [type(e).__name__ for e in expressions.walk(TOTAL)]
    assert kinds == ["Reduce", "Apply", "Position", "Position", "Read", "Read"]
    assert expressions.children(Select(TEST, num(1.0), num(2.0))) == (TEST, num(1.0), num(2.0))


@pytest.mark.parametrize("expr", EVERY, ids=lambda e: type(e).__name__)
def test_rebuilding_from_the_same_parts_changes_nothing(expr: Expr) -> None:
    assert expressions.rebuild(expr, lambda e: e, lambda index: index) == expr


def test_rebuild_reaches_every_index() -> None:
    values = {I: aff(7), N: aff(9)}

    def new(expr: Expr) -> Expr:
        return expressions.rebuild(expr, new, lambda index: indexing.substitute(index, values))

    assert print_expr(new(TOTAL)) == "sum[j in [0, 7) where 7 < 9](x[7, w[j]])"
    assert print_expr(new(BEST)) == "argmin[j in [0, 9)](x[7, w[j]] at j + 9)"


def test_types() -> None:
    assert [e.dtype for e in EVERY] == [f32, f32, i64, f32, f64, f32, f32, i64]
    assert pos(I).dtype is dtypes.int64


@pytest.mark.parametrize(
    ("one", "two", "are_one"),
    [
        (0.0, -0.0, False), (0.0, 0.0, True), (nan, -nan, False), (nan, float("nan"), True),
        (1.0, 1.0, True), (complex(1, 0.0), complex(1, -0.0), False), (1j, 1j, True),
    ],
)  # fmt: skip
def test_numbers_are_one_where_their_bits_are(one: complex, two: complex, are_one: bool) -> None:
    dtype = dtypes.complex128 if isinstance(one, complex) else f32
    left, right = num(one, dtype), num(two, dtype)
    assert (left == right) is are_one
    assert not are_one or hash(left) == hash(right)
    assert ap("neg", left) == ap("neg", right) if are_one else ap("neg", left) != ap("neg", right)


def test_domain_symbols_are_outermost_first() -> None:
    assert over(rng(J, 0, 4), rng(I, 0, J)).symbols == (J, I)
