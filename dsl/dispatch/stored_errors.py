"""The error of a run whose code was found on disk: raised as compiled code of this process does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from ...backends.cc.code import raise_status
from ...base.diagnostic import NOWHERE, CdError, CdMemoryError, Source, Span
from ...lowering.ir.assignments import Fault
from ..source import function_source
from ..source.definition import Definition, Inlined

Place = list[Any]
"""The number of a source, then a line, a column, and the end of both; lines from its first."""


def failed(
    data: dict[str, Any],
    definition: Definition,
    inlined: Sequence[Inlined],
    status: int,
    *fault: int,
) -> NoReturn:
    """Raise the error that a status means, with what the run wrote of it."""
    faults = [
        (Fault(code, kind, message, tuple(helps)), _span(place, data, definition, inlined))
        for code, kind, message, helps, place in (data["faults"] if status == 1 else ())
    ]
    try:
        raise_status(data["name"], faults, status, fault)
    except CdMemoryError as problem:
        raise problem.placed(definition.surface.span) from None


def place_of(span: Span, sources: Sequence[Source], others: list[list[Any]]) -> Place:
    """Return a span as an entry has it; `others` are sources that are written out, and grow."""
    at = next((n for n, one in enumerate(sources) if one == span.source), None)
    if at is None:
        written = [span.source.name, span.source.first_line, span.source.text]
        if written not in others:
            others.append(written)
        at = len(sources) + others.index(written)
    first = span.source.first_line
    return [at, span.line - first, span.column, span.end_line - first, span.end_column]


def sources_of(definition: Definition, inlined: Sequence[Inlined]) -> list[Source]:
    """Return the texts of a function and of those it inlines."""
    return [definition.text.source, *map(_source_of, inlined)]


def _source_of(one: Inlined) -> Source:
    """Return the text of a function, that of nowhere where it was edited meanwhile."""
    try:
        return (
            one.text if isinstance(one, Definition) else function_source.read_source(one)
        ).source
    except CdError:
        return NOWHERE.source


def _span(
    place: Place, data: dict[str, Any], definition: Definition, inlined: Sequence[Inlined]
) -> Span:
    at, line, column, end, end_column = place
    texts = sources_of(definition, inlined)
    texts += [Source(name, first, text) for name, first, text in data["sources"]]
    found = texts[at]
    if found == NOWHERE.source:
        return NOWHERE
    first = found.first_line
    return Span(found, first + line, column, first + end, end_column)
