"""Text rendering of a trace: a tree of calls, comments, loops and assignments with values."""

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
from ..instrument.sites import BranchSide, Level, Site
from .points import Points
from .recorded import RecordSequence
from .records import Record, read_record


@dataclass(frozen=True, slots=True)
class TreeNode:
    """A node of the tree; its children are computed lazily."""

    kind: str
    """`call`, `comment`, `loop`, `iteration`, `branch`, `statement`, `record`, `term`, `folded` or
    `error`."""
    text: str
    span: Span
    """Its source span, NOWHERE for nodes without one."""
    children: Callable[[], Iterator[TreeNode]]

    @property
    def line(self) -> int:
        """The source line to show, 0 for none: records have that of their statement."""
        is_value = self.kind in ("record", "term")
        return 0 if is_value or self.span is NOWHERE else self.span.line


_NO_ROWS: Ints = np.zeros(0, np.int64)


def _no_children() -> Iterator[TreeNode]:
    return iter(())


def build_tree(trace: RecordSequence, head: int = 3, tail: int = 1) -> Iterator[TreeNode]:
    """Yield the runs of a trace as trees.

    Of iterations and points the first `head` and the last `tail` are shown, and the number of the
    others; a `head` of 0 shows everything.
    """
    for number in range(len(trace.runs)):
        points = {g.points.site.number: g.points for g in trace.groups if g.run == number}
        yield _RunTree(trace, number, points, head, tail).root()


class _RunTree:
    """The tree builder of one run, with its limits."""

    def __init__(
        self, trace: RecordSequence, number: int, points: dict[int, Points], head: int, tail: int
    ) -> None:
        self.trace, self.number, self.points = trace, number, points
        self.head, self.tail = head, tail
        self.run: Run = trace.runs[number]
        self.sites = self.run.layout.sites

    def root(self) -> TreeNode:
        """Return the tree of the run."""
        where = f" on {self.run.backend}" + (f", {self.run.stream}" if self.run.stream else "")
        is_term = np.array([site.reduce is not None for site in self.sites], bool)
        rows = np.flatnonzero(~is_term[self.run.table[:, 0]]) if len(self.sites) else _NO_ROWS
        return TreeNode("call", f"{self.run.name}{where}", NOWHERE, lambda: self._run_nodes(rows))

    def _run_nodes(self, rows: Ints) -> Iterator[TreeNode]:
        yield from self.level_nodes(rows, 0)
        if self.run.dropped:
            yield TreeNode("folded", self.run.lost, NOWHERE, _no_children)
        if self.run.error:
            yield TreeNode("error", self.run.error.splitlines()[0], NOWHERE, _no_children)

    def level_nodes(self, rows: Ints, depth: int) -> Iterator[TreeNode]:
        """Yield the nodes of rows at a depth of their paths, in order."""
        ids = [_level_id(site, depth) for site in self.sites]
        group_numbers = {level_id: n for n, level_id in enumerate(dict.fromkeys(ids))}
        group_of_site = np.array([group_numbers[level_id] for level_id in ids], np.int64)
        keys = group_of_site[self.run.table[rows, 0]] if len(rows) else rows
        for part in _split_runs(rows, keys):
            site = self.sites[int(self.run.table[part[0], 0])]
            if depth >= len(site.path):
                if site.is_phi_copy:
                    continue
                yield from self.statement_nodes(site, part)
            else:
                yield self.level_node(site, site.path[depth], part, depth)

    def level_node(self, site: Site, level: Level, rows: Ints, depth: int) -> TreeNode:
        """Return the node of a comment, a loop or a branch."""
        span = level.branch.span if isinstance(level, BranchSide) else level.span
        match level:
            case Block(comment):
                text = comment or "block"
                return TreeNode("comment", text, span, lambda: self.level_nodes(rows, depth + 1))
            case BranchSide(branch, holds):
                text = f"{_header_text(branch.span.text)}  {'holds' if holds else 'does not hold'}"
                return TreeNode("branch", text, span, lambda: self.level_nodes(rows, depth + 1))
            case For(symbol=symbol):
                at = s.FIRST_SYMBOL + site.symbols.index(symbol)
                values = self.run.table[rows, at]
                iterations = _split_runs(rows, values)
                names = [f"{symbol.name} = {self.run.table[part[0], at]}" for part in iterations]
            case While():
                iterations = self._split_while(rows, depth)
                names = [f"iteration {n}" for n in range(len(iterations))]
        text = _header_text(span.text)
        return TreeNode(
            "loop", text, span, lambda: self.iteration_nodes(iterations, names, span, depth)
        )

    def iteration_nodes(
        self, iterations: list[Ints], names: list[str], span: Span, depth: int
    ) -> Iterator[TreeNode]:
        """Yield the iterations of a loop, the middle ones folded."""

        def node_at(n: int) -> TreeNode:
            return TreeNode(
                "iteration", names[n], span, lambda: self.level_nodes(iterations[n], depth + 1)
            )

        yield from self.fold_nodes(len(iterations), node_at, "iterations")

    def fold_nodes(
        self, count: int, node_at: Callable[[int], TreeNode], what: str
    ) -> Iterator[TreeNode]:
        """Yield the first and the last of many nodes, and the number of the folded ones."""
        if not self.head or count <= self.head + self.tail + 1:
            yield from map(node_at, range(count))
            return
        yield from map(node_at, range(self.head))
        yield TreeNode(
            "folded", f"... {count - self.head - self.tail} more {what}", NOWHERE, _no_children
        )
        yield from map(node_at, range(count - self.tail, count))

    def statement_nodes(self, site: Site, rows: Ints) -> Iterator[TreeNode]:
        """Yield a node for each execution of a statement, with its points."""
        statement = site.statement
        text, span = _header_text(statement.span.text), statement.span
        text = f"before `{text}`" if text.startswith(s.BLOCK_PREFIXES) else text
        if not isinstance(statement, Assign):
            names, sources = (
                ", ".join(node.label for node in nodes)
                for nodes in (statement.nodes, statement.sources)
            )
            swap = f"{names} = {sources}" if names != sources else f"{names} trade places"
            yield from (TreeNode("statement", swap, span, _no_children) for _ in rows)
            return
        points = self.points.get(site.number)

        def at(row: int) -> TreeNode:
            def children() -> Iterator[TreeNode]:
                if points is None:
                    return
                first, end = np.searchsorted(points.row, [row, row + 1])

                def node_at(n: int) -> TreeNode:
                    record = read_record(self.number, points, int(first) + n)
                    return TreeNode("record", str(record), span, lambda: self.term_nodes(record))

                yield from self.fold_nodes(int(end - first), node_at, "elements")

            return TreeNode("statement", text, span, children)

        yield from self.fold_nodes(len(rows), lambda n: at(int(rows[n])), "times")

    def term_nodes(self, record: Record) -> Iterator[TreeNode]:
        """Yield the recorded terms of a record."""
        terms = self.trace.terms(record)

        def node_at(n: int) -> TreeNode:
            return TreeNode("term", str(terms[n]), record.site.statement.span, _no_children)

        yield from self.fold_nodes(len(terms), node_at, "terms")

    def _split_while(self, rows: Ints, depth: int) -> list[Ints]:
        """Split the rows of a `while` loop into iterations."""
        table, is_start = self.run.table[rows], np.zeros(max(len(rows) - 1, 0), bool)
        pairs = np.stack((table[:-1, 0], table[1:, 0]), axis=1)
        for first, second in np.unique(pairs, axis=0):
            at = np.flatnonzero((pairs == (first, second)).all(axis=1))
            sites = self.sites[int(first)], self.sites[int(second)]
            is_start[at] = _starts_iteration(*sites, table[at], table[at + 1], depth + 1)
        return np.split(rows, np.flatnonzero(is_start) + 1)


def _level_id(site: Site, depth: int) -> int:
    """Return an identifier of the level at a depth."""
    if depth >= len(site.path):
        return -1 - site.number
    level = site.path[depth]
    return 2 * id(level.branch) + level.holds if isinstance(level, BranchSide) else 2 * id(level)


def _starts_iteration(
    first: Site, second: Site, before: Ints, after: Ints, depth: int
) -> npt.NDArray[np.bool_]:
    """Return for adjacent rows of two sites whether a new iteration of a loop begins between them,
    whose body is at a depth of their paths: whether the later row is further up in the body, or
    not in a later iteration of an inner loop.

    Rows in one inner `while` are assumed to be of the same iteration.
    """
    same = _level_id(first, depth) == _level_id(second, depth)
    if depth >= min(len(first.path), len(second.path)):
        return np.full(len(before), same or second.number < first.number)
    level, next_ = first.path[depth], second.path[depth]
    if not same:  # an iteration executes only one side of a branch
        are_sides = (
            isinstance(level, BranchSide)
            and isinstance(next_, BranchSide)
            and level.branch is next_.branch
        )
        return np.full(len(before), are_sides or second.number < first.number)
    if isinstance(level, While):
        return np.zeros(len(before), bool)
    inner = _starts_iteration(first, second, before, after, depth + 1)
    if not isinstance(level, For):
        return inner
    old = before[:, s.FIRST_SYMBOL + first.symbols.index(level.symbol)]
    new = after[:, s.FIRST_SYMBOL + second.symbols.index(level.symbol)]
    return np.where(old == new, inner, (new - old) * level.step < 0)


def _split_runs(rows: Ints, keys: Ints) -> list[Ints]:
    if not len(rows):
        return []
    return np.split(rows, np.flatnonzero(np.diff(keys)) + 1)


def _header_text(text: str) -> str:
    return text.split(":")[0] + ":" if text.startswith(s.BLOCK_PREFIXES) else text


_COLORS = {"call": "1", "comment": "36", "loop": "34", "iteration": "34", "branch": "34",
           "statement": "1", "folded": "2", "error": "31"}  # fmt: skip


def render_tree(trace: RecordSequence, head: int, tail: int, color: bool) -> str:
    """Return a trace as text; `color` adds terminal codes, non-finite values in red."""
    if not len(trace.runs):
        return "nothing was recorded"
    return "\n".join(tree_lines(build_tree(trace, head, tail), color))


def tree_lines(branches: Iterable[TreeNode], color: bool = False, depth: int = 0) -> Iterator[str]:
    """Yield the lines of a tree, each statement prefixed with its source line number."""
    for node in branches:
        number = f"{node.line:>4}" if node.line else "    "
        shown = node.text
        if color and node.kind in ("record", "term"):
            shown = re.sub(r"-?\b(nan|inf)\b", "\033[31m\\g<0>\033[0m", shown)
        elif color:
            shown = f"\033[{_COLORS[node.kind]}m{shown}\033[0m"
        yield f"{number}  {'  ' * depth}{shown}"
        yield from tree_lines(node.children(), color, depth + 1)
