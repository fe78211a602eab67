"""`trace()`: what runs inside the `with` is recorded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ...backends.runtime.state import RUNTIME
from .recording import Recorder
from .sites import Wanted
from .trace import Trace
from .where import parsed

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
) -> Iterator[Trace]:
    """Record every assignment that runs inside the `with`, on any backend; yield the trace.

    Only what is asked for is recorded: `arrays` by name, `statements` by line number or by a part
    of their text, `where` a test of indices and loop variables (`"i == 3 and t < 2"`),
    `first_nan` only what first makes a NaN, `sample` every n-th element, `limit` how many records
    at most, in program order. No computed bit changes; but with `terms` each term of a reduction is
    recorded, too, and they are added up one after another: the profile is `strict`. When the
    `with` ends, everything that was queued is done. Raises CdValueError CD0871 for a `where` that
    is no test.
    """
    names = (arrays,) if isinstance(arrays, str) else tuple(arrays)
    which = (statements,) if isinstance(statements, int | str) else tuple(statements)
    if where:
        parsed(where)
    wanted = Wanted(frozenset(names), which, where, first_nan, sample, limit is not None, terms)
    recorder = Recorder(wanted, _LIMIT if limit is None else limit)
    RUNTIME.record(recorder)
    try:
        yield Trace(recorder)
    finally:
        RUNTIME.stop_recording(recorder)
        for worker in list(RUNTIME.workers):
            worker.latest.settle()
