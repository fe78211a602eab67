"""Which assignments produced an element: from the last one back to what was given."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...lowering.ir.assignments import Assign, Permute
from ...lowering.ir.expressions import Domain, Dynamic, Expr, Read, Reduce, Select, children
from ...lowering.ir.indexing import Affine, Range, Symbol, evaluate
from ...lowering.ir.node import Node
from ...lowering.ir.ops import OPS
from . import sites as s
from .points import truth
from .recorded import Group, Recorded
from .recording import Run
from .records import Record, element, record_at, shown

Cell = tuple[int, tuple[int, ...]]
"""A node by its id, and an index."""
_TERMS = 20_000
"""Most elements of one reduction that are looked at."""


@dataclass(frozen=True, slots=True)
class Why:
    """An assignment and those that made what it read; a tree, which prints itself."""

    record: Record
    causes: tuple[Why | Source, ...]
    more: int = 0
    """How many causes are not shown: terms of a reduction like those that are."""
    again: bool = False
    """Whether its causes stand above, where it came up first."""

    def __str__(self) -> str:
        return "\n".join(_lines(self, "", ""))

    @property
    def root(self) -> Why | Source:
        """What stands at the end when the first cause is followed, non-finite ones first."""
        at: Why | Source = self
        while isinstance(at, Why) and at.causes:
            at = min(at.causes, key=_is_finite)
        return at


@dataclass(frozen=True, slots=True)
class Source:
    """Something that no record made: it was given, or made where nothing was recorded."""

    text: str
    value: Any

    def __str__(self) -> str:
        return f"{self.text} = {shown(self.value)}" if self.value is not None else self.text


def _is_finite(cause: Why | Source) -> bool:
    value = cause.record.after if isinstance(cause, Why) else cause.value
    return value is None or bool(np.isfinite(value))


def _lines(cause: Why | Source, lead: str, below: str) -> Iterator[str]:
    if isinstance(cause, Source):
        yield f"{lead}{cause}"
        return
    record = cause.record
    loops = ", ".join(f"{name} = {value}" for name, value in record.at.items())
    yield f"{lead}{record}    line {record.line}{f', {loops}' if loops else ''}"
    if cause.again:
        yield f"{below}└─ (as above)"
    rest: list[Why | Source | str] = [*cause.causes]
    if cause.more:
        rest.append(f"... {cause.more} more")
    for at, one in enumerate(rest):
        last = at == len(rest) - 1
        mark, deeper = ("└─ ", "   ") if last else ("├─ ", "│  ")
        if isinstance(one, str):
            yield f"{below}{mark}{one}"
        else:
            yield from _lines(one, below + mark, below + deeper)


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

    def given(self, node: Node, index: tuple[int, ...]) -> Any:
        """Return an element of an argument as it was before the run, None where it is not kept."""
        array = self.of.given.get(node.id)
        return None if array is None else array[index]

    def last(self, cell: Cell, before: tuple[int, int]) -> Record | None:
        """Return the last record before a place (row and number) that wrote an element."""
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
            points = group.points
            statement = points.site.statement
            assert isinstance(statement, Assign)
            if statement.target.node.id != node:
                continue
            here = (points.row < before[0]) | (
                (points.row == before[0]) & (points.number < before[1])
            )
            for values, wanted in zip(points.index(statement.target.index), index, strict=True):
                here = here & (values == wanted)
            found = np.flatnonzero(here)
            if len(found):
                at = int(found[-1])
                order = int(points.row[at]), int(points.number[at])
                if best is None or order > best[0]:
                    best = order, group, at
        return None if best is None else record_at(self.run, best[1].points, best[2])


def chain_of(
    trace: Recorded, array: str, index: tuple[int, ...], run: int, depth: int, terms: int
) -> Why:
    """Return what made an element of an array as it was at the end of a run.

    Raises LookupError where no record wrote it.
    """
    producers = Producers(trace, run)
    nodes = {
        statement.target.node.id
        for group in producers.groups
        if isinstance(statement := group.points.site.statement, Assign)
        and statement.target.node.label == array
    }
    end = (len(producers.of.table), 0)
    found = [record for node in nodes if (record := producers.last((node, index), end))]
    if not found:
        raise LookupError(f"no record writes {array}{list(index)}")
    return chain(producers, max(found, key=lambda record: record.order), depth, terms)


def chain(producers: Producers, record: Record, depth: int, terms: int) -> Why:
    """Return a record with what made what it read, that many levels deep."""
    return _Chains(producers, terms).of(record, depth)


class _Chains:
    """The records that came up so far: the causes of each are told once."""

    def __init__(self, producers: Producers, terms: int) -> None:
        self.producers, self.terms = producers, terms
        self.told: set[tuple[int, int, int, int]] = set()

    def of(self, record: Record, depth: int) -> Why:
        """Return a record with its causes."""
        key = (*record.order, record.site.number)
        if key in self.told:
            return Why(record, (), 0, True)
        self.told.add(key)
        statement = record.site.statement
        assert isinstance(statement, Assign)
        read: dict[Cell, tuple[str, Any]] = {}
        if statement.op is not None and not statement.initialize:
            read[statement.target.node.id, record.index] = record.element, record.before
        for operand in record.operands:
            if operand.node is not None:
                read[operand.node.id, operand.index] = operand.text, operand.value
        more = self._reduced(record, statement, read)
        causes = tuple(self._cause(record, cell, *told, depth) for cell, told in read.items())
        return Why(record, causes, more)

    def _reduced(self, record: Record, statement: Assign, read: dict[Cell, tuple[str, Any]]) -> int:
        """Add what reductions read, what is not finite and what is large first; return how much is
        left out."""
        left = 0
        for domain, value in _reductions(record, statement):
            terms = []
            for node, at in _terms(domain, value, _symbols(record, self.producers.of)):
                made = self.producers.last((node.id, at), (record.row, 0))
                known = self.producers.given(node, at) if made is None else made.after
                fine = known is None or bool(np.isfinite(known))
                terms.append((fine, element(node.label, at), known, (node.id, at)))
            terms.sort(
                key=lambda term: (term[0], 0.0 if term[2] is None else -abs(complex(term[2])))
            )
            for _, text, known, cell in terms[: self.terms]:
                read.setdefault(cell, (text, known))
            left += max(len(terms) - self.terms, 0)
        return left

    def _cause(self, record: Record, cell: Cell, text: str, value: Any, depth: int) -> Why | Source:
        made = self.producers.last(cell, (record.row, 0))
        if made is None:
            return Source(text, value)
        if depth > 1:
            return self.of(made, depth - 1)
        return Why(made, (), 0)


def _size(value: Any) -> float:
    return 0.0 if value is None else abs(complex(value))


def _symbols(record: Record, run: Run) -> dict[Symbol, int]:
    """Return what the symbols around a record, and its own, stood for."""
    row = run.table[record.row]
    found = {x: int(row[s.FIRST + n]) for n, x in enumerate(record.site.symbols)}
    own = zip((axis.symbol for axis in record.site.axes), record.axes, strict=True)
    return {**run.sizes, **found, **dict(own)}


def _reductions(record: Record, statement: Assign) -> Iterator[tuple[Domain, Expr]]:
    if statement.reduced.ranges:
        yield statement.reduced, statement.value
    if isinstance(statement.value, Reduce):
        yield statement.value.domain, statement.value.value
    for operand in record.operands:
        if isinstance(operand.expr, Reduce):
            yield operand.expr.domain, operand.expr.value


def _terms(
    domain: Domain, value: Expr, symbols: dict[Symbol, int]
) -> Iterator[tuple[Node, tuple[int, ...]]]:
    """Yield what a reduction reads, each element once; those at indices from arrays are not."""
    seen: set[Cell] = set()
    whole = Reduce(OPS["add"], domain, value, value.dtype)
    for node, at in itertools.islice(_read_at(whole, symbols), _TERMS):
        if (node.id, at) not in seen:
            seen.add((node.id, at))
            yield node, at


def _read_at(expr: Expr, symbols: Mapping[Symbol, int]) -> Iterator[tuple[Node, tuple[int, ...]]]:
    """Yield what an expression reads at a point, where tests of indices let it."""
    match expr:
        case Read(node, index):
            if not any(isinstance(one, Dynamic) for one in index):
                at = tuple(evaluate(one, symbols) for one in index if isinstance(one, Affine))
                sizes = [evaluate(extent, symbols) for extent in node.shape]
                if all(0 <= n < size for n, size in zip(at, sizes, strict=True)):
                    yield node, at
        case Reduce(_, domain, value):
            for point in _points(domain.ranges, symbols):
                if domain.where is None or _holds(domain.where, point) is not False:
                    yield from _read_at(value, point)
        case Select(test, yes, no):
            holds = _holds(test, symbols)
            if holds is not False:
                yield from _read_at(yes, symbols)
            if holds is not True:
                yield from _read_at(no, symbols)
        case _:
            for child in children(expr):
                yield from _read_at(child, symbols)


def _holds(test: Expr, symbols: Mapping[Symbol, int]) -> bool | None:
    """Return whether a test of indices holds, None for a test of anything else."""
    found = truth(test, symbols)
    return None if found is None else bool(found)


def _points(
    ranges: tuple[Range, ...], symbols: Mapping[Symbol, int]
) -> Iterator[Mapping[Symbol, int]]:
    if not ranges:
        yield symbols
        return
    first, *rest = ranges
    for value in range(evaluate(first.lo, symbols), evaluate(first.hi, symbols)):
        yield from _points(tuple(rest), {**symbols, first.symbol: value})
