"""Writes to where data says, each thread to its own elements, in the order of the program."""

from __future__ import annotations

import pytest

from plusequals.lowering.ir.loops import For
from plusequals.lowering.schedule.owners import owners

from .kernels import Case


def of(case: Case) -> tuple[For, ...]:
    made = owners(case.loop(), case.facts, case.fresh, case.nodes)
    assert made is not None
    return made.body  # type: ignore[return-value]


@pytest.mark.parametrize("n", [0, 1, 50])
@pytest.mark.parametrize("size", [8, 11, 300])
def test_sums_and_stores_keep_their_order(n: int, size: int) -> None:
    for text in ("h[k[i]] += x[i]", "h[k[i]] = x[i]", "h[k[i]] = max(h[k[i]], x[i])"):
        case = Case(text, exact=True, h=f"f32[{size}]", k=f"i64[{n}]", x=f"f32[{n}]")
        if case.body and isinstance(case.body[-1], For):
            case.assert_same(of(case))


def test_several_axes() -> None:
    case = Case("h[k[i], j, m[i]] += x[i, j]", exact=True, h="f32[8, 3, 9]", k="i64[20]",
                m="i64[20]", x="f32[20, 3]")  # fmt: skip
    case.assert_same(of(case))


def test_what_is_read_as_well_is_refused() -> None:
    case = Case("for i in range(20):\n    h[k[i]] = h[i % 8] + 1", h="f32[8]", k="i64[20]")
    assert owners(case.loop(), case.facts, case.fresh, case.nodes) is None


def test_scalars_are_refused() -> None:
    case = Case("for i in range(20):\n    s[0] = s[0] * 0.5 + x[i]", s="f32[1]", x="f32[20]")
    assert owners(case.loop(), case.facts, case.fresh, case.nodes) is None
