"""The public class `Trace`: renderings and queries of recorded runs."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from pathlib import Path

from .differences import Difference, find_difference
from .page import render_json, render_page, wrap_in_iframe
from .recorded import RecordSequence
from .records import Record
from .text import render_tree
from .why import Why, check_record, explain_element, explain_record

MAX_DEPTH = 200
"""How far `why` goes back at most: each assignment takes frames of the interpreter's stack."""


class Trace(RecordSequence):
    """The records of all runs in the `with`, in program order: a sequence that prints itself."""

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        dropped = f", {self.dropped:,} dropped" if self.dropped else ""
        names = ", ".join(dict.fromkeys(run.name for run in self.runs))
        of = f" of {names}" if names else ""
        runs = f"{len(self.runs)} run{'s' * (len(self.runs) != 1)}"
        return f"<trace of {runs}{of}: {len(self):,} records{dropped}>"

    def _repr_html_(self) -> str:
        """Return the page, with few iterations and elements, in an iframe, for notebooks."""
        return wrap_in_iframe(render_page(self, 8, 2))

    def text(self, head: int = 3, tail: int = 1, color: bool = False) -> str:
        """Return the tree of calls, comments, loops and assignments.

        Of many iterations or elements the first `head` and the last `tail` are shown; a `head` of 0
        shows all. `color` adds terminal colors.
        """
        return render_tree(self, head, tail, color)

    def to_html(self, path: str | Path | None = None, head: int = 40, tail: int = 5) -> str:
        """Return one self-contained HTML page, and write it where a path is given.

        Of many iterations or elements the first `head` and the last `tail` are shown, fewer where
        the page would have more than 20,000 lines; a `head` of 0 shows all.
        """
        return _write_text(render_page(self, head, tail), path)

    def to_json(self, path: str | Path | None = None) -> str:
        """Return runs and records as JSON, in program order, and write it where a path is given.

        Numbers that JSON cannot represent are strings: `"nan"`, `"inf"`, `"-inf"`, `"(1+2j)"`.
        """
        return _write_text(render_json(self), path)

    def why(
        self,
        array: str | Record | None,
        index: tuple[int, ...] | int = (),
        run: int = -1,
        depth: int = 12,
        terms: int = 4,
        at: Record | None = None,
    ) -> Why:
        """Return the assignments that made a record, or an element of an array by its name and
        index, from the last one back: `t.why(t.first_nonfinite())`, `t.why("y", 3)`.

        An element is asked for as it was at the end of run number `run`, the last one unless given,
        or, with `at=record`, as that record found it. `depth` is how far to go back, at most
        `MAX_DEPTH`, and `terms` how many terms of a reduction to follow, those that are not finite
        first. Raises CdIndexError CD0872 where no record writes the element, for None, and for a
        record of another trace; CD0873 for too few indices.
        """
        depth = min(depth, MAX_DEPTH)
        if not isinstance(array, str):
            return explain_record(self, check_record(self, array), depth, terms)
        where = tuple(map(int, index)) if isinstance(index, Sequence) else (operator.index(index),)
        if at is not None:
            at = check_record(self, at)
            run = at.run
        end = None if at is None else (at.row, 0)
        return explain_element(self, array, where, run % max(len(self.runs), 1), depth, terms, end)

    def diff(self, other: Trace, rtol: float = 0.0, atol: float = 0.0) -> Difference | None:
        """Return the first assignment after which an element differs, None where none does.

        Without tolerances values must be bit-identical. Raises CdValueError CD0874 for traces of
        different functions.
        """
        return find_difference(self, other, rtol, atol)


def _write_text(text: str, path: str | Path | None) -> str:
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text
