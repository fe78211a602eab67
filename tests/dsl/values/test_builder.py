"""What an elaboration emits: blocks, conditions, checks that are proven, refuted or left."""

from __future__ import annotations

import pytest

from plusequals.base.diagnostic import NOWHERE, CdIndexError, CdShapeError
from plusequals.dsl.values.builder import Context, NeedStatic, NeedUnroll, compare
from plusequals.dsl.values.types import FALSE, TRUE
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.assignments import Alloc, Check, Let
from plusequals.lowering.ir.expressions import Position, Read, Select
from plusequals.lowering.ir.indexing import Range, const, var
from plusequals.lowering.ir.node import Node

from ..elaborate.points import I, J

SIZE = const(5)


def _inside(lo: int, hi: int) -> Context:
    """Return a context in which the letter i runs through a range."""
    ctx = Context("f")
    ctx.domain = (Range(I, const(lo), const(hi)),)
    ctx.assumptions = ctx.assumptions.with_ranges(ctx.domain)
    return ctx


def test_an_index_that_is_proven_leaves_no_check() -> None:
    ctx = _inside(1, 5)
    ctx.require(var(I) - 1, SIZE, 0, "x", NOWHERE)
    assert not ctx.out


@pytest.mark.parametrize(("shift", "at", "when"), [(1, 5, 4), (-1, -1, 0), (3, 7, 4)])
def test_an_index_that_is_surely_outside_names_the_point(shift: int, at: int, when: int) -> None:
    ctx = _inside(0, 5)
    with pytest.raises(CdIndexError) as caught:
        ctx.require(var(I) + shift, SIZE, 0, "x", NOWHERE)
    assert caught.value.code == "CD0602"
    assert f"= {at} when i = {when}" in caught.value.diagnostics[0].message


def test_an_index_that_is_open_is_checked_at_every_point() -> None:
    ctx = _inside(0, 5)
    ctx.require(var(I) + var(J), SIZE, 0, "x", NOWHERE)
    (check,) = ctx.out
    assert isinstance(check, Check) and check.over.ranges == ctx.domain
    assert "at i = {2}" in check.fault.message


def test_half_of_a_check_is_enough_where_the_other_half_is_proven() -> None:
    ctx = _inside(0, 5)
    ctx.assumptions = ctx.assumptions.with_bounds(J, const(0), None)
    ctx.require(var(J), SIZE, 0, "x", NOWHERE)
    (check,) = ctx.out
    assert isinstance(check, Check) and check.test == compare("lt", var(J), SIZE)


def test_an_integer_of_the_caller_is_checked_before_anything_is_written() -> None:
    ctx = Context("f")
    ctx.origin[J] = "n"
    ctx.require(var(J), SIZE, 0, "x", NOWHERE)
    assert not ctx.out and len(ctx.prologue) == 1


def test_conditions_guard_checks_and_are_known_inside() -> None:
    ctx = Context("f")
    with ctx.under(compare("lt", var(I), SIZE)), ctx.under(compare("ge", var(I), const(0))):
        ctx.require(var(I), SIZE, 0, "x", NOWHERE)
        assert not ctx.out
        guarded = ctx.under_conditions(FALSE)
    inner = Select(compare("ge", var(I), const(0)), FALSE, TRUE)
    assert guarded == Select(compare("lt", var(I), SIZE), inner, TRUE)
    assert not ctx.conditions and not ctx.assumptions.facts


def test_uses_are_collected_instead_of_checked() -> None:
    ctx = Context("f")
    ctx.uses = []
    ctx.require(var(I) + 9, SIZE, 1, "x", NOWHERE)
    (use,) = ctx.uses
    assert (use.index, use.extent, use.axis) == (var(I) + 9, SIZE, 1) and not ctx.out


def test_blocks_are_collected_apart_and_put_back_after_errors() -> None:
    ctx = Context("f")
    with ctx.block() as inner:
        ctx.let("n", Position(const(1)), NOWHERE)
    with pytest.raises(ZeroDivisionError), ctx.block():
        ctx.let("n", Position(const(1 // 0)), NOWHERE)
    assert isinstance(inner[0], Let) and ctx.out == []


def test_equal_sizes_are_proven_refused_or_checked() -> None:
    ctx = Context("f")
    ctx.equal_extents(var(I), var(I), "here", NOWHERE)
    assert not ctx.out
    ctx.equal_extents(var(I), var(J), "here", NOWHERE)
    assert isinstance(ctx.out[0], Check)
    with pytest.raises(CdShapeError, match="here: sizes 3 and 4 differ"):
        ctx.equal_extents(const(3), const(4), "here", NOWHERE)


def test_nodes_of_run_time_shape_are_allocated_where_they_are_made() -> None:
    ctx = Context("f")
    ctx.node("a", (const(3),), dtypes.float64)
    assert not ctx.out
    node = ctx.node("b", (var(I),), dtypes.float64)
    assert ctx.out == [Alloc(node)] and len(ctx.locals) == 2


def test_setting_a_variable_to_itself_emits_nothing() -> None:
    ctx, node = Context("f"), Node(1, "s", (), dtypes.float64)
    ctx.set(node, Read(node, ()), NOWHERE)
    assert not ctx.out


def test_what_has_to_be_a_number_asks_for_another_elaboration() -> None:
    ctx = Context("f")
    ctx.origin[I] = "n"
    ctx.loop_symbols.add(J)
    with pytest.raises(NeedStatic) as parameter:
        ctx.require_static(var(I) + var(J))
    assert parameter.value.names == {"n"}
    with pytest.raises(NeedUnroll) as loop:
        ctx.require_static(var(J) * 2)
    assert loop.value.symbol == J
    ctx.require_static(const(3))
