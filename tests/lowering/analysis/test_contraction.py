"""Which nests are products: their rows, their columns, and the parts that know only one of them."""

from __future__ import annotations

import pytest

from plusequals.lowering.analysis.contraction import Contraction, find_contraction
from plusequals.lowering.ir.fresh import fresh_for
from plusequals.lowering.ir.loops import For
from plusequals.lowering.ir.printer import print_expr
from plusequals.lowering.passes.contract_arrays import contract_arrays

from ..shown import lowered

ARRAYS = {
    "y": "f32[8, 9]", "z": "f32[9, 8]", "q": "f32[2, 8, 9]", "a": "f32[8, 5]", "b": "f32[5, 9]",
    "t": "f32[9, 5]", "x": "f32[12, 9]", "p": "i64[9]", "u": "f32[2, 8, 5]",
    "g": "f32[2, 5, 9]", "h": "f32[8, 2, 2, 9]", "s": "f32[5, 2, 8]", "v": "f32[2]",
}  # fmt: skip


def found(text: str) -> Contraction | None:
    used = {name: spec for name, spec in ARRAYS.items() if f"{name}[" in text}
    program = contract_arrays(lowered(text, **used)).program
    (nest,) = [stmt for stmt in program.kernels[0].body if isinstance(stmt, For)]
    return find_contraction(nest, fresh_for(program))


def names(loops: tuple[For, ...]) -> str:
    return "".join(loop.symbol.name for loop in loops)


PRODUCTS = {
    "y[i, j] = sum(a[i, k] * b[k, j])": ("i", "j", "", "a b"),
    "z[j, i] = sum(a[i, k] * b[k, j])": ("j", "i", "", "b a"),
    "y[i, j] += a[i, k] * t[j, k]": ("i", "j", "", "a t"),
    "q[n, i, j] = sum(u[n, i, k] * b[k, j])": ("ni", "j", "", "u b"),
    "q[n, i, j] = sum(u[n, i, k] * g[n, k, j])": ("i", "j", "n", "u g"),
    "h[i, l, n, j] = sum[k](g[n, k, j] * s[k, l, i] * v[l])": ("li", "nj", "", "v g"),
    "h[i, l, n, j] = sum[k](g[n, k, j] * s[k, l, i] * v[n])": ("li", "nj", "", "s v"),
    "h[i, l, n, j] = sum(g[n, k, j] * u[l, i, k])": ("il", "nj", "", "u g"),
    "h[i, l, n, j] = sum(g[n, k, j] * s[k, l, i])": ("li", "nj", "", "s g"),
    "y[i, j] = sum((a[i, k] - b[k, j]) ** 2)": ("i", "j", "", "a b"),
}


@pytest.mark.parametrize("text", PRODUCTS)
def test_rows_and_columns(text: str) -> None:
    row, column, others, operands = PRODUCTS[text]
    one = found(text)
    assert one is not None
    assert [names(some) for some in (one.rows, one.columns, one.others)] == [row, column, others]
    sides = {part.side: print_expr(part.value)[0] for part in one.parts}
    assert f"{sides['row']} {sides['column']}" == operands


NONE = {
    "no rows": "y[0, j] = sum(a[0, k] * b[k, j])",
    "an operand that knows both": "y[i, j] = sum(a[i, k] * b[k, j] * x[i + k, j])",
    "a bound that counts": "y[i, j] = sum[l < k](a[i, k] * b[l, j])",
    "a bound that is a row": "y[i, j] = sum[k < i](a[i, k % 5] * b[k % 5, j])",
}


@pytest.mark.parametrize("name", NONE)
def test_what_is_no_product(name: str) -> None:
    assert found(NONE[name]) is None


@pytest.mark.parametrize(
    ("channels", "outputs", "width", "columns"),
    [
        (64, 32, 3, "o"),
        (64, 31, 3, "v"),
        (16, 64, 3, "v"),
        (64, 64, 1, "o"),
        (64, 32, 8, "o"),
        (32, 64, 3, "o"),
    ],
    ids=[
        "long sums",
        "few rows",
        "short sums",
        "sums along rows alone",
        "longer sums",
        "terms of many columns",
    ],
)
def test_windows_are_rows_where_sums_are_long(
    channels: int, outputs: int, width: int, columns: str
) -> None:
    high = 9 if width == 1 else 3
    program = contract_arrays(lowered(
        "y[o, h, v] = sum(x[c, h + r, v + q] * w[o, c, r, q])",
        y=f"f32[{outputs}, 9, 40]", x=f"f32[{channels}, {8 + high}, {39 + width}]",
        w=f"f32[{outputs}, {channels}, {high}, {width}]",
    )).program  # fmt: skip
    (nest,) = [stmt for stmt in program.kernels[0].body if isinstance(stmt, For)]
    one = find_contraction(nest, fresh_for(program))
    assert one is not None
    assert names(one.columns)[-1] == columns
    assert one.is_transposed == (columns == "o")
