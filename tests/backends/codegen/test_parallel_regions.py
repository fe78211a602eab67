"""Parallel loops as text and as code: the same bits for any number of threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from plusequals.backends.codegen.c_printer import print_program
from plusequals.lowering.cpu.parallelize import parallelize
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.assignments import Access, Fault
from plusequals.lowering.ir.interpret import run_program
from plusequals.lowering.ir.loops import Check, For, Kernel, Program, Store, Update
from plusequals.lowering.ir.node import Node
from plusequals.lowering.ir.ops import OPS
from plusequals.lowering.lower import lower
from plusequals.lowering.pipeline import optimize
from plusequals.lowering.placement import place_nodes
from plusequals.lowering.target import Target

from ...lowering.shown import lowered
from . import programs as p
from .harness import compiled, needs_compiler

TARGET = Target(threads=4, parallel_from=0, schedule=True)
THREADS = (1, 2, 7)
i, j, k, n = p.symbols("i j k n")
FAULT = Fault("CD0601", "CdIndexError", "{0} is too large")


def shared(program: Program) -> Program:
    """Return the program with its loop parallel, however few rounds it has."""
    (kernel,) = program.kernels
    (loop,) = (stmt for stmt in kernel.body if isinstance(stmt, For))
    made = parallelize(program, TARGET)
    rounds = (loop.hi - loop.lo).constant
    assert made is not program or (rounds is not None and abs(rounds) < 2 or rounds * loop.step < 0)
    return replace(program, kernels=(Kernel(kernel.name, (replace(loop, kind="parallel"),)),))


def agrees(program: Program, *arrays: np.ndarray[Any, Any]) -> None:
    """The code gives the bits of the interpreter, whatever the number of threads."""
    expected = [array.copy() for array in arrays]
    run_program(program, expected, print)
    code = compiled(shared(program), TARGET)
    for threads in THREADS:
        given = [array.copy() for array in arrays]
        assert code(*given, among=threads).status == 0
        for got, wanted in zip(given, expected, strict=True):
            np.testing.assert_array_equal(got, wanted)


def rows(count: int, columns: int, *, symbols: bool = False) -> Program:
    """A sum of each row's squares, over a scalar and a row of its own."""
    shape: Any = (p.var(n), columns) if symbols else (count, columns)
    y, x = p.node(0, "y", shape[:1]), p.node(1, "x", shape)
    s, row = p.node(2, "s", ()), p.node(3, "row", (columns,))
    square = p.apply("mul", p.read(x, i, j), p.read(x, i, j))
    body = For(i, p.const(0), shape[0] if symbols else p.const(count), 1, (
        For(j, p.const(0), p.const(columns), 1, (Store(Access(row, p.at(j)), square),)),
        Store(Access(s, ()), p.number(0.5)),
        For(k, p.const(0), p.const(columns), 1, (
            Update(Access(s, ()), OPS["add"], p.read(row, k)),)),
        Store(Access(y, p.at(i)), p.read(s)),
    ))  # fmt: skip
    made = lower(p.procedure("rows", [(y, True), (x, False)], [], [s, row]))
    return replace(made, kernels=(Kernel("rows", (body,)),))


def test_the_text_of_a_parallel_loop(golden: Callable[[str], Callable[[str], None]]) -> None:
    program = shared(rows(40, 12))
    golden("rows.c")(print_program(program, place_nodes(program)).text)


def test_long_rows_are_allocated_for_each_part(
    golden: Callable[[str], Callable[[str], None]],
) -> None:
    program = shared(rows(40, 12_000))
    golden("long_rows.c")(print_program(program, replace(place_nodes(program), polls=True)).text)


def checked(count: int, columns: int) -> Program:
    """Sums of rows over two private arrays, each element checked, in two loops."""
    y, x = p.node(0, "y", (count,), dtypes.int64), p.node(1, "x", (count, columns), dtypes.int64)
    own = [[p.node(at + n, name, shape, dtypes.int64) for n, (name, shape) in enumerate(
        (("near", (3,)), ("row", (columns,)), ("s", ())))] for at in (2, 5)]  # fmt: skip
    made = lower(p.procedure("sums", [(y, True), (x, False)], [], [*own[0], *own[1]]))
    body = tuple(_checked(y, x, *some) for some in own)
    return replace(made, kernels=(Kernel("sums", body),))


def _checked(y: Node, x: Node, near: Node, row: Node, s: Node) -> For:
    (count, columns), zero = x.static_shape or (), p.Const(0, dtypes.int64)
    test = p.apply("lt", p.read(row, j), p.Const(100, dtypes.int64))
    return For(i, p.const(0), p.const(count), 1, (
        For(k, p.const(0), p.const(3), 1, (Store(Access(near, p.at(k)), zero),)),
        Store(Access(s, ()), zero),
        For(j, p.const(0), p.const(columns), 1, (
            Store(Access(row, p.at(j)), p.read(x, i, j)),
            Check(test, FAULT, (p.read(row, j),)),
            Store(Access(near, p.at(1)), p.read(row, j)),
            Update(Access(s, ()), OPS["add"], p.read(near, 1)))),
        Store(Access(y, p.at(i)), p.read(s)),
    ), "parallel")  # fmt: skip


@pytest.mark.parametrize("columns", [12, 9000])
def test_the_text_of_parts_that_may_fail(
    golden: Callable[[str], Callable[[str], None]], columns: int
) -> None:
    program = checked(40, columns)
    golden(f"checked_{columns}.c")(
        print_program(program, replace(place_nodes(program), polls=True)).text
    )


def test_which_lines_of_the_text_are_whose(golden: Callable[[str], Callable[[str], None]]) -> None:
    program, placement = optimize(
        lowered("y[i] = x[i] * 2\nz[i] = y[39 - i] + x[i]", y="f32[40]", z="f32[40]", x="f32[40]"),
        Target(threads=2, parallel_from=0, schedule=True),
    )
    positions = p.apply("lt", p.position(p.var(i)), p.Const(100, dtypes.int64))
    check = For(i, p.const(0), p.const(40), 1, (Check(positions, FAULT),), "parallel")
    (kernel,) = program.kernels
    source = print_program(
        replace(program, kernels=(replace(kernel, body=(check, *kernel.body)),)), placement
    )
    told = []
    for number, line in enumerate(source.text.splitlines(), 1):
        marks = [
            f"{part.name}: {at}" for part in source.parts
            for at in ("first", "functions", "last") if getattr(part, at) == number
        ]  # fmt: skip
        span = source.line_map.get(number)
        marks += [f"line {span.line}"] if span is not None and span.line else []
        if number > source.above:
            told.append(f"{line:72}  {'; '.join(marks)}".rstrip())
    check = golden("lines.txt")
    check("\n".join(told))


@needs_compiler
@pytest.mark.parametrize("columns", [12, 9000])
def test_what_threads_allocated_is_freed_where_they_fail(columns: int) -> None:
    code = compiled(checked(40, columns), TARGET)
    x, y = np.ones((40, columns), np.int64), np.zeros(40, np.int64)
    assert code(y, x, among=2).status == 0 and (y == columns).all()
    x[7, 3], x[30, 2] = 107, 130
    run = code(y, x, among=2)
    assert (run.status, run.values) == (1, (107,))


@pytest.mark.parametrize(("columns", "allocates"), [(8192, False), (8193, True)])
def test_a_thread_keeps_so_much_on_its_stack(columns: int, allocates: bool) -> None:
    program = shared(rows(40, columns))
    assert (
        "aligned(" in print_program(program, place_nodes(program)).text.split("rows_part(")[1]
    ) is allocates


def test_without_a_schedule_nothing_is_shared() -> None:
    program = rows(40, 12)
    assert parallelize(program, replace(TARGET, schedule=False)) is program
    made, placement = optimize(program, Target(threads=4))
    assert not print_program(made, placement).asks


@needs_compiler
@pytest.mark.parametrize(
    ("count", "columns"), [(0, 1), (1, 1), (2, 9_001), (7, 3), (64, 5), (129, 1)]
)
def test_rows_of_any_size(count: int, columns: int) -> None:
    x = np.random.default_rng(1).random((count, columns)).astype(np.float32)
    agrees(rows(count, columns), np.zeros(count, np.float32), x)


@needs_compiler
@pytest.mark.parametrize("count", [0, 1, 3, 100])
def test_sizes_that_only_the_call_knows(count: int) -> None:
    x = np.random.default_rng(1).random((count, 5)).astype(np.float32)
    agrees(rows(count, 5, symbols=True), np.zeros(count, np.float32), x)


@needs_compiler
@pytest.mark.parametrize(
    ("lo", "hi", "step"),
    [
        (0, 60, 1),
        (3, 60, 1),
        (0, 60, 7),
        (59, -1, -1),
        (58, 3, -5),
        (5, 2, 1),
        (2, 5, -1),
        (4, 5, 1),
    ],
)
def test_loops_of_every_step(lo: int, hi: int, step: int) -> None:
    y, x = p.node(0, "y", (60,), dtypes.int64), p.node(1, "x", (60,), dtypes.int64)
    value = p.apply("add", p.read(x, i), p.position(p.var(i) * 3))
    loop = For(i, p.const(lo), p.const(hi), step, (Store(Access(y, p.at(i)), value),))
    made = lower(p.procedure("steps", [(y, True), (x, False)], []))
    agrees(replace(made, kernels=(Kernel("steps", (loop,)),)), np.zeros(60, np.int64),
           np.arange(60) ** 2)  # fmt: skip


@needs_compiler
def test_names_of_the_program_do_not_meet_those_of_the_part() -> None:
    first, last = p.node(0, "first", (60,)), p.node(1, "last", (60,))
    given, fault, room = (
        p.node(2 + n, name, ()) for n, name in enumerate(("given", "fault", "room"))
    )
    sum_ = p.apply("add", p.read(given), p.apply("add", p.read(fault), p.read(room)))
    loop = For(i, p.const(0), p.const(60), 1,
               (Store(Access(first, p.at(i)), p.apply("mul", p.read(last, i), sum_)),))  # fmt: skip
    made = lower(p.procedure(
        "main", [(first, True), (last, False), (given, False), (fault, False), (room, False)], []
    ))  # fmt: skip
    scalars = [np.array(value, np.float32) for value in (1, 2, 4)]
    agrees(replace(made, kernels=(Kernel("main", (loop,)),)), np.zeros(60, np.float32),
           np.arange(60, dtype=np.float32), *scalars)  # fmt: skip


@needs_compiler
@pytest.mark.parametrize("bad", [(17,), (59, 3), (40, 41, 42), ()])
def test_the_first_fault_in_program_order_is_reported(bad: tuple[int, ...]) -> None:
    x = p.node(0, "x", (60,), dtypes.int64)
    test = p.apply("lt", p.read(x, i), p.Const(100, dtypes.int64))
    loop = For(i, p.const(0), p.const(60), 1, (Check(test, FAULT, (p.read(x, i),)),))
    made = lower(p.procedure("checks", [(x, False)], []))
    code = compiled(shared(replace(made, kernels=(Kernel("checks", (loop,)),))), TARGET)
    values = np.arange(60)
    for place_ in bad:
        values[place_] = 1000 + place_
    for threads in THREADS:
        for _ in range(20):
            run = code(values, among=threads)
            assert run.status == bool(bad)
            if bad:
                assert run.values == (1000 + min(bad),)


@needs_compiler
@pytest.mark.parametrize("step", [1, 2, -1, -3])
def test_ends_whose_difference_overflows(step: int) -> None:
    """A loop whose end is before its start has no iterations, however far that is."""
    text = (
        f"for i in range(k, n, {step}):\n    if 0 <= i and i < 90:\n        y[i] = 5\n"
        f"for i in range(1, n, {step}):\n    y[i] += 7\n"
    )
    program, _ = optimize(lowered(text, y="f64[90]", k="i64", n="i64"), TARGET)
    code = compiled(program, TARGET)
    far, sign = 2**63, 1 if step > 0 else -1
    for first, last in ((3, -far), (far - 1, -5), (2**62 + 5, -(2**62) - 5), (3, 8), (8, 3)):
        ends = (max(-far, min(far - 1, sign * end)) for end in (first, last))
        first, last = (end if abs(end) > 8 else abs(end) for end in ends)
        y, want = np.zeros(90), np.zeros(90)
        for number in range(first, last, step):
            want[number] = 5
        for number in range(1, last, step):
            want[number] += 7
        code(y, np.array(first), np.array(last), among=3)
        np.testing.assert_array_equal(y, want)
