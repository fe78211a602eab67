"""Arrays in the memory of those that they are computed from, and all that keeps two."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from plusequals.lowering.ir.assignments import Alloc
from plusequals.lowering.ir.indexing import const, var
from plusequals.lowering.ir.loops import Comment, For, Program, Stmt, Store
from plusequals.lowering.ir.rewrite import map_kernels
from plusequals.lowering.passes.inplace import InplaceReason, compute_inplace

from ..ir.build import at, in_kernels, node, program, read, symbols
from ..shown import lowered, text_of
from .agree import assert_agrees

ARRAYS = {"y": "f32[8]", "z": "f32[8]", "x": "f32[8, 9]", "p": "i64[8]"}


def arrays(program: Program) -> list[str]:
    return [node.label for node in program.locals if node.rank]


SHARED = [
    ("s[i] = x[i, 0]\ne[i] = exp(s[i])\ny[i] = e[i] / sum[k](e[k])\nz[i] = e[7 - i]", ["s"]),
    ("s[i] = x[i, 0] + 1\ny[i] = s[i] * sum[k](s[k])", []),
    ("s[i] = x[i, 0]\nt[i] = s[i] * s[i]\nu[i] = t[i] + x[i, 1]\ny[i] = u[7 - i] + u[i]", ["s"]),
]


@pytest.mark.parametrize(("body", "left"), SHARED)
def test_one_array_serves(body: str, left: list[str]) -> None:
    program = lowered(body, **ARRAYS)
    new, decisions = compute_inplace(program)
    assert len(arrays(new)) < len(arrays(program)), text_of(new)
    assert {made.reason for made in decisions} == {InplaceReason.CELLS}
    assert compute_inplace(new).program == new


APART = [
    "s[i] = x[i, 0]\ne = s[::-1]\ny[i] = e[i] + e[7 - i]",
    "s[i] = x[i, 0]\ne[i] = exp(s[i])\ny[i] = e[7 - i] + s[i]",
    "s[i] = x[i, 0]\nz[i] = s[7 - i] + s[i]",
    "s[i] = x[i, 0]\ny[0] = s[1]\ny[i] = s[i] + 1",
    "s[i] = x[i, 0]\nif x[0, 0] > 0:\n    raise ValueError('no')\ny[i] = s[i] + s[i]",
    "s[i] = x[i, 0]\ne: f32[8]\ne[1:] = s[1:]\ny[i] = e[7 - i]",
    "s[i] = x[i, 0]\ny[1:] = s[1:] + 1",
    "s[i] = x[i, 0]\ne[i] = f64(s[i])\ny[i] = f32(e[7 - i])",
]


@pytest.mark.parametrize("body", APART)
def test_two_arrays_stay(body: str) -> None:
    program = lowered(body, **ARRAYS)
    new = compute_inplace(program).program
    assert [n.label for n in program.locals if n.label == "s"] == ["s"]
    assert "s" in arrays(new) or "e" in arrays(new), text_of(new)


def test_nothing_else_changes() -> None:
    x = np.random.default_rng(1).random((8, 9), dtype=np.float32)
    for body, _ in SHARED:
        y, z = np.zeros(8, np.float32), np.zeros(8, np.float32)
        assert_agrees(lowered(body, **ARRAYS), compute_inplace, [y, z, x, np.zeros(8, np.int64)])


WAS_THERE = [
    "s[i] = x[i, 0]\ny[i] = s[i] / max[k](s[k]) + y[i] * 3",
    "s[i] = x[i, 0]\nfor k in range(8):\n    y[k] = s[k] * 2\n    z[k] = y[7 - k]",
]


@pytest.mark.parametrize("body", WAS_THERE)
def test_what_was_in_the_array_of_the_caller_is_read(body: str) -> None:
    rng = np.random.default_rng(3)
    y, z, x = (rng.random(shape, dtype=np.float32) for shape in (8, 8, (8, 9)))
    assert_agrees(lowered(body, **ARRAYS), compute_inplace, [y, z, x, np.zeros(8, np.int64)])


def test_what_other_kernels_touch_stays() -> None:
    body = "s[i] = x[i, 0]\ne[i] = exp(s[i])\ny[i] = e[i] * 2"
    both = lowered(body, **ARRAYS)
    assert (
        compute_inplace(in_kernels(both)).program
        == in_kernels(both)
        != compute_inplace(both).program
    )


def test_what_another_kernel_reads_is_not_overwritten() -> None:
    whole = lowered("s[i] = x[i, 0]\ne[i] = exp(s[i])\ny[i] = e[i] * s[i]", **ARRAYS)
    apart = in_two(whole, 4)
    assert compute_inplace(apart).program == apart


def in_two(whole: Program, count: int) -> Program:
    """Return the program with a kernel for the first statements and one for the others."""
    (kernel,) = whole.kernels
    parts = kernel.body[:count], kernel.body[count:]
    return replace(whole, kernels=tuple(replace(kernel, body=part) for part in parts))


def test_an_array_of_the_caller_that_another_kernel_touches_is_not_taken() -> None:
    first, second = "s[i] = x[i, 0]\ny[i] = s[i] * 2\n", "z[i] = y[i] + 1\n"
    for body, count in ((first + second, -2), (second + first, 2)):
        whole = lowered(body, **ARRAYS)
        (kernel,) = whole.kernels
        parts = kernel.body[:count], kernel.body[count:]
        apart = replace(whole, kernels=tuple(replace(kernel, body=part) for part in parts))
        assert compute_inplace(apart).program == apart


def test_storage_that_is_made_in_the_run_stays() -> None:
    i, j, n = symbols("i j n")
    y, x, t = node(0, "y", n), node(1, "x", n), node(2, "t", n)
    first = For(i, const(0), var(n), 1, (Store(at(t, i), read(x, i)),))
    second = For(j, const(0), var(n), 1, (Store(at(y, j), read(t, j)),))
    made = program((y,), (x,), Alloc(t), first, second, local=(t,))
    assert compute_inplace(made).program == made


def test_an_array_without_a_use_stays() -> None:
    made = program((), (), local=(node(0, "t", 8),))
    assert compute_inplace(made).program == made


ROUNDS = """
    e: f32[8]
    s[i] = x[i, 0]
    for k in range(8):
        z[k] = s[k]
        for h in range(3):
            e[k] = s[k] * 2
            y[k] += e[k]
"""


BETWEEN = """
    e: f32[8]
    s[i] = x[i, 0]
    for k in range(8):
        z[k] = s[k]
        e[k] = x[k, 1]
        y[k] += s[k] + e[k]
"""

AGAIN = """
    e: f32[8]
    s[i] = x[i, 0]
    h = 0
    while h < 3:
        for k in range(8):
            e[k] = s[k] * 2
            y[k] += e[k]
        h += 1
"""
READ_AGAIN = {"in rounds inside": ROUNDS, "in the next statement": BETWEEN, "in a while": AGAIN}


@pytest.mark.parametrize("body", READ_AGAIN.values(), ids=READ_AGAIN)
def test_a_cell_that_is_read_again_stays(body: str) -> None:
    rng = np.random.default_rng(5)
    given = [rng.random(shape, dtype=np.float32) for shape in (8, 8, (8, 9))]
    new = assert_agrees(lowered(body, **ARRAYS), compute_inplace, [*given, np.zeros(8, np.int64)])
    assert sorted(arrays(new)) == ["e", "s"]


def test_what_earlier_rounds_left_with_the_caller_is_not_overwritten() -> None:
    body = "for k in range(8):\n    s[i] = x[i, 0] * k\n    y[k] = s[k]"
    rng = np.random.default_rng(5)
    given = [rng.random(shape, dtype=np.float32) for shape in (8, 8, (8, 9))]
    new = assert_agrees(lowered(body, **ARRAYS), compute_inplace, [*given, np.zeros(8, np.int64)])
    assert arrays(new) == ["s"]


MOVED = [
    "s[i] = x[i, 0] + 1\nu[i] = s[i] * 2\nw[i] = x[i, 1]\nfor k in range(3):\n    u, w = w, u\n"
    "return u",
    "s[i] = x[i, 0] + 1\ny[i] = s[i] * 2\nfor k in range(3):\n    y, z = z, y",
    "s[i] = x[i, 0] + 1\nu[i] = s[i] * 2\nw[i] = x[i, 1]\nfor k in range(3):\n    u, w = w, u\n"
    "y[i] = sum[j](u[j] * w[i])",
]


@pytest.mark.parametrize("body", MOVED)
def test_what_trades_places_keeps_memory_of_its_own(body: str) -> None:
    made = lowered(body, **ARRAYS)
    assert compute_inplace(made).program == made


def test_what_fails_behind_the_last_nest_does_not_count() -> None:
    whole = lowered("s[i] = x[i, 0]\ny[i] = s[i] * 2\nassert x[0, 1] < 2", **ARRAYS)
    bare = map_kernels(whole, without_comments)
    assert arrays(compute_inplace(bare).program) == []


def without_comments(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    return tuple(stmt for stmt in body if not isinstance(stmt, Comment))
