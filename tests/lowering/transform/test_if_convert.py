"""What can be done without branches, and what becomes of it."""

from __future__ import annotations

import pytest

from plusequals.lowering.analysis.subscripts import ranges
from plusequals.lowering.ir.algebra import FALSE, TRUE
from plusequals.lowering.ir.assignments import Break, Continue
from plusequals.lowering.ir.expressions import Read
from plusequals.lowering.ir.fresh import fresh_for
from plusequals.lowering.ir.loops import For, Program
from plusequals.lowering.transform.if_convert import can_if_convert, if_convert, select

from ..shown import lowered

SIZES = {"x": "f32[9]", "y": "f32[9]", "k": "i64[9]"}


def loop_of(body: str) -> tuple[Program, For]:
    """Return the loop over `i` that a body is that of."""
    lines = body.replace("\n", "\n    ")
    program = lowered(f"for i in range(8):\n    {lines}", **SIZES)
    (loop,) = (stmt for stmt in program.kernels[0].body if isinstance(stmt, For))
    return program, loop


@pytest.mark.parametrize(
    ("body", "free", "masked"),
    [
        ("y[i] = x[i]", True, True),
        ("y[i] = x[i + 1]", True, True),
        ("if x[i] > 0:\n    y[i] = x[i + 1]", True, True),
        ("if i < 3 and x[i] > 0:\n    y[i] = x[i + 6]", False, False),
        ("y[i] = x[i] // 2", False, False),
        ("if x[i] > 0:\n    break\ny[i] = 1", True, True),
        ("if x[i] > 0:\n    if y[i] > 0:\n        break\n    y[i] = 1", False, False),
        ("for j in range(2):\n    y[i] = j", False, False),
    ],
)
def test_what_fits(body: str, free: bool, masked: bool) -> None:
    _, loop = loop_of(body)
    known = ranges((loop,))
    assert can_if_convert(loop.body, (Break, Continue), known) is free
    assert can_if_convert(loop.body, (Break, Continue), known, sure=False) is masked


def test_jumps_have_to_be_allowed() -> None:
    _, loop = loop_of("if x[i] > 0:\n    continue\ny[i] = 1")
    assert can_if_convert(loop.body, (Continue,), ranges((loop,)))
    assert not can_if_convert(loop.body, (Break,), ranges((loop,)))


def test_a_break_is_told() -> None:
    program, loop = loop_of("if x[i] > 0:\n    break\ny[i] = 1")
    made = if_convert(loop.body, fresh_for(program), {}, ranges((loop,)))
    assert made.goes_on not in (TRUE, FALSE)
    assert if_convert((), fresh_for(program), {}, ()).goes_on == TRUE


def test_what_is_known_of_a_choice() -> None:
    program, _ = loop_of("y[i] = 1")
    test = Read(fresh_for(program).scalar("test", TRUE.dtype), ())
    assert select(test, test, FALSE).op.name == "and"
    assert select(test, TRUE, test).op.name == "or"
    assert select(test, FALSE, TRUE).op.name == "logical_not"
    assert isinstance(select(test, TRUE, FALSE), Read)
