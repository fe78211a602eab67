"""Last-writer queries on a trace: the record that produced the value of an element."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...lowering.ir.assignments import Assign, Permute
from ...lowering.ir.expressions import Read
from ...lowering.ir.indexing import evaluate
from ...lowering.ir.node import Node
from ..instrument import sites as s
from ..instrument.recording import Ints
from .recorded import Group, RecordSequence
from .records import Record, largest_operands, read_record

ElementKey = tuple[int, tuple[int, ...]]
"""A node by its id, and an index."""
ProgramPoint = tuple[int, int]
"""A position in program order: a row of a run, and a point number in it."""
_Writer = tuple[ProgramPoint, Group, int]
"""A reference to a record: its position in program order, its group, its index in the group."""


class _SortedGroup:
    """The points of a group, sorted by the written element, then in program order.

    After one sort each lookup is a binary search: a chain looks up each term of each reduction.
    """

    def __init__(self, group: Group) -> None:
        points, target = group.points, group.statement.target
        subscripts = points.index(target.index)
        self.group = group
        self.least = [int(subscript.min()) for subscript in subscripts]
        self.sizes = [
            int(subscript.max()) - a + 1
            for subscript, a in zip(subscripts, self.least, strict=True)
        ]
        keys = np.zeros(len(points), np.int64)
        for subscript, least, size in zip(subscripts, self.least, self.sizes, strict=True):
            keys = keys * size + (subscript - least)
        self.by: npt.NDArray[np.int64] = np.argsort(keys, kind="stable")
        self.keys, self.row, self.number = (
            keys[self.by],
            points.row[self.by],
            points.number[self.by],
        )

        self.span = 2 + int(points.row.max(initial=0))
        self.position: npt.NDArray[np.int64] = self.keys * self.span + self.row

    def last_points(self, index: Sequence[Ints], before: Ints) -> Ints:
        """Return the last points in earlier rows that wrote the elements, -1 where none did."""
        key, is_written = np.zeros(len(before), np.int64), np.ones(len(before), bool)
        for subscript, least, size in zip(index, self.least, self.sizes, strict=True):
            is_written &= (subscript >= least) & (subscript < least + size)
            key = key * size + (subscript - least)
        target = key * self.span + np.minimum(before, self.span - 1)
        at = np.searchsorted(self.position, target) - 1
        is_written &= (at >= 0) & (self.keys[at] == key)
        return np.where(is_written, self.by[at], -1)

    def range_of(self, index: Sequence[int]) -> tuple[int, int]:
        """Return the range, in sorted order, of the points that write an element."""
        key = 0
        for subscript, least, size in zip(index, self.least, self.sizes, strict=True):
            if not 0 <= subscript - least < size:
                return 0, 0
            key = key * size + int(subscript) - least
        first, end = np.searchsorted(self.keys, (key, key + 1))
        return int(first), int(end)

    def last_point(self, index: Sequence[int], before: ProgramPoint) -> _Writer | None:
        """Return the last point before a position that wrote an element."""
        first, end = self.range_of(index)
        if first == end:
            return None
        row, number = before
        at = first + int(np.searchsorted(self.row[first:end], row))
        same_row_end = first + int(np.searchsorted(self.row[first:end], row, "right"))
        at += int(np.searchsorted(self.number[at:same_row_end], number)) - 1
        if at < first:
            return None
        return (int(self.row[at]), int(self.number[at])), self.group, int(self.by[at])


class LastWriters:
    """The index of last writers in one run of a trace."""

    def __init__(self, trace: RecordSequence, run: int) -> None:
        self.run, self.of = run, trace.runs[run]
        self.groups = [group for group in trace.groups if group.run == run]
        self._written: dict[int, list[_SortedGroup]] = {}
        self._swaps: dict[int, tuple[list[int], list[int]]] = {}
        sites = {x.number: x.statement for x in self.of.layout.sites}
        permute_sites = [number for number, item in sites.items() if isinstance(item, Permute)]
        for row in np.flatnonzero(np.isin(self.of.table[:, 0], permute_sites)):
            permute = sites[int(self.of.table[row, 0])]
            assert isinstance(permute, Permute)
            for item, source in zip(permute.nodes, permute.sources, strict=True):
                rows, sources = self._swaps.setdefault(item.id, ([], []))
                rows.append(int(row))
                sources.append(source.id)

    def called(self, name: str) -> list[Node]:
        """Return the written arrays with this name at the end of the run.

        Where there are none, those that had it at some statement, such as in a called function.
        """
        written = {group.statement.target.node.id: group for group in self.groups}
        nodes = [group.statement.target.node for group in written.values()]
        names = self.of.layout.names
        matching = [node for node in nodes if s.matches_label(name, s.array_name(node, names))]
        if matching or any(s.matches_label(name, label) for _, label in names):
            return matching
        formerly_named = {
            group.statement.target.node.id
            for group in self.groups
            if any(
                s.matches_label(name, label)
                for label in (group.array, group.statement.target.node.label)
            )
        }
        return [node for node in nodes if node.id in formerly_named]

    def shape(self, node: Node) -> tuple[int, ...]:
        """Return the shape of an array at its last write, which may depend on the iteration.

        An extent that no record determines is one more than the largest written index.
        """
        rows = [
            group for group in self.groups
            if group.statement.target.node.id == node.id and len(group.points)
        ]  # fmt: skip
        symbol_values = dict(self.of.sizes)
        if rows:
            last = max(rows, key=lambda group: int(group.points.row[-1])).points
            symbol_values |= {symbol: int(values[-1]) for symbol, values in last.symbols.items()}
        return tuple(
            evaluate(extent, symbol_values) if extent.symbols() <= symbol_values.keys()
            else 1 + max(int(np.max(g.points.index(g.statement.target.index)[axis])) for g in rows)
            for axis, extent in enumerate(node.shape)
        )  # fmt: skip

    def given(self, node: Node, index: tuple[int, ...]) -> Any:
        """Return an element of an argument before the run, None where no copy is stored."""
        array = self.of.given.get(node.id)
        return None if array is None else array[index]

    def is_given(self, node: Node) -> bool:
        """Whether an array is an argument of the run."""
        return any(parameter.node.id == node.id for parameter in self.of.parameters)

    def accumulated_with(self, record: Record, count: int) -> tuple[list[Record], int]:
        """Return records that accumulate into one element at once, and how many do so.

        At most `count` are returned: those that read the largest values, non-finite ones first.
        """
        if record.repeats == 1:
            return [record], 1
        statement = record.site.statement
        assert isinstance(statement, Assign), "it accumulates"
        groups = self._sorted_groups(statement.target.node.id)
        written = next(x for x in groups if x.group.points.site is record.site)
        first, end = written.range_of(record.index)
        here = slice(
            first + int(np.searchsorted(written.row[first:end], record.row)),
            first + int(np.searchsorted(written.row[first:end], record.row, "right")),
        )
        points, numbers = written.group.points, written.by[here]
        order = np.argsort(-largest_operands(points, numbers), kind="stable")[:count]
        return [read_record(self.run, points, int(at)) for at in numbers[order]], len(numbers)

    def last(self, cell: ElementKey, before: ProgramPoint) -> Record | None:
        """Return the last record before a position that wrote an element, None for none."""
        writer = self._last_writer(cell, before)
        return None if writer is None else read_record(self.run, writer[1].points, writer[2])

    def value(self, cell: ElementKey, before: ProgramPoint) -> Any:
        """Return the value of an element by the last record before a position, None for none."""
        writer = self._last_writer(cell, before)
        return None if writer is None else writer[1].points.column("after")[writer[2]]

    def values(self, node: Node, indices: Sequence[tuple[int, ...]], row: int) -> list[Any]:
        """Return the values of elements of an array before a row, None where unknown: from the last
        record, or from the copy of the argument."""
        result: list[Any] = [None] * len(indices)
        index = list(np.array(indices, np.int64).reshape(len(indices), node.rank).T)
        groups, points = self._last_writers(node.id, index, np.full(len(indices), row))
        for group in np.unique(groups[groups >= 0]):
            after = self.groups[group].points.column("after")
            for at in np.flatnonzero(groups == group):
                result[at] = after[points[at]]
        array = self.of.given.get(node.id)
        if array is not None:
            for position in np.flatnonzero(groups < 0).tolist():
                result[position] = array[indices[position]]
        return result

    def _last_writers(self, node: int, index: Sequence[Ints], before: Ints) -> tuple[Ints, Ints]:
        """Return the last points in earlier rows that wrote elements, vectorized `_last_writer`:
        the group of each and its index in the group, -1 where there is none."""
        groups, points = np.full((2, len(before)), -1)
        row, number = np.full((2, len(before)), -1)
        for written in self._sorted_groups(node):
            of, at = written.group.points, written.last_points(index, before)
            position = (of.row[at], of.number[at]) if len(of) else (row, number)
            is_later = (position[0] > row) | (position[0] == row) & (position[1] > number)
            is_later &= at >= 0
            group = next(n for n, item in enumerate(self.groups) if item is written.group)
            groups[is_later], points[is_later] = group, at[is_later]
            row[is_later], number[is_later] = position[0][is_later], position[1][is_later]
        rows, sources = self._swaps.get(node, ([], []))
        swap_index = np.searchsorted(rows, before) - 1
        for at in np.unique(swap_index[swap_index >= 0]):
            selected = (swap_index == at) & (row < rows[at])
            self._replace_writers(
                groups, points, selected, sources[at], index, np.full(len(before), rows[at])
            )
        for group in np.unique(groups[groups >= 0]):
            group_object = self.groups[group]
            if group_object.points.site.is_phi_copy:
                selected, value = groups == group, group_object.statement.value
                assert isinstance(value, Read), "it is a copy"
                source_index = [item[points] for item in group_object.points.index(value.index)]
                self._replace_writers(
                    groups,
                    points,
                    selected,
                    value.node.id,
                    source_index,
                    group_object.points.row[points],
                )
        return groups, points

    def _replace_writers(
        self,
        groups: Ints,
        points: Ints,
        selected: Any,
        node: int,
        index: Sequence[Ints],
        before: Ints,
    ) -> None:
        """Replace selected points by the last writers of elements of another array."""
        if selected.any():
            writers = self._last_writers(
                node, [subscript[selected] for subscript in index], before[selected]
            )
            groups[selected], points[selected] = writers

    def _last_writer(self, cell: ElementKey, before: ProgramPoint) -> _Writer | None:
        """Return the last point that wrote an element, followed through phi copies."""
        writer = self._writer_through_swaps(cell, before)
        while writer is not None and writer[1].points.site.is_phi_copy:
            (operand,) = read_record(self.run, writer[1].points, writer[2]).operands
            assert operand.node is not None, "it is read from another array"
            writer = self._writer_through_swaps((operand.node.id, operand.index), (writer[0][0], 0))
        return writer

    def _writer_through_swaps(self, cell: ElementKey, before: ProgramPoint) -> _Writer | None:
        """Return the last point that wrote an element, followed through permuted buffers."""
        node, index = cell
        while True:
            writer = self._direct_writer(node, index, before)
            rows, sources = self._swaps.get(node, ([], []))
            at = bisect_left(rows, before[0]) - 1
            if at < 0 or writer is not None and writer[0][0] > rows[at]:
                return writer
            node, before = sources[at], (rows[at], 0)

    def _direct_writer(
        self, node: int, index: tuple[int, ...], before: ProgramPoint
    ) -> _Writer | None:
        candidates = (writer.last_point(index, before) for writer in self._sorted_groups(node))
        return max(filter(None, candidates), key=lambda writer: writer[0], default=None)

    def _sorted_groups(self, node: int) -> list[_SortedGroup]:
        """Return the sorted groups that write an array; they are cached."""
        if node not in self._written:
            self._written[node] = [
                _SortedGroup(group)
                for group in self.groups
                if group.statement.target.node.id == node
            ]
        return self._written[node]
