"""Small procedures for the tests of backends, one for each thing that has to be handed back."""

from __future__ import annotations

from plusequals.lowering.ir.assignments import Alloc, Check, Fault, Let, Print, Procedure
from plusequals.lowering.ir.dtypes import float64, int64
from plusequals.lowering.ir.expressions import Domain
from plusequals.lowering.ir.node import Node

from ..lowering.ir.build import (
    acc,
    ap,
    at,
    node,
    num,
    over,
    pos,
    procedure,
    put,
    read,
    rng,
    symbols,
)

i, n = symbols("i n")


def scale(factor: float = 2.0, size: int = 4, strides: tuple[int, ...] | None = None) -> Procedure:
    """`y[i] = x[i] * factor`."""
    y = node(0, "y", size, dtype=float64)
    x = Node(1, "x", y.shape, float64, strides)
    value = ap("mul", read(x, i), num(factor, float64))
    return procedure((y,), (x,), put(at(y, i), value, rng(i, 0, size)), name="scale")


def counted() -> Procedure:
    """`y[i] += 1`, for an array of any size."""
    y = node(0, "y", n, dtype=float64)
    value = ap("add", read(y, i), num(1.0, float64))
    return procedure((y,), (), put(at(y, i), value, rng(i, 0, n)), name="counted")


def total(size: int = 4) -> Procedure:
    """`s = sum(x[i])`, a new array of rank 0."""
    x, s = node(0, "x", size, dtype=float64), node(1, "s", dtype=float64)
    adding = acc(at(s), "add", read(x, i), Domain(), over(rng(i, 0, size)))
    return procedure((), (x,), adding, results=(s,), name="total")


def roots(size: int = 4) -> Procedure:
    """`y[i] = sqrt(x[i])`, refused where an `x[i]` is negative."""
    y, x = node(0, "y", size, dtype=float64), node(1, "x", size, dtype=float64)
    fault = Fault("CD0700", "CdValueError", "x is {0} at i = {1}", ("pass abs(x)",))
    test = ap("ge", read(x, i), num(0.0, float64))
    check = Check(test, fault, (read(x, i), pos(i)), over(rng(i, 0, size)))
    writing = put(at(y, i), ap("sqrt", read(x, i)), rng(i, 0, size))
    return procedure((y,), (x,), check, writing, name="roots")


def talking(size: int = 3) -> Procedure:
    """Prints two lines with elements of an array."""
    x = node(0, "x", size, dtype=float64)
    pieces = ("x[0] = ", read(x, 0), ", index ", pos(1), "; done")
    return procedure((), (x,), Print(pieces), Print(("again ", read(x, 1))), name="talking")


def counting() -> Procedure:
    """`r = arange(size)`, where only the run knows how long that is."""
    size, r = node(0, "size", dtype=int64), node(1, "r", n, dtype=int64)
    body = (Let(n, read(size)), Alloc(r), put(at(r, i), pos(i), rng(i, 0, n)))
    return procedure((), (size,), *body, results=(r,), name="counting")
