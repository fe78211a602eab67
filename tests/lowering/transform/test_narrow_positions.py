"""Positions are as narrow as the values beside them, where all of them fit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plusequals.lowering.analysis.carried_scalars import verify_scalars
from plusequals.lowering.ir.bounds import Bounds
from plusequals.lowering.ir.fresh import fresh_for
from plusequals.lowering.ir.loops import For
from plusequals.lowering.ir.verify import verify_program
from plusequals.lowering.ir.walk import writes
from plusequals.lowering.transform.narrow_positions import narrow_positions

from ..shown import lowered

SEARCH = """
for i in range(9):
    at = -1
    for j in range(ROWS):
        at = POSITION if x[i, j] > 0 else at
    y[i] = at
"""


def narrowed(body: str, **arrays: str) -> list[str]:
    """Return the types of the scalars that the only loop of a program writes when it is
    narrowed."""
    program = lowered(body, **arrays)
    (kernel,) = program.kernels
    (loop,) = (stmt for stmt in kernel.body if isinstance(stmt, For))
    fresh, private = fresh_for(program), frozenset(node.id for node in program.locals)
    loop = narrow_positions(loop, private, fresh, Bounds({}))
    program = fresh.declared(replace(program, kernels=(replace(kernel, body=(loop,)),)))
    verify_program(program)
    verify_scalars(program)
    return [node.dtype.name for node in writes(loop.body) if not node.rank]


def search(rows: int, position: str) -> str:
    return SEARCH.replace("ROWS", str(rows)).replace("POSITION", position)


@pytest.mark.parametrize(
    ("dtype", "rows", "position", "expected"),
    [
        ("u8", 70, "j", "int16"),
        ("b", 70, "j", "int16"),
        ("u8", 32768, "j", "int16"),
        ("u8", 32769, "j", "int32"),
        ("u8", 70, "j * 1000", "int32"),
        ("u8", 70, "0 - j * 468", "int16"),
        ("u8", 70, "0 - j * 500", "int32"),
        ("f32", 70, "j", "int32"),
        ("i32", 70, "i * 70 + j", "int32"),
        ("f32", 70, "j * 100000000", "int64"),
        ("f64", 70, "j", "int64"),
        ("i64", 70, "j", "int64"),
    ],
)
def test_a_position_is_as_wide_as_it_needs(
    dtype: str, rows: int, position: str, expected: str
) -> None:
    assert set(narrowed(search(rows, position), y="i64[9]", x=f"{dtype}[9, {rows}]")) == {expected}


def test_numbers_from_data_stay_wide() -> None:
    body = search(70, "k[j]")
    assert set(narrowed(body, y="i64[9]", x="f32[9, 70]", k="i64[70]")) == {"int64"}
    body = search(70, "j").replace("at = -1", "at = k[i]")
    assert set(narrowed(body, y="i64[9]", x="f32[9, 70]", k="i64[9]")) == {"int64"}
    body = search(70, "at + 1")
    assert set(narrowed(body, y="i64[9]", x="f32[9, 70]")) == {"int64"}


def test_a_position_that_only_outer_iterations_use_stays() -> None:
    body = "for i in range(9):\n    at = i\n    for j in range(70):\n        x[i, j] = 1\n"
    assert set(narrowed(body + "    y[i] = at", y="i64[9]", x="f32[9, 70]")) <= {"int64"}
