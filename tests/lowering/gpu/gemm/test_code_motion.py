"""Sums that points begin with: what may be moved out of their way."""

from __future__ import annotations

from plusequals.lowering.analysis.parallel_band import find_band
from plusequals.lowering.gpu.gemm.code_motion import move_sum_first
from plusequals.lowering.gpu.gemm.contraction import match_contraction
from plusequals.lowering.gpu.gemm.shared_tiles import map_shared_tiles
from plusequals.lowering.ir.assignments import Access
from plusequals.lowering.ir.loops import Comment, For, If, Store

from ..kernels import Case

SIZES = {"y": "f32[24, 26]", "a": "f32[24, 17]", "b": "f32[17, 26]"}
CAUSAL = "y[i, j] = where(j <= i, sum[k](a[i, k] * b[k, j]) * 2, -1)"


def kinds(case: Case) -> list[type]:
    """Return what points do, statement by statement."""
    found = find_band(case.loop(), case.facts)
    assert found is not None
    body = [stmt for stmt in found.inner if not isinstance(stmt, Comment)]
    return [type(stmt) for stmt in move_sum_first(body, found)]


def test_a_sum_under_a_test_is_made_in_any_case() -> None:
    case = Case(CAUSAL, **SIZES)
    assert kinds(case) == [Store, For, Store]
    found = find_band(case.loop(), case.facts)
    assert found is not None and match_contraction(found) is not None
    made = map_shared_tiles(found, case.facts, case.fresh)
    assert made is not None
    case.assert_same(made.body)


def test_so_is_one_whose_elements_are_moved_into_range() -> None:
    text = "y[i, j] = where(i > 0, sum[k](a[clamp(i * i - 1), k] * b[k, j]), 0)"
    assert If not in kinds(Case(text, **SIZES))


def test_where_the_test_keeps_it_in_range_it_stays() -> None:
    text = "y[i, j] = where(j < i, sum[k](a[i, k] * b[k, clamp(j + 7)]), 0)"
    assert If in kinds(Case(text, y="f32[64, 70]", a="f32[64, 65]", b="f32[65, 70]"))


def test_scalars_before_a_sum_move_behind_it_unless_it_uses_them() -> None:
    case = Case("y[i, j] = sum[k](a[i, k] * b[k, j])", **SIZES)
    found = find_band(case.loop(), case.facts)
    assert found is not None
    start, loop, *rest = [s for s in found.inner if not isinstance(s, Comment)]
    assert isinstance(start, Store)
    scalar = case.fresh.scalar("s", start.access.node.dtype)
    other = Store(Access(scalar, ()), start.value)
    assert move_sum_first([other, start, loop, *rest], found) == [start, loop, other, *rest]
    again = Store(start.access, start.value)
    body = [again, start, loop, *rest]
    assert move_sum_first(body, found) == body
