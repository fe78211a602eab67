"""`trace()`: what runs inside the `with` is recorded."""

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
from ..instrument.sites import Layout, Wanted, means
from ..instrument.where import names, parsed
from .trace import Trace

_LIMIT = 1 << 40


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
    labels, which = _listed("arrays", arrays, str), _listed("statements", statements, int | str)
    sample, room = _number("sample", sample, 1), _number("limit", limit, 0, _LIMIT)
    if not isinstance(where, str):
        raise _unfit(CdTypeError, "where", where, 'a text that tests indices: `"i == 3"`')
    if where:
        parsed(where)
    wanted = Wanted(frozenset(labels), which, where, first_nan, sample, limit is not None, terms)
    most = None if memory is None else _number("memory", memory, 0)
    recorder = Recorder(wanted, room, memory=most)
    RUNTIME.record(recorder)
    try:
        yield Trace(recorder)
    finally:
        RUNTIME.stop_recording(recorder)
        for worker in list(RUNTIME.workers):
            worker.latest.settle()
    _refuse_unknown(wanted, [run.layout for run in recorder.runs])


def _refuse_unknown(wanted: Wanted, layouts: Sequence[Layout]) -> None:
    """Raise CdValueError CD0875 for what was asked of functions that ran and is in none."""
    if not layouts:
        return
    arrays, indices, statements = (
        frozenset[Any]().union(*(getattr(layout, what) for layout in layouts))
        for what in ("arrays", "indices", "statements")
    )
    for name in sorted(wanted.arrays):
        if not any(means(name, label) for label in arrays):
            raise _unknown(f"no statement that ran assigns an array `{name}`", name, arrays)
    for name in sorted({name for test in _tests(wanted) for name in names(test)} - indices):
        message = f"no statement that ran has an index or is in a loop `{name}`"
        raise _unknown(message, name, indices)
    for one in wanted.statements:
        if one not in statements:
            where = f"on line {one}" if isinstance(one, int) else f"with the text `{one}`"
            raise _unknown(f"no assignment that ran is {where}", "", ())


def _tests(wanted: Wanted) -> tuple[ast.expr, ...]:
    return parsed(wanted.where) if wanted.where else ()


def _unknown(message: str, name: str, known: Iterable[str]) -> CdError:
    there, near = ", ".join(f"`{one}`" for one in sorted(known)), nearest(name, known)
    notes = (f"what ran has {there}",) if there else ()
    helps = (f"did you mean `{near}`?",) if near else ()
    return CdValueError(Diagnostic("CD0875", message, notes=notes, helps=helps))


def _listed(name: str, given: Any, kinds: type | UnionType) -> tuple[Any, ...]:
    """Return what was given alone, or several of it, as a tuple."""
    if isinstance(given, kinds):
        return (given,)
    found = tuple(given) if isinstance(given, Sequence | set | frozenset) else (given,)
    if not all(isinstance(one, kinds) for one in found):
        takes = {"arrays": 'names: `"y"` or `("y", "z")`'}
        what = takes.get(name, 'line numbers, or parts of the text: `12` or `"y[i] ="`')
        raise _unfit(CdTypeError, name, given, what)
    return found


def _number(name: str, given: Any, least: int, none: int | None = None) -> int:
    """Return a whole number that is not below another one."""
    if given is None and none is not None:
        return none
    what = f"a whole number, {least} or more"
    try:
        number = index(given)
    except TypeError:
        raise _unfit(CdTypeError, name, given, what) from None
    if number < least:
        raise _unfit(CdValueError, name, given, what)
    return number


def _unfit(kind: type[CdError], name: str, given: object, what: str) -> CdError:
    message = f"`{name}` of a trace cannot be {given!r}"
    return kind(Diagnostic("CD0875", message, helps=(f"it takes {what}",)))
