"""Argmin and argmax by blocks: the same positions as one by one, whatever the terms are."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.lowering import thresholds
from plusequals.lowering.cpu.reductions.arg_reduction import (
    ArgReductionReason,
    block_arg_reductions,
)
from plusequals.lowering.ir.decision import Decided
from plusequals.lowering.ir.indexing import const
from plusequals.lowering.ir.loops import Break, Check, Comment, For, If, Stmt, Update
from plusequals.lowering.ir.rewrite import map_kernels, map_statements
from plusequals.lowering.ir.walk import statements
from plusequals.lowering.lower import lower
from plusequals.lowering.pipeline import optimize

from ...scheduled import MODEST, function, interpreted, of_any_size, scheduled
from ...shown import lowered

SIZES = (
    1,
    2,
    thresholds.ARG_LANES - 1,
    thresholds.ARG_LANES,
    thresholds.ARG_LANES + 1,
    thresholds.MIN_BLOCKED_ARG_TERMS - 1,
    thresholds.MIN_BLOCKED_ARG_TERMS,
    thresholds.MIN_BLOCKED_ARG_TERMS + 1,
    1000,
    thresholds.ARG_BLOCK_TERMS + 1,
    4 * thresholds.ARG_BLOCK_TERMS + 1,
)
BOTH = "def f(x):\n    return np.argmax(x), np.argmin(x)\n"
KINDS = ("?", "b", "B", "h", "H", "i", "I", "q", "Q", "f", "d")


def terms(size: Any, dtype: str, most: int, seed: int = 0) -> Any:
    """Return whole numbers up to `most`; of floats each second zero is negative."""
    x = np.random.default_rng(seed).integers(0, most, size).astype(dtype)
    if dtype[0] in "fd":
        zeros = (x == 0) & (np.random.default_rng(seed + 1).integers(0, 2, size) == 1)
        x[zeros] = -0.0
    return x


def is_by_blocks(made: pe.CdFunction, *arguments: Any) -> bool:
    """Whether a compiled search is one by blocks."""
    return bool(block_arg_reductions(lower(made.procedure(*arguments))).decisions)


def same(made: pe.CdFunction, *arguments: Any) -> None:
    """Compare the schedule, for these sizes and for any, with the loops as they were written."""
    expected = interpreted(lower(made.procedure(*arguments)), *arguments)
    for procedure in (made.procedure(*arguments), of_any_size(made, *arguments)):
        found = interpreted(scheduled(procedure), *arguments)
        assert [np.asarray(one).tolist() for one in found] == [
            np.asarray(one).tolist() for one in expected
        ]


@pytest.mark.parametrize("dtype", KINDS)
def test_compiled_code_finds_the_same_places(dtype: str) -> None:
    made = function(BOTH)
    for size, most in itertools.product(SIZES, (1, 2, 100)):
        x = terms(size, dtype, most, size)
        assert made.on("cc")(x) == (np.argmax(x), np.argmin(x))
        x[:] = np.sort(x)
        assert made.on("cc")(x[::-1].copy()) == (np.argmax(x[::-1]), np.argmin(x[::-1]))


@pytest.mark.parametrize("dtype", ["f", "d"])
def test_the_first_nan_is_best(dtype: str) -> None:
    made = function(BOTH)
    for size in (1, thresholds.MIN_BLOCKED_ARG_TERMS, 100, thresholds.ARG_BLOCK_TERMS + 33):
        for at in range(0, size, 3 if size <= 100 else 97):
            x = terms(size, dtype, 100, size)
            x[at] = np.nan
            x[(at + size) // 2 :: 50] = np.nan
            assert made.on("cc")(x) == (np.argmax(x), np.argmin(x))


@pytest.mark.parametrize("dtype", ["f", "d"])
@pytest.mark.parametrize("value", [np.inf, -np.inf, 0.0, -0.0, np.nan])
def test_terms_that_are_all_equal(dtype: str, value: float) -> None:
    made = function(BOTH)
    for size in SIZES:
        assert made.on("cc")(np.full(size, value, dtype)) == (0, 0)
        last = np.full(size, value, dtype)
        last[-1] = -last[-1]
        assert made.on("cc")(last) == (np.argmax(last), np.argmin(last))


@pytest.mark.parametrize("dtype", ["b", "B", "q", "Q"])
def test_the_limits_of_integers(dtype: str) -> None:
    made = function(BOTH)
    for limit in (np.iinfo(dtype).min, np.iinfo(dtype).max):
        for size in (thresholds.MIN_BLOCKED_ARG_TERMS, thresholds.ARG_BLOCK_TERMS + 1, 3000):
            assert made.on("cc")(np.full(size, limit, dtype)) == (0, 0)


@pytest.mark.parametrize("dtype", ["?", "h", "Q", "f", "d"])
def test_the_loops_find_the_same_places(dtype: str) -> None:
    made = function(BOTH)
    for size in (
        1,
        thresholds.MIN_BLOCKED_ARG_TERMS - 1,
        thresholds.MIN_BLOCKED_ARG_TERMS,
        thresholds.MIN_BLOCKED_ARG_TERMS + 1,
        thresholds.ARG_BLOCK_TERMS + 1,
    ):
        same(made, terms(size, dtype, 2, size))


BODIES = {
    "rows": "y[i] = argmax[j](x[i, j])",
    "all": "y[0] = argmin(x[i, j])",
    "from anywhere": "y[i] = argmax[j in range(3, 80)](x[i, j - 1])",
    "other rows": "y[0] = argmax[i in range(1, 4), j](x[i - 1, j])",
    "backwards in rows": "y[0] = argmax[i in range(4), j](x[3 - i, j])",
    "a triangle": "y[i] = argmax[j <= i](x[i // 30, j])",
    "of terms": "y[i] = argmin[j](x[i, j] * 2 - x[i, 0])",
    "of tests": "y[i] = argmax[j](x[i, j] == 3)",
    "two at once": "y[i] = argmax[j](x[i, j]) + argmin[j](x[i, j] - 1)",
    "just enough": "y[i] = argmax[j in range(0, 64)](x[i, j])",
    "three letters": "y[0] = argmax[k in range(2), i, j](x[i, j] * 2)",
}
STAY = {
    "columns": "y[j] = argmax[i](x[i, j])",
    "a small triangle": "y[i] = argmax[j <= i](x[i, j])",
    "a guarded term": "y[i] = argmax[j in range(0, 90), j != 1](x[i, j])",
    "backwards": "y[i] = argmax[j in range(90)](x[i, 89 - j])",
    "far apart": "y[i] = argmax[j in range(0, 45)](x[i, j * 2])",
    "some far apart": "y[i] = argmax[j](x[i, j] + x[j // 30, j])",
    "tests of some far apart": "y[i] = argmax[j](x[i, j] == x[j // 30, j])",
    "the end of rows": "y[i] = argmax[j in range(60, 90)](x[i, j])",
    "a small triangle of all": "y[0] = argmax[i, j <= i](x[i, j])",
    "a root": "y[i] = argmax[j](abs(x[i, j]) ** 0.5)",
    "short rows": "y[i] = argmax[j in range(0, 63)](x[i, j])",
    "looked up": "y[i] = argmax[j](x[i, p[j]])",
    "always the same": "y[i] = argmax[j in range(90)](x[i, 0])",
    "rows looked up": "y[i] = argmax[j](x[p[i] % 4, j])",
    "a choice": "y[i] = argmax[j](x[i, j] if x[i, j] > 3 else x[i, 0])",
}


def body(text: str) -> pe.CdFunction:
    return function(f"def f(x, p):\n    y: i64[90]\n    {text}\n    return y\n")


@pytest.mark.parametrize("name", [*BODIES, *STAY])
@pytest.mark.parametrize("dtype", ["i4", "f4", "f8"])
def test_what_goes_by_blocks(name: str, dtype: str) -> None:
    made, p = body({**BODIES, **STAY}[name]), np.arange(90)
    x = terms((4, 90), dtype, 40)
    x[1, 7:9] = x.max() + 1
    if name in STAY and "[j](" in STAY[name] and dtype[0] == "f":
        x[2, 5] = np.nan
    assert is_by_blocks(made, x, p) == (name in BODIES)
    expected = interpreted(lower(made.procedure(x, p)), x, p)[0]
    assert interpreted(scheduled(made.procedure(x, p)), x, p)[0].tolist() == expected.tolist()
    assert made.on("cc")(x, p).tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("term", "dtype", "expected"),
    [
        ("f64(x[i, j])", "f4", True), ("f32(x[i, j])", "f8", False),
        ("f64(x[i, j])", "i4", False), ("i64(x[i, j])", "i4", True),
        ("f64(abs(x[i, j]) ** 0.5)", "f4", False),
    ],
)  # fmt: skip
def test_terms_may_become_wider(term: str, dtype: str, expected: bool) -> None:
    made, x = body(f"y[i] = argmax[j]({term})"), terms((90, 90), dtype, 40)
    assert is_by_blocks(made, x, np.arange(90)) == expected


@pytest.mark.parametrize(
    "shape", [(0, 70), (3, 0), (1, 70), (3, 63), (3, 64), (7, thresholds.ARG_BLOCK_TERMS + 3)]
)
@pytest.mark.parametrize("dtype", ["i", "d"])
def test_rows_of_any_size(shape: tuple[int, int], dtype: str) -> None:
    made = function("def f(x):\n    return argmax[i, j](x[i, j])\n").on("cc")
    for more in range(6):
        x = terms((shape[0] + more, shape[1] + more), dtype, 1000, more)
        if x.size:
            assert made(x) == np.argmax(x)
        else:
            with pytest.raises(pe.CdError, match="argmax"):
                made(x)


def test_rows_are_still_shared_among_threads() -> None:
    program = lowered("y[i] = argmax[j](x[i, j])", y="i64[900]", x="f32[900, 2000]")
    target = replace(MODEST, threads=4, parallel_from=1)
    made, _ = optimize(program, target)
    loops = [one for one in statements(made.kernels[0].body) if isinstance(one, For)]
    assert loops[0].kind == "parallel"
    assert any(isinstance(one, Break) for one in statements(loops[0].body))


def test_rows_that_go_on_with_what_was_found() -> None:
    """Rows are of different lengths, so each is a search: from the best of those before."""
    program = lowered("y[0] = argmax[i, j <= i + 70](x[i, j])", y="i64[1]", x="f64[30, 101]")
    program = map_kernels(
        program, lambda body: tuple(one for one in body if not isinstance(one, Check))
    )
    found = block_arg_reductions(program)
    assert found.decisions
    for seed in range(5):
        x = terms((30, 101), "d", 300, seed)
        x[seed * 4, 3] = np.nan if seed % 2 else 1000
        y = np.zeros(1, np.int64)
        expected = interpreted(program, y, x)[0]
        assert interpreted(found.program, y, x)[0] == expected
        assert expected == seed * 4 * 100 + 3


def test_terms_are_counted_one_by_one() -> None:
    program = lowered("y[0] = argmax[i, j](x[i, j])", y="i64[1]", x="i32[8, 99]")

    def by_two(stmt: Stmt) -> tuple[Stmt, ...]:
        return (replace(stmt, step=2) if isinstance(stmt, For) and stmt.hi == const(99) else stmt,)

    found = block_arg_reductions(map_kernels(program, lambda body: map_statements(body, by_two)))
    assert not found.decisions
    assert block_arg_reductions(program).decisions


@pytest.mark.parametrize("text", ["y[i] = argmax[j](x[i, j] == 3)", "y[i] = argmax[j](x[i, j])"])
def test_half_floats_stay(text: str) -> None:
    assert not is_by_blocks(body(text), terms((90, 90), "f2", 40), np.arange(90))


def test_comments_are_no_reason_to_stay() -> None:
    program = lowered("y[0] = argmax[i, j](x[i, j])", y="i64[1]", x="i32[8, 99]")

    def told(stmt: Stmt) -> tuple[Stmt, ...]:
        return (Comment("here"), stmt) if isinstance(stmt, Update) else (stmt,)

    assert block_arg_reductions(
        map_kernels(program, lambda body: map_statements(body, told))
    ).decisions


def test_each_search_has_a_place_of_its_own() -> None:
    program = lowered("y[0] = argmax[i, j](x[i, j])", y="i64[1]", x="i32[8, 99]")

    def twice(stmt: Stmt) -> tuple[Stmt, ...]:
        return (stmt, stmt) if isinstance(stmt, Update) else (stmt,)

    def none(stmt: Stmt) -> tuple[Stmt, ...]:
        return (Comment("nothing"),) if isinstance(stmt, Update) else (stmt,)

    for change in (twice, none):
        made = map_kernels(program, lambda body, change=change: map_statements(body, change))
        assert block_arg_reductions(made) == Decided(made, ())


def test_a_second_search_goes_on_with_what_the_first_found() -> None:
    program = lowered("y[0] = argmax[i, j](x[i, j])", y="i64[1]", x="i32[2, 99]")

    def halves(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        at, loop = next((at, one) for at, one in enumerate(body) if isinstance(one, For))
        rows = (replace(loop, hi=const(1)), replace(loop, lo=const(1)))
        return (*body[:at], *rows, *body[at + 1 :])

    found = block_arg_reductions(map_kernels(program, halves))
    assert len(found.decisions) == 2
    for best in (0, 1):
        x = terms((2, 99), "i", 40)
        x[best, 7] = 50
        assert interpreted(found.program, np.zeros(1, np.int64), x)[0] == 99 * best + 7


def test_fixed_sizes_have_one_form_and_others_two() -> None:
    made = function(BOTH)
    for procedure, tests in ((made.procedure(np.ones(99)), 0), (of_any_size(made, np.ones(99)), 1)):
        program = block_arg_reductions(lower(procedure)).program
        found = [one for one in statements(program.kernels[0].body) if isinstance(one, If)]
        assert len([one for one in found if one.orelse]) == 2 * tests


def test_why() -> None:
    program = lowered("y[0] = argmax[j](x[j])", y="i64[1]", x="f32[99]")
    (told,) = block_arg_reductions(program).decisions
    assert (told.outcome, told.reason) == ("lanes", ArgReductionReason.REST)
    assert told.node is not None and told.node.label == "argmax"
