"""The terms of a reduction, one by one, where a trace was asked for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...base.dataclass import dataclass
from ...lowering.ir.assignments import Assign
from ...lowering.ir.expressions import Reduce
from ...lowering.ir.text import reduction_name
from .points import Points
from .records import Operand, Record, operands, shown, term_text


@dataclass(frozen=True, slots=True, repr=False)
class Term:
    """One term of a reduction."""

    at: dict[str, int]
    """What the letters of the reduction stood for, by name."""
    text: str
    """`a[0, 2]{=3.0} * x[2]{=0.5}`."""
    value: Any
    operands: tuple[Operand, ...]
    reduce: Reduce
    """The reduction that it belongs to."""

    def __str__(self) -> str:
        where = ", ".join(f"{name} = {value}" for name, value in self.at.items())
        value = "" if self.is_read else f" = {shown(self.value)}"
        over = f"[{where}]" if where else ""
        return f"{reduction_name(self.reduce.op)}{over}: {self.text}{value}"

    def __repr__(self) -> str:
        return f"<term {self}>"

    @property
    def is_read(self) -> bool:
        """Whether it is just something that was read, whose value stands there."""
        return len(self.operands) == 1 and self.operands[0].expr == self.reduce.value


def terms_at(points: Points, record: Record, most: int | None = None) -> Iterator[Term]:
    """Yield the terms of one reduction in a record, of all that a run recorded of it.

    Where `most` is given only so many: those that are not finite first, then the largest.
    """
    site = points.site
    statement, reduce = site.statement, site.reduce
    assert isinstance(statement, Assign) and reduce is not None
    values = points.column("after")
    own = [axis.symbol for axis in site.axes[len(record.axes) :]]
    places = _places(points, record)
    if most is not None:
        places = places[_by_size(values[places])[:most]]
    for at in map(int, places):
        found = tuple(operands(points, at))
        named = [symbol for symbol in own if symbol not in site.hidden]
        names = {symbol.name: int(points.symbols[symbol][at]) for symbol in named}
        yield Term(names, term_text(statement, reduce, found), values[at], found, reduce)


def count_at(points: Points, record: Record) -> int:
    """Return how many terms of one reduction in a record there are."""
    return len(_places(points, record))


def _by_size(values: np.ndarray) -> np.ndarray:
    """Return the order of values: those that are not finite first, then large ones."""
    with np.errstate(all="ignore"):
        size = np.abs(values.astype(np.complex128))
    fine = np.isfinite(size)
    return np.lexsort((np.where(fine, -size, 0.0), fine))


def _places(points: Points, record: Record) -> np.ndarray:
    """Return the places of a record's terms: right before its row, at its own indices."""
    if points.site.statement is not record.site.statement:
        return np.zeros(0, np.int64)
    behind = record.site.number - points.site.number
    first, end = np.searchsorted(points.row, [record.row - behind, record.row])
    places = np.arange(first, end)
    for axis, value in zip(points.site.axes, record.axes, strict=False):
        places = places[points.symbols[axis.symbol][places] == value]
    return places
