"""Counts beside sums in lanes: which they are, and what keeps them a number."""

from __future__ import annotations

from dataclasses import replace

from plusequals.lowering import thresholds
from plusequals.lowering.cpu.reductions.lane_statements import (
    find_counters,
    is_small_tail,
    lane_count,
)
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.expressions import Cast, Const, Read
from plusequals.lowering.ir.indexing import const
from plusequals.lowering.ir.loops import For, Store, Update
from plusequals.lowering.ir.node import Node
from plusequals.lowering.ir.ops import OPS

from ...ir.build import ap, at, f32, i64, num, read, symbols
from ...ir.build import node as array

(i,) = symbols("i")
X = array(0, "x", 96)
N, S = Node(1, "n", (), i64), Node(2, "s", (), f32)
TEST = ap("gt", read(X, i), num(0.5))
SUM = Update(at(S), OPS["add"], read(X, i))
COUNT = Update(at(N), OPS["add"], Cast(TEST, i64))


def loop(*body: Store | Update) -> For:
    return For(i, const(0), const(96), 1, body)


def test_a_count_of_tests_has_lanes() -> None:
    assert find_counters(loop(SUM, COUNT)) == [COUNT]


def test_what_is_used_or_counted_twice_is_a_number() -> None:
    assert not find_counters(loop(COUNT, COUNT))
    assert not find_counters(loop(COUNT, Store(at(S), Cast(Read(N, ()), f32))))
    assert not find_counters(loop(COUNT, Store(at(N), Const(0, i64))))


def test_what_does_not_count_tests_is_a_number() -> None:
    assert not find_counters(loop(replace(COUNT, value=Const(1, i64))))
    assert not find_counters(loop(replace(COUNT, op=OPS["mul"])))
    assert not find_counters(loop(replace(COUNT, access=at(array(3, "h", 9, dtype=i64), 2))))
    assert not find_counters(loop(replace(COUNT, access=at(S), value=Cast(TEST, f32))))


def test_lanes_have_a_fixed_number() -> None:
    assert lane_count(Node(7, "lanes", (const(32),), dtypes.float64)) == 32


def test_what_is_left_is_written_once_for_each_power_of_two_where_that_is_short() -> None:
    assert is_small_tail(loop(SUM), 31)
    dear = replace(SUM, value=ap("exp", read(X, i)))
    assert is_small_tail(loop(dear), 16)
    assert is_small_tail(loop(*(dear,) * (thresholds.MAX_WRITTEN_OUT_OPERATIONS // 17)), 16)
    assert not is_small_tail(loop(*(dear,) * (thresholds.MAX_WRITTEN_OUT_OPERATIONS // 17)), 24)
    assert not is_small_tail(For(i, const(0), const(96), 1, (loop(SUM),)), 16)
