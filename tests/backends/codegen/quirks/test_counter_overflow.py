"""Which loops may come to the end of 64 bits: only those whose ends may be any number."""

from __future__ import annotations

import doctest
from dataclasses import replace

import pytest

from plusequals.backends.codegen.quirks import counter_overflow
from plusequals.backends.codegen.quirks.counter_overflow import MOST, may_overflow
from plusequals.base.diagnostic import NOWHERE
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.assignments import Let
from plusequals.lowering.ir.bounds import Bounds
from plusequals.lowering.ir.expressions import Cast, Position, Read
from plusequals.lowering.ir.indexing import Affine, Symbol, const, minimum, mod, var
from plusequals.lowering.ir.loops import For

from ..programs import node

I, J, N, M = (Symbol(name, serial) for serial, name in enumerate("ijnm"))
n, m = var(N), var(M)


def test_the_examples_are_true() -> None:
    assert doctest.testmod(counter_overflow) == (0, 5)


@pytest.mark.parametrize(
    ("hi", "step", "may"),
    [
        (const(MOST - 1), 2, False),
        (const(MOST), 2, True),
        (const(-MOST), -2, False),
        (const(-MOST - 1), -2, True),
        (n * 3 + 7, 8, False),
        (n - mod(n, const(8)), 8, False),
        (m, 8, True),
        (m, -8, True),
        (minimum(m, n), 8, False),
        (minimum(m, n), -8, True),
    ],
)
def test_ends_that_sizes_tell_are_far_from_it(hi: Affine, step: int, may: bool) -> None:
    loop = For(I, const(0), hi, step, (), "serial", NOWHERE)
    assert may_overflow(loop, step, {}, Bounds(), {N}) == may


def test_what_is_bound_around_is_as_near_as_what_it_comes_from() -> None:
    inner = For(I, const(0), var(J), 2, (), "serial", NOWHERE)
    outer = For(J, const(0), n, 1, (inner,), "serial", NOWHERE)
    assert not may_overflow(inner, 2, {J: outer}, Bounds(), {N})
    assert may_overflow(inner, 2, {J: replace(outer, hi=m)}, Bounds(), {N})
    small = Cast(Read(node(0, "x", (), dtypes.int32), ()), dtypes.int64)
    wide = Read(node(0, "x", (), dtypes.int64), ())
    for value, may in ((small, False), (wide, True), (Position(n + 1), False)):
        assert may_overflow(inner, 2, {J: Let(J, value, NOWHERE)}, Bounds(), {N}) == may
