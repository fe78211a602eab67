"""What a derivative keeps for its adjoint statements: values, and checkpoints of loops."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from ...base.dataclass import dataclass
from ...base.diagnostic import NOWHERE, Span
from ...lowering.analysis.iteration_domains import CallValues, call_values, evaluate_at
from ...lowering.ir.assignments import Break, Continue, Let, Procedure
from ...lowering.ir.expressions import Apply, Cast, Expr, children
from ...lowering.ir.indexing import Affine, Symbol, evaluate
from ...lowering.ir.node import Node
from ...lowering.ir.walk import direct_reads, statements

_ENDINGS = ("_kept", "_checkpoint")


@dataclass(frozen=True, slots=True)
class KeptArray:
    """An array that is kept."""

    name: str
    shape: tuple[int | str, ...]
    """Sizes that are known only when the function runs are texts."""
    dtype: str
    bytes: int | None
    """None where the size is known only when the function runs."""
    line: int | None
    """The line of the function whose adjoint reads it again; of a checkpoint that of its loop."""

    @property
    def is_checkpoint(self) -> bool:
        """Whether it holds states of a loop, from which its values are computed again."""
        return self.name.endswith("_checkpoint")


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept for the arguments of a call. Its text is a table, with the total."""

    arrays: tuple[KeptArray, ...]
    whole: tuple[tuple[int, str], ...] = ()
    """The loops that keep all states though fewer were asked for: their lines, and the reasons."""

    @property
    def bytes(self) -> int:
        """How many bytes all arrays have whose sizes are known."""
        return sum(one.bytes or 0 for one in self.arrays)

    def __str__(self) -> str:
        rows = [("array", "shape", "type", "bytes", "line"), *map(_row, self.arrays)]
        rows.append(("total", "", "", f"{self.bytes:,}", ""))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        lines += [f"line {line} keeps all states: {reason}" for line, reason in self.whole]
        return "\n".join(lines)


def _row(one: KeptArray) -> tuple[str, ...]:
    size = "?" if one.bytes is None else f"{one.bytes:,}"
    shape = ", ".join(map(str, one.shape)) + "," * (len(one.shape) == 1)
    return one.name, f"({shape})", one.dtype, size, str(one.line or "")


def report(
    procedure: Procedure, arguments: Sequence[Any], whole: Sequence[tuple[str, Span]]
) -> Kept:
    """Return what the procedure of a derivative keeps, for the values of its parameters."""
    known = call_values(procedure.parameters, arguments)
    symbols = dict(known.symbols)
    for stmt in procedure.body:
        if isinstance(stmt, Let):
            value = _number(stmt.value, CallValues(symbols, known.scalars))
            if value is not None:
                symbols[stmt.symbol] = int(value)
    arrays = tuple(_kept(node, symbols, procedure) for node in _nodes(procedure))
    return Kept(arrays, tuple((span.line, reason) for reason, span in whole))


def _number(expr: Expr, known: CallValues) -> Any:
    """Return the value of an expression, None where it depends on arrays."""
    if not isinstance(expr, Apply | Cast):
        return evaluate_at(expr, {}, known)
    parts = [_number(part, known) for part in children(expr)]
    if any(part is None for part in parts):
        return None
    return expr.dtype.numpy.type(*parts) if isinstance(expr, Cast) else expr.op.meaning(*parts)


def _nodes(procedure: Procedure) -> Iterator[Node]:
    for node in procedure.locals:
        is_own = re.sub("^(d_)+", "", node.label) in procedure.taken
        if node.label.endswith(_ENDINGS) and not is_own:
            yield node


def _kept(node: Node, symbols: dict[Symbol, int], procedure: Procedure) -> KeptArray:
    shape = tuple(_size(extent, symbols) for extent in node.shape)
    sizes = [size for size in shape if isinstance(size, int)]
    known = len(sizes) == len(shape)
    readers = [stmt for stmt in statements(procedure.body) if node in direct_reads(stmt)]
    spans = [stmt.span for stmt in readers if not isinstance(stmt, Break | Continue)]
    line = next((span.line for span in spans if span is not NOWHERE), None)
    total = math.prod(sizes) * node.dtype.numpy.itemsize if known else None
    return KeptArray(node.label, shape, node.dtype.name, total, line)


def _size(extent: Affine, symbols: dict[Symbol, int]) -> int | str:
    return evaluate(extent, symbols) if extent.symbols() <= symbols.keys() else str(extent)
