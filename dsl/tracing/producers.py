"""Which record wrote an element last, and what was given where none did."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...lowering.ir.assignments import Permute
from ...lowering.ir.expressions import Read
from ...lowering.ir.indexing import evaluate
from ...lowering.ir.node import Node
from ..instrument import sites as s
from ..instrument.recording import Ints
from .recorded import Group, Recorded
from .records import Record, record_at

Cell = tuple[int, tuple[int, ...]]
"""A node by its id, and an index."""
Place = tuple[int, int]
"""A row of a run and a number in it, in program order."""
_Found = tuple[Place, Group, int]
"""A record before it is made: its place, its group and its position there."""


class _Written:
    """The points of a group sorted by the element they write, those of one element in order.

    Sorted once, an element is a binary search: a chain asks for each term of each reduction.
    """

    def __init__(self, group: Group) -> None:
        points, target = group.points, group.statement.target
        subscripts = points.index(target.index)
        self.group = group
        self.least = [int(one.min()) for one in subscripts]
        self.sizes = [int(one.max()) - a + 1 for one, a in zip(subscripts, self.least, strict=True)]
        keys = np.zeros(len(points), np.int64)
        for one, least, size in zip(subscripts, self.least, self.sizes, strict=True):
            keys = keys * size + (one - least)
        self.by: npt.NDArray[np.int64] = np.argsort(keys, kind="stable")
        self.keys, self.row, self.number = (
            keys[self.by],
            points.row[self.by],
            points.number[self.by],
        )

        self.span = 2 + int(points.row.max(initial=0))
        self.place: npt.NDArray[np.int64] = self.keys * self.span + self.row

    def lasts(self, index: Sequence[Ints], before: Ints) -> Ints:
        """Return the last points in rows before some that wrote elements, -1 where none did."""
        key, is_known = np.zeros(len(before), np.int64), np.ones(len(before), bool)
        for one, least, size in zip(index, self.least, self.sizes, strict=True):
            is_known &= (one >= least) & (one < least + size)
            key = key * size + (one - least)
        wanted = key * self.span + np.minimum(before, self.span - 1)
        at = np.searchsorted(self.place, wanted) - 1
        is_known &= (at >= 0) & (self.keys[at] == key)
        return np.where(is_known, self.by[at], -1)

    def of(self, index: Sequence[int]) -> tuple[int, int]:
        """Return where the points that write an element begin and end in sorted order."""
        key = 0
        for one, least, size in zip(index, self.least, self.sizes, strict=True):
            if not 0 <= one - least < size:
                return 0, 0
            key = key * size + int(one) - least
        first, end = np.searchsorted(self.keys, (key, key + 1))
        return int(first), int(end)

    def last(self, index: Sequence[int], before: Place) -> _Found | None:
        """Return the last point before a place that wrote an element."""
        first, end = self.of(index)
        if first == end:
            return None
        row, number = before
        at = first + int(np.searchsorted(self.row[first:end], row))
        same = first + int(np.searchsorted(self.row[first:end], row, "right"))
        at += int(np.searchsorted(self.number[at:same], number)) - 1
        if at < first:
            return None
        return (int(self.row[at]), int(self.number[at])), self.group, int(self.by[at])


class Producers:
    """Who wrote what last, in one run of a trace."""

    def __init__(self, trace: Recorded, run: int) -> None:
        self.run, self.of = run, trace.runs[run]
        self.groups = [group for group in trace.groups if group.run == run]
        self._written: dict[int, list[_Written]] = {}
        self._moves: dict[int, tuple[list[int], list[int]]] = {}
        sites = {x.number: x.statement for x in self.of.layout.sites}
        moving = [number for number, one in sites.items() if isinstance(one, Permute)]
        for row in np.flatnonzero(np.isin(self.of.table[:, 0], moving)):
            moved = sites[int(self.of.table[row, 0])]
            assert isinstance(moved, Permute)
            for one, source in zip(moved.nodes, moved.sources, strict=True):
                rows, sources = self._moves.setdefault(one.id, ([], []))
                rows.append(int(row))
                sources.append(source.id)

    def called(self, name: str) -> list[Node]:
        """Return the arrays that were written and have a name at the end of the run.

        Where none has it, those that once had it: in a function that was called, for instance.
        """
        written = {group.statement.target.node.id: group for group in self.groups}
        nodes = [group.statement.target.node for group in written.values()]
        names = self.of.layout.names
        found = [node for node in nodes if s.means(name, s.called(node, names))]
        if found or any(s.means(name, one) for _, one in names):
            return found
        once = {
            group.statement.target.node.id
            for group in self.groups
            if any(s.means(name, one) for one in (group.array, group.statement.target.node.label))
        }
        return [node for node in nodes if node.id in once]

    def shape(self, node: Node) -> tuple[int, ...]:
        """Return an array's shape where it was written last, which may be that of a round.

        A size that no record tells is one more than the largest index that was written.
        """
        rows = [
            group for group in self.groups
            if group.statement.target.node.id == node.id and len(group.points)
        ]  # fmt: skip
        known = dict(self.of.sizes)
        if rows:
            last = max(rows, key=lambda group: int(group.points.row[-1])).points
            known |= {symbol: int(values[-1]) for symbol, values in last.symbols.items()}
        return tuple(
            evaluate(extent, known) if extent.symbols() <= known.keys()
            else 1 + max(int(np.max(g.points.index(g.statement.target.index)[axis])) for g in rows)
            for axis, extent in enumerate(node.shape)
        )  # fmt: skip

    def given(self, node: Node, index: tuple[int, ...]) -> Any:
        """Return an element of an argument as it was before the run, None where it is not kept."""
        array = self.of.given.get(node.id)
        return None if array is None else array[index]

    def is_given(self, node: Node) -> bool:
        """Whether an array is an argument of the run."""
        return any(parameter.node.id == node.id for parameter in self.of.parameters)

    def together(self, record: Record) -> list[Record]:
        """Return the records that accumulate into one element at once, in order."""
        if record.repeats == 1:
            return [record]
        for group in self.groups:
            points = group.points
            if points.site is record.site:
                written = next(
                    one for one in self._of(group.statement.target.node.id) if one.group is group
                )
                first, end = written.of(record.index)
                here = slice(
                    first + int(np.searchsorted(written.row[first:end], record.row)),
                    first + int(np.searchsorted(written.row[first:end], record.row, "right")),
                )
                return [record_at(self.run, points, int(at)) for at in written.by[here]]
        return [record]

    def last(self, cell: Cell, before: Place) -> Record | None:
        """Return the last record before a place (row and number) that wrote an element."""
        found = self._handed_on(cell, before)
        return None if found is None else record_at(self.run, found[1].points, found[2])

    def value(self, cell: Cell, before: Place) -> Any:
        """Return what the last record before a place made of an element, None for no record."""
        found = self._handed_on(cell, before)
        return None if found is None else found[1].points.column("after")[found[2]]

    def values(self, node: Node, places: Sequence[tuple[int, ...]], row: int) -> list[Any]:
        """Return what elements of an array were before a row, None where nothing tells: what the
        last record made of each, or what was given."""
        found: list[Any] = [None] * len(places)
        index = list(np.array(places, np.int64).reshape(len(places), node.rank).T)
        groups, points = self._lasts(node.id, index, np.full(len(places), row))
        for group in np.unique(groups[groups >= 0]):
            after = self.groups[group].points.column("after")
            for at in np.flatnonzero(groups == group):
                found[at] = after[points[at]]
        array = self.of.given.get(node.id)
        if array is not None:
            for place in np.flatnonzero(groups < 0).tolist():
                found[place] = array[places[place]]
        return found

    def _lasts(self, node: int, index: Sequence[Ints], before: Ints) -> tuple[Ints, Ints]:
        """Return the last points in rows before some that wrote elements, as `_handed_on` finds
        them one by one: of each its group's number and its own in it, -1 where there is none."""
        groups, points = np.full((2, len(before)), -1)
        row, number = np.full((2, len(before)), -1)
        for written in self._of(node):
            of, at = written.group.points, written.lasts(index, before)
            there = (of.row[at], of.number[at]) if len(of) else (row, number)
            later = (there[0] > row) | (there[0] == row) & (there[1] > number)
            later &= at >= 0
            group = next(n for n, one in enumerate(self.groups) if one is written.group)
            groups[later], points[later] = group, at[later]
            row[later], number[later] = there[0][later], there[1][later]
        rows, sources = self._moves.get(node, ([], []))
        moved = np.searchsorted(rows, before) - 1
        for at in np.unique(moved[moved >= 0]):
            here = (moved == at) & (row < rows[at])
            self._instead(groups, points, here, sources[at], index, np.full(len(before), rows[at]))
        for group in np.unique(groups[groups >= 0]):
            made = self.groups[group]
            if made.points.site.is_handed_on:
                here, value = groups == group, made.statement.value
                assert isinstance(value, Read), "it is a copy"
                read = [one[points] for one in made.points.index(value.index)]
                self._instead(groups, points, here, value.node.id, read, made.points.row[points])
        return groups, points

    def _instead(
        self, groups: Ints, points: Ints, here: Any, node: int, index: Sequence[Ints], before: Ints
    ) -> None:
        """Put the last points that wrote elements of another array where some were found."""
        if here.any():
            found = self._lasts(node, [one[here] for one in index], before[here])
            groups[here], points[here] = found

    def _handed_on(self, cell: Cell, before: Place) -> _Found | None:
        """Return the last point that wrote an element, that of the value where it is a copy."""
        found = self._moved(cell, before)
        while found is not None and found[1].points.site.is_handed_on:
            (one,) = record_at(self.run, found[1].points, found[2]).operands
            assert one.node is not None, "it is read from another array"
            found = self._moved((one.node.id, one.index), (found[0][0], 0))
        return found

    def _moved(self, cell: Cell, before: Place) -> _Found | None:
        """Return that point of what an array was before it traded places, too."""
        node, index = cell
        while True:
            found = self._last(node, index, before)
            rows, sources = self._moves.get(node, ([], []))
            at = bisect_left(rows, before[0]) - 1
            if at < 0 or found is not None and found[0][0] > rows[at]:
                return found
            node, before = sources[at], (rows[at], 0)

    def _last(self, node: int, index: tuple[int, ...], before: Place) -> _Found | None:
        found = (one.last(index, before) for one in self._of(node))
        return max(filter(None, found), key=lambda one: one[0], default=None)

    def _of(self, node: int) -> list[_Written]:
        """Return the groups that write an array, sorted by element the first time."""
        if node not in self._written:
            self._written[node] = [
                _Written(group) for group in self.groups if group.statement.target.node.id == node
            ]
        return self._written[node]
