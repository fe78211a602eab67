"""Sums down columns in strips: not a bit changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from plusequals.base import settings
from plusequals.lowering.cpu.reductions.column_strips import StripReason, vectorize_columns
from plusequals.lowering.ir.assignments import Let
from plusequals.lowering.ir.decision import Decided
from plusequals.lowering.ir.indexing import Affine, Symbol, const, maximum, minimum, var
from plusequals.lowering.ir.loops import For, Program, Stmt, Store, Update
from plusequals.lowering.ir.ops import OPS
from plusequals.lowering.ir.printer import print_program
from plusequals.lowering.ir.verify import verify_program
from plusequals.lowering.ir.walk import statements
from plusequals.lowering.lower import lower
from plusequals.lowering.passes.contract_arrays import contract_arrays
from plusequals.lowering.target import Target

from ...ir.build import ap, at, i64, node, program, read, symbols
from ...scheduled import function, interpreted, of_any_size, scheduled
from ...shown import lowered

TINY = Target(vector_bits=128)
BODIES = {
    "a sum": "y[j] = sum(x[i, j])",
    "added to": "y[j] += x[i, j] * z[i, j]",
    "weights": "y[j] = sum(w[i] * x[i, j])",
    "greatest": "y[j] = max(x[i, j])",
    "scaled": "y[j] = sum(x[i, j]) / 3 + y[j]",
    "shifted": "y[j] = sum((x[i, j] - y[j]) ** 2)",
    "chosen rows": "y[j] = sum(where(w[i] > 0, x[i, j], 0))",
    "one of two rows": "y[j] = max(where(w[i] > 0, x[i, j] * 2, z[i, j]))",
}
SIZES = [(3, 1), (5, 4), (9, 17), (4, 40), (0, 20), (6, 0), (1, 23)]


def _arrays(text: str, size: tuple[int, int], dtype: str = "f4") -> list[Any]:
    rng = np.random.default_rng(2)
    shapes = {"y": size[1:], "x": size, "z": size, "w": size[:1]}
    return [rng.standard_normal(s).astype(dtype) for n, s in shapes.items() if f"{n}[" in text]


def _made(text: str) -> Any:
    names = [name for name in "yxzw" if f"{name}[" in text]
    return function(f"def f({', '.join(names)}):\n    {text}\n")


def _strips(program: Program) -> int:
    loops = (s for k in program.kernels for s in statements(k.body) if isinstance(s, For))
    return sum(loop.kind == "vector" for loop in loops)


def same_bits(procedure: Any, arrays: list[Any]) -> tuple[Program, tuple[Any, ...]]:
    """Return a program in strips and its results, which are those without, bit by bit."""
    before = interpreted(scheduled(procedure, TINY), *arrays)
    program = scheduled(procedure, replace(TINY, schedule=True))
    after = interpreted(program, *arrays)
    assert [one.tobytes() for one in before] == [one.tobytes() for one in after]
    return program, after


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", BODIES)
def test_not_a_bit_changes(name: str, size: tuple[int, int]) -> None:
    arrays, made = _arrays(BODIES[name], size), _made(BODIES[name])
    procedure = made.procedure(*arrays)
    program, _ = same_bits(procedure, arrays)
    if size[1] >= 4 and size[0] > 1:
        assert _strips(program)


@pytest.mark.parametrize("name", BODIES)
def test_sizes_of_the_run_change_no_bit(name: str) -> None:
    made = _made(BODIES[name])
    arrays = _arrays(BODIES[name], (7, 21))
    target = replace(TINY, schedule=True, reorders=True, fma=True)
    fixed = interpreted(scheduled(made.procedure(*arrays), target), *arrays)
    program = scheduled(of_any_size(made, *arrays), target)
    assert _strips(program)
    run = interpreted(program, *arrays)
    assert [one.tobytes() for one in fixed] == [one.tobytes() for one in run]


@pytest.mark.parametrize("name", ["a sum", "scaled"])
def test_c_gives_the_bits_of_the_loops(name: str) -> None:
    arrays, made = _arrays(BODIES[name], (5, 75), "f8"), _made(BODIES[name])
    plain = interpreted(scheduled(made.procedure(*arrays), TINY), *arrays)
    with settings.override(schedule=True, profile="strict"):
        made.on("cc")(*arrays)
    assert [one.tobytes() for one in arrays] == [one.tobytes() for one in plain]


RAGGED = {
    "shorter": "y[j] = sum[i in range(len(v) - j)](v[i] * v[i + j])",
    "longer": "y[j] = sum[i <= j](w[i] * v[j - i])",
    "longer by more": "y[j] = sum[i in range(j + 3)](v[i] * v[i + j])",
    "added to": "y[j] += sum[i in range(len(v) - 2 - j)](v[i] * v[i + j]) / 3",
    "greatest": "y[j] = max[i in range(len(v) - j)](v[i + j])",
}
ROUND = "for j in range(len(y)):\n        y[j] = v[:len(v) - j] @ v[j:]"


@pytest.mark.parametrize("columns", [1, 4, 9, 21, 40])
@pytest.mark.parametrize("text", [*RAGGED.values(), ROUND])
def test_columns_of_different_lengths_keep_their_bits(text: str, columns: int) -> None:
    rng = np.random.default_rng(columns)
    arrays = [rng.standard_normal(n).astype("f4") for n in (columns, 2 * columns + 3, columns)]
    made = function(f"def f(y, v, w):\n    {text}\n")
    procedure = made.procedure(*arrays)
    whole = replace(TINY, schedule=True)
    fused = replace(whole, reorders=True, fma=True)
    for one, other in ((TINY, whole), (replace(fused, vector_bits=32), fused)):
        before = interpreted(scheduled(procedure, one), *arrays)
        program = scheduled(procedure, other)
        after = interpreted(program, *arrays)
        assert [made.tobytes() for made in before] == [made.tobytes() for made in after]
    if columns >= 9:
        assert _strips(program)
    expected = interpreted(scheduled(procedure, TINY), *arrays)
    with settings.override(schedule=True, profile="strict"):
        made.on("cc")(*arrays)
    assert arrays[0].tobytes() == expected[0].tobytes()


def test_columns_whose_lengths_are_steps_apart_stay() -> None:
    arrays = {"y": "f32[20]", "v": "f32[99]"}
    assert not loops_of("y[j] = sum[i in range(2 * j)](v[i] * v[i + j])", **arrays)
    assert not loops_of("y[j] = sum[i in range(min(j, 9))](v[i] * v[i + j])", **arrays)
    assert loops_of("y[j] = sum[i in range(30 - j)](v[i] * v[i + j])", **arrays)


def test_windows_that_slide_are_no_long_strips() -> None:
    arrays = {"y": "f32[40000]", "v": "f32[40063]", "w": "f32[64]"}
    (_, *_), *_ = found = loops_of("y[j] = sum[i in range(64)](w[i] * v[i + j])", **arrays)
    assert found[0][2] == 16


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", ["i1", "u2", "i4", "i8"])
def test_whole_numbers_run_down_columns_in_strips(dtype: str, size: tuple[int, int]) -> None:
    rng = np.random.default_rng(2)
    for body in (
        "y[j] = sum(x[i, j], acc=i64)", "y[j] += x[i, j] * x[i, j]",
        "y[j] = max(y[j], i64(x[i, j]))", "y[j] = min(y[j], i64(x[i, j]) - 3)",
    ):  # fmt: skip
        arrays = [np.arange(size[1]), rng.integers(-99, 99, size).astype(dtype)]
        made = function(f"def f(y, x):\n    {body}\n")
        procedure = made.procedure(*arrays)
        program, after = same_bits(procedure, arrays)
        if size[1] >= 4 and size[0] > 1:
            assert _strips(program) or "x[i, j] *" in body
            with settings.override(schedule=True):
                made.on("cc")(*arrays)
            assert arrays[0].tobytes() == after[0].tobytes()


def test_columns_that_need_each_other_stay_in_order() -> None:
    text = "def f(y, x):\n    for j in range(1, 20):\n        y[j] = y[j - 1] + sum(x[i, j])\n"
    arrays = _arrays("y[x[", (4, 20))
    made = function(text)
    before = interpreted(scheduled(made.procedure(*arrays), TINY), *arrays)
    after = interpreted(scheduled(made.procedure(*arrays), replace(TINY, schedule=True)), *arrays)
    assert before[0].tobytes() == after[0].tobytes()


def loops_of(text: str, target: Target = TINY, **arrays: str) -> list[tuple[str, str, int]]:
    """Return the bounds and steps of the outermost loops; none where the pass does nothing."""
    before = contract_arrays(lowered(text, **arrays)).program
    after = vectorize_columns(before, target).program
    return [] if after == before else bounds_in(after)


def bounds_in(program: Program) -> list[tuple[str, str, int]]:
    found = (stmt for kernel in program.kernels for stmt in kernel.body if isinstance(stmt, For))
    return [(str(loop.lo), str(loop.hi), loop.step) for loop in found]


WIDTHS = {
    1: [],
    3: [],  # fewer than a vector holds
    4: [("0", "4", 4)],
    5: [("0", "4", 4), ("4", "5", 1)],
    16: [("0", "16", 16)],
    17: [("0", "16", 16), ("16", "17", 1)],
    24: [("0", "24", 24)],
    39: [("0", "36", 36), ("36", "38", 2), ("38", "39", 1)],
    48: [("0", "48", 48)],
    63: [("0", "48", 16), ("48", "56", 8), ("56", "60", 4), ("60", "63", 1)],
}


@pytest.mark.parametrize("columns", WIDTHS)
def test_few_columns_are_one_strip_and_many_are_cut_into_four_vectors_and_fewer(
    columns: int,
) -> None:
    found = loops_of("y[j] = sum(x[i, j])", y=f"f32[{columns}]", x=f"f32[9, {columns}]")
    assert found == WIDTHS[columns]


def test_sizes_of_the_run_get_three_widths() -> None:
    program = contract_arrays(
        lower(of_any_size(_made("y[j] = sum(x[i, j])"), *_arrays("y[x[", (7, 21))))
    ).program
    after = vectorize_columns(program, TINY).program
    assert [step for _, _, step in bounds_in(after)] == [128, 16, 4, 1]
    assert "max(" not in print_program(after), "a size is not below zero"


def test_a_vector_holds_at_least_two() -> None:
    arrays = {"y": "f64[9]", "x": "f64[9, 9]"}
    text = "y[j] = sum(x[i, j])"
    assert loops_of(text, **arrays) == [("0", "8", 8), ("8", "9", 1)]
    assert not loops_of(text, Target(vector_bits=64), **arrays)


ARRAYS = {
    "y": "f32[8]", "z": "f32[8, 8]", "x": "f32[8, 8]", "q": "f32[8, 8, 8]", "w": "f32[8]",
    "p": "i64[8]", "n": "i64[8]", "m": "i64[8, 8]", "h": "i32[8, 8]", "d": "f64[8]",
    "r": "f32[8, 16]", "u": "f64[8]",
}  # fmt: skip
IN_STRIPS = {
    "a mirrored row": "y[j] = sum[i in range(8)](x[7 - i, j])",
    "a shifted column": "y[j] = sum(r[i, j + 8])",
    "a number for all columns": "y[j] = sum(x[i, j] * w[p[i]])",
    "what vectors compute": "y[j] = sum(-x[i, j] / w[i] - max(x[i, j], 2))",
    "singles in doubles": "d[j] += x[i, j] * u[i]",
    "a triangle": "y[j] = sum[i < j + 1](x[i, j])",
    "two that count": "y[j] = sum(q[i, k, j])",
    "a stack of sums": "z[k, j] = sum(q[k, i, j])",
}
NOT = {
    "along rows": "y[j] = sum(x[j, i])",
    "both ways": "y[j] = sum(x[i, j] * x[j, i])",
    "mirrored columns": "y[j] = sum(x[i, 7 - j])",
    "every other column": "y[j] = sum(r[i, 2 * j])",
    "singles of other columns in doubles": "d[j] += r[i, 2 * j] * u[i]",
    "where data says": "y[j] = sum(x[i, p[j]])",
    "a triangle upside down": "y[j] = sum[i >= j](x[i, j])",
    "a call of the library": "y[j] = sum(exp(x[i, j]))",
    "the number of a column": "y[j] = sum(x[i, j] * j)",
    "integers that are divided": "n[j] = sum(m[i, j] // 3)",
    "integers that become floats": "y[j] = sum(h[i, j] * x[i, j])",
    "the same for all columns": "y[j] = sum(w[i])",
    "written in steps": "for j in range(0, 8, 2):\n    y[j] = sum(x[i, j])",
    "a column that others need": "for j in range(1, 8):\n    y[j] = y[j - 1] + sum(x[i, j])",
}


def _used(text: str) -> dict[str, str]:
    return {name: spec for name, spec in ARRAYS.items() if f"{name}[" in text}


@pytest.mark.parametrize("name", IN_STRIPS)
def test_terms_side_by_side_are_in_strips(name: str) -> None:
    program = contract_arrays(lowered(IN_STRIPS[name], **_used(IN_STRIPS[name]))).program
    assert "vector" in print_program(vectorize_columns(program, TINY).program)
    assert_same(program)


@pytest.mark.parametrize("name", NOT)
def test_others_stay_as_they_are(name: str) -> None:
    program = contract_arrays(lowered(NOT[name], **_used(NOT[name]))).program
    assert vectorize_columns(program, TINY).program == program


def assert_same(program: Program, seed: int = 3) -> Program:
    """Return the program with sums in strips, of which not a bit differs."""
    after = vectorize_columns(program, TINY).program
    verify_program(after)
    rng = np.random.default_rng(seed)
    nodes = [parameter.node for parameter in program.parameters]
    arrays = [
        rng.standard_normal(node.static_shape).astype(str(node.dtype))
        if node.dtype.kind == "f"
        else rng.integers(0, 8, node.static_shape)
        for node in nodes
    ]
    got, want = interpreted(after, *arrays), interpreted(program, *arrays)
    assert [one.tobytes() for one in got] == [one.tobytes() for one in want]
    return after


def test_it_is_told_which_sums_are_in_strips() -> None:
    both = "y[j] = sum(x[i, j]); z[j, k] = sum(q[k, j, i])"
    made = contract_arrays(lowered(both, **_used(both))).program
    (told,) = vectorize_columns(made, TINY).decisions
    assert (told.outcome, told.reason) == ("lanes", StripReason.ROWS)
    assert told.node is not None and told.node.label == "y_acc"
    (told,) = vectorize_columns(program((Y,), (X,), added(0, 20)), TINY).decisions
    assert told.node is Y
    for few in (added(30, 33), added(1, 4), added(0, 3), added(3, 3)):
        made = program((Y,), (X,), few)
        assert vectorize_columns(made, TINY) == Decided(made, ())


i, j, k, t, n = symbols("i j k t n")
X, Y, S = node(0, "x", 5, 40), node(1, "y", 40), node(2, "s")


def loop(symbol: Symbol, lo: Affine | int, hi: Affine | int, *body: Stmt) -> For:
    ends = (const(end) if isinstance(end, int) else end for end in (lo, hi))
    return For(symbol, *ends, 1, body)


def added(lo: Affine | int, hi: Affine | int, shift: Affine | int = 0, rows: int = 5) -> For:
    """Return the loop that adds the columns of `x` to elements of `y`."""
    place = at(Y, var(j) + shift)
    return loop(j, lo, hi, loop(i, 0, rows, Update(place, OPS["add"], read(X, i, j))))


def summed(lo: Affine | int, hi: Affine | int) -> For:
    """Return the loop that does the same by a scalar."""
    sum_ = loop(i, 0, 5, Update(at(S), OPS["add"], read(X, i, j)))
    return loop(j, lo, hi, Store(at(S), read(Y, j)), sum_, Store(at(Y, j), read(S)))


@pytest.mark.parametrize("times", [20, 21, 22, 30])
def test_bounds_that_a_loop_around_moves(times: int) -> None:
    made = assert_same(program((Y,), (X,), loop(t, 0, times, added(var(t), 20))))
    text = print_program(made)
    assert "vector" in text
    assert ("max(" in text) == (times > 21), "from then on there may be less than no columns"


@pytest.mark.parametrize("ends", [(0, 40), (3, 24), (9, 13), (9, 9), (20, 3), (38, 1)])
def test_bounds_that_data_decides(ends: tuple[int, int]) -> None:
    lo, hi = node(3, "lo", dtype=i64), node(4, "hi", dtype=i64)
    first, last = symbols("first last")
    body = Let(first, read(lo)), Let(last, read(hi))
    limited = summed(maximum(var(first), const(0)), minimum(var(last), const(40)))
    rng = np.random.default_rng(1)
    arrays = [np.ones(40, "f4"), rng.random((5, 40), "f4"), *map(np.int64, ends)]
    for nest in (limited, summed(var(first), var(last)), summed(var(first), 40)):
        before = program((Y,), (X, lo, hi), *body, nest, local=(S,))
        after = vectorize_columns(before, TINY).program
        assert "vector" in print_program(after)
        got, want = interpreted(after, *arrays), interpreted(before, *arrays)
        assert got[0].tobytes() == want[0].tobytes()


def test_no_element_is_used_that_was_not() -> None:
    inside, outside = (program((Y,), (X,), added(0, 20, shift)) for shift in (20, 21))
    assert vectorize_columns(inside, TINY).program != inside
    assert vectorize_columns(outside, TINY).program == outside, (
        "without rows nothing would be read there"
    )
    around = program((Y,), (X,), loop(t, 0, 21, added(0, 20, var(t))))
    assert vectorize_columns(around, TINY).program != around
    beyond = program((Y,), (X,), loop(t, 0, 22, added(0, 20, var(t))))
    assert vectorize_columns(beyond, TINY).program == beyond


def test_loops_between_columns_and_rows_go_with_none() -> None:
    text = "z[j, k] = sum(q[i, k, j])"
    made = contract_arrays(lowered(text, **_used(text))).program
    assert vectorize_columns(made, TINY).program == made


def test_a_sum_that_columns_share_stays_in_order() -> None:
    whole = summed(0, 20)
    alone = program((Y,), (X,), whole, local=(S,))
    assert vectorize_columns(alone, TINY).program != alone
    used = program((Y,), (X,), whole, Store(at(Y, 0), read(S)), local=(S,))
    assert vectorize_columns(used, TINY).program == used, (
        "the sum of the last column is read after the loop"
    )


def test_what_is_named_before_the_sum_is_there_after_it() -> None:
    twice = node(3, "twice")
    sum_ = loop(i, 0, 5, Update(at(S), OPS["add"], read(X, i, j)))
    first = Store(at(twice), ap("add", read(Y, j), read(Y, j)))
    last = Store(at(Y, j), ap("mul", read(S), read(twice)))
    nest = loop(j, 0, 23, first, Store(at(S), ap("neg", read(twice))), sum_, last)
    made = program((Y,), (X,), nest, local=(twice, S))
    assert assert_same(made) != made


@pytest.mark.parametrize("size", [(9, 100), (70, 33), (5, 128), (64, 259)], ids=str)
@pytest.mark.parametrize("name", BODIES)
def test_long_strips_where_no_cache_holds_all_rows(name: str, size: tuple[int, int]) -> None:
    arrays, made = _arrays(BODIES[name], size), _made(BODIES[name])
    procedure = made.procedure(*arrays)
    target = replace(TINY, schedule=True, l2_bytes=1000, l1_bytes=512, threads=2)
    before = interpreted(scheduled(procedure, TINY), *arrays)
    program = scheduled(procedure, target)
    after = interpreted(program, *arrays)
    assert [one.tobytes() for one in before] == [one.tobytes() for one in after]
    long = [one.bytes for one in program.locals if one.label == "strip" and one.purpose == "panel"]
    assert bool(long) == (size[1] // 2 >= 32), "as many as a thread has, beyond four registers"
    assert all(one <= target.l1_bytes // 2 for one in long)


@pytest.mark.parametrize("read", ["y[c] = {} + last", "y[c] = {}\n        z[c] = last"])
@pytest.mark.parametrize("total", ["np.max(x[:, c])", "np.min(x[:, c])", "np.sum(x[:, c])"])
@pytest.mark.parametrize("dtype", ["i4", "i8", "f4", "f8"])
def test_what_the_last_row_names_is_there_after_it(dtype: str, total: str, read: str) -> None:
    text = (
        "def f(x, y, z):\n    m, n = x.shape\n    for c in range(n):\n        last = x[0, 0]\n"
        f"        for t in range(m):\n            last = x[t, c]\n        {read.format(total)}\n"
    )
    x = (np.arange(9 * 70).reshape(9, 70) * 7 % 13 - 5).astype(dtype)
    found, expected = ([np.zeros(70, dtype) for _ in "yz"] for _ in range(2))
    function(text)(x, *found)
    names: dict[str, Any] = {"np": np}
    exec(text, names)
    names["f"](x, *expected)
    assert all(map(np.array_equal, found, expected))
