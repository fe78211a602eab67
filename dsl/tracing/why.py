"""Provenance of an element: a backward slice of a trace, from its last assignment to inputs."""

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
from ...lowering.ir.dtypes import DType
from ...lowering.ir.expressions import (
    Apply,
    Domain,
    Dynamic,
    Expr,
    Read,
    Reduce,
    Select,
    children,
    conjuncts,
    walk,
)
from ...lowering.ir.indexing import Affine, Range, Symbol, evaluate
from ...lowering.ir.node import Node
from ...lowering.ir.ops import OPS, Op
from ..instrument import sites as s
from ..instrument.recording import MAX_ARGUMENT_BYTES, Run
from .known_values import Elements, known_test
from .points import evaluate_at_points
from .producers import ElementKey, LastWriters, ProgramPoint
from .recorded import RecordSequence
from .records import Record, format_element, to_text
from .terms import Term

Reads = dict[ElementKey, tuple[str, Any]]
"""The operands read: text and value of each element."""
_ElementRead = tuple[Node, tuple[int, ...], bool]
"""An element by node and index, and whether only a condition reads it."""
_MAX_READS = 20_000
"""The largest number of elements of one reduction that are inspected."""


@dataclass(frozen=True, slots=True, repr=False)
class Why:
    """An assignment and the provenance of its operands; `str()` shows the tree."""

    record: Record
    causes: tuple[Cause, ...]
    more: int = 0
    """The number of omitted causes: further terms of a reduction."""
    again: bool = False
    """Whether its causes are shown above, at its first occurrence."""
    note: str = ""
    """The reason why causes are incomplete, and the remedy; empty where they are complete."""
    conditions: int = 0
    """The number of its last causes that only decide what a reduction reads: those of a mask."""

    def __str__(self) -> str:
        return "\n".join(_tree_lines(self, "", ""))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return the tree for notebooks."""
        return f"<pre>{html.escape(str(self))}</pre>"

    @property
    def root(self) -> Cause:
        """The end of the chain of first causes, non-finite ones first, conditions last."""
        at: Cause = self
        while not isinstance(at, Source) and at.causes:
            conditions = at.conditions if isinstance(at, Why) else 0
            values = at.causes[: len(at.causes) - conditions]
            at = min(values or at.causes, key=_is_finite)
        return at


@dataclass(frozen=True, slots=True, repr=False)
class Source:
    """A value without a record: an input, or computed where nothing was recorded."""

    text: str
    value: Any

    def __str__(self) -> str:
        return f"{self.text} = {to_text(self.value)}" if self.value is not None else self.text

    def __repr__(self) -> str:
        return f"<source {self}>"


@dataclass(frozen=True, slots=True, repr=False)
class Part:
    """A term of a reduction, and the provenance of its operands."""

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


def _tree_lines(cause: Cause, prefix: str, indent: str) -> Iterator[str]:
    match cause:
        case Source():
            yield f"{prefix}{cause}"
            return
        case Part(term):
            yield f"{prefix}{term}"
        case Why(record):
            loops = ", ".join(f"{name} = {value}" for name, value in record.at.items())
            yield f"{prefix}{record}    line {record.line}{f', {loops}' if loops else ''}"
    children: list[Cause | str] = [*cause.causes]
    if isinstance(cause, Why) and cause.again:
        children.append("(as above)")
    if isinstance(cause, Why) and cause.more:
        children.append(f"... {cause.more} more")
    if isinstance(cause, Why) and cause.note:
        children.append(f"({cause.note})")
    for at, child in enumerate(children):
        last = at == len(children) - 1
        connector, extension = ("└─ ", "   ") if last else ("├─ ", "│  ")
        if isinstance(child, str):
            yield f"{indent}{connector}{child}"
        else:
            yield from _tree_lines(child, indent + connector, indent + extension)


def check_record(trace: RecordSequence, record: object) -> Record:
    """Return a record of the trace unchanged. Raises CdIndexError CD0872 for anything else."""
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


def explain_element(
    trace: RecordSequence,
    array: str,
    index: tuple[int, ...],
    run: int,
    depth: int,
    terms: int,
    before: ProgramPoint | None = None,
) -> Why:
    """Return the provenance of an element before a position, None for the end of the run.

    Raises CdIndexError CD0872 where no record wrote it, CD0873 for a wrong number of indices.
    """
    producers = LastWriters(trace, run)
    nodes = producers.called(array)
    candidates = [node for node in nodes if node.rank == len(index)]
    if nodes and not candidates:
        raise _wrong_rank_error(array, producers.shape(nodes[0]), index)
    if candidates:
        sizes = producers.shape(candidates[0])
        index = tuple(n + size if n < 0 else n for n, size in zip(index, sizes, strict=True))
    end = (len(producers.of.table), 0) if before is None else before
    records = [record for node in candidates if (record := producers.last((node.id, index), end))]
    if not records:
        array_names = [group.array for group in producers.groups]
        raise _no_writer_error(format_element(array, index), array_names, producers.of.dropped)
    why = explain_record(trace, max(records, key=lambda record: record.order), depth, terms)
    if not producers.of.dropped or before is not None:
        return why
    return replace(
        why, note="; ".join(filter(None, (why.note, _dropped_note(producers.of.dropped))))
    )


def _dropped_note(dropped: int) -> str:
    """Return the note for a run whose last records were dropped."""
    return f"{dropped:,} later records of the run were dropped, which may have written it again"


def _no_writer_error(text: str, labels: Sequence[str], dropped: int) -> CdIndexError:
    names = ", ".join(f"`{label}`" for label in dict.fromkeys(labels)) or "nothing"
    lost = f"{dropped:,} records of the run were dropped, which may have written it"
    notes = (f"recorded are assignments to {names}", *(lost,) * (dropped > 0))
    helps = ("where several calls were recorded, `run=` says which one is asked",)
    return CdIndexError(Diagnostic("CD0872", f"no record writes `{text}`", (), notes, helps))


def _wrong_rank_error(name: str, shape: tuple[int, ...], index: tuple[int, ...]) -> CdIndexError:
    given = f"{len(index)} indices are" if len(index) != 1 else "1 index is"
    message = f"`{name}` has shape {shape}, and {given} given"
    helps = (f"give one for each axis: `trace.why({name!r}, {(0,) * len(shape)})`",)
    return CdIndexError(Diagnostic("CD0873", message, helps=helps))


def explain_record(trace: RecordSequence, record: Record, depth: int, terms: int) -> Why:
    """Return a record with its provenance, `depth` levels deep."""
    return _ChainBuilder(trace, LastWriters(trace, record.run), terms).of(record, depth)


class _ChainBuilder:
    """The traversal of causes; it expands each record once."""

    def __init__(self, trace: RecordSequence, producers: LastWriters, terms: int) -> None:
        self.trace, self.producers, self.terms = trace, producers, terms
        self.expanded: set[tuple[int, int, int, int]] = set()

    def of(self, record: Record, depth: int) -> Why:
        """Return a record with its causes."""
        key = (*record.order, record.site.number)
        if key in self.expanded:
            return Why(record, (), 0, True)
        self.expanded.add(key)
        statement = record.site.statement
        assert isinstance(statement, Assign)
        read: Reads = {}
        if statement.op is not None and not statement.initialize:
            read[statement.target.node.id, record.index] = record.element, record.before
        more = self._add_operands(record, read)
        terms, omitted = self.trace.main_terms(record, self.terms)
        note, deciding = "", Reads()
        if not terms:
            omitted, note = self._add_reductions(record, statement, read, deciding)
            note = "; ".join(filter(None, (note, _whole_call_note(record, len(read) + omitted))))
            deciding = {cell: item for cell, item in deciding.items() if cell not in read}
        causes: list[Cause] = [
            self._cause(record, cell, *item, depth) for cell, item in read.items()
        ]
        terms.sort(key=lambda term: _sort_key(term.value))
        causes += (self._term_part(record, term, depth) for term in terms[: self.terms])
        causes += (self._cause(record, cell, *item, depth) for cell, item in deciding.items())
        more += omitted + max(len(terms) - self.terms, 0)
        return Why(record, tuple(causes), more, note=note, conditions=len(deciding))

    def _add_operands(self, record: Record, read: Reads) -> int:
        """Add the operands of a record, and of other points of its row that accumulate into the
        same element; return the number of omitted points."""
        selected, count = self.producers.accumulated_with(record, self.terms)
        selected = [term for term in selected if term.number != record.number]
        for term in (record, *selected):
            for operand in term.operands:
                if operand.node is not None:
                    read.setdefault((operand.node.id, operand.index), (operand.text, operand.value))
        return count - 1 - len(selected)

    def _term_part(self, record: Record, term: Term, depth: int) -> Part:
        """Return a term with the provenance of its operands."""
        operands = [x for x in term.operands if x.node is not None]
        cells = {(x.node.id, x.index): (x.text, x.value) for x in operands if x.node is not None}
        causes = [self._cause(record, cell, *item, depth) for cell, item in cells.items()]
        if term.is_read:  # an input adds no information
            causes = [cause for cause in causes if isinstance(cause, Why)]
        return Part(term, tuple(causes))

    def _add_reductions(
        self, record: Record, statement: Assign, read: Reads, deciding: Reads
    ) -> tuple[int, str]:
        """Add the operands of reductions, non-finite ones first, then by magnitude, and the
        elements of conditions, `deciding`; return the number of omitted ones, and the note on
        missing values."""
        count, omitted, unsaved = 0, set[ElementKey](), dict[str, bool]()
        symbols = _symbol_values(record, self.producers.of)
        for domain, value in _record_reductions(record, statement):
            cells = _reduction_reads(domain, value, symbols, {})
            values = self._lookup_values([cell[:2] for cell in cells], record.row)
            count += len(cells)
            for (node, _, _), read_value in zip(cells, values, strict=True):
                if read_value is None and self.producers.is_given(node):
                    name = s.array_name(node, statement.names)
                    unsaved[name] = node.id not in self.producers.of.lacking
            known = {
                (node.id, at): read_value
                for (node, at, _), read_value in zip(cells, values, strict=True)
            }
            if _has_condition(domain, value):
                cells = _reduction_reads(domain, value, symbols, known)
            cells.sort(key=lambda cell: (cell[2], *_sort_key(known[cell[0].id, cell[1]])))
            for node, at, decides in cells[: self.terms]:
                text = format_element(s.array_name(node, statement.names), at)
                added = deciding if decides else read
                added.setdefault((node.id, at), (text, known[node.id, at]))
            omitted |= {(node.id, at) for node, at, _ in cells[self.terms :]}
        omitted -= read.keys() | deciding.keys()
        return len(omitted), _missing_note(unsaved, count)

    def _lookup_values(self, cells: Sequence[tuple[Node, tuple[int, ...]]], row: int) -> list[Any]:
        """Return the values of elements before a row, with one lookup per array."""
        result: list[Any] = [None] * len(cells)
        by_node: dict[int, list[int]] = {}
        for n, (node, _) in enumerate(cells):
            by_node.setdefault(node.id, []).append(n)
        for positions in by_node.values():
            node = cells[positions[0]][0]
            values = self.producers.values(node, [cells[n][1] for n in positions], row)
            for n, value in zip(positions, values, strict=True):
                result[n] = value
        return result

    def _cause(
        self, record: Record, cell: ElementKey, text: str, value: Any, depth: int
    ) -> Why | Source:
        producer = self.producers.last(cell, (record.row, 0))
        if producer is None:
            return Source(text, value)
        if depth > 1:
            return self.of(producer, depth - 1)
        return Why(producer, (), 0)


def _whole_call_note(record: Record, count: int) -> str:
    """Return the note on a library call that reads several elements, of which this one may take
    some; empty for other records."""
    if record.site.reads is None or count < 2:
        return ""
    return "all that the call reads: which of it this element takes is not recorded"


def _missing_note(unsaved: Mapping[str, bool], count: int) -> str:
    """Return the note on values that are unknown, with the remedy; empty if there are none.

    `unsaved` are the arrays of which no copy was kept, and whether they are too large for that.
    """
    large = ", ".join(f"`{name}`" for name, is_large in unsaved.items() if is_large)
    others = ", ".join(f"`{name}`" for name, is_large in unsaved.items() if not is_large)
    reasons = []
    if large:
        reasons.append(f"no copy was kept of {large}, more than {MAX_ARGUMENT_BYTES >> 20} MiB")
    if others:
        reasons.append(f"no copy was kept of {others}, for which no memory was left")
    if not unsaved and count >= _MAX_READS:
        reasons.append(f"these are of the first {_MAX_READS:,} elements")
    reason = "; ".join(reasons)
    return f"{reason}: `pe.trace(terms=True)` records each term" if reason else ""


def _sort_key(value: Any) -> tuple[bool, float]:
    """Return the sort key of values: non-finite ones first, then by magnitude."""
    if value is None:
        return True, 0.0
    size = float(abs(value))
    return (True, -size) if math.isfinite(size) else (False, 0.0)


def _symbol_values(record: Record, run: Run) -> dict[Symbol, int]:
    """Return the values of the symbols of a record."""
    row = run.table[record.row]
    outer_values = {x: int(row[s.FIRST_SYMBOL + n]) for n, x in enumerate(record.site.symbols)}
    axis_values = zip((axis.symbol for axis in record.site.axes), record.axes, strict=True)
    return {**run.sizes, **outer_values, **dict(axis_values)}


def _record_reductions(record: Record, statement: Assign) -> Iterator[tuple[Domain, Expr]]:
    yield from record.site.reads or ()
    if statement.reduced.ranges:
        yield statement.reduced, statement.value
    if isinstance(statement.value, Reduce):
        yield statement.value.domain, statement.value.value
    for operand in record.operands:
        if isinstance(operand.expr, Reduce):
            yield operand.expr.domain, operand.expr.value


def _reduction_reads(
    domain: Domain, value: Expr, symbols: dict[Symbol, int], known: Elements
) -> list[_ElementRead]:
    """Return the elements that a reduction reads, each once, except at indirect subscripts.

    Conditions are evaluated with the values of `known` elements; where these are given, no others
    are returned. Where a condition is unknown, both sides count as read.
    """
    decides_only: dict[ElementKey, tuple[Node, bool]] = {}
    reduce = Reduce(OPS["add"], domain, value, value.dtype)
    elements = _vectorized_reads(domain, value, symbols) or _scalar_reads(reduce, symbols, known)
    for node, at, decides in itertools.islice(elements, _MAX_READS):
        key = node.id, at
        if not known or key in known:
            decides_only[key] = node, decides and decides_only.get(key, (node, True))[1]
    return [(node, at, decides) for (_, at), (node, decides) in decides_only.items()]


def _vectorized_reads(
    domain: Domain, value: Expr, symbols: Mapping[Symbol, int]
) -> Iterator[_ElementRead] | None:
    """Return the same elements as `_scalar_reads`, vectorized over points; None where reads are
    conditional or subscripts are not affine."""
    parts = walk(value)
    reads = [part for part in parts if isinstance(part, Read)]
    is_vectorizable = all(isinstance(x, Affine) for read in reads for x in read.index)
    is_vectorizable &= domain.where is None and not any(
        isinstance(x, Select | Reduce) for x in parts
    )
    bounds = [(r.lo, r.hi) for r in domain.ranges]
    if not is_vectorizable or any(x.symbols() & {*domain.symbols} for pair in bounds for x in pair):
        return None
    first = [evaluate(lo, symbols) for lo, _ in bounds]
    sizes = [max(0, evaluate(hi, symbols) - lo) for (_, hi), lo in zip(bounds, first, strict=True)]
    sizes[:1] = [min(n, _MAX_READS) for n in sizes[:1]]
    if math.prod(sizes) > 2 * _MAX_READS:
        return None
    grid = np.indices(sizes).reshape(len(sizes), math.prod(sizes))
    axis_values = {
        x: offsets + lo for x, offsets, lo in zip(domain.symbols, grid, first, strict=True)
    }
    at = {**symbols, **axis_values}
    return (
        (read.node, place, False)
        for point in zip(
            *(_read_positions(read, at, math.prod(sizes)) for read in reads), strict=True
        )
        for read, place in zip(reads, point, strict=True)
        if place is not None
    )


def _read_positions(
    read: Read, symbols: Mapping[Symbol, Any], points: int
) -> Iterator[tuple[int, ...] | None]:
    """Yield the index of a read at each point, None where it is out of bounds."""
    index = [
        np.broadcast_to(evaluate_at_points(x, symbols), points)
        for x in read.index
        if isinstance(x, Affine)
    ]
    sizes = [evaluate_at_points(extent, symbols) for extent in read.node.shape]
    in_bounds = np.ones(points, bool)
    for subscript, size in zip(index, sizes, strict=True):
        in_bounds &= (subscript >= 0) & (subscript < size)
    places = (
        zip(*(subscript.tolist() for subscript in index), strict=True) if index else [()] * points
    )
    return (at if is_in else None for at, is_in in zip(places, in_bounds.tolist(), strict=True))


def _scalar_reads(
    expr: Expr, symbols: Mapping[Symbol, int], known: Elements
) -> Iterator[_ElementRead]:
    """Yield the elements that an expression reads at a point, where its conditions admit it."""
    match expr:
        case Read(node, index):
            if not any(isinstance(subscript, Dynamic) for subscript in index):
                at = tuple(
                    evaluate(subscript, symbols)
                    for subscript in index
                    if isinstance(subscript, Affine)
                )
                sizes = [evaluate(extent, symbols) for extent in node.shape]
                if all(0 <= n < size for n, size in zip(at, sizes, strict=True)):
                    yield node, at, False
        case Reduce(_, domain, value):
            for point in _iterate_points(domain.ranges, symbols):
                yield from _condition_reads(domain.where, point, known)
                if domain.where is None or known_test(domain.where, point, known) is not False:
                    yield from _scalar_reads(value, point, known)
        case Select(test, yes, no):
            yield from _condition_reads(test, symbols, known)
            holds = known_test(test, symbols, known)
            if holds is not False:
                yield from _scalar_reads(yes, symbols, known)
            if holds is not True:
                yield from _scalar_reads(no, symbols, known)
        case _:
            for child in children(expr):
                yield from _scalar_reads(child, symbols, known)


def _condition_reads(
    test: Expr | None, symbols: Mapping[Symbol, int], known: Elements
) -> Iterator[_ElementRead]:
    """Yield the elements that decide a condition: up to the first conjunct that fails."""
    for conjunct in _mask_conjuncts(test):
        for node, at, _ in _scalar_reads(conjunct, symbols, known):
            yield node, at, True
        if known_test(conjunct, symbols, known) is False:
            return


def _mask_conjuncts(test: Expr | None) -> Iterator[Expr]:
    """Yield the conjuncts of a condition, also those of a mask, `(lab == 1) & (x > 0)`."""
    for part in conjuncts(test):
        match part:
            case Apply(Op(name="bitand"), (left, right), DType(kind="b")):
                yield from _mask_conjuncts(left)
                yield from _mask_conjuncts(right)
            case _:
                yield part


def _has_condition(domain: Domain, value: Expr) -> bool:
    """Whether not all elements are read at all points."""
    parts = walk(value)
    tests = (part.domain.where for part in parts if isinstance(part, Reduce))
    is_selected = any(isinstance(part, Select) for part in parts)
    return is_selected or any(test is not None for test in (domain.where, *tests))


def _iterate_points(
    ranges: tuple[Range, ...], symbols: Mapping[Symbol, int]
) -> Iterator[Mapping[Symbol, int]]:
    if not ranges:
        yield symbols
        return
    first, *rest = ranges
    for value in range(evaluate(first.lo, symbols), evaluate(first.hi, symbols)):
        yield from _iterate_points(tuple(rest), {**symbols, first.symbol: value})
