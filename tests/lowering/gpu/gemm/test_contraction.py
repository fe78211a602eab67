"""What a band contracts: its loops by side, where sums start, and in which type products are."""

from __future__ import annotations

import pytest

from plusequals.lowering.analysis.parallel_band import find_band
from plusequals.lowering.gpu.gemm.contraction import Contraction, iteration_count, match_contraction
from plusequals.lowering.ir.expressions import reads

from ..kernels import Case


def found(body: str, **arrays: str) -> Contraction | None:
    case = Case(body, **arrays)
    made = find_band(case.loop(), case.facts)
    return None if made is None else match_contraction(made)


@pytest.mark.parametrize("kind", ["f32", "f64", "i32", "i64"])
@pytest.mark.parametrize("sign", ["=", "+="])
def test_products_of_every_type(kind: str, sign: str) -> None:
    value = "a[i, k] * b[k, j]" if sign == "+=" else "sum[k](a[i, k] * b[k, j])"
    sizes = {"c": f"{kind}[64, 70]", "a": f"{kind}[64, 65]", "b": f"{kind}[65, 70]"}
    made = found(f"c[i, j] {sign} {value}", **sizes)
    assert made is not None
    assert [iteration_count(group) for group in (made.rows, made.columns, made.terms)] == [
        64,
        70,
        65,
    ]
    assert made.product.short == kind
    wide = "i64" if sign == "=" and kind == "i32" else kind
    assert made.total.dtype.short == wide


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("c[i, j] += a[i, k] * b[k, j]", "c"),
        ("c[i, j] = sum[k](a[i, k] * b[k, j])", ""),
    ],
)
def test_where_sums_start(text: str, start: str) -> None:
    made = found(text, c="f32[64, 64]", a="f32[64, 64]", b="f32[64, 64]")
    assert made is not None
    assert [one.node.label for one in reads(made.start)] == [start] * bool(start)


def test_what_starts_from_what_data_says_is_none() -> None:
    sizes = {"c": "f32[64, 64]", "a": "f32[64, 64]", "b": "f32[64, 64]", "n": "i64[64]"}
    assert found("c[n[i], j] += a[i, k] * b[k, j]", **sizes) is None
