"""Writes to where data says by atomic operations: which loops these are, and what they mean."""

from __future__ import annotations

import pytest

from plusequals.lowering.gpu.atomic_scatter import map_atomic_scatter
from plusequals.lowering.gpu.thread_points import DeviceCode
from plusequals.lowering.ir.loops import For, Update
from plusequals.lowering.ir.walk import statements

from .kernels import Case


def made_of(body: str, exact: bool = False, **arrays: str) -> tuple[Case, DeviceCode | None]:
    case = Case(body, exact, **arrays)
    return case, map_atomic_scatter(case.loop(), case.facts, case.fresh, case.nodes)


@pytest.mark.parametrize("n", [2, 7, 300])
@pytest.mark.parametrize("kind", ["f32", "i64"])
@pytest.mark.parametrize(
    "text", ["h[k[i]] += x[i]", "for i in range(len(k) - 1, -1, -1):\n    h[k[i]] += x[i] * 2"]
)
def test_any_order_gives_the_same(text: str, kind: str, n: int) -> None:
    case, made = made_of(text, h=f"{kind}[9]", k=f"i64[{n}]", x=f"{kind}[{n}]")
    assert made is not None
    case.assert_same(made.body)


def test_all_loops_of_a_nest_are_dealt_out() -> None:
    text = "h[k[i, j]] += x[i, j]"
    case, made = made_of(text, h="f32[8]", k="i64[5, 40]", x="f32[5, 40]")
    assert made is not None
    case.assert_same(made.body)
    kinds = [s.kind for s in statements(made.body) if isinstance(s, For)]
    updates = [s for s in statements(made.body) if isinstance(s, Update)]
    assert [s.atomic for s in updates] == [True] and "serial" not in kinds


def test_what_is_none() -> None:
    real = {"h": "f32[9]", "k": "i64[99]", "x": "f32[99]"}
    whole = {"h": "i32[9]", "k": "i64[99]", "x": "i32[99]"}
    largest = "h[k[i]] = max(h[k[i]], x[i])"
    assert made_of("h[k[i]] += x[i]", **real)[1] is not None
    assert made_of("h[k[i]] += x[i]", True, **real)[1] is None, "sums keep their order"
    assert made_of("h[k[i]] += x[i]", True, **whole)[1] is not None
    assert made_of("h[k[i]] *= x[i]", **whole)[1] is None
    assert made_of(largest, **whole)[1] is not None
    assert made_of("for i in range(99):\n    h[k[i]] = x[i]", **real)[1] is None
    reads = "for i in range(99):\n    h[k[i]] += h[0]"
    assert made_of(reads, **real)[1] is None
    halves = {"h": "f16[9]", "k": "i64[99]", "x": "f16[99]"}
    assert made_of("h[k[i]] += x[i]", **halves)[1] is None
