"""Listings parse to what was listed, whichever printer wrote them."""

import ast
import sys

import pytest

from plusequals.dsl.source.listing import format_code

TEXTS = [
    "y[i, j] += a[i, k] * b[k, j]",
    "def f(x: int=1, *, y) -> int:\n    with comment('a'):\n        return x ** -y",
    "print(f'{x:.3f} is {y!r}')",
    "match x:\n    case [1, *rest]:\n        pass",
    "try:\n    pass\nexcept* ValueError:\n    pass",
    "x = (y := 1) if a < b <= c else lambda *z: [e async for e in z]",
    "y = " + " + ".join(f"weights_of_layer_{n} * inputs[{n}, :, 1:]" for n in range(12)),
]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("has_astor", [True, False])
def test_listing_parses_to_the_same_tree(text, has_astor, monkeypatch) -> None:
    if not has_astor:
        monkeypatch.setitem(sys.modules, "astor", None)
    wrapped = format_code(text)
    assert wrapped.endswith("\n")
    assert ast.dump(ast.parse(wrapped)) == ast.dump(ast.parse(text))
    assert format_code(ast.parse(text)) == wrapped


def test_long_lines_are_wrapped() -> None:
    pytest.importorskip("astor")
    assert max(map(len, format_code(TEXTS[-1]).split("\n"))) <= 100


def test_a_wrong_listing_of_the_wrapping_printer_is_not_shown(monkeypatch) -> None:
    astor = pytest.importorskip("astor")
    monkeypatch.setattr(astor, "to_source", lambda *args, **options: "something(else_)\n")
    assert format_code("x  =  1") == "x = 1\n"
