"""What the iterations of a loop do to rows: how far they reach, and when that is not a few rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from plusequals.lowering import thresholds
from plusequals.lowering.analysis.dependence import loop_local_nodes
from plusequals.lowering.cpu.stencil import Sweeps, find_sweeps
from plusequals.lowering.ir.fresh import fresh_for
from plusequals.lowering.ir.indexing import const
from plusequals.lowering.ir.loops import Comment, For, Permute, Program, Stmt
from plusequals.lowering.ir.walk import direct_reads, direct_writes, statements
from plusequals.lowering.passes.simplify import simplify
from plusequals.lowering.pipeline import optimize
from plusequals.lowering.target import Target

from ..shown import lowered


def loops(program: Program) -> Iterator[For]:
    found = (stmt for kernel in program.kernels for stmt in kernel.body)
    return (stmt for stmt in found if isinstance(stmt, For) and stmt.symbol.name == "t")


def found_in(body: str) -> tuple[Program, Sweeps | None]:
    lines = "".join(f"    {line}\n" for line in body.split("; "))
    types = {"x": "f32[99, 7]", "y": "f32[99, 7]", "a": "f32"}
    program = lowered(f"for t in range(9):\n{lines}", **types)
    return program, sweeps(program)


def sweeps(program: Program) -> Sweeps | None:
    """What is found in the only loop over time."""
    (loop,) = loops(program)
    own = frozenset(node.id for node in program.locals)
    return find_sweeps(loop, loop_local_nodes(program), own, ())


COLUMNS = "for j in range(1, 7):\n        "
AND = "\n        "


@pytest.mark.parametrize(
    ("body", "reach", "stages"),
    [
        ("y[1:-1] = x[:-2] + x[2:]; x[1:-1] = y[1:-1]", 1, 2),
        ("y[3:] = x[:-3]; x[3:] = y[3:]", 3, 2),
        ("y[:] = 0.5 * x; x[:] = y + 1", 0, 2),
        ("y[1:] = x[:-1]; x[:] = y; x[0] = x[1]; x[-1] = x[-2]", 1, 4),
        ("x[:, 0] = x[:, 1]", 0, 1),
        ("y[1:] = x[:-1] * a; x[:] = y", 1, 2),
        ("for i in range(2, 99):\n        y[i] = x[i - 2]; x[:] = y", 2, 2),
        ("for i in range(99):\n        if x[i, 0] > 2:\n            y[i, 0] = x[i, 1]", 0, 1),
        ("y[:] += x; x[5] += 1", 0, 2),
        ("for i in range(99):\n        y[i, 0] = x[i, 1]\n        x[i, 2] = 1.0", 0, 1),
        ("x[0, :] = y[:7, 3]", 0, 1),
        ("if a > 0:\n        x[5, 0] = 1", 0, 1),
        (f"{COLUMNS}x[0, j] = x[2, j]{AND}x[1, j] = x[3, j]", 2, 2),
    ],
)
def test_how_far_iterations_reach(body: str, reach: int, stages: int) -> None:
    program, found = found_in(body)
    assert found is not None
    assert (found.reach, len(found.stages), found.period) == (reach, stages, 1)
    assert {node.label for node in found.nodes} <= {"x", "y"}
    (loop,) = loops(program)
    comments = [stmt for stmt in statements(loop.body) if isinstance(stmt, Comment)]
    told = (stmt for s in found.stages for stmt in (*s.comments, *statements(s.loop.body)))
    assert [stmt for stmt in told if isinstance(stmt, Comment)] == comments


@pytest.mark.parametrize(
    "body",
    [
        "x[:] = x[0]",
        "y[:] = x[::-1]; x[:] = y",
        "y[:50] = x[::2]; x[:] = y",
        "y[:7] = x[:7].T; x[:] = y",
        "y[:] = x.sum(); x[:] = y",
        "y[t] = x[t]",
        "x[t:] = 2",
        "x[:, 0] = x[0, 1]; x[0, :] = y[:7, 3]",
        "x[0] = x[1]; x[1] = x[3]; x[5:, 1] = x[t, 0]",
        "for i in range(t, 99):\n        x[i] = 0.5 * x[i]",
        "for i in range(t):\n        x[i] = 0.5 * x[i]",
        f"{COLUMNS}s = x[2, j]{AND}x[0, j] = s{AND}x[1, j] = s + 1",
        "for i in range(98, -1, -1):\n        x[i] = 0.5 * x[i]",
        "for i in range(0, 99, 2):\n        x[i] = 0.5 * x[i]",
        f"{COLUMNS}x[0, j] = x[1, j - 1]{AND}x[1, j] = x[0, j] + 1",
        "for i in range(99):\n        while y[i, 0] > 2:\n            y[i, 0] *= 0.5; x[:] = y",
        "for i in range(99):\n        for j in range(7):\n            if x[i, j] > 2:\n"
        "                break\n            y[i, j] = x[i, j]; x[:] = y",
        "r[i, j] = x[i, j]",
    ],
)
def test_other_loops_are_none(body: str) -> None:
    assert found_in(body)[1] is None


@pytest.mark.parametrize(
    "body", ["x[k[i], j] += y[i, j]", "x[i, j] = x[k[i], j] + 1", "y[i, j] += x[k[i], j]"]
)
def test_rows_that_data_choose_are_in_no_reach(body: str) -> None:
    """Only of an array that changes each row that is used has to be known."""
    types = {"x": "f32[256, 7]", "y": "f32[256, 7]", "k": "u8[256]"}
    found = sweeps(simplify(lowered(f"for t in range(9):\n    {body}", **types)))
    assert (found is None) == body.startswith("x")


def test_each_copy_of_a_stage_has_scalars_of_its_own() -> None:
    rows = "x[i, 0] = sum[k](x[i, k]) * 0.5"
    program = lowered(
        f"for t in range(9):\n    {rows}\n    y[:] = x", x="f32[99, 7]", y="f32[99, 7]"
    )
    program, _ = optimize(program, Target())
    found = sweeps(program)
    assert found is not None
    mine = {node.id for stage in found.stages for node in stage.private}
    fresh = fresh_for(program)
    first, second = (scalars(found.stage(fresh, 0, const(3))) for _ in range(2))
    assert mine
    assert first
    assert not first & (second | mine)


def scalars(loop: For) -> set[int]:
    """What a loop uses that has no axes."""
    used = (n for s in statements((loop,)) for n in (*direct_reads(s), *direct_writes(s)))
    return {node.id for node in used if not node.rank}


ROWS = (
    "for t in range(9):\n    for i in range(99):\n        s = x[i, 0]\n"
    "        r[j] = x[i, j] * 2\n        x[i, j] = r[6 - j] + r[j] + s"
)


def test_each_copy_of_a_stage_has_rows_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    program = lowered(ROWS, x="f32[99, 7]")
    found = sweeps(program)
    assert found is not None
    (row,) = (node for stage in found.stages for node in stage.private if node.rank)
    copies = [
        {n for s in statements((found.stage(fresh_for(program), 0, const(3)),))
         for n in direct_writes(s) if n.label == row.label}
        for _ in range(2)
    ]  # fmt: skip
    for ((copy,),) in zip(copies):
        assert (copy.static_shape, copy.dtype, copy.purpose) == ((7,), row.dtype, row.purpose)
        assert copy.id != row.id
    monkeypatch.setattr(thresholds, "MAX_STENCIL_ROW_BYTES", row.bytes)
    assert sweeps(program) is not None
    monkeypatch.setattr(thresholds, "MAX_STENCIL_ROW_BYTES", row.bytes - 1)
    assert sweeps(program) is None


def test_arrays_are_exchanged_once_at_the_end_of_an_iteration() -> None:
    text = (
        "a = x.copy()\nb = y.copy()\nfor t in range(9):\n    b[1:] = a[:-1]\n    a, b = b, a\n"
        "x[:] = a\ny[:] = b"
    )
    program = lowered(text, x="f32[99, 7]", y="f32[99, 7]")
    (loop,) = loops(program)
    (exchange,) = (stmt for stmt in loop.body if isinstance(stmt, Permute))
    rows = tuple(stmt for stmt in loop.body if isinstance(stmt, For))
    own = frozenset(node.id for node in program.locals)

    def period(*body: Stmt) -> int | None:
        found = find_sweeps(replace(loop, body=body), loop_local_nodes(program), own, ())
        return None if found is None else found.period

    assert (period(*rows), period(*rows, exchange)) == (1, 2)
    assert period(*rows, exchange, Comment("the end")) == 2
    assert (period(*rows, exchange, *rows), period(*rows, exchange, exchange)) == (None, None)


def test_the_names_of_arrays_follow_their_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        "a = x.copy()\nb = x.copy()\nc = x.copy()\nfor t in range(9):\n    c[1:] = a[:-1] + b[1:]\n"
        "    a, b, c = b, c, a\nx[:] = a"
    )
    program = lowered(text, x="f32[99, 7]")
    found = sweeps(program)
    assert found is not None
    assert [{n.id: n for n in found.nodes}[number].label for number in found.names[0]] == [*"abc"]
    assert ["".join(node.label for node in names.values()) for names in found.names] == [
        "abc", "bca", "cab",
    ]  # fmt: skip
    monkeypatch.setattr(thresholds, "MAX_STENCIL_PERIOD", 3)
    assert sweeps(program) is not None
    monkeypatch.setattr(thresholds, "MAX_STENCIL_PERIOD", 2)
    assert sweeps(program) is None


@pytest.mark.parametrize("kind", ["vector", "parallel"])
def test_loops_that_are_scheduled_are_in_no_sweep(kind: Any) -> None:
    program, found = found_in("y[1:] = x[:-1]; x[:] = y")
    assert found is not None
    (loop,) = loops(program)
    rows = next(stmt for stmt in loop.body if isinstance(stmt, For))
    (columns,) = rows.body
    assert isinstance(columns, For)
    for changed in (
        replace(rows, kind=kind),
        replace(rows, body=(replace(columns, kind=kind),)),
    ):
        body = tuple(changed if stmt is rows else stmt for stmt in loop.body)
        own = frozenset(node.id for node in program.locals)
        assert find_sweeps(replace(loop, body=body), loop_local_nodes(program), own, ()) is None
