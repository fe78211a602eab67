"""An oracle of traces: the interpreter, with an eye on every assignment while it runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

from plusequals.lowering.ir import interpret
from plusequals.lowering.ir.assignments import Assign
from plusequals.lowering.ir.evaluate import State, place_of, points_of

Seen = tuple[str, tuple[int, ...], Any, Any]
"""An array's label, an index, and the element before and after the statement."""


@dataclass
class Watch:
    """What was assigned, by the id of the node, in order."""

    seen: list[tuple[int, Seen]] = field(default_factory=list)


@contextmanager
def watched() -> Iterator[Watch]:
    """Watch every assignment that the interpreter makes inside the `with`."""
    watch, original = Watch(), interpret._assign

    def assign(statement: Assign) -> Any:
        run, free = original(statement), points_of(statement.free)
        place, node = place_of(statement.target), statement.target.node

        def both(state: State) -> Any:
            places = [place(state) for _ in free(state)]
            before = [array[cell].copy() for array, cell in places]
            signal = run(state)
            for (array, cell), old in zip(places, before, strict=True):
                seen = node.label, tuple(map(int, cell)), old, array[cell].copy()
                watch.seen.append((node.id, seen))
            return signal

        return both

    with mock.patch.object(interpret, "_assign", assign):
        yield watch
