"""Which statements of a loop over lanes are vectors: numbers, masks, choices and counts."""

from __future__ import annotations

import pytest

from plusequals.backends.codegen.vectorizable import VectorBody
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.expressions import Cast, Const, Expr, Select
from plusequals.lowering.ir.indexing import const, var
from plusequals.lowering.ir.loops import Stmt, Store, Update
from plusequals.lowering.ir.node import Node
from plusequals.lowering.ir.ops import OPS

from ...lowering.ir.build import ap, at, bool_, f64, i64, num, pos, read, symbols
from ...lowering.ir.build import node as array

(lane,) = symbols("lane")
X, Y, P = array(0, "x", 96), array(1, "y", 96, dtype=f64), array(2, "p", 96, dtype=i64)
B, U = array(3, "b", 96, dtype=bool_), array(4, "u", 96, dtype=dtypes.uint8)
COUNTS = Node(5, "n", (const(32),), i64, purpose="lanes")
NOTHING = num(-0.0)


def here(of: Node) -> Expr:
    return read(of, lane)


POSITIVE = ap("gt", here(X), num(0.0))
THREE = ap("eq", here(P), Const(3, i64))
FITS: dict[str, Stmt] = {
    "a choice": Store(at(X, lane), Select(POSITIVE, here(X), NOTHING)),
    "of data": Store(at(X, lane), Select(THREE, here(X), NOTHING)),
    "of truth values": Store(at(X, lane), Select(here(B), here(X), NOTHING)),
    "either": Store(at(X, lane), Select(ap("bitor", POSITIVE, THREE), here(X), NOTHING)),
    "neither": Store(at(X, lane), Select(ap("logical_not", POSITIVE), here(X), NOTHING)),
    "a truth as a number": Store(at(X, lane), Cast(POSITIVE, dtypes.float32)),
    "a count": Update(at(COUNTS, lane), OPS["add"], Cast(POSITIVE, i64)),
    "counts": Update(at(COUNTS, lane), OPS["add"], here(COUNTS)),
    "zeros": Store(at(COUNTS, lane), Const(0, i64)),
}
STAYS: dict[str, Stmt] = {
    "by where it is": Store(
        at(X, lane), Select(ap("gt", pos(var(lane)), pos(var(lane))), here(X), NOTHING)
    ),
    "bytes": Store(
        at(X, lane), Select(ap("eq", here(U), Const(3, dtypes.uint8)), here(X), NOTHING)
    ),
    "a byte as a number": Store(at(X, lane), Cast(here(B), dtypes.float32)),
    "a guarded truth": Store(
        at(X, lane),
        Cast(ap("and", ap("gt", pos(var(lane)), Const(3, i64)), POSITIVE), dtypes.float32),
    ),
    "whole numbers": Store(at(P, lane), Select(POSITIVE, here(P), Const(0, i64))),
    "a count that is no lane": Update(at(P, lane), OPS["add"], Cast(POSITIVE, i64)),
    "times": Update(at(COUNTS, lane), OPS["mul"], Cast(POSITIVE, i64)),
}


@pytest.mark.parametrize("name", FITS)
def test_what_is_vectors(name: str) -> None:
    assert VectorBody(lane, frozenset({P.id, B.id, U.id})).fits(FITS[name])


@pytest.mark.parametrize("name", STAYS)
def test_what_is_no_vector(name: str) -> None:
    assert not VectorBody(lane, frozenset({P.id, B.id, U.id})).fits(STAYS[name])


@pytest.mark.parametrize("name", ["of data", "of truth values", "either"])
def test_sides_are_not_computed_where_whole_numbers_may_speak_of_indices(name: str) -> None:
    assert not VectorBody(lane).fits(FITS[name])


def test_the_widest_of_what_is_compared_counts() -> None:
    shape = VectorBody(lane, frozenset({P.id}))
    assert shape.fits(FITS["of data"])
    assert max(shape.bits) == 64
