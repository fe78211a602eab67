"""The interpreter made to tell what it does: an account of work that shares nothing with `counts`.

Its functions and arrays are wrapped from outside. A cell counts as read from before the call where
it is read before any statement has written it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from plusequals.lowering.ir import evaluate, interpret, scalars
from plusequals.lowering.ir.node import Node


@dataclass
class Seen:
    """What a run did: operations by name, and loads and stores of elements by node id."""

    operations: Counter[str] = field(default_factory=Counter)
    loads: Counter[int] = field(default_factory=Counter)
    stores: Counter[int] = field(default_factory=Counter)
    read: dict[int, set[Any]] = field(default_factory=dict)
    """The cells of each node that were read before anything wrote them."""
    written: dict[int, set[Any]] = field(default_factory=dict)

    def forget(self) -> None:
        """Start again."""
        for kept in (self.operations, self.loads, self.stores, self.read, self.written):
            kept.clear()

    def counted(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that also counts as an operation."""

        def call(*args: Any) -> Any:
            self.operations[name] += 1
            return function(*args)

        return call

    def loads_cell(self, node: int, cell: Any) -> None:
        """Note a load."""
        self.loads[node] += 1
        if cell not in self.written.get(node, ()):
            self.read.setdefault(node, set()).add(cell)

    def stores_cells(self, node: int, cells: set[Any]) -> None:
        """Note a store, after which what it wrote is written."""
        self.stores[node] += len(cells)
        self.written.setdefault(node, set()).update(cells)


class Told(np.ndarray[Any, Any]):
    """The array behind a node, which tells each load and store of an element."""

    seen: Seen
    node: int

    def __getitem__(self, cell: Any) -> Any:
        self.seen.loads_cell(self.node, _tuple(cell))
        return self.view(np.ndarray)[cell]

    def __setitem__(self, cell: Any, value: Any) -> None:
        every = set(np.ndindex(self.shape)) if cell is ... else {_tuple(cell)}
        self.seen.stores_cells(self.node, every)
        self.view(np.ndarray)[cell] = value


def _tuple(cell: Any) -> tuple[int, ...]:
    return cell if isinstance(cell, tuple) else (cell,)


def observed(patch: pytest.MonkeyPatch) -> Seen:
    """Return what the interpreter does from now on, as long as the patch holds."""
    seen = Seen()
    meaning, convert, better = (
        scalars.scalar_function,
        scalars.conversion_function,
        scalars.better_function,
    )
    behind = evaluate._array_of

    def told(node: Node, state: evaluate.State) -> Any:
        array = behind(node, state).view(Told)
        array.seen, array.node = seen, node.id
        return array

    for module in (evaluate, interpret):
        patch.setattr(
            module, "scalar_function", lambda op, dtype: seen.counted(op.name, meaning(op, dtype))
        )
    patch.setattr(
        evaluate, "conversion_function", lambda *kinds: seen.counted("cast", convert(*kinds))
    )
    patch.setattr(interpret, "better_function", lambda op: seen.counted(op.name, better(op)))
    patch.setattr(evaluate, "_array_of", told)
    return seen
