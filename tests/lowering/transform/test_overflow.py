"""Run-time integers of any magnitude: which these are, and which tests bound them."""

from __future__ import annotations

import pytest

from plusequals.lowering.ir.indexing import Symbol, const, maximum, multiply, var
from plusequals.lowering.ir.printer import print_expr
from plusequals.lowering.transform.overflow import (
    find_unbounded,
    has_unbounded_products,
    overflow_tests,
)

from ..shown import lowered


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("y[i] = x[wrap(i + k)]", ["k"]),
        ("y[i] = x[wrap(i - 3)]", []),
        ("for t in range(8):\n    y[i] = x[wrap(i + t)]", []),
        ("y[i] = x[clamp(i + s[0])]", []),
    ],
)
def test_which_are_unbounded(text: str, expected: list[str]) -> None:
    specs = {"k": "i64", "s": "i32[2]"}
    used = {name: spec for name, spec in specs.items() if f"{name}[0]" in text or "k)" in text}
    program = lowered(text, y="f32[8]", x="f32[8]", **used)
    assert sorted(symbol.name for symbol in find_unbounded(program)) == expected


def test_more_terms_leave_less_room() -> None:
    i, k, n = (Symbol(name, number) for number, name in enumerate("ikn"))
    unbounded = frozenset((k, n))
    assert overflow_tests([var(i) * 9, const(3)], unbounded) == []
    for index, bits in ((var(k), 59), (var(k) + var(i) * 2, 58), (var(i) + var(k) * -8, 56)):
        tests = overflow_tests([var(k), index], unbounded)
        assert [print_expr(test) for test in tests] == [f"-{2**bits} <= k", f"k <= {2**bits}"]
    assert len(overflow_tests([maximum(var(k), var(n))], unbounded)) == 4


def test_products_are_found_inside() -> None:
    i, k, n = (Symbol(name, number) for number, name in enumerate("ikn"))
    product, unbounded = multiply(var(i), var(k)), frozenset((k,))
    assert has_unbounded_products(maximum(product + 1, var(n)) * 2, unbounded)
    assert not has_unbounded_products(multiply(var(i), var(n)) + var(k), unbounded)
