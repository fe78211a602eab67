"""Which record wrote an element last, and what was given where none did."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...lowering.ir.assignments import Permute
from ...lowering.ir.indexing import evaluate
from ...lowering.ir.node import Node
from . import sites as s
from .recorded import Group, Recorded
from .records import Record, record_at

Cell = tuple[int, tuple[int, ...]]
"""A node by its id, and an index."""


class Producers:
    """Who wrote what last, in one run of a trace."""

    def __init__(self, trace: Recorded, run: int) -> None:
        self.run, self.of = run, trace.runs[run]
        self.groups = [group for group in trace.groups if group.run == run]
        sites = {x.number: x.statement for x in self.of.layout.sites}
        self.moves = [
            (row, moved)
            for row, number in enumerate(self.of.table[:, 0])
            if isinstance(moved := sites[int(number)], Permute)
        ]

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
                here = points.row == record.row
                for values, wanted in zip(
                    points.index(group.statement.target.index), record.index, strict=True
                ):
                    here = here & (values == wanted)
                return [record_at(self.run, points, int(at)) for at in np.flatnonzero(here)]
        return [record]

    def last(self, cell: Cell, before: tuple[int, int]) -> Record | None:
        """Return the last record before a place (row and number) that wrote an element."""
        found = self._moved(cell, before)
        while found is not None and found.site.is_handed_on:
            (one,) = found.operands
            assert one.node is not None, "it is read from another array"
            found = self._moved((one.node.id, one.index), (found.row, 0))
        return found

    def _moved(self, cell: Cell, before: tuple[int, int]) -> Record | None:
        """Return that record of what an array was before it traded places, too."""
        node, index = cell
        for row, moved in reversed(self.moves):
            ids = [one.id for one in moved.nodes]
            if row >= before[0] or node not in ids:
                continue
            found = self._last(node, index, before)
            if found is not None and found.row > row:
                return found
            node, before = moved.sources[ids.index(node)].id, (row, 0)
        return self._last(node, index, before)

    def _last(self, node: int, index: tuple[int, ...], before: tuple[int, int]) -> Record | None:
        best: tuple[tuple[int, int], Group, int] | None = None
        for group in self.groups:
            points, target = group.points, group.statement.target
            if target.node.id != node:
                continue
            here = (points.row < before[0]) | (
                (points.row == before[0]) & (points.number < before[1])
            )
            for values, wanted in zip(points.index(target.index), index, strict=True):
                here = here & (values == wanted)
            found = np.flatnonzero(here)
            if len(found):
                at = int(found[-1])
                order = int(points.row[at]), int(points.number[at])
                if best is None or order > best[0]:
                    best = order, group, at
        return None if best is None else record_at(self.run, best[1].points, best[2])
