"""Errors of code from the persistent cache, raised as those of code compiled in this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from ...base.diagnostic import NOWHERE, CdError, CdMemoryError, Source, Span
from ...lowering.ir.assignments import Fault
from ..source import function_source
from ..source.definition import Definition, InlinedFunction

if TYPE_CHECKING:
    from ...backends.direct_calls import DirectCall

EncodedSpan = list[Any]
"""The number of a source, then line, column, end line and end column, relative to its start."""


def decode_faults(
    data: dict[str, Any], definition: Definition, inlined: Sequence[InlinedFunction]
) -> list[tuple[Fault, Span]]:
    """Return the faults of an entry, each where its check is in the text of now."""
    return [
        (Fault(code, kind, message, tuple(helps)), _span(encoded, data, definition, inlined))
        for code, kind, message, helps, encoded in data["faults"]
    ]


def raise_error(call: DirectCall, definition: Definition, status: int, *fault: int) -> NoReturn:
    """Raise the error of a status, at the function where it has no other place."""
    try:
        call.fail(status, *fault)
    except CdMemoryError as problem:
        raise problem.placed(definition.surface.span) from None


def encode_span(span: Span, sources: Sequence[Source], others: list[list[Any]]) -> EncodedSpan:
    """Return a span as stored in an entry; sources not in `sources` are appended to `others`."""
    at = next((n for n, source in enumerate(sources) if source == span.source), None)
    if at is None:
        record = [span.source.name, span.source.first_line, span.source.text]
        if record not in others:
            others.append(record)
        at = len(sources) + others.index(record)
    first = span.source.first_line
    return [at, span.line - first, span.column, span.end_line - first, span.end_column]


def function_sources(definition: Definition, inlined: Sequence[InlinedFunction]) -> list[Source]:
    """Return the sources of a function and of those that it inlines."""
    return [definition.text.source, *map(_source_of, inlined)]


def _source_of(function: InlinedFunction) -> Source:
    """Return the source of a function, that of NOWHERE where it was edited since."""
    try:
        return (
            function.text
            if isinstance(function, Definition)
            else function_source.read_source(function)
        ).source
    except CdError:
        return NOWHERE.source


def _span(
    encoded: EncodedSpan,
    data: dict[str, Any],
    definition: Definition,
    inlined: Sequence[InlinedFunction],
) -> Span:
    at, line, column, end, end_column = encoded
    texts = function_sources(definition, inlined)
    texts += [Source(name, first, text) for name, first, text in data["sources"]]
    source = texts[at]
    if source == NOWHERE.source:
        return NOWHERE
    first = source.first_line
    return Span(source, first + line, column, first + end, end_column)
