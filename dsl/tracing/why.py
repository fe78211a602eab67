"""Which assignments produced an element: from the last one back to what was given."""

from __future__ import annotations

import html
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...base.dataclass import dataclass
from ...base.diagnostic import CdIndexError, Diagnostic
from ...lowering.ir.assignments import Assign
from ...lowering.ir.expressions import Domain, Dynamic, Expr, Read, Reduce, Select, children, walk
from ...lowering.ir.indexing import Affine, Range, Symbol, evaluate
from ...lowering.ir.node import Node
from ...lowering.ir.ops import OPS
from ..instrument import sites as s
from ..instrument.recording import KEPT, Run
from .points import evaluated, truth
from .producers import Cell, Place, Producers
from .recorded import Recorded
from .records import Record, element, shown
from .terms import Term

Reads = dict[Cell, tuple[str, Any]]
"""What was read: the text and the value of each."""
_TERMS = 20_000
"""Most elements of one reduction that are looked at."""


@dataclass(frozen=True, slots=True, repr=False)
class Why:
    """An assignment and those that made what it read; a tree, which prints itself."""

    record: Record
    causes: tuple[Cause, ...]
    more: int = 0
    """How many causes are not shown: terms of a reduction like those that are."""
    again: bool = False
    """Whether its causes stand above, where it came up first."""
    note: str = ""
    """What could not be looked at, and how to see it; empty where everything was."""

    def __str__(self) -> str:
        return "\n".join(_lines(self, "", ""))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return the tree for notebooks."""
        return f"<pre>{html.escape(str(self))}</pre>"

    @property
    def root(self) -> Cause:
        """What stands at the end when the first cause is followed, non-finite ones first."""
        at: Cause = self
        while not isinstance(at, Source) and at.causes:
            at = min(at.causes, key=_is_finite)
        return at


@dataclass(frozen=True, slots=True, repr=False)
class Source:
    """Something that no record made: it was given, or made where nothing was recorded."""

    text: str
    value: Any

    def __str__(self) -> str:
        return f"{self.text} = {shown(self.value)}" if self.value is not None else self.text

    def __repr__(self) -> str:
        return f"<source {self}>"


@dataclass(frozen=True, slots=True, repr=False)
class Part:
    """A term of a reduction, and what made what it read."""

    term: Term
    causes: tuple[Cause, ...]

    def __repr__(self) -> str:
        return f"<part {self.term}>"


Cause = Why | Source | Part


def _is_finite(cause: Cause) -> bool:
    match cause:
        case Why(record):
            value = record.after
        case Source(_, value):
            pass
        case Part(term):
            value = term.value
    return value is None or bool(np.isfinite(value))


def _lines(cause: Cause, lead: str, below: str) -> Iterator[str]:
    match cause:
        case Source():
            yield f"{lead}{cause}"
            return
        case Part(term):
            yield f"{lead}{term}"
        case Why(record):
            loops = ", ".join(f"{name} = {value}" for name, value in record.at.items())
            yield f"{lead}{record}    line {record.line}{f', {loops}' if loops else ''}"
    rest: list[Cause | str] = [*cause.causes]
    if isinstance(cause, Why) and cause.again:
        rest.append("(as above)")
    if isinstance(cause, Why) and cause.more:
        rest.append(f"... {cause.more} more")
    if isinstance(cause, Why) and cause.note:
        rest.append(f"({cause.note})")
    for at, one in enumerate(rest):
        last = at == len(rest) - 1
        mark, deeper = ("└─ ", "   ") if last else ("├─ ", "│  ")
        if isinstance(one, str):
            yield f"{below}{mark}{one}"
        else:
            yield from _lines(one, below + mark, below + deeper)


def owned(trace: Recorded, record: object) -> Record:
    """Return a record of a trace as it is. Raises CdIndexError CD0872 for anything else."""
    if record is None:
        helps = ("`first_nonfinite()` is None where every element that was recorded is finite",)
        raise CdIndexError(Diagnostic("CD0872", "None is no record", helps=helps))
    if not isinstance(record, Record):
        helps = ("give a record of the trace, or the name of an array and an index",)
        raise CdIndexError(Diagnostic("CD0872", f"{record!r} is no record", helps=helps))
    runs = trace.runs
    if record.run >= len(runs) or all(x is not record.site for x in runs[record.run].layout.sites):
        helps = ("ask the trace that the record is of",)
        message = f"no record of this trace is `{record.element}` of another one"
        raise CdIndexError(Diagnostic("CD0872", message, helps=helps))
    return record


def chain_of(
    trace: Recorded,
    array: str,
    index: tuple[int, ...],
    run: int,
    depth: int,
    terms: int,
    before: Place | None = None,
) -> Why:
    """Return what made an element of an array as it was before a place, the end of a run for None.

    Raises CdIndexError CD0872 where no record wrote it, CD0873 for a wrong number of indices.
    """
    producers = Producers(trace, run)
    nodes = producers.called(array)
    fitting = [node for node in nodes if node.rank == len(index)]
    if nodes and not fitting:
        raise _wrong_rank(array, producers.shape(nodes[0]), index)
    if fitting:
        sizes = producers.shape(fitting[0])
        index = tuple(n + size if n < 0 else n for n, size in zip(index, sizes, strict=True))
    end = (len(producers.of.table), 0) if before is None else before
    found = [record for node in fitting if (record := producers.last((node.id, index), end))]
    if not found:
        named = [group.array for group in producers.groups]
        raise _unwritten(element(array, index), named, producers.of.dropped)
    made = chain(trace, max(found, key=lambda record: record.order), depth, terms)
    if not producers.of.dropped or before is not None:
        return made
    return replace(made, note="; ".join(filter(None, (made.note, _cut(producers.of.dropped)))))


def _cut(dropped: int) -> str:
    """Return what has to be said where the last records of a run are not there."""
    return f"{dropped:,} later records of the run were dropped, which may have written it again"


def _unwritten(text: str, labels: Sequence[str], dropped: int) -> CdIndexError:
    names = ", ".join(f"`{label}`" for label in dict.fromkeys(labels)) or "nothing"
    lost = f"{dropped:,} records of the run were dropped, which may have written it"
    notes = (f"recorded are assignments to {names}", *(lost,) * (dropped > 0))
    helps = ("where several calls were recorded, `run=` says which one is asked",)
    return CdIndexError(Diagnostic("CD0872", f"no record writes `{text}`", (), notes, helps))


def _wrong_rank(name: str, shape: tuple[int, ...], index: tuple[int, ...]) -> CdIndexError:
    given = f"{len(index)} indices are" if len(index) != 1 else "1 index is"
    message = f"`{name}` has shape {shape}, and {given} given"
    helps = (f"give one for each axis: `trace.why({name!r}, {(0,) * len(shape)})`",)
    return CdIndexError(Diagnostic("CD0873", message, helps=helps))


def chain(trace: Recorded, record: Record, depth: int, terms: int) -> Why:
    """Return a record with what made what it read, that many levels deep."""
    return _Chains(trace, Producers(trace, record.run), terms).of(record, depth)


class _Chains:
    """The records that came up so far: the causes of each are told once."""

    def __init__(self, trace: Recorded, producers: Producers, terms: int) -> None:
        self.trace, self.producers, self.terms = trace, producers, terms
        self.told: set[tuple[int, int, int, int]] = set()

    def of(self, record: Record, depth: int) -> Why:
        """Return a record with its causes."""
        key = (*record.order, record.site.number)
        if key in self.told:
            return Why(record, (), 0, True)
        self.told.add(key)
        statement = record.site.statement
        assert isinstance(statement, Assign)
        read: Reads = {}
        if statement.op is not None and not statement.initialize:
            read[statement.target.node.id, record.index] = record.element, record.before
        more = self._together(record, read)
        terms, left = self.trace.main_terms(record, self.terms)
        note = ""
        if not terms:
            left, note = self._reduced(record, statement, read)
        causes: list[Cause] = [
            self._cause(record, cell, *told, depth) for cell, told in read.items()
        ]
        terms.sort(key=lambda term: _rank(term.value))
        causes += (self._part(record, term, depth) for term in terms[: self.terms])
        more += left + max(len(terms) - self.terms, 0)
        return Why(record, tuple(causes), more, note=note)

    def _together(self, record: Record, read: Reads) -> int:
        """Add what a record read, and others that accumulate into the same element at the same
        time; return how many of those are left out."""
        others = self.producers.together(record)
        others.sort(key=lambda one: min((_rank(x.value) for x in one.operands), default=_rank(0)))
        shown = others[: self.terms]
        for one in (record, *(other for other in shown if other.number != record.number)):
            for operand in one.operands:
                if operand.node is not None:
                    read.setdefault((operand.node.id, operand.index), (operand.text, operand.value))
        return len({*(one.number for one in others)} - {record.number, *(x.number for x in shown)})

    def _part(self, record: Record, term: Term, depth: int) -> Part:
        """Return a term with what made what it read."""
        found = [x for x in term.operands if x.node is not None]
        cells = {(x.node.id, x.index): (x.text, x.value) for x in found if x.node is not None}
        causes = [self._cause(record, cell, *told, depth) for cell, told in cells.items()]
        if term.is_read:  # what was given says nothing new
            causes = [cause for cause in causes if isinstance(cause, Why)]
        return Part(term, tuple(causes))

    def _reduced(self, record: Record, statement: Assign, read: Reads) -> tuple[int, str]:
        """Add what reductions read, what is not finite and what is large first; return how much is
        left out, and what could not be looked at."""
        left, count, large = 0, 0, dict[str, None]()
        for domain, value in _reductions(record, statement):
            cells = list(_terms(domain, value, _symbols(record, self.producers.of)))
            terms = [
                (node, at, known)
                for (node, at), known in zip(cells, self._values(cells, record.row), strict=True)
            ]
            count += len(terms)
            for node in {node.id: node for node, _, known in terms if known is None}.values():
                if self.producers.is_given(node):
                    large[s.called(node, statement.names)] = None
            terms.sort(key=lambda term: _rank(term[2]))
            for node, at, known in terms[: self.terms]:
                text = element(s.called(node, statement.names), at)
                read.setdefault((node.id, at), (text, known))
            left += max(len(terms) - self.terms, 0)
        return left, _unseen(tuple(large), count)

    def _values(self, cells: Sequence[tuple[Node, tuple[int, ...]]], row: int) -> list[Any]:
        """Return what elements were before a row, those of one array looked up at once."""
        found: list[Any] = [None] * len(cells)
        by_node: dict[int, list[int]] = {}
        for n, (node, _) in enumerate(cells):
            by_node.setdefault(node.id, []).append(n)
        for here in by_node.values():
            node = cells[here[0]][0]
            values = self.producers.values(node, [cells[n][1] for n in here], row)
            for n, value in zip(here, values, strict=True):
                found[n] = value
        return found

    def _cause(self, record: Record, cell: Cell, text: str, value: Any, depth: int) -> Why | Source:
        made = self.producers.last(cell, (record.row, 0))
        if made is None:
            return Source(text, value)
        if depth > 1:
            return self.of(made, depth - 1)
        return Why(made, (), 0)


def _unseen(large: tuple[str, ...], count: int) -> str:
    """Return what the terms of a record do not tell, and how to see it; empty for nothing."""
    why = ""
    if large:
        names = ", ".join(f"`{name}`" for name in large)
        why = f"no copy was kept of {names}, more than {KEPT >> 20} MiB"
    elif count >= _TERMS:
        why = f"these are of the first {_TERMS:,} elements"
    return f"{why}: `pe.trace(terms=True)` records each term" if why else ""


def _rank(value: Any) -> tuple[bool, float]:
    """Return what sorts values: those that are not finite first, then large ones."""
    if value is None:
        return True, 0.0
    size = float(abs(value))
    return (True, -size) if math.isfinite(size) else (False, 0.0)


def _symbols(record: Record, run: Run) -> dict[Symbol, int]:
    """Return what the symbols around a record, and its own, stood for."""
    row = run.table[record.row]
    found = {x: int(row[s.FIRST + n]) for n, x in enumerate(record.site.symbols)}
    own = zip((axis.symbol for axis in record.site.axes), record.axes, strict=True)
    return {**run.sizes, **found, **dict(own)}


def _reductions(record: Record, statement: Assign) -> Iterator[tuple[Domain, Expr]]:
    yield from record.site.reads or ()
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
    found = _read_in(domain, value, symbols) or _read_at(whole, symbols)
    for node, at in itertools.islice(found, _TERMS):
        if (node.id, at) not in seen:
            seen.add((node.id, at))
            yield node, at


def _read_in(
    domain: Domain, value: Expr, symbols: Mapping[Symbol, int]
) -> Iterator[tuple[Node, tuple[int, ...]]] | None:
    """Return what `_read_at` yields, found for all points at once; None where what is read, or
    where, differs from point to point in another way than by indices."""
    parts = walk(value)
    reads = [part for part in parts if isinstance(part, Read)]
    plain = all(isinstance(x, Affine) for read in reads for x in read.index)
    plain &= domain.where is None and not any(isinstance(x, Select | Reduce) for x in parts)
    ends = [(r.lo, r.hi) for r in domain.ranges]
    if not plain or any(x.symbols() & {*domain.symbols} for pair in ends for x in pair):
        return None
    first = [evaluate(lo, symbols) for lo, _ in ends]
    sizes = [max(0, evaluate(hi, symbols) - lo) for (_, hi), lo in zip(ends, first, strict=True)]
    sizes[:1] = [min(n, _TERMS) for n in sizes[:1]]
    if math.prod(sizes) > 2 * _TERMS:
        return None
    grid = np.indices(sizes).reshape(len(sizes), -1)
    own = {x: one + lo for x, one, lo in zip(domain.symbols, grid, first, strict=True)}
    at = {**symbols, **own}
    return (
        (read.node, place)
        for point in zip(*(_places(read, at, math.prod(sizes)) for read in reads), strict=True)
        for read, place in zip(reads, point, strict=True)
        if place is not None
    )


def _places(
    read: Read, symbols: Mapping[Symbol, Any], points: int
) -> Iterator[tuple[int, ...] | None]:
    """Yield the index of a read at each of some points, None where it is outside of the array."""
    index = [
        np.broadcast_to(evaluated(x, symbols), points) for x in read.index if isinstance(x, Affine)
    ]
    sizes = [evaluated(extent, symbols) for extent in read.node.shape]
    inside = np.ones(points, bool)
    for one, size in zip(index, sizes, strict=True):
        inside &= (one >= 0) & (one < size)
    places = zip(*(one.tolist() for one in index), strict=True) if index else [()] * points
    return (at if is_in else None for at, is_in in zip(places, inside.tolist(), strict=True))


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
