"""What the host does between kernels, and how large launches are."""

from __future__ import annotations

from typing import Any

import pytest

from plusequals.backends.cuda.host_program import (
    MAX_ANSWERS,
    Allocate,
    Bind,
    BindAnswers,
    Clear,
    Conditional,
    CountedLoop,
    HostProgram,
    HostValue,
    Launch,
    ShowPrint,
    WhileLoop,
    plan_host,
)
from plusequals.base.diagnostic import CdInternalError
from plusequals.lowering.gpu.mapping import single_thread_kernel
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.assignments import Access, Alloc, Let, Parameter, Print
from plusequals.lowering.ir.indexing import Symbol, const, evaluate, var
from plusequals.lowering.ir.loops import (
    For,
    If,
    Kernel,
    LoopKind,
    Program,
    Stmt,
    Store,
    While,
)
from plusequals.lowering.ir.node import Node

from ..codegen.programs import apply, node, number, position, read, symbols

B, C, T, K, N, M = symbols("b c t k n m")
X = node(0, "x", (var(N),))
Y = node(1, "y", (9,))
SCALE = node(2, "scale", ())


def planned(
    *body: Stmt, locals_: tuple[Node, ...] = (), zeroed: tuple[int, ...] = ()
) -> HostProgram:
    parameters = (Parameter(X, True), Parameter(Y, True), Parameter(SCALE, False))
    program = Program("f", parameters, locals_, (), (Kernel("f", body),))
    return plan_host(program, {}, frozenset(zeroed))


def set_x() -> Stmt:
    return Store(Access(X, (var(T),)), number(1.0))


def loop(symbol: Symbol, lo: int, hi: Any, kind: LoopKind, *body: Stmt) -> For:
    end = const(hi) if isinstance(hi, int) else var(hi)
    return For(symbol, const(lo), end, 1, body, kind)


def test_loops_of_blocks_are_launched_and_other_loops_are_the_hosts() -> None:
    made = planned(
        loop(K, 0, N, "serial", loop(B, 0, 4, "block", loop(T, 0, N, "thread", set_x())))
    )
    (outer,) = made.steps
    assert isinstance(outer, CountedLoop)
    (launch,) = outer.body
    assert isinstance(launch, Launch)
    assert [evaluate(size, {}) for size in launch.grid] == [4]
    assert launch.threads == (256, 1, 1)
    assert made.text.kernels[0].symbols == (N,)


def test_a_grid_is_as_large_as_its_loops_innermost_first() -> None:
    kernel = loop(B, 0, N, "block", loop(C, 2, 7, "block", loop(T, 0, 3, "thread", set_x())))
    (launch,) = planned(kernel).steps
    assert isinstance(launch, Launch)
    assert [evaluate(size, {N: 11}) for size in launch.grid] == [5, 11]
    assert launch.threads == (32, 1, 1)
    assert "blockIdx.y" in planned(kernel).text.text


def test_a_block_is_no_deeper_than_a_device_takes() -> None:
    inner = loop(T, 0, 2, "thread", set_x())
    kernel = loop(B, 0, 1, "block", loop(K, 0, 500, "thread", loop(C, 0, 2, "thread", inner)))
    (launch,) = planned(kernel).steps
    assert isinstance(launch, Launch)
    assert launch.threads == (2, 2, 64)


def test_what_depends_on_another_loop_of_the_grid_is_bounded() -> None:
    triangle = loop(B, 0, 8, "block", For(C, const(0), var(B), 1, (alone_body(),), "block"))
    (launch,) = planned(triangle).steps
    assert isinstance(launch, Launch)
    assert [evaluate(size, {}) for size in launch.grid] == [7, 8]


def alone_body() -> For:
    return loop(T, 0, 1, "thread", set_x())


def test_data_are_asked_for_and_indices_are_known() -> None:
    small = apply("gt", read(SCALE), number(2.0))
    of_index = apply("gt", position(N), position(const(2)))
    made = planned(
        If(small, (single_thread_kernel((set_x(),)),)),
        If(of_index, (single_thread_kernel((set_x(),)),)),
        Let(M, position(var(N) + 1)),
    )  # fmt: skip
    first, second, third = made.steps
    assert isinstance(first, Conditional) and isinstance(first.test, Launch)
    assert isinstance(second, Conditional) and second.test == HostValue(of_index)
    assert third == Bind(M, position(var(N) + 1))
    asking = made.text.kernels[first.test.kernel]
    assert made.answers in asking.nodes
    assert "answers[0] = (int64_t)(scale > 2.0f);" in made.text.text


def test_values_of_data_are_asked_for_together() -> None:
    lets = [Let(Symbol("v", 50 + at), read(SCALE)) for at in range(MAX_ANSWERS + 1)]
    known, of_one = Let(M, position(var(N))), Let(Symbol("w", 90), position(lets[0].symbol))
    made = planned(known, lets[0], of_one, *lets[1:], known)
    first, second, third = made.steps
    assert isinstance(first, Bind)
    assert isinstance(second, BindAnswers) and isinstance(third, BindAnswers)
    assert second.symbols == (lets[0].symbol, of_one.symbol, *(x.symbol for x in lets[1:7]))
    assert third.symbols == (lets[7].symbol, lets[8].symbol, M)
    assert [len(made.text.kernels[x.launch.kernel].symbols) for x in (second, third)] == [0, 1]


def test_loops_with_tests_storage_and_prints_are_the_hosts() -> None:
    grown = Node(7, "grown", (var(N),), dtypes.float32)
    test = apply("lt", read(SCALE), number(1.0))
    made = planned(
        Alloc(grown), While((), test, (single_thread_kernel((set_x(),)),)),
        Print(("x is ", read(Y, 0))),
        locals_=(grown,),
    )  # fmt: skip
    first, second, third = made.steps
    assert isinstance(first, Allocate)
    assert isinstance(second, WhileLoop)
    assert isinstance(third, ShowPrint)
    assert made.text.kernels[third.launch.kernel].prints == 4
    assert third.number == 0


def test_what_relies_on_zeros_is_cleared_first() -> None:
    temporary = node(5, "t", (4,))
    made = planned(single_thread_kernel((set_x(),)), locals_=(temporary,), zeroed=(5,))
    assert made.steps[0] == Clear(temporary)
    assert made.device == (temporary,)


def test_a_statement_outside_of_every_kernel_is_our_fault() -> None:
    with pytest.raises(CdInternalError, match="a Store stands outside of every kernel"):
        planned(Store(Access(Y, (const(0),)), number(1.0)))
