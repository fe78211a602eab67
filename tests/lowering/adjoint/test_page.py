"""docs/derivatives.md says what the rules say."""

from __future__ import annotations

from typing import get_args

import pytest

from plusequals.lowering.ir.assignments import Statement

from .page import PAGE, PROGRAMS, adjoint_part, page, section


def test_the_page_is_up_to_date() -> None:
    text = PAGE.read_text("utf-8")
    assert text == page(), "run python -m tests.lowering.adjoint.page"


def test_every_form_of_statement_has_a_program() -> None:
    forms = {kind.__name__ for kind in get_args(Statement)}
    assert forms == {name.partition(":")[0] for name in PROGRAMS}


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_has_an_adjoint(name: str) -> None:
    _, _, text = section(name).partition("```text\n")
    assert "    d_" in f"    {text}" and "CD0" not in text


def test_adjoints_begin_with_the_first_value_of_a_cotangent() -> None:
    text = "def g(x):\n    d_x = np.zeros(3)\n    y = 2.0\n    if y > 1.0:\n        d_x[i] += y\n"
    assert adjoint_part(f"{text}    return d_x\n") == "if y > 1.0:\n    d_x[i] += y"
    assert adjoint_part("def g(x):\n    d_x = np.zeros(3)\n    return d_x\n") == ""
