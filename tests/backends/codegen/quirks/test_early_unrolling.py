"""Short loops that stay loops for the compiler: which ones, and how it is told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plusequals.backends.codegen.c_printer import print_program
from plusequals.backends.codegen.quirks.early_unrolling import is_elementwise
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.assignments import Access, Parameter
from plusequals.lowering.ir.dtypes import DType
from plusequals.lowering.ir.expressions import Cast, Expr
from plusequals.lowering.ir.indexing import const, multiply, var
from plusequals.lowering.ir.loops import (
    Comment,
    For,
    Kernel,
    LoopKind,
    Program,
    Stmt,
    Store,
    Update,
)
from plusequals.lowering.ir.node import Node
from plusequals.lowering.ir.ops import OPS
from plusequals.lowering.placement import place_nodes as place

from ....lowering.ir.build import ap, num, read, symbols
from ....lowering.ir.build import node as array

I, J = symbols("i j")
X, Y, S = array(0, "x", 99, 99), array(1, "y", 99, 99), array(2, "s")
BYTES = array(3, "bytes", 99, dtype=dtypes.uint8)


def over(*body: Stmt, rounds: int = 8, step: int = 1, kind: LoopKind = "serial") -> For:
    return For(I, const(0), const(rounds * step), step, body, kind)


def put(node: Node = Y, by: int = 1, turned: bool = False) -> Store:
    place = (multiply(var(I), const(by)),)
    source = read(X, var(I), var(J)) if turned else read(X, var(J), var(I))
    return Store(Access(node, (*((var(J),) if node is Y else ()), *place)), source)


def total(dtype: DType, op: str = "", source: DType | None = None, turned: bool = False) -> Update:
    node, x = array(4, "n", dtype=dtype), array(5, "k", 99, 99, dtype=source or dtype)
    value: Expr = read(x, var(I), var(J)) if turned else read(x, var(J), var(I))
    value = Cast(value, dtype) if source else value
    return Update(Access(node, ()), OPS["add"], ap(op, value, value) if op else value)


SUM = Update(Access(Y, (var(J), var(I))), OPS["add"], ap("mul", read(S), read(X, var(J), var(I))))
LOOPS = {
    "elements": (over(put()), True),
    "sums of elements": (over(SUM), True),
    "names for each": (over(Store(Access(S, ()), num(1.0)), Comment("so"), put()), True),
    "columns": (over(put(turned=True)), True),
    "columns of few": (over(put(turned=True), rounds=4), False),
    "few": (over(put(), rounds=4), True),
    "too few": (over(put(), rounds=3), False),
    "too few bytes": (over(put(BYTES), rounds=15), False),
    "bytes": (over(put(BYTES), rounds=16), True),
    "places apart": (over(put(by=2)), False),
    "a step": (over(put(), step=2), False),
    "one place": (over(Update(Access(S, ()), OPS["add"], read(X, var(J), var(I)))), False),
    "a sum of whole numbers": (over(total(dtypes.int32)), True),
    "a sum of long ones": (over(total(dtypes.int64)), True),
    "a sum of products": (over(total(dtypes.int32, "mul")), True),
    "a sum of products of long ones": (over(total(dtypes.int64, "mul")), False),
    "a sum of bytes": (over(total(dtypes.uint8), rounds=16), False),
    "a sum of others": (over(total(dtypes.int64, source=dtypes.int32)), False),
    "a sum of columns": (over(total(dtypes.int32, turned=True)), False),
    "names only": (over(Store(Access(S, ()), num(1.0))), False),
    "lanes": (over(put(), kind="vector"), False),
    "a loop inside": (over(For(J, const(0), const(4), 1, (put(),))), False),
}


@pytest.mark.parametrize("name", LOOPS)
def test_which_loops_are_elementwise(name: str) -> None:
    loop, wanted = LOOPS[name]
    assert is_elementwise(loop) is wanted


@pytest.mark.parametrize("bits", [0, 128, 256, 512])
def test_compilers_are_told_where_there_are_vectors(bits: int) -> None:
    body = For(J, const(0), const(8), 1, (over(SUM), over(put(), rounds=17), over(put(by=2))))
    parameters = tuple(Parameter(node, node is Y) for node in (Y, X, S))
    made = Program("f", parameters, (), (), (Kernel("f", (body,)),))
    text = print_program(made, replace(place(made), vector_bits=bits)).text
    lines = [line.strip() for line in text.splitlines()]
    told = [after for line, after in zip(lines, lines[1:], strict=False) if "unroll 1" in line]
    assert told == (["for (int64_t i = 0; i < 8; i++) {"] if bits else [])
