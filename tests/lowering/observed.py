"""The interpreter made to tell what it does: an account of work that shares nothing with `counts`.

Its functions are wrapped from outside. A cell counts as read from before the call where it is read
before any statement has written it; what one statement writes counts after it has read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pytest

from plusequals.lowering.ir import evaluate, interpret

Cell = tuple[int, Any]
"""The id of a node, and an index."""


@dataclass
class Seen:
    """What a run did: operations by name, and loads and stores of elements by node id."""

    operations: Counter[str] = field(default_factory=Counter)
    loads: Counter[int] = field(default_factory=Counter)
    stores: Counter[int] = field(default_factory=Counter)
    read: dict[int, set[Any]] = field(default_factory=dict)
    """The cells of each node that were read before anything wrote them."""
    written: dict[int, set[Any]] = field(default_factory=dict)
    coming: list[Cell] = field(default_factory=list)
    """Cells that the statement at hand will write, after it has read."""

    def forget(self) -> None:
        """Start again."""
        for kept in (self.operations, self.loads, self.stores, self.read, self.written):
            kept.clear()
        self.coming.clear()

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

    def reading(self, element: Callable[..., Any], access: Any) -> Any:
        """Return the value of an element, which is loaded from wherever it is asked for."""
        value, place = element(access), evaluate.place_of(access)

        def at(state: Any) -> Any:
            self.loads_cell(access.node.id, place(state)[1])
            return value(state)

        return at

    def writing(self, place_of: Callable[..., Any], access: Any) -> Any:
        """Return the place of an access, which is stored to."""
        place = place_of(access)

        def at(state: Any) -> Any:
            here = place(state)
            self.stores[access.node.id] += 1
            self.coming.append((access.node.id, here[1]))
            return here

        return at

    def contributing(
        self, contribution: Callable[..., Any], access: Any, op: Any, value: Any, pair: Any
    ) -> Any:
        """Return an accumulation: what it stores to, it loads as well."""
        run = contribution(access, op, value, pair)

        def at_point(state: Any) -> Any:
            if pair is not None:
                self.operations[op.name] += 1
            before = len(self.coming)
            write = run(state)
            for node, cell in self.coming[before:]:
                self.loads_cell(node, cell)
            return write

        return at_point

    def updating(
        self, update: Callable[..., Any], access: Any, op: Any, value: Any, pair: Any
    ) -> Any:
        """Return an accumulation that is a statement; of a pair the contribution tells."""
        run = update(access, op, value, pair)

        def at(state: Any) -> Any:
            signal = run(state)
            for node, cell in self.coming if op is not None and pair is None else ():
                self.loads_cell(node, cell)
            self.ended()
            return signal

        return at

    def storing(self, store: Callable[..., Any], place: Any, value: Any) -> Any:
        """Return a store, after which what it wrote is written."""
        run = store(place, value)

        def at(state: Any) -> Any:
            signal = run(state)
            self.ended()
            return signal

        return at

    def ended(self) -> None:
        """Note that what a statement was to write is written."""
        while self.coming:
            node, cell = self.coming.pop()
            self.written.setdefault(node, set()).add(cell)

    def filling(self, fill: Callable[..., Any], node: Any, value: Any) -> Any:
        """Return a statement that writes every cell."""
        run = fill(node, value)

        def at(state: Any) -> Any:
            cells = set(np.ndindex(state.array(node).shape))
            self.stores[node.id] += len(cells)
            self.written.setdefault(node.id, set()).update(cells)
            return run(state)

        return at


def observed(patch: pytest.MonkeyPatch) -> Seen:
    """Return what the interpreter does from now on, as long as the patch holds."""
    seen = Seen()
    meaning, convert = evaluate.meaning_of, evaluate._conversion
    for module in (evaluate, interpret):
        patch.setattr(
            module, "meaning_of", lambda op, dtype: seen.counted(op.name, meaning(op, dtype))
        )
    patch.setattr(evaluate, "_conversion", lambda *kinds: seen.counted("cast", convert(*kinds)))
    patch.setattr(evaluate, "_element", partial(seen.reading, evaluate._element))
    patch.setattr(interpret, "place_of", partial(seen.writing, interpret.place_of))
    for name, method in (
        ("_contribution", seen.contributing),
        ("_update", seen.updating),
        ("_store", seen.storing),
        ("_fill", seen.filling),
    ):
        patch.setattr(interpret, name, partial(method, getattr(interpret, name)))
    return seen
