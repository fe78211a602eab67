"""The recorded terms of a reduction, of traces with `terms=True`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...base.dataclass import dataclass
from ...lowering.ir.assignments import Assign
from ...lowering.ir.expressions import Reduce
from ...lowering.ir.text import reduction_name
from .points import Points
from .records import Operand, Record, operands, term_text, to_text


@dataclass(frozen=True, slots=True, repr=False)
class Term:
    """One term of a reduction."""

    at: dict[str, int]
    """The values of the reduction's index variables, by name."""
    text: str
    """`a[0, 2]{=3.0} * x[2]{=0.5}`."""
    value: Any
    operands: tuple[Operand, ...]
    reduce: Reduce
    """The reduction of the term."""

    def __str__(self) -> str:
        where = ", ".join(f"{name} = {value}" for name, value in self.at.items())
        value = "" if self.is_read else f" = {to_text(self.value)}"
        over = f"[{where}]" if where else ""
        return f"{reduction_name(self.reduce.op)}{over}: {self.text}{value}"

    def __repr__(self) -> str:
        return f"<term {self}>"

    @property
    def is_read(self) -> bool:
        """Whether it is a single operand, whose value its text shows."""
        return len(self.operands) == 1 and self.operands[0].expr == self.reduce.value


def read_terms(points: Points, record: Record, most: int | None = None) -> Iterator[Term]:
    """Yield the recorded terms of one reduction in a record.

    At most `most` of them, if given: non-finite ones first, then the largest.
    """
    site = points.site
    statement, reduce = site.statement, site.reduce
    assert isinstance(statement, Assign) and reduce is not None
    values = points.column("after")
    reduce_symbols = [axis.symbol for axis in site.axes[len(record.axes) :]]
    positions = _term_positions(points, record)
    if most is not None:
        positions = positions[_sort_by_size(values[positions])[:most]]
    for at in map(int, positions):
        term_operands = tuple(operands(points, at))
        named = [symbol for symbol in reduce_symbols if symbol not in site.hidden]
        names = {symbol.name: int(points.symbols[symbol][at]) for symbol in named}
        yield Term(
            names, term_text(statement, reduce, term_operands), values[at], term_operands, reduce
        )


def count_terms(points: Points, record: Record) -> int:
    """Return the number of terms of one reduction in a record."""
    return len(_term_positions(points, record))


def _sort_by_size(values: np.ndarray) -> np.ndarray:
    """Return the permutation that sorts values: non-finite ones first, then by magnitude."""
    with np.errstate(all="ignore"):
        size = np.abs(values.astype(np.complex128))
    is_finite = np.isfinite(size)
    return np.lexsort((np.where(is_finite, -size, 0.0), is_finite))


def _term_positions(points: Points, record: Record) -> np.ndarray:
    """Return the positions of a record's terms: in the rows before its row, at equal indices."""
    if points.site.statement is not record.site.statement:
        return np.zeros(0, np.int64)
    distance = record.site.number - points.site.number
    first, end = np.searchsorted(points.row, [record.row - distance, record.row])
    places = np.arange(first, end)
    for axis, value in zip(points.site.axes, record.axes, strict=False):
        places = places[points.symbols[axis.symbol][places] == value]
    return places
