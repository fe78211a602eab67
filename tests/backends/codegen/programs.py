"""Small procedures built by hand, for the tests of lowering and of emitted text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plusequals.backends.codegen.dialect import C
from plusequals.backends.codegen.frame import Frame, build_frame
from plusequals.base.diagnostic import Source, Span
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.assignments import Access, Assign, Parameter, Procedure, Statement
from plusequals.lowering.ir.dtypes import DType
from plusequals.lowering.ir.expressions import Apply, Const, Domain, Expr, Index, Position, Read
from plusequals.lowering.ir.indexing import Affine, Range, Symbol, const, var
from plusequals.lowering.ir.node import Node
from plusequals.lowering.ir.ops import OPS
from plusequals.lowering.lower import lower
from plusequals.lowering.placement import place_nodes


def symbols(names: str) -> list[Symbol]:
    """Return symbols of those names, with serials in order."""
    return [Symbol(name, serial) for serial, name in enumerate(names.split())]


def node(id_: int, label: str, shape: Sequence[int | Affine], dtype: DType = dtypes.float32,
         strides: tuple[int, ...] | None = None) -> Node:  # fmt: skip
    """Return a node whose extents may be numbers."""
    return Node(id_, label, tuple(const(n) if isinstance(n, int) else n for n in shape), dtype,
                strides)  # fmt: skip


def at(*index: Symbol | Affine | int | Index) -> tuple[Index, ...]:
    """Return an index of symbols, numbers and expressions."""
    return tuple(
        var(i) if isinstance(i, Symbol) else const(i) if isinstance(i, int) else i for i in index
    )


def read(array: Node, *index: Any) -> Read:
    return Read(array, at(*index))


def apply(name: str, *args: Expr) -> Apply:
    """Return an operation on operands of one type."""
    result = OPS[name].result
    dtype = args[0].dtype
    wide = dtypes.complex128 if dtype is dtypes.float64 else dtypes.complex64
    unsigned, signed, real = (dtypes.BY_SHORT.get(f"{kind}{dtype.bits}", dtype) for kind in "uif")
    made = {"same": dtype, "bool": dtypes.bool_, "real": dtype.real, "complex": wide,
            "unsigned": unsigned, "signed": signed, "float": real}[result]  # fmt: skip
    return Apply(OPS[name], args, made)


def number(value: float, dtype: DType = dtypes.float32) -> Const:
    return Const(value, dtype)


def position(index: Symbol | Affine) -> Position:
    return Position(var(index) if isinstance(index, Symbol) else index)


def over(*ranges: tuple[Symbol, int | Affine, int | Affine], where: Expr | None = None) -> Domain:
    """Return a domain of ranges `(symbol, lo, hi)`."""
    made = (
        Range(s, *(const(n) if isinstance(n, int) else n for n in bounds)) for s, *bounds in ranges
    )
    return Domain(tuple(made), where)


def span(text: str, line: int = 1) -> Span:
    """Return the span of a statement of that text."""
    return Span(Source("example.py", line, text), line, 0, line, len(text))


def assign(text: str, target: Node, index: tuple[Index, ...], value: Expr, free: Domain,
           op: str | None = None, **others: Any) -> Assign:  # fmt: skip
    """Return a statement; `op` by name, and initialised where that is given."""
    others.setdefault("initialize", False)
    return Assign(Access(target, index), OPS[op] if op else None, value=value, free=free,
                  span=span(text), **others)  # fmt: skip


def procedure(name: str, parameters: Sequence[tuple[Node, bool]], body: Sequence[Statement],
              locals_: Sequence[Node] = (), results: Sequence[Node] = ()) -> Procedure:  # fmt: skip
    """Return a procedure; a parameter is a node and whether it is written."""
    made = tuple(Parameter(*given) for given in parameters)
    return Procedure(name, made, tuple(locals_), tuple(results), tuple(body), span(f"def {name}"))


def frame_for(
    parameters: Sequence[tuple[Node, bool]], body: Sequence[Statement],
    locals_: Sequence[Node] = (), results: Sequence[Node] = (),
) -> Frame:  # fmt: skip
    """Return the frame in C of a procedure called `f`."""
    program = lower(procedure("f", parameters, body, locals_, results))
    return build_frame(program, place_nodes(program), C)


def softmax(rows: int = 4, columns: int = 2000) -> Procedure:
    """The softmax of the language page: two reductions, a large and a small temporary."""
    i, j, i2, j2, i3, j3, k, i4 = symbols("i j i j i j k i")
    y, x = node(0, "y", (rows, columns)), node(1, "x", (rows, columns))
    m, e, s = node(2, "m", (rows,)), node(3, "e", (rows, columns)), node(4, "s", (rows,))
    body = [
        assign("m[i] = max(x[i, j])", m, at(i), read(x, i, j), over((i, 0, rows)), "max",
               initialize=True, reduced=over((j, 0, columns))),
        assign("e[i, j] = exp(x[i, j] - m[i])", e, at(i2, j2),
               apply("exp", apply("sub", read(x, i2, j2), read(m, i2))),
               over((i2, 0, rows), (j2, 0, columns))),
        assign("sum[k](e[i, k])", s, at(i4), read(e, i4, k), over((i4, 0, rows)), "add",
               initialize=True, reduced=over((k, 0, columns))),
        assign("y[i, j] = e[i, j] / sum[k](e[i, k])", y, at(i3, j3),
               apply("div", read(e, i3, j3), read(s, i3)),
               over((i3, 0, rows), (j3, 0, columns))),
    ]  # fmt: skip
    return procedure("softmax", [(y, True), (x, False)], body, [m, e, s])
