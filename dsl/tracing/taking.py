"""The context manager `trace()`: validation of its filters, start and end of recording."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from operator import index
from types import UnionType
from typing import Any

from ...backends.runtime.state import RUNTIME
from ...base.diagnostic import CdError, CdTypeError, CdValueError, Diagnostic, nearest
from ..instrument.recording import Recorder
from ..instrument.sites import Layout, TraceFilter, matches_label
from ..instrument.where import names, parse_filter
from .trace import Trace

_NO_LIMIT = 1 << 40


@contextmanager
def trace(
    arrays: str | Sequence[str] = (),
    statements: int | str | Sequence[int | str] = (),
    where: str = "",
    first_nan: bool = False,
    limit: int | None = None,
    sample: int = 1,
    terms: bool = False,
    memory: int | None = None,
) -> Iterator[Trace]:
    """Record every assignment that runs inside the `with`, on any backend; yield the trace.

    Only what is asked for is recorded: `arrays` by name, `statements` by line number or by a part
    of their text, `where` a test of indices and loop variables (`"i == 3 and t < 2"`),
    `first_nan` only what first makes a NaN, `sample` every n-th element, `limit` how many records
    at most, in program order, `memory` how many bytes the records of all runs take at most: a
    quarter of what is free when the first begins, unless given. What that leaves no room for is
    counted (`dropped`), and what is there stays readable, also after an error. No computed bit
    changes; but with `terms` each term of a reduction is recorded, too, and they are added up one
    after another: the profile is `strict`. When the `with` ends, everything that was queued is
    done. Raises CdValueError CD0871 for a `where` that is no test, CdTypeError or CdValueError
    CD0875 for what else cannot be asked for: at the end, if functions ran and none has an array,
    index or statement that was named. Calls in it raise CdMemoryError CD0705 where memory runs
    out.
    """
    labels, statement_filter = (
        _as_tuple("arrays", arrays, str),
        _as_tuple("statements", statements, int | str),
    )
    sample, max_records = (
        _as_integer("sample", sample, 1),
        _as_integer("limit", limit, 0, _NO_LIMIT),
    )
    if not isinstance(where, str):
        raise _argument_error(CdTypeError, "where", where, 'a text that tests indices: `"i == 3"`')
    if where:
        parse_filter(where)
    wanted = TraceFilter(
        frozenset(labels), statement_filter, where, first_nan, sample, limit is not None, terms
    )
    max_bytes = None if memory is None else _as_integer("memory", memory, 0)
    recorder = Recorder(wanted, max_records, memory=max_bytes)
    RUNTIME.settle()
    RUNTIME.record(recorder)
    try:
        yield Trace(recorder)
        RUNTIME.settle()
    finally:
        RUNTIME.stop_recording(recorder)
        for worker in list(RUNTIME.workers):
            worker.latest.settle()
    _refuse_unknown(wanted, [run.layout for run in recorder.runs])


def _refuse_unknown(wanted: TraceFilter, layouts: Sequence[Layout]) -> None:
    """Raise CdValueError CD0875 for a filter that names nothing in the functions that ran."""
    if not layouts:
        return
    arrays, indices, statements = (
        frozenset[Any]().union(*(getattr(layout, what) for layout in layouts))
        for what in ("arrays", "indices", "statements")
    )
    for name in sorted(wanted.arrays):
        if not any(matches_label(name, label) for label in arrays):
            raise _unknown_name(f"no statement that ran assigns an array `{name}`", name, arrays)
    for name in sorted({name for test in _filter_tests(wanted) for name in names(test)} - indices):
        message = f"no statement that ran has an index or is in a loop `{name}`"
        raise _unknown_name(message, name, indices)
    for requested in wanted.statements:
        if requested not in statements:
            where = (
                f"on line {requested}"
                if isinstance(requested, int)
                else f"with the text `{requested}`"
            )
            raise _unknown_name(f"no assignment that ran is {where}", "", ())


def _filter_tests(wanted: TraceFilter) -> tuple[ast.expr, ...]:
    return parse_filter(wanted.where) if wanted.where else ()


def _unknown_name(message: str, name: str, candidates: Iterable[str]) -> CdError:
    names, suggestion = (
        ", ".join(f"`{candidate}`" for candidate in sorted(candidates)),
        nearest(name, candidates),
    )
    notes = (f"what ran has {names}",) if names else ()
    helps = (f"did you mean `{suggestion}`?",) if suggestion else ()
    return CdValueError(Diagnostic("CD0875", message, notes=notes, helps=helps))


def _as_tuple(name: str, given: Any, kinds: type | UnionType) -> tuple[Any, ...]:
    """Return one item or a sequence of items as a tuple; raises CdTypeError CD0875."""
    if isinstance(given, kinds):
        return (given,)
    items = tuple(given) if isinstance(given, Sequence | set | frozenset) else (given,)
    if not all(isinstance(item, kinds) for item in items):
        expectations = {"arrays": 'names: `"y"` or `("y", "z")`'}
        expected = expectations.get(name, 'line numbers, or parts of the text: `12` or `"y[i] ="`')
        raise _argument_error(CdTypeError, name, given, expected)
    return items


def _as_integer(name: str, given: Any, least: int, none: int | None = None) -> int:
    """Return an integer of at least `least`; raises CdTypeError or CdValueError CD0875."""
    if given is None and none is not None:
        return none
    expected = f"a whole number, {least} or more"
    try:
        number = index(given)
    except TypeError:
        raise _argument_error(CdTypeError, name, given, expected) from None
    if number < least:
        raise _argument_error(CdValueError, name, given, expected)
    return number


def _argument_error(kind: type[CdError], name: str, given: object, what: str) -> CdError:
    message = f"`{name}` of a trace cannot be {given!r}"
    return kind(Diagnostic("CD0875", message, helps=(f"it takes {what}",)))
