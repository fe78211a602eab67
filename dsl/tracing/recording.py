"""Running a function that records: its buffers, and what they hold when it is done."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...backends.interface import Array
from ...backends.runtime import link
from ...backends.runtime.state import Recordable
from ...lowering import settings
from ...lowering.diagnostic import CdMemoryError, Diagnostic
from ...lowering.ir.assignments import Parameter, Procedure
from ...lowering.ir.indexing import Symbol
from . import sites as s
from .instrument import instrument
from .sites import Layout, Wanted

Ints = npt.NDArray[np.int64]
_ROOM = 1 << 24, 1 << 28, 1 << 27
"""Rows, floats and ints: the most that a run records. Memory that is never written is free."""
_LEAST = 1 << 12
_KEPT = 1 << 23
"""Most bytes of an argument of which a copy is kept."""


@dataclass(frozen=True, slots=True)
class Recording:
    """A function that records, ready to be called, and what its records mean."""

    callee: link.Callee
    layout: Layout


@dataclass(frozen=True, slots=True)
class Run:
    """What one run of a function recorded."""

    name: str
    backend: str
    stream: str
    layout: Layout
    parameters: tuple[Parameter, ...]
    table: Ints
    """A row for each time that a statement was reached."""
    floats: npt.NDArray[np.float64]
    ints: Ints
    points: int
    dropped: int
    """How many wanted points, and terms, there was no room for."""
    sizes: Mapping[Symbol, int]
    """The sizes of arguments that only the run knew."""
    given: Mapping[int, Array]
    """The arguments as they were before, by node; those that are too large are left out."""
    error: str = ""
    """What the run raised, empty for nothing."""


class Recorder:
    """Where runs are kept while a trace is taken; any thread may add one."""

    def __init__(self, wanted: Wanted, limit: int) -> None:
        self.wanted, self.limit = wanted, limit
        self._lock = threading.Lock()
        self._runs: list[Run | None] = []

    @property
    def runs(self) -> tuple[Run, ...]:
        """The runs that are done, in the order in which they were asked for."""
        return tuple(run for run in self._runs if run is not None)

    def step(
        self, codes: Recordable, arrays: Sequence[Array], title: tuple[str, str, str]
    ) -> Callable[[], tuple[Array, ...]]:
        """Return the run of code that records on arrays for its parameters.

        What it raises is raised when what was recorded until then is kept.
        """
        recording: Recording = codes.recording(self.wanted, title[1])
        with self._lock:
            place = len(self._runs)
            self._runs.append(None)

        def run() -> tuple[Array, ...]:
            buffers = _buffers(recording.layout, self._left())
            given = {
                parameter.node.id: np.array(array)
                for parameter, array in zip(recording.callee.parameters, arrays, strict=False)
                if array.nbytes <= _KEPT
            }
            error, sizes = "", dict(_sizes(recording.callee.parameters, arrays))
            try:
                return recording.callee((*arrays, *buffers))
            except Exception as problem:
                error = str(problem)
                raise
            finally:
                self._runs[place] = _taken(title, recording, buffers, sizes, given, error)

        return run

    def _left(self) -> int:
        """Return how many points may still be recorded."""
        return max(self.limit - sum(run.points for run in self.runs), 0)


def recording_of(
    procedure: Procedure, build: Callable[[Procedure], Procedure], wanted: Wanted, backend: str
) -> Recording:
    """Return a typed function compiled to record, given how such functions are built.

    It is compiled quickly, as it will not run often; how hard the compiler tries changes no bit.
    """
    made, now = instrument(procedure, wanted), settings.current()
    profile = "strict" if wanted.terms else now.profile
    with settings.override(profile=profile, optimize=min(now.optimize, 1)):
        return Recording(link.link(build(made.procedure), backend), made.layout)


def _sizes(
    parameters: Sequence[Parameter], arrays: Sequence[Array]
) -> Iterator[tuple[Symbol, int]]:
    """Yield what the sizes of arguments are that only the run knows."""
    for parameter, array in zip(parameters, arrays, strict=False):
        for extent, size in zip(parameter.node.shape, array.shape, strict=True):
            if extent.symbol is not None:
                yield extent.symbol, size


def _buffers(layout: Layout, limit: int) -> tuple[Array, ...]:
    rows, floats, ints = _ROOM
    used = np.zeros(s.COUNTERS, np.int64)
    used[s.LIMIT] = limit
    while True:
        try:
            table = np.zeros((rows, layout.width), np.int64)
            return table, np.zeros(floats), np.zeros(ints, np.int64), used
        except MemoryError:
            rows, floats, ints = rows // 2, floats // 2, ints // 2
            if rows < _LEAST:
                message = "there is not enough memory to record anything"
                raise CdMemoryError(Diagnostic("CD0705", message)) from None


def _taken(
    title: tuple[str, str, str],
    recording: Recording,
    buffers: tuple[Array, ...],
    sizes: Mapping[Symbol, int],
    given: Mapping[int, Array],
    error: str,
) -> Run:
    table, floats, ints, used = buffers
    return Run(
        *title,
        recording.layout,
        recording.callee.parameters[: -len(buffers)],
        table[: used[s.ROWS]].copy(),
        floats[: used[s.FLOATS]].copy(),
        ints[: used[s.INTS]].copy(),
        int(used[s.POINTS]),
        int(used[s.DROPPED]),
        sizes,
        given,
        error,
    )
