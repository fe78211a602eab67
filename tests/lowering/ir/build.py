"""Short constructors, so that a test's program reads like the program."""

from __future__ import annotations

from dataclasses import replace

from plusequals.lowering.ir import assignments, dtypes, loops
from plusequals.lowering.ir.assignments import Access, Assign, Pair, Parameter, Procedure
from plusequals.lowering.ir.dtypes import DType
from plusequals.lowering.ir.expressions import (
    Apply,
    Const,
    Domain,
    Dynamic,
    Expr,
    Index,
    Position,
    Read,
)
from plusequals.lowering.ir.indexing import Affine, Range, Symbol, const, var
from plusequals.lowering.ir.node import Node
from plusequals.lowering.ir.ops import OPS, PAIR_OPS

f32, f64, i32, i64, bool_ = (
    dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64, dtypes.bool_,
)  # fmt: skip
POINT = Domain()
IndexLike = Affine | Symbol | int | Expr


def symbols(names: str) -> tuple[Symbol, ...]:
    """One symbol for each name of `"i j k"`, with serials from 0."""
    return tuple(Symbol(name, serial) for serial, name in enumerate(names.split()))


def aff(index: Affine | Symbol | int) -> Affine:
    if isinstance(index, int):
        return const(index)
    return var(index) if isinstance(index, Symbol) else index


def index_of(index: IndexLike) -> Index:
    return aff(index) if isinstance(index, Affine | Symbol | int) else Dynamic(index)


def node(number: int, label: str, *shape: Affine | Symbol | int, dtype: DType = f32) -> Node:
    return Node(number, label, tuple(aff(extent) for extent in shape), dtype)


def at(of: Node, *index: IndexLike) -> Access:
    return Access(of, tuple(index_of(i) for i in index))


def read(of: Node, *index: IndexLike) -> Read:
    return Read(of, tuple(index_of(i) for i in index))


def num(value: bool | int | float | complex, dtype: DType = f32) -> Const:
    return Const(value, dtype)


def pos(index: Affine | Symbol | int) -> Position:
    return Position(aff(index))


def ap(name: str, *args: Expr) -> Apply:
    op, dtype = OPS[name], args[0].dtype
    result = {"same": dtype, "bool": bool_, "real": dtype.real, "complex": dtypes.complex128}
    return Apply(op, args, result[op.result])


def rng(symbol: Symbol, lo: Affine | Symbol | int, hi: Affine | Symbol | int) -> Range:
    return Range(symbol, aff(lo), aff(hi))


def over(*ranges: Range, where: Expr | None = None) -> Domain:
    return Domain(ranges, where)


def put(target: Access, value: Expr, *free: Range, where: Expr | None = None) -> Assign:
    """`target = value    for free where where`."""
    return Assign(target, None, False, value, Domain(free, where))


def acc(target: Access, op: str, value: Expr, free: Domain, reduced: Domain = POINT) -> Assign:
    """`target op= value`."""
    return Assign(target, OPS[op], False, value, free, reduced)


def red(target: Access, op: str, value: Expr, free: Domain, reduced: Domain) -> Assign:
    """`target = op over reduced: value`."""
    return Assign(target, OPS[op], True, value, free, reduced)


def best(op: str, target: Access, pair: Pair, value: Expr, free: Domain, reduced: Domain) -> Assign:
    """`target, place = op over reduced: value at position`."""
    return Assign(target, PAIR_OPS[op], True, value, free, reduced, pair)


def procedure(
    written: tuple[Node, ...],
    given: tuple[Node, ...],
    *body: assignments.Statement,
    local: tuple[Node, ...] = (),
    results: tuple[Node, ...] = (),
    name: str = "f",
) -> Procedure:
    """A procedure whose parameters are the written nodes, then the given ones."""
    parameters = tuple(Parameter(n, True) for n in written) + tuple(
        Parameter(n, False) for n in given
    )
    return Procedure(name, parameters, local, results, body)


def program(
    written: tuple[Node, ...],
    given: tuple[Node, ...],
    *body: loops.Stmt,
    local: tuple[Node, ...] = (),
    results: tuple[Node, ...] = (),
    name: str = "f",
) -> loops.Program:
    """A program of one kernel, its parameters as in `procedure`."""
    same = procedure(written, given, local=local, results=results, name=name)
    kernel = loops.Kernel(name, body)
    return loops.Program(name, same.parameters, local, results, (kernel,))


def in_kernels(whole: loops.Program) -> loops.Program:
    """The same program with a kernel for each statement."""
    (kernel,) = whole.kernels
    each = (loops.Kernel(f"{kernel.name}_{n}", (stmt,)) for n, stmt in enumerate(kernel.body))
    return replace(whole, kernels=tuple(each))
