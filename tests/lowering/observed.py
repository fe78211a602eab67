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

    def reading(self, place_of: Callable[..., Any], access: Any) -> Any:
        """Return the place of an access, which is loaded from wherever it is asked for."""
        place = place_of(access)

        def at(state: Any) -> Any:
            here = place(state)
            self.loads_cell(access.node.id, here[1])
            return here

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

    def acting(self, effect: Callable[..., Any], statement: Any) -> Any:
        """Return a statement after which what it wrote is written."""
        run = effect(statement)

        def at(state: Any) -> Any:
            signal = run(state)
            while self.coming:
                node, cell = self.coming.pop()
                self.written.setdefault(node, set()).add(cell)
            return signal

        return at

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
    patch.setattr(evaluate, "place_of", partial(seen.reading, evaluate.place_of))
    patch.setattr(interpret, "place_of", partial(seen.writing, interpret.place_of))
    for name, method in (
        ("_contribution", seen.contributing),
        ("_effect", seen.acting),
        ("_fill", seen.filling),
    ):
        patch.setattr(interpret, name, partial(method, getattr(interpret, name)))
    return seen
