"""Running a function that records: its buffers, and what they hold when it is done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from contextvars import copy_context
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ...backends import capabilities
from ...backends.codegen import records
from ...backends.device_arrays.device_array import PlacedArray
from ...backends.interface import Array, CanPrint, Code, HasMemory
from ...backends.runtime import link
from ...backends.runtime.call_arguments import copy_to_host
from ...backends.runtime.code_variants import accesses_of, inputs_of
from ...backends.runtime.printed_output import PrintCapture
from ...backends.runtime.state import RUNTIME, RecordableCode
from ...base import settings
from ...base.dataclass import dataclass
from ...base.diagnostic import CdError, CdMemoryError, Diagnostic
from ...base.locks import ReentrantLock
from ...lowering.ir.assignments import Parameter, Procedure
from ...lowering.ir.indexing import Symbol
from . import sites as s
from .instrument import instrument
from .kept_values import SavedBox, keeping, may_stop, saved_boxes_of
from .nan_counts import add_nan_counting
from .record_bounds import BufferSize, buffer_size, memory_left
from .rows import REST_LINE, ROW_LINE
from .sites import Layout, TraceFilter
from .work_estimate import is_quick


def parse_buffers(lines: Iterable[str], width: int, used: Array) -> tuple[Array, ...]:
    """Return the table, floats, ints and counters that printed lines represent.

    `used` are the counters of the run; the counters of points are taken from them.
    """
    rows: list[list[int]] = []
    floats: list[float] = []
    ints: list[int] = []
    for line in lines:
        kind, *values = records.decode_print(line)
        if kind == ROW_LINE:
            rows.append([int(values[0]), len(floats), len(ints), *map(int, values[1:])])
        elif kind == REST_LINE:
            rows[-1] += map(int, values)
        else:
            floats += (x.item() for x in values if isinstance(x, np.float64))
            ints += (x.item() for x in values if isinstance(x, np.int64))
    table = np.zeros((len(rows), width), np.int64)
    for row, values_of_row in zip(table, rows, strict=True):
        row[: len(values_of_row)] = values_of_row
    counters = used.copy()
    counters[[s.ROWS, s.FLOATS, s.INTS]] = len(rows), len(floats), len(ints)
    return table, np.array(floats, np.float64), np.array(ints, np.int64), counters


Ints = npt.NDArray[np.int64]
_MAX_ROOM = 1 << 24, 1 << 28, 1 << 27
"""Rows, floats and ints: the most that a run records. Memory that is never written is free."""
_LEAST = 1 << 12
_UNBOUNDED_BYTES = 1 << 28
"""Bytes of a device for records of which nobody knows how many there are going to be."""
_NO_LIMIT = 1 << 62
MEMORY_SHARE = 4
"""So many times as much as is recorded the host, or a device, has to have when it begins."""
MAX_RUNS_UNCOMPILED = 64
"""After so many runs code that only counts NaNs is worth compiling, however little it does."""
MAX_ARGUMENT_BYTES = 1 << 23
"""Most bytes of an argument of which a copy is kept."""
_LESS = (
    "give back what is not needed, or record less: `pe.trace(arrays=...)`, `pe.trace(memory=...)`"
)


@dataclass(frozen=True, slots=True)
class Recording:
    """A function that records, ready to be called, and what its records mean."""

    callee: link.Callee
    layout: Layout
    scarce: bool
    """Whether it may be given less room than what it records takes."""
    counts: bool = False
    """Whether it records nothing, but counts the NaNs that it writes, see `nans`."""
    saved_boxes: tuple[SavedBox, ...] = ()
    """What such a run overwrites that it would read again."""
    keeps: bool = False
    """Whether it keeps that itself."""


@dataclass(frozen=True, slots=True, repr=False)
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
    asked: int
    """Bytes that it records at most, where that is known before; else 0."""
    capacity: int
    """Bytes that there was room for."""
    sizes: Mapping[Symbol, int]
    """The sizes of arguments that only the run knew."""
    full: bool
    """Whether the room was not enough: what is there are the first records."""
    given: Mapping[int, Array]
    """The arguments as they were before, by node; those that are too large are left out."""
    error: str = ""
    """What the run raised, empty for nothing."""
    lacking: frozenset[int] = frozenset()
    """The arguments, by node, that are small enough to be copied, but for which no memory was
    left."""

    def __repr__(self) -> str:
        failed = f", raised {self.error.splitlines()[0]}" if self.error else ""
        return f"<run of {self.name} on {self.backend}: {self.points:,} points{failed}>"

    @property
    def lost(self) -> str:
        """How many records are not there, and why, where there was no room for all of them."""
        text = f"{self.dropped} records were dropped"
        if not self.full:
            return text
        more = self.asked > self.capacity
        much = f"all of them take up to {self.asked:,} bytes, and " if more else ""
        less = "; `arrays=` and `statements=` record less, `memory=` makes more room"
        return f"{text}: {much}there was room for {self.capacity:,}{'' if more else ' bytes'}{less}"

    @property
    def nbytes(self) -> int:
        """How much host memory its records and the copies of its arguments take."""
        copies = (array for array in self.given.values() if isinstance(array, np.ndarray))
        return sum(array.nbytes for array in (self.table, self.floats, self.ints, *copies))


class Recorder(ReentrantLock):
    """Where runs are kept while a trace is taken; any thread may add one.

    Invariant: what they hold, and what those that have begun may still take, is no more than
    `memory` bytes. Where that was not enough for a run, those that begin later record nothing:
    what is there are the first records of the trace.
    """

    def __init__(
        self,
        wanted: TraceFilter,
        limit: int,
        printed: PrintCapture | None = None,
        memory: int | None = None,
    ) -> None:
        super().__init__()
        self.wanted, self.limit = wanted, limit
        self.memory = memory
        """How many bytes what is recorded takes at most: asked for when something is, unless
        given."""
        self._taken = 0
        self._is_full = False
        self._printed = printed
        self._times: Counter[RecordableCode] = Counter()
        """How often code was run."""
        self._runs: list[Run | None] = []
        self._shown: tuple[Run, ...] = ()
        self._done = 0

    @property
    def runs(self) -> tuple[Run, ...]:
        """The runs that are done, in the order in which they were asked for; what they recorded
        within the limit."""
        done = [run for run in self._runs if run is not None]
        if len(done) != self._done or not done:
            limited = self.wanted.is_limited
            self._shown = tuple(_limited(done, self.limit) if limited else done)
            self._done = len(done)
        return self._shown

    def step(
        self, codes: RecordableCode, arrays: Sequence[Any], title: tuple[str, str, str]
    ) -> Callable[[], tuple[Array, ...]]:
        """Return the run of code that records on arrays for its parameters.

        What it raises is raised when what was recorded until then is kept.
        """
        chosen = copy_context()
        first = self._recording(codes, arrays, title[1])
        with self._lock:
            number = len(self._runs)
            self._runs.append(None)

        def run() -> tuple[Array, ...]:
            instrumented = first
            if instrumented.counts:
                results = self._counted(instrumented, arrays, title, number)
                if results is not None:
                    return results
                instrumented = chosen.run(codes.recording, self.wanted, title[1])
            sizes = dict(_sizes(instrumented.callee.parameters, arrays))
            asked = buffer_size(
                instrumented.layout, sizes, self.wanted.printed, self.wanted.first_nan
            )
            most = self._reserve(instrumented, asked)
            # of unbounded records the buffers take all that they get: copies come first
            copies = _copied_bytes(arrays, most // 2) if asked is None else 0
            capacity = min(most - copies, _device_bytes(title[1], asked))
            recording = instrumented
            buffers = _allocate_buffers(
                instrumented.layout, self._left(number) if most else 0, asked, capacity
            )
            if not instrumented.scarce and asked is not None and not _holds(buffers, asked):
                scarce = replace(self.wanted, scarce=True)
                recording = chosen.run(codes.recording, scarce, title[1])
            capacity = sum(buffer.nbytes for buffer in buffers[:-1]) if most else 0
            given = _given(recording.callee.parameters, arrays, most - capacity)
            error = ""
            lines: list[str] = []
            try:
                if self._printed is not None:
                    return self._printing(recording, (*arrays, *buffers), title[1], lines)
                return recording.callee((*arrays, *buffers))
            except Exception as problem:
                error = str(problem)
                if isinstance(problem, MemoryError):
                    raise self._out_of_memory(problem) from None
                raise
            finally:
                if self._printed is not None:
                    buffers = parse_buffers(lines, recording.layout.width, buffers[-1])
                asks = 0 if asked is None else asked.bytes(recording.layout.width)
                done = _taken(title, recording, buffers, sizes, given, error, (asks, capacity))
                self._keep(number, done, most)

        return run

    def _recording(self, codes: RecordableCode, arrays: Sequence[Any], backend: str) -> Recording:
        """Return how a run on arrays is begun: without recording, to be done again where it makes a
        NaN, which is seldom, on the host's arrays as they were."""
        plain = self.wanted.first_nan and not (self.wanted.is_limited or self.wanted.terms)
        on_host = all(isinstance(x, np.ndarray) for x in arrays)
        wanted = self.wanted
        if plain and on_host and not (self._printed or self._is_full):
            wanted = replace(wanted, counts="much")
        recording: Recording = codes.recording(wanted, backend)
        if wanted.counts == "much" and not recording.counts:
            with self._lock:
                self._times[codes] += 1
            if self._times[codes] > MAX_RUNS_UNCOMPILED:
                recording = codes.recording(replace(wanted, counts="often"), backend)
        return recording

    def _counted(
        self,
        recording: Recording,
        arrays: Sequence[Array],
        title: tuple[str, str, str],
        number: int,
    ) -> tuple[Array, ...] | None:
        """Return the results of a run that makes no NaN; None where it makes one, or fails, with
        the arrays that it reads as they were before: all others it writes again as it did.

        Where it keeps them itself it fails for want of memory only, as a run that is not traced.
        """
        parameters, results = recording.callee.parameters[: len(arrays)], None
        count, code = np.zeros(1, np.int64), recording.callee.code
        sizes = dict(_sizes(parameters, arrays))
        parts = [arrays[saved.at][saved.part(sizes)] for saved in recording.saved_boxes]
        if recording.keeps:
            copies = [_empty(arrays[saved.at], code) for saved in recording.saved_boxes]
            results = recording.callee((*arrays, count, *copies))
            if count[0]:
                for saved, part, saved_copy in zip(
                    recording.saved_boxes, parts, copies, strict=True
                ):
                    part[...] = saved_copy[saved.part(sizes)]
        else:
            with suppress(Exception):  # what it raises is raised again when it is recorded
                before = [_copy_array(part, code) for part in parts]
                try:
                    results = recording.callee((*arrays, count))
                finally:
                    if results is None or count[0]:
                        for part, values in zip(parts, before, strict=True):
                            part[...] = values
        if results is None or count[0]:
            return None
        table = np.zeros((0, recording.layout.width), np.int64)
        none = np.zeros(0), np.zeros(0, np.int64)
        counts = 0, 0, 0, 0
        run = Run(*title, recording.layout, parameters, table, *none, *counts, sizes, False, {})
        self._keep(number, run, 0)
        return results

    def _reserve(self, recording: Recording, asked: BufferSize | None) -> int:
        """Return how many bytes a run that begins may take, which nobody else gets until it ends:
        what its records and arguments take, half of what is left where data decides how much."""
        with self._lock:
            if self.memory is None:
                self.memory = memory_left() // MEMORY_SHARE
            left = 0 if self._is_full else max(self.memory - self._taken, 0)
            if asked is None:
                most = left // 2
            else:
                argument_bytes = MAX_ARGUMENT_BYTES * len(recording.callee.parameters)
                most = min(
                    left,
                    asked.within(BufferSize(*_MAX_ROOM)).bytes(recording.layout.width)
                    + argument_bytes,
                )
            self._taken += most
            return most

    def _keep(self, number: int, run: Run, reserved: int) -> None:
        """Keep what a run recorded, and let others have what it did not take."""
        with self._lock:
            self._taken += run.nbytes - reserved
            self._is_full |= run.full
            self._runs[number] = run

    def _out_of_memory(self, problem: MemoryError) -> CdMemoryError:
        """Return the error of a run that ran out of memory: what the trace holds, how to record
        less."""
        diagnostic = problem.diagnostics[0] if isinstance(problem, CdError) else None
        first = diagnostic or Diagnostic(
            "CD0705", f"there is not enough memory for a run: {problem}"
        )
        note = f"the trace takes up to {self._taken:,} bytes; what it has recorded stays readable"
        helps = (_LESS,) if diagnostic is None else (*diagnostic.helps, _LESS)
        return CdMemoryError(replace(first, notes=(*first.notes, note), helps=helps))

    def _printing(
        self, recording: Recording, arrays: Sequence[Any], backend: str, lines: list[str]
    ) -> tuple[Array, ...]:
        """Run code whose device prints what it records, and add the lines, also where it fails."""
        provider = RUNTIME.backend(backend)
        assert self._printed is not None and isinstance(provider, CanPrint), "else it records"
        run = None
        try:
            with self._printed.run() as run:
                code = provider.printing(recording.callee.code, run.number)
                return recording.callee.running(code)(arrays)
        finally:
            lines += () if run is None else run.lines

    def _left(self, number: int) -> int:
        """Return how many points a run may record at most, as far as is known when it begins.

        Runs that were asked for before it may still be recording: `_limited` has the last word.
        """
        before = (run.points for run in self._runs[:number] if run is not None)
        return max(self.limit - sum(before), 0)


def _limited(runs: Sequence[Run], limit: int) -> Iterator[Run]:
    """Yield runs with the first of their points, in order, as many as a limit admits in all."""
    for run in runs:
        yield run if run.points <= limit else _first(run, limit)
        limit = max(limit - run.points, 0)


def _first(run: Run, points: int) -> Run:
    """Return a run with only the first points that it recorded, all others among those dropped.

    Rows after the last of them go, and in its own row the mask says which points are left.
    """
    left, end, ints = points, 0, run.ints.copy()
    for number, row in enumerate(run.table):
        if not left:
            break
        site = run.layout.sites[int(row[0])]
        end = number + 1
        if site.is_assignment:
            assert site.is_masked, "where there is a limit every row has a mask"
            mask = _row(run, ints, number, 2)[:: site.ints]
            mask[np.flatnonzero(mask == 1)[left:]] = 0
            left -= int((mask == 1).sum())
    terms = sum(_terms(run, number) for number in range(end, len(run.table)))
    dropped = run.dropped + run.points - points + terms
    return replace(run, table=run.table[:end], ints=ints, points=points, dropped=dropped)


def _row(run: Run, numbers: np.ndarray, number: int, column: int) -> np.ndarray:
    """Return what a row of the table has of the floats or ints, whose position a column has."""
    end = run.table[number + 1, column] if number + 1 < len(run.table) else len(numbers)
    return numbers[int(run.table[number, column]) : int(end)]


def _terms(run: Run, number: int) -> int:
    """Return how many terms of a reduction a row of the table has: none where it has records."""
    site = run.layout.sites[int(run.table[number, 0])]
    if site.reduce is None:
        return 0
    if site.is_masked:
        return int((_row(run, run.ints, number, 2)[:: site.ints] == 1).sum())
    if site.floats:
        return len(_row(run, run.floats, number, 1)) // site.floats
    return len(_row(run, run.ints, number, 2)) // site.ints


def compile_recording(
    procedure: Procedure, build: Callable[[Procedure], Procedure], wanted: TraceFilter, backend: str
) -> Recording:
    """Return a typed function compiled to record, given how such functions are built.

    It is compiled quickly, as it will not run often; how hard the compiler tries changes no bit.
    """
    instrumented, now = instrument(procedure, wanted), settings.current()
    if wanted.counts == "often" or (wanted.counts == "much" and not is_quick(procedure)):
        counts = add_nan_counting(procedure)
        if counts is not None:
            return _counting(build(counts), procedure, backend, instrumented.layout)
    sizes = [x for p in procedure.parameters for extent in p.node.shape for x in extent.symbols()]
    if not wanted.scarce and buffer_size(instrumented.layout, dict.fromkeys(sizes, 1)) is None:
        wanted = replace(wanted, scarce=True)  # the data decides how much it is
        instrumented = instrument(procedure, wanted)
    profile = "strict" if wanted.terms else now.profile
    quick = is_quick(procedure)
    thorough = wanted.first_nan and not quick  # it looks at all elements, and records few
    effort: settings.Effort = 0 if quick or now.optimize == 0 else "g"
    effort = now.optimize if thorough else effort
    passes = "short" if quick else now.pipeline
    with settings.override(profile=profile, optimize=effort, pipeline=passes):
        return Recording(
            link.link(build(instrumented.procedure), backend), instrumented.layout, wanted.scarce
        )


def _counting(counts: Procedure, procedure: Procedure, backend: str, layout: Layout) -> Recording:
    """Return code that counts the NaNs that a procedure writes, and what it has to keep of that."""
    saved_boxes, keeps = (
        saved_boxes_of(procedure, inputs_of(procedure, accesses_of(procedure))),
        False,
    )
    if not may_stop(counts):
        counts, keeps = keeping(counts, saved_boxes), True
    return Recording(link.link(counts, backend), layout, False, True, saved_boxes, keeps)


def _sizes(parameters: Sequence[Parameter], arrays: Sequence[Any]) -> Iterator[tuple[Symbol, int]]:
    """Yield the dynamic sizes of arguments."""
    for parameter, array in zip(parameters, arrays, strict=False):
        for extent, size in zip(parameter.node.shape, array.shape, strict=True):
            if extent.symbol is not None:
                yield extent.symbol, size


def _given(
    parameters: Sequence[Parameter], arrays: Sequence[Any], left: int
) -> tuple[dict[int, Array], frozenset[int]]:
    """Return copies of the arguments, by node, that are small enough and that there is memory for,
    and the nodes of those that are small enough without memory for them."""
    given: dict[int, Array] = {}
    small: set[int] = set()
    for parameter, array in zip(parameters, arrays, strict=False):
        size = _copied_size(array)
        small |= {parameter.node.id} if size <= MAX_ARGUMENT_BYTES else set()
        if size <= min(MAX_ARGUMENT_BYTES, left):
            with suppress(MemoryError):
                given[parameter.node.id] = copy_to_host(array)
                left -= size
    return given, frozenset(small - given.keys())


def _copied_size(array: Any) -> int:
    """Return how many bytes the copy of an argument takes."""
    return int(array.reach if isinstance(array, PlacedArray) else array.nbytes)


def _copied_bytes(arrays: Sequence[Any], most: int) -> int:
    """Return how many bytes the copies of the arguments take that are kept within `most`."""
    total = 0
    for size in map(_copied_size, arrays):
        if size <= min(MAX_ARGUMENT_BYTES, most - total):
            total += size
    return total


def _copy_array(array: Array, code: Code) -> Array:
    """Return a copy, where there is some in memory that results of C had."""
    copy = _empty(array, code)
    copy[...] = array
    return copy


def _empty(array: Array, code: Code) -> Array:
    return capabilities.allocator(code)(array.shape, array.dtype)


def _device_bytes(backend: str, asked: BufferSize | None = None) -> int:
    """Return how many bytes a device has for records: a share of what it has left, and less than
    it could where it is not known how much is asked for."""
    provider = RUNTIME.backend(backend)
    if not isinstance(provider, HasMemory):
        return _NO_LIMIT
    most = provider.memory_left() // MEMORY_SHARE
    return min(most, _UNBOUNDED_BYTES) if asked is None else most


def _allocate_buffers(
    layout: Layout, limit: int, asked: BufferSize | None = None, most: int = _NO_LIMIT
) -> tuple[Array, ...]:
    """Return the table, floats, ints and counters: what is asked for, of at most so many bytes."""
    whole = BufferSize(*_MAX_ROOM) if asked is None else asked.within(BufferSize(*_MAX_ROOM))
    used = np.zeros(s.COUNTERS, np.int64)
    used[s.LIMIT] = limit
    while True:
        size = whole.reduced_to(most, layout.width)
        try:
            table = np.zeros((size.rows, layout.width), np.int64)
            return table, np.zeros(size.floats), np.zeros(size.ints, np.int64), used
        except MemoryError:
            most = size.bytes(layout.width) // 2
            if most < _LEAST:
                message = "there is not enough memory to record anything"
                raise CdMemoryError(Diagnostic("CD0705", message, helps=(_LESS,))) from None


def _used(buffer: np.ndarray, count: int) -> np.ndarray:
    """Return the first of a buffer: a copy, so that the others go, where they are many."""
    if 2 * count < len(buffer):
        with suppress(MemoryError):
            return buffer[:count].copy()
    return buffer[:count]


def _holds(buffers: Sequence[Array], asked: BufferSize) -> bool:
    """Whether buffers have the room that is asked for."""
    return all(len(buffer) >= count for buffer, count in zip(buffers, asked, strict=False))


def _taken(
    title: tuple[str, str, str],
    recording: Recording,
    buffers: tuple[Array, ...],
    sizes: Mapping[Symbol, int],
    copies: tuple[Mapping[int, Array], frozenset[int]],
    error: str,
    byte_counts: tuple[int, int],
) -> Run:
    table, floats, ints, used = buffers
    full = recording.scarce and not used[s.LIMIT]
    run = Run(
        *title,
        recording.layout,
        recording.callee.parameters[: -len(buffers)],
        _used(table, used[s.ROWS]),
        _used(floats, used[s.FLOATS]),
        _used(ints, used[s.INTS]),
        int(used[s.POINTS]),
        int(used[s.DROPPED]),
        *byte_counts,
        sizes,
        bool(full),
        copies[0],
        error,
        copies[1],
    )
    return _without_last_terms(run) if full else run


def _without_last_terms(run: Run) -> Run:
    """Return a run without the terms at its end, which are of a record that had no room."""
    end = len(run.table)
    while end and run.layout.sites[int(run.table[end - 1, 0])].reduce is not None:
        end -= 1
    dropped = sum(_terms(run, number) for number in range(end, len(run.table)))
    return replace(run, table=run.table[:end], dropped=run.dropped + dropped)
