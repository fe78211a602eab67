"""A trace as a tree of text: calls, comments, loops, and every assignment filled in."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import numpy.typing as npt

from ...base.dataclass import dataclass
from ...base.diagnostic import NOWHERE, Span
from ...lowering.ir.assignments import Assign, Block, For, While
from ..instrument import sites as s
from ..instrument.recording import Ints, Run
from ..instrument.sites import Level, Side, Site
from .points import Points
from .recorded import Recorded
from .records import Record, record_at


@dataclass(frozen=True, slots=True)
class Branch:
    """A level of the tree; its children are made when they are asked for."""

    kind: str
    """`call`, `comment`, `loop`, `round`, `branch`, `statement`, `record`, `term`, `folded` or
    `error`."""
    text: str
    span: Span
    """Where it stands in the source, NOWHERE for what is no part of it."""
    children: Callable[[], Iterator[Branch]]

    @property
    def line(self) -> int:
        """The line to show before it, 0 for none: records belong to that of their statement."""
        is_value = self.kind in ("record", "term")
        return 0 if is_value or self.span is NOWHERE else self.span.line


_NO_ROWS: Ints = np.zeros(0, np.int64)


def _none() -> Iterator[Branch]:
    return iter(())


def tree(trace: Recorded, head: int = 3, tail: int = 1) -> Iterator[Branch]:
    """Yield the runs of a trace as trees; of rounds and points that many, and how many more.

    `head` of 0 shows everything.
    """
    for number in range(len(trace.runs)):
        points = {g.points.site.number: g.points for g in trace.groups if g.run == number}
        yield _Run(trace, number, points, head, tail).root()


class _Run:
    """One run, and how much of it is shown."""

    def __init__(
        self, trace: Recorded, number: int, points: dict[int, Points], head: int, tail: int
    ) -> None:
        self.trace, self.number, self.points = trace, number, points
        self.head, self.tail = head, tail
        self.run: Run = trace.runs[number]
        self.sites = self.run.layout.sites

    def root(self) -> Branch:
        """Return the tree of the run."""
        where = f" on {self.run.backend}" + (f", {self.run.stream}" if self.run.stream else "")
        is_term = np.array([site.reduce is not None for site in self.sites], bool)
        rows = np.flatnonzero(~is_term[self.run.table[:, 0]]) if len(self.sites) else _NO_ROWS
        return Branch("call", f"{self.run.name}{where}", NOWHERE, lambda: self._content(rows))

    def _content(self, rows: Ints) -> Iterator[Branch]:
        yield from self.level(rows, 0)
        if self.run.dropped:
            yield Branch("folded", self.run.lost, NOWHERE, _none)
        if self.run.error:
            yield Branch("error", self.run.error.splitlines()[0], NOWHERE, _none)

    def level(self, rows: Ints, depth: int) -> Iterator[Branch]:
        """Yield what rows become at a depth of their paths, in order."""
        ids = [_identity(site, depth) for site in self.sites]
        known = {one: n for n, one in enumerate(dict.fromkeys(ids))}
        of_site = np.array([known[one] for one in ids], np.int64)
        keys = of_site[self.run.table[rows, 0]] if len(rows) else rows
        for part in _split(rows, keys):
            site = self.sites[int(self.run.table[part[0], 0])]
            if depth >= len(site.path):
                if site.is_handed_on:
                    continue
                yield from self.statement(site, part)
            else:
                yield self.inside(site, site.path[depth], part, depth)

    def inside(self, site: Site, level: Level, rows: Ints, depth: int) -> Branch:
        """Return a comment, a loop or a branch with what is in it."""
        span = level.branch.span if isinstance(level, Side) else level.span
        match level:
            case Block(comment):
                text = comment or "block"
                return Branch("comment", text, span, lambda: self.level(rows, depth + 1))
            case Side(branch, holds):
                text = f"{_first(branch.span.text)}  {'holds' if holds else 'does not hold'}"
                return Branch("branch", text, span, lambda: self.level(rows, depth + 1))
            case For(symbol=symbol):
                at = s.FIRST + site.symbols.index(symbol)
                values = self.run.table[rows, at]
                rounds = _split(rows, values)
                names = [f"{symbol.name} = {self.run.table[part[0], at]}" for part in rounds]
            case While():
                rounds = self._rounds(rows, depth)
                names = [f"round {n}" for n in range(len(rounds))]
        text = _first(span.text)
        return Branch("loop", text, span, lambda: self.rounds(rounds, names, span, depth))

    def rounds(
        self, rounds: list[Ints], names: list[str], span: Span, depth: int
    ) -> Iterator[Branch]:
        """Yield the rounds of a loop, the ones between folded."""

        def one(n: int) -> Branch:
            return Branch("round", names[n], span, lambda: self.level(rounds[n], depth + 1))

        yield from self.folded(len(rounds), one, "rounds")

    def folded(self, count: int, one: Callable[[int], Branch], what: str) -> Iterator[Branch]:
        """Yield the first and the last of many, and how many are between."""
        if not self.head or count <= self.head + self.tail + 1:
            yield from map(one, range(count))
            return
        yield from map(one, range(self.head))
        yield Branch("folded", f"... {count - self.head - self.tail} more {what}", NOWHERE, _none)
        yield from map(one, range(count - self.tail, count))

    def statement(self, site: Site, rows: Ints) -> Iterator[Branch]:
        """Yield a statement, once for each time it was reached, with its points."""
        statement = site.statement
        text, span = _first(statement.span.text), statement.span
        text = f"before `{text}`" if text.startswith(s.HEADS) else text
        if not isinstance(statement, Assign):
            names, others = (
                ", ".join(node.label for node in nodes)
                for nodes in (statement.nodes, statement.sources)
            )
            told = f"{names} = {others}" if names != others else f"{names} trade places"
            yield from (Branch("statement", told, span, _none) for _ in rows)
            return
        points = self.points.get(site.number)

        def at(row: int) -> Branch:
            def children() -> Iterator[Branch]:
                if points is None:
                    return
                first, end = np.searchsorted(points.row, [row, row + 1])

                def one(n: int) -> Branch:
                    record = record_at(self.number, points, int(first) + n)
                    return Branch("record", str(record), span, lambda: self.terms(record))

                yield from self.folded(int(end - first), one, "elements")

            return Branch("statement", text, span, children)

        yield from self.folded(len(rows), lambda n: at(int(rows[n])), "times")

    def terms(self, record: Record) -> Iterator[Branch]:
        """Yield the terms of a record, where they were recorded."""
        found = self.trace.terms(record)

        def one(n: int) -> Branch:
            return Branch("term", str(found[n]), record.site.statement.span, _none)

        yield from self.folded(len(found), one, "terms")

    def _rounds(self, rows: Ints, depth: int) -> list[Ints]:
        """Split the rows of a `while` where what is in it begins again."""
        table, again = self.run.table[rows], np.zeros(max(len(rows) - 1, 0), bool)
        pairs = np.stack((table[:-1, 0], table[1:, 0]), axis=1)
        for one, other in np.unique(pairs, axis=0):
            at = np.flatnonzero((pairs == (one, other)).all(axis=1))
            sites = self.sites[int(one)], self.sites[int(other)]
            again[at] = _begins_again(*sites, table[at], table[at + 1], depth + 1)
        return np.split(rows, np.flatnonzero(again) + 1)


def _identity(site: Site, depth: int) -> int:
    """Return what tells apart the levels at a depth."""
    if depth >= len(site.path):
        return -1 - site.number
    level = site.path[depth]
    return 2 * id(level.branch) + level.holds if isinstance(level, Side) else 2 * id(level)


def _begins_again(
    one: Site, other: Site, before: Ints, after: Ints, depth: int
) -> npt.NDArray[np.bool_]:
    """Return for rows of a site, and those of another one right after them, whether the loop whose
    body is at a depth of their paths has begun its next iteration between: whether the later row
    stands further up in the body, or in no later iteration of a loop in it.

    Of rows in one `while` in the body it is taken that they are of one iteration.
    """
    same = _identity(one, depth) == _identity(other, depth)
    if depth >= min(len(one.path), len(other.path)):
        return np.full(len(before), same or other.number < one.number)
    level, next_ = one.path[depth], other.path[depth]
    if not same:  # of two sides of a branch only one is done in an iteration
        both = isinstance(level, Side) and isinstance(next_, Side) and level.branch is next_.branch
        return np.full(len(before), both or other.number < one.number)
    if isinstance(level, While):
        return np.zeros(len(before), bool)
    inner = _begins_again(one, other, before, after, depth + 1)
    if not isinstance(level, For):
        return inner
    was = before[:, s.FIRST + one.symbols.index(level.symbol)]
    now = after[:, s.FIRST + other.symbols.index(level.symbol)]
    return np.where(was == now, inner, (now - was) * level.step < 0)


def _split(rows: Ints, keys: Ints) -> list[Ints]:
    if not len(rows):
        return []
    return np.split(rows, np.flatnonzero(np.diff(keys)) + 1)


def _first(text: str) -> str:
    return text.split(":")[0] + ":" if text.startswith(s.HEADS) else text


_COLORS = {"call": "1", "comment": "36", "loop": "34", "round": "34", "branch": "34",
           "statement": "1", "folded": "2", "error": "31"}  # fmt: skip


def tree_text(trace: Recorded, head: int, tail: int, color: bool) -> str:
    """Return a trace as text; `color` with the codes of terminals, what is not finite in red."""
    if not len(trace.runs):
        return "nothing was recorded"
    return "\n".join(lines(tree(trace, head, tail), color))


def lines(branches: Iterable[Branch], color: bool = False, depth: int = 0) -> Iterator[str]:
    """Yield the tree as lines, the number of the source line in front of each statement."""
    for one in branches:
        number = f"{one.line:>4}" if one.line else "    "
        shown = one.text
        if color and one.kind in ("record", "term"):
            shown = re.sub(r"-?\b(nan|inf)\b", "\033[31m\\g<0>\033[0m", shown)
        elif color:
            shown = f"\033[{_COLORS[one.kind]}m{shown}\033[0m"
        yield f"{number}  {'  ' * depth}{shown}"
        yield from lines(one.children(), color, depth + 1)
