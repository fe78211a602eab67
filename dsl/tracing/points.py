"""Columnar view of the records of one site of a run: arrays over points, in program order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.dataclass import dataclass
from ...lowering.analysis.iteration_domains import CallValues, evaluate_at, evaluate_index
from ...lowering.ir.assignments import Assign
from ...lowering.ir.expressions import Dynamic, Expr, Index, Position
from ...lowering.ir.indexing import Affine, Symbol
from ..instrument import sites as s
from ..instrument.recording import Ints, Run
from ..instrument.sites import Column, Site

Values = npt.NDArray[Any]
_NO_FACTS = CallValues()
"""No facts other than the values of symbols."""


@dataclass(frozen=True, slots=True)
class Points:
    """All points of a site: row, number in the row, values of symbols and of columns."""

    site: Site
    row: Ints
    number: Ints
    """The number of the point within its row."""
    symbols: Mapping[Symbol, Ints]
    values: tuple[Values, ...]
    """The values of each column of the site."""
    valid: tuple[Values | None, ...]
    """For each column, where it was evaluated; None for everywhere."""
    repeats: Ints | None = None
    """The number of points of the row that accumulate into the same element; None: always 1."""

    def __len__(self) -> int:
        return len(self.row)

    def where(self, mask: npt.NDArray[np.bool_]) -> Points:
        """Return the points selected by a mask."""
        return replace(
            self,
            row=self.row[mask],
            number=self.number[mask],
            symbols={symbol: values[mask] for symbol, values in self.symbols.items()},
            values=tuple(values[mask] for values in self.values),
            valid=tuple(None if valid is None else valid[mask] for valid in self.valid),
            repeats=None if self.repeats is None else self.repeats[mask],
        )

    def column(self, what: s.ColumnKind) -> Values:
        """Return the values of the only column of a kind."""
        return next(
            values for column, values in zip(self.site.columns, self.values, strict=True)
            if column.what == what
        )  # fmt: skip

    def index(self, index: tuple[Index, ...]) -> tuple[Ints, ...]:
        """Return the subscripts at every point; those that read arrays from their records."""
        return tuple(self._subscript(subscript) for subscript in index)

    def _subscript(self, index: Index) -> Ints:
        if isinstance(index, Affine):
            return np.broadcast_to(evaluate_at_points(index, self.symbols), self.row.shape)
        assert isinstance(index, Dynamic)
        return self.value_of(index.value)

    def value_of(self, expr: Expr) -> Ints:
        """Return the recorded value of an expression, 0 where it was not evaluated."""
        if isinstance(expr, Position):
            return np.broadcast_to(evaluate_at_points(expr.index, self.symbols), self.row.shape)
        result = np.zeros(self.row.shape, np.int64)
        for values, evaluated_mask in self._expression_columns(expr):
            if evaluated_mask is None:
                return values
            result = np.where(evaluated_mask, values, result)
        return result

    def index_at(self, index: tuple[Index, ...], at: int) -> tuple[int, ...]:
        """Return the subscripts at one point."""
        symbols = {symbol: values[at] for symbol, values in self.symbols.items()}
        return tuple(
            int(evaluate_at_points(subscript, symbols))
            if isinstance(subscript, Affine)
            else self._value_at(subscript.value, at)
            for subscript in index
        )

    def _value_at(self, expr: Expr, at: int) -> int:
        for values, evaluated_mask in self._expression_columns(expr):
            if evaluated_mask is None or evaluated_mask[at]:
                return int(values[at])
        return 0

    def _expression_columns(self, expr: Expr) -> list[tuple[Values, Values | None]]:
        """Return the columns of an expression, and where each was evaluated."""
        columns = zip(self.site.columns, self.values, self.valid, strict=True)
        return [
            (values, valid)
            for column, values, valid in columns
            if column.expr == expr and column.what in ("subscript", "operand")
        ]


def evaluate_at_points(index: Affine, symbols: Mapping[Symbol, Any]) -> Any:
    """Return the values of an index expression, given arrays of values of its symbols."""
    value = evaluate_index(index, symbols, _NO_FACTS)
    assert value is not None, f"{index} has a symbol that no row knows"
    return value


def evaluate_test(test: Expr, symbols: Mapping[Symbol, Any]) -> Any:
    """Return where a test holds, given arrays of values of its symbols; None if it reads data."""
    return evaluate_at(test, symbols, _NO_FACTS)


def read_points(run: Run, site: Site) -> Points:
    """Return the recorded points of a site, ordered by row."""
    rows = np.flatnonzero(run.table[:, 0] == site.number)
    table = run.table[rows]
    outer = {symbol: table[:, s.FIRST_SYMBOL + n] for n, symbol in enumerate(site.symbols)}
    outer |= {symbol: np.full(len(rows), size) for symbol, size in run.sizes.items()}
    extents = [np.broadcast_to(evaluate_at_points(a.extent, outer), rows.shape) for a in site.axes]
    sizes = np.ones(len(rows), np.int64)
    for extent in extents:
        sizes = sizes * extent
    for column, per_point, mask in ((1, site.floats, run.floats), (2, site.ints, run.ints)):
        if per_point:  # the last row may be truncated
            sizes = np.minimum(sizes, (len(mask) - table[:, column]) // per_point)
    at = np.repeat(np.arange(len(rows)), sizes)
    number = np.arange(len(at)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    floats = table[at, 1] + number * site.floats
    ints = table[at, 2] + number * site.ints
    if site.is_masked:
        mask = run.ints[ints] == 1
        at, number, floats, ints = at[mask], number[mask], floats[mask], ints[mask]
    inner, remainder = [], number
    for axis, extent in reversed(list(zip(site.axes, extents, strict=True))):
        first = np.broadcast_to(evaluate_at_points(axis.first, outer), rows.shape)
        inner.append((axis.symbol, remainder % extent[at] + first[at]))
        remainder = remainder // extent[at]
    symbols = {symbol: values[at] for symbol, values in outer.items()} | dict(inner[::-1])
    values = tuple(_column_values(run, column, floats, ints) for column in site.columns)
    valid = tuple(
        None if column.guard is None else run.ints[ints + column.guard] == 1
        for column in site.columns
    )
    points = Points(site, rows[at], number, symbols, values, valid)
    if site.is_part:
        points = points.where(_changed_mask(points))
    return replace(points, repeats=_repeat_counts(points))


def _changed_mask(points: Points) -> npt.NDArray[np.bool_]:
    """Return the mask of elements that changed; NaNs are equal."""
    before, after = points.column("before"), points.column("after")
    changed: npt.NDArray[np.bool_] = (before != after) & ((before == before) | (after == after))
    return changed


def _repeat_counts(points: Points) -> Ints | None:
    """Return the number of points of the row that accumulate into each element; None: always 1."""
    statement = points.site.statement
    if not isinstance(statement, Assign) or statement.op is None or not points.site.is_assignment:
        return None
    if not any(isinstance(index, Dynamic) for index in statement.target.index) or not len(points):
        return None
    cells = (points.row, *points.index(statement.target.index))
    order = np.lexsort(cells[::-1])
    is_new = np.zeros(len(order), bool)
    for keys in cells:
        is_new[1:] |= np.diff(keys[order]) != 0
    cell = np.cumsum(is_new)
    counts = np.bincount(cell)
    if counts.max() == 1:
        return None
    repeats = np.empty(len(order), np.int64)
    repeats[order] = counts[cell]
    return repeats


def _column_values(run: Run, column: Column, floats: Ints, ints: Ints) -> Values:
    """Return a column, converted to the type of its expression."""
    dtype = column.dtype.numpy
    if not column.is_float:
        return run.ints[ints + column.position].astype(dtype)
    values: Values = run.floats[floats + column.position]
    if column.dtype.kind == "c":
        components = values, run.floats[floats + column.position + 1]
        values = np.stack(components, axis=-1).view(np.complex128)[..., 0]
    with np.errstate(all="ignore"):
        return values.astype(dtype)
