"""docs/derivatives.md says what the rules say."""

from __future__ import annotations

from typing import get_args

from plusequals.lowering.ir.assignments import Statement

from .page import PAGE, PROGRAMS, page


def test_the_page_is_up_to_date() -> None:
    text = PAGE.read_text("utf-8")
    assert text == page(), "run python -m tests.lowering.adjoint.page"


def test_every_form_of_statement_has_a_program() -> None:
    forms = {kind.__name__ for kind in get_args(Statement)}
    assert forms == {name.partition(":")[0] for name in PROGRAMS}
