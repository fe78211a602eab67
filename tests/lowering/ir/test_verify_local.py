"""One broken statement for each check of one statement alone, and that sound ones pass."""

from __future__ import annotations

import pytest

from plusequals.lowering.ir import dtypes, instructions, loops, verify_local
from plusequals.lowering.ir.assignments import (
    Alloc,
    Assign,
    Branch,
    Check,
    Fault,
    For,
    Let,
    Pair,
    Permute,
    While,
)
from plusequals.lowering.ir.expressions import Apply, Cast, Expr, Reduce, Select
from plusequals.lowering.ir.indexing import Symbol
from plusequals.lowering.ir.loops import AnyStatement
from plusequals.lowering.ir.node import Node
from plusequals.lowering.ir.ops import OPS, PAIR_OPS

from .build import (
    acc,
    aff,
    ap,
    at,
    best,
    bool_,
    f32,
    f64,
    i32,
    i64,
    node,
    num,
    over,
    pos,
    put,
    read,
    red,
    rng,
    symbols,
)

I, J, N, K = symbols("i j n k")
X, Y, H = node(0, "x", 4), node(1, "y", 4, dtype=f64), node(2, "h", 4, dtype=dtypes.float16)
W, B, C = node(3, "w", dtype=i64), node(4, "b", dtype=bool_), node(5, "c", dtype=dtypes.complex64)
TEST = ap("lt", read(W), num(3, i64))
FAULT = Fault("CD0301", "CdIndexError", "{0} is too much")
ROWS = rng(I, 0, 4)
POINTS = over(ROWS)


def into(value: Expr) -> Assign:
    return put(at(node(50, "r", dtype=value.dtype)), value)


def problems(check: str, statement: AnyStatement) -> list[str]:
    return list(getattr(verify_local, check)(verify_local.StatementView.at(statement)))


def apply(name: str, *args: Expr, dtype: dtypes.DType) -> Apply:
    return Apply(OPS[name], args, dtype)


def matmul(total: Node, first: Expr, second: Expr, terms: int | Symbol = 4) -> instructions.MatMul:
    over = rng(I, 0, 4), rng(J, 0, 4), rng(K, 0, terms)
    return instructions.MatMul(at(total, 0), first, second, over, "warp")


WIDE = node(9, "wide", 4, 8)
BROKEN: list[tuple[str, AnyStatement, str]] = [
    ("ranks_match", put(at(X), num(1.0)), "x#0 of rank 1 has 0 indices"),
    ("ranks_match", into(read(X, 0, 0)), "x#0 of rank 1 has 2 indices"),
    ("ranks_match", into(read(X, read(W, 0))), "w#3 of rank 0 has 1 indices"),
    ("constants_fit", into(num(256, dtypes.uint8)), "256 is no uint8"),
    ("constants_fit", into(num(-1, dtypes.uint8)), "-1 is no uint8"),
    ("constants_fit", into(num(1.0, i32)), "1.0 is no int32"),
    ("constants_fit", into(num(1, bool_)), "1 is no bool"),
    ("constants_fit", into(num(1j, f32)), "1j is no float32"),
    ("operands_fit", into(apply("add", num(1.0), num(1.0, f64), dtype=f32)),
     "the operands of add are of types ['float32', 'float64']"),
    ("operands_fit", into(apply("shl", num(1, i32), num(1, i64), dtype=i32)),
     "the operands of shl are of types ['int32', 'int64']"),
    ("operands_fit", into(apply("add", num(1.0), dtype=f32)), "add takes 2 operands, not 1"),
    ("operands_fit", into(ap("add", read(B), read(B))), "add does not admit bool"),
    ("operands_fit", into(ap("max", read(C), read(C))), "max does not admit complex64"),
    ("operands_fit", into(ap("exp", num(1, i64))), "exp does not admit int64"),
    ("operands_fit", into(ap("neg", read(H, 0))), "neg is computed in float32, not float16"),
    ("operands_fit", into(apply("lt", num(1.0), num(1.0), dtype=f32)),
     "lt of float32 gives bool, not float32"),
    ("operands_fit", into(apply("abs", read(C), dtype=dtypes.complex64)),
     "abs of complex64 gives float32, not complex64"),
    ("operands_fit", into(apply("complex", num(1.0), num(1.0), dtype=f32)),
     "complex of float32 gives complex64, not float32"),
    ("selects_agree", into(Select(TEST, num(1.0), num(1.0, f64))),
     "the sides are float32 and float64"),
    ("selects_agree", into(Select(read(W), num(1.0), num(1.0))), "the test is int64"),
    ("tests_are_bool", Branch(read(W), (), ()), "a test is int64"),
    ("tests_are_bool", While((), read(W), ()), "a test is int64"),
    ("tests_are_bool", loops.If(read(W), ()), "a test is int64"),
    ("tests_are_bool", Check(read(W), FAULT), "a test is int64"),
    ("tests_are_bool", put(at(X, I), num(1.0), ROWS, where=read(W)), "a test is int64"),
    ("tests_are_bool",
     into(Reduce(OPS["add"], over(ROWS, where=read(W)), num(1.0), f32)), "a test is int64"),
    ("indices_are_integers", into(read(X, num(1, i32))), "an index of x#0 is int32"),
    ("indices_are_integers", put(at(X, num(1, i32)), num(1.0)), "an index of x#0 is int32"),
    ("indices_are_integers", Let(N, num(1, i32)), "n is int32"),
    ("stored_types_agree", put(at(X, 0), num(1.0, f64)), "a value of float64 goes into x#0"),
    ("stored_types_agree", acc(at(X, 0), "add", num(1.0, f64), over()), "goes into x#0"),
    ("stored_types_agree", loops.Store(at(X, 0), num(1, i64)), "a value of int64 goes into x#0"),
    ("stored_types_agree", loops.Update(at(X, 0), OPS["add"], num(1, i64)), "goes into x#0"),
    ("stored_types_agree", loops.Fill(X, num(1, i64)), "a value of int64 goes into x#0"),
    ("accumulators_fit", Assign(at(X, 0), None, False, num(1.0), over(), POINTS),
     "a plain assignment reduces over ranges"),
    ("accumulators_fit", Assign(at(X, 0), None, True, num(1.0), over()),
     "a plain assignment has no neutral element"),
    ("accumulators_fit", red(at(X, 0), "fmax", num(1.0), over(), POINTS),
     "fmax has no neutral element"),
    ("accumulators_fit", acc(at(X, 0), "exp", num(1.0), over()), "exp does not accumulate"),
    ("accumulators_fit", acc(at(X, 0), "lt", num(1.0), over()), "lt does not accumulate"),
    ("accumulators_fit", acc(at(B), "add", num(True, bool_), over()), "add does not admit bool"),
    ("accumulators_fit",
     loops.Update(at(H, 0), OPS["add"], Cast(num(1.0), dtypes.float16)),
     "add is computed in float32, not float16"),
    ("pairs_fit", Assign(at(X, 0), PAIR_OPS["argmin"], True, num(1.0), over(), POINTS),
     "argmin has no place for the position"),
    ("pairs_fit", loops.Update(at(X, 0), OPS["add"], num(1.0), Pair(at(W), aff(0))),
     "add has a place for the position"),
    ("pairs_fit", best("argmax", at(X, 0), Pair(at(Y, 0), aff(I)), num(1.0), over(), POINTS),
     "the position goes into y#1 of float64"),
    ("pairs_fit", into(Reduce(PAIR_OPS["argmax"], POINTS, num(1.0), i64)),
     "a reduction by argmax has the wrong kind of position"),
    ("stored_types_agree", instructions.CopyVector(at(X, 0), read(H, 0), 8, (-1, -1)),
     "a value of float16 goes into x#0"),
    ("stored_types_agree", instructions.StoreVector(at(X, 0), -1, (num(1.0), num(1, i64))),
     "a value of int64 goes into x#0"),
    ("vectors_fit", instructions.CopyVector(at(X, 0), read(X, 0), 8, (-1, -1)),
     "8 elements of x#0 are copied at once"),
    ("vectors_fit", instructions.CopyVector(at(X, 0), read(WIDE, 0, 0), 4, (-1, -2)),
     "wide#9 is not contiguous along axis -2"),
    ("vectors_fit", instructions.StoreVector(at(X, read(W)), -1, (num(1.0), num(2.0))),
     "data decides where a vector of x#0 is"),
    ("vectors_fit", instructions.StoreVector(at(X, 0), -2, (num(1.0), num(2.0))),
     "x#0 is not contiguous along axis -2"),
    ("vectors_fit", instructions.StoreVector(at(X, 0), -1, (num(1.0),)),
     "1 elements of x#0 are a vector"),
    ("products_fit", matmul(node(9, "s"), read(X, I), read(X, J)), "s#9 cannot hold sums"),
    ("products_fit", matmul(X, read(X, I), num(1.0)), "is not an element of a tile"),
    ("products_fit", matmul(X, Cast(read(H, I), f32), read(X, J)), "factors are of float16 and"),
    ("products_fit", matmul(X, read(H, I), read(H, J)), "products of float16 and float16"),
    ("products_fit", matmul(X, read(X, I), read(X, J), N), "a tile is of run-time size"),
    ("products_fit", instructions.AwaitProducts(Y), "y#1 cannot hold sums of products"),
    ("products_fit", instructions.AwaitProducts(W), "w#3 cannot hold sums of products"),
    ("no_reduce", into(ap("neg", Reduce(OPS["add"], POINTS, num(1.0), f32))),
     "a reduction is left inside an expression"),
    ("allocations_are_dynamic", Alloc(X), "x#0 has a static shape"),
    ("permutations_fit", Permute((X, X), (X, X)), "the two sides are not the same nodes"),
    ("permutations_fit", Permute((X, Y), (Y, X)), "of different shapes, strides or types"),
    ("faults_can_be_raised", Check(TEST, Fault("CD1", "ValueError", "")), "no error class"),
    ("faults_can_be_raised", Check(TEST, Fault("CD1", "Source", "")), "no error class Source"),
    ("faults_can_be_raised", loops.Check(TEST, FAULT), "the message has slots ['0'] for 0 values"),
    ("steps_are_not_zero", For(I, aff(0), aff(4), 0, ()), "the step is zero"),
]  # fmt: skip

SOUND: list[AnyStatement] = [
    put(at(X, I), ap("exp", read(X, I)), ROWS, where=TEST),
    put(at(X, pos(I)), num(float("nan")), ROWS),
    put(at(H, 0), Cast(ap("neg", Cast(read(H, 0), f32)), dtypes.float16)),
    put(at(C), apply("complex", num(1.0), num(2.0), dtype=dtypes.complex64)),
    into(ap("abs", read(C))),
    acc(at(B), "and", TEST, over()),
    red(at(X, 0), "max", read(X, I), over(), POINTS),
    acc(at(X, I), "relu_gate", read(X, I), POINTS),
    best("argmin", at(X, 0), Pair(at(W), aff(I)), read(X, I), over(), POINTS),
    loops.Update(at(W), OPS["pow"], num(2, i64)),
    Check(TEST, FAULT, (read(W),)),
    Permute((X, node(9, "z", 4)), (node(9, "z", 4), X)),
    Alloc(node(9, "row", N)),
    Let(N, pos(J)),
    instructions.CopyVector(at(X, 0), read(X, 4), 4, (-1, -1)),
    instructions.StoreVector(at(WIDE, 0, 0), -1, (num(1.0), num(2.0))),
    matmul(X, Cast(read(H, I), f32), Cast(read(H, J), f32)),
    instructions.AwaitProducts(X),
]


@pytest.mark.parametrize(("check", "statement", "wanted"), BROKEN)
def test_each_check_finds_what_it_is_for(check: str, statement: AnyStatement, wanted: str) -> None:
    found = problems(check, statement)
    assert len(found) == 1
    assert wanted in found[0]


CHECKS = sorted({check for check, _, _ in BROKEN})


@pytest.mark.parametrize("statement", SOUND)
def test_sound_statements_have_no_problem(statement: AnyStatement) -> None:
    assert [problem for check in CHECKS for problem in problems(check, statement)] == []
