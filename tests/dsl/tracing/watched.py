"""An oracle of traces: the interpreter, with an eye on every assignment while it runs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import numpy as np

import plusequals as pe
from plusequals.dsl.instrument.sites import array_name
from plusequals.lowering.ir import interpret
from plusequals.lowering.ir.assignments import Assign
from plusequals.lowering.ir.evaluate import Lines, PythonWriter

Seen = tuple[str, tuple[int, ...], Any, Any]
"""What an array is called, an index, and the element before and after the statement."""


@dataclass
class Watch:
    """For each run what was assigned, by the id of the node, in order."""

    runs: list[list[tuple[int, Seen]]] = field(default_factory=list)

    def seen(self, trace: pe.Trace) -> list[Seen]:
        """Return what runs did that a trace recorded, too; not what compiling adds to them."""
        assert len(self.runs) == len(trace.runs)
        found = []
        for run, traced in zip(self.runs, trace.runs, strict=True):
            statements = [site.statement for site in traced.layout.sites]
            known = {x.target.node.id for x in statements if isinstance(x, Assign)}
            found += [seen for node, seen in run if node in known]
        return found


@contextmanager
def watched() -> Iterator[Watch]:
    """Watch every assignment that the interpreter makes inside the `with`."""
    watch, original, begin = Watch(), interpret._assign, interpret._run
    here = threading.local()

    def run(*what: Any) -> Any:
        here.seen = []
        watch.runs.append(here.seen)
        return begin(*what)

    def assign(writer: PythonWriter, statement: Assign) -> Lines:
        if statement.call is not None:  # a trace tells what all of the call comes to
            return original(writer, statement)
        node, seen = statement.target.node, here.seen
        name = array_name(node, statement.names)
        array, (lines, cell) = writer.array(node), writer.cell(node, statement.target.index)
        noted = [*lines, f"places.append((({cell},), {array}[{cell}]))"]

        def tell(places: list[tuple[tuple[Any, ...], Any]], now: Any) -> None:
            for at, old in places:
                at = at if node.rank else ()
                seen.append((node.id, (name, tuple(map(int, at)), old, now[at])))

        before = ["places = []", *writer.points(statement.free, noted)]
        after = f"{writer.refer(tell)}(places, {array})"
        return [*before, *original(writer, statement), after]

    with mock.patch.object(interpret, "_assign", assign), mock.patch.object(interpret, "_run", run):
        yield watch


def assert_same_records(one: list[Seen], other: list[Seen], rtol: float = 0.0) -> None:
    """Hold records against each other, one by one; integers exactly, NaN is NaN."""
    assert [x[:2] for x in one] == [x[:2] for x in other]
    for at in (2, 3):
        for a, b in zip(one, other, strict=True):
            if a[at] == b[at]:
                continue  # as almost all are, which is quick to see
            exact = np.asarray(b[at]).dtype.kind not in "fc"
            np.testing.assert_allclose(a[at], b[at], rtol=0.0 if exact else rtol, err_msg=str(a))
