"""Record buffers of an instrumented procedure, and helpers that build its tests and counters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...lowering.ir import dtypes
from ...lowering.ir.assignments import Access, Assign, Parameter
from ...lowering.ir.expressions import Apply, Domain, Expr, Position, Read, Select
from ...lowering.ir.indexing import Affine, Symbol, const, var
from ...lowering.ir.node import Node
from ...lowering.ir.ops import OPS
from . import sites as s

_TABLE = (
    ("trace_table", dtypes.int64), ("trace_floats", dtypes.float64), ("trace_ints", dtypes.int64),
    ("trace_used", dtypes.int64),
)  # fmt: skip


class Buffers:
    """The record buffers of a procedure, and a source of new symbols for it."""

    def __init__(self, serial: int, node: int) -> None:
        self.serial = serial
        rows, width, floats, ints = map(self.symbol, ("rows", "width", "floats", "ints"))
        self.capacity = {s.ROWS: var(rows), s.FLOATS: var(floats), s.INTS: var(ints)}
        shapes = ((var(rows), var(width)), (var(floats),), (var(ints),), (const(s.COUNTERS),))
        self.nodes = [
            Node(node + n, label, shape, dtype)
            for n, ((label, dtype), shape) in enumerate(zip(_TABLE, shapes, strict=True), 1)
        ]
        self.table, self.floats, self.ints, self.used = self.nodes

    @property
    def parameters(self) -> Iterator[Parameter]:
        """The buffers as the last parameters of a procedure."""
        for node, counter in zip(self.nodes, (s.ROWS, s.FLOATS, s.INTS, None), strict=True):
            yield Parameter(node, True, counter)

    def symbol(self, name: str) -> Symbol:
        """Return a new symbol."""
        self.serial += 1
        return Symbol(name, self.serial)

    def counter_access(self, number: int) -> Access:
        """Return the access that writes a counter."""
        return Access(self.used, (const(number),))

    def counter(self, number: int) -> Expr:
        """Return the value of a counter."""
        return Read(self.used, (const(number),))

    def count(self, number: int, by: Expr, op: str = "add") -> Assign:
        """Return the assignment that adds to a counter, or subtracts from it."""
        return Assign(self.counter_access(number), OPS[op], False, by, Domain())


def compare(op: str, left: Affine | Expr, right: Affine | Expr) -> Expr:
    """Return the comparison of two values or indices."""
    sides = tuple(Position(x) if isinstance(x, Affine) else x for x in (left, right))
    return Apply(OPS[op], sides, dtypes.bool_)


def conjunction(tests: Iterable[Expr]) -> Expr | None:
    """Return the conjunction of tests, evaluated in order; None for none."""
    result: Expr | None = None
    for test in tests:
        result = test if result is None else Apply(OPS["and"], (result, test), dtypes.bool_)
    return result


def to_integer(test: Expr | None) -> Expr:
    """Return 1 where a test holds, else 0, as an int64 expression."""
    assert test is not None
    return Select(test, Position(const(1)), Position(const(0)))
