"""Compiled functions and routines: `f.compile(...)`, linked into a context and called.

    Compiled := a function specialized for tensors and arrays; no device, no memory
    Routine  := a compiled function in a child context with its arrays; a call queues one step

The step waits for the dependences of its arrays and records its reads and writes; see `hazards`.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Container, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import replace
from typing import Any

from ...base import settings
from ...base.diagnostic import CdError, CdNameError, CdValueError, Diagnostic, Label, nearest
from ..captures import CanCapture, GraphPlace, NotCapturable
from ..device_arrays.device_array import DeviceArray, PlacedArray
from ..interface import Array, BorrowsMemory, HasLanes, LaunchesAsync
from . import hazards
from .argument_checks import expect_merge, field_of
from .async_dispatch import launch_path
from .call_arguments import bind_arguments, convert_argument, require_disjoint
from .device import Context
from .field import Field, unseen
from .memory import Buffer
from .memory_report import MemoryReport, report_memory
from .parameter_slots import Argument, Resident
from .prepared_calls import RoutineAccesses, queue_path, run_path
from .queue import Event
from .read_versions import ReadVersions
from .signature import BoundFunction
from .state import RUNTIME
from .transfer import MergeContent, decide, merge_copy


class Bindings(MutableMapping[str, Any]):
    """Values by the argument names of a routine; CdNameError CD0849 for any other name."""

    def __init__(self, routine: str, names: Sequence[str]) -> None:
        self._routine = routine
        self._names = tuple(names)
        self._values: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __delitem__(self, name: str) -> None:
        del self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return repr(self._values)

    def __setitem__(self, name: str, value: Any) -> None:
        if name not in self._names:
            suggestion = nearest(name, self._names)
            raise CdNameError(
                Diagnostic(
                    "CD0849",
                    f"the routine `{self._routine}` takes no `{name}`",
                    notes=(f"it takes {', '.join(self._names) or 'nothing'}",),
                    helps=(f"did you mean `{suggestion}`?",) if suggestion else (),
                )
            )
        self._values[name] = value


class Compiled(BoundFunction):
    """A function compiled for its tensors and kinds of arrays; independent of any device.

    The code of a backend is compiled when it is first linked there, and kept.
    """

    def link(self, context: Context, merge_from: Context | None = None) -> Routine:
        """Return the routine in a new child of a context.

        With `merge_from` each call first fills the merge buffer with that context's version. Raises
        CdBackendError where it cannot be compiled or a context was finalized, CdTypeError CD0804
        where it writes a constant, CD0847 for anything but a context and CD0851 where it reads what
        an earlier routine did not keep, and CdValueError CD0843 where a shared array would be
        written by a second stream, CD0842 or CD0844 where there is nothing to merge, and CD0858
        where it rematerializes what no routine linked before computes; CdTypeError CD0862 where a
        plan is recorded that has written what it would get arrays of.
        """
        self.require_context(context)
        if merge_from is not None:
            self.require_source(merge_from)
        self.require_retained_inputs(context)  # first: compilation may fail for that very reason
        self.codes.on(context.device.code)
        self.note_link(context)
        return decide(
            lambda: Routine(self, Context(context.stream, context), merge_from), context.stream
        )

    def __repr__(self) -> str:
        return f"<compiled {self.name}>"


class Routine:
    """A compiled function in a context. Calling it queues one step on the context's stream.

    Arrays and numbers that it was compiled with, other than tensors, are arguments of each call or
    values of `bindings`. A call is synchronous where it writes an array argument or returns values.
    """

    def __init__(
        self, compiled: Compiled, context: Context, merge_from: Context | None = None
    ) -> None:
        self.compiled = compiled
        self.context = context
        self.name = compiled.name
        self.source = merge_from
        """The context whose version each call merges, None where the caller says so."""
        self._bindings = Bindings(self.name, compiled.names)
        self._bindings.update(compiled.given)
        code = compiled.codes.on(context.device.code)
        lane = context.stream.lane
        self._code = code.in_lane(lane) if isinstance(code, HasLanes) else code
        compiled.require_writable(context)  # all checks precede the allocation of arrays
        compiled.require_retained_inputs(context)  # also of functions linked before it in a batch
        self._version_checks = compiled.again(context)
        self.buffers: dict[int, Buffer] = {}
        """The arrays of its parameters, by position, but for those of merge buffers."""
        loads, reads, merged = [], [], []
        writes: list[tuple[Field, Buffer]] = []
        read_only: list[tuple[Field, Buffer]] = []
        needed = compiled.codes.needed
        for at, (slot, parameter) in enumerate(compiled.parameters):
            match slot:
                case Resident(held_field, True):
                    merged.append(held_field)
                case Resident(held_field, False):
                    buffer = context.adopt(held_field, parameter.written)
                    self.buffers[at] = buffer
                    if at in needed:
                        loads.append((held_field, buffer))
                    if at in needed or not parameter.written:
                        reads.append(buffer)
                    (writes if parameter.written else read_only).append((held_field, buffer))
        self.merge_input: Field | None = merged[0] if merged else None
        self.inputs: tuple[Field, ...] = tuple(held_field for held_field, _ in loads)
        """The fields whose values before a call are read."""
        self.outputs: tuple[Field, ...] = tuple(held_field for held_field, _ in writes)
        """The fields that it writes."""
        self.arrays: dict[int, Array] = {at: held.array for at, held in self.buffers.items()}
        self.reads = tuple(reads)
        self.written = tuple(buffer for _, buffer in writes)
        self.loads = tuple(pair for pair in loads if pair[1] is not pair[0].host)
        self.writes = tuple(writes)
        self.owner = next((f.owner for f in (*self.inputs, *self.outputs) if f.owner), None)
        """The plan that alone sees an array of it, if any."""
        is_static = len(self.arrays) == len(compiled.slots) and not compiled.procedure.results
        self.static_run = self.bind(self.arrays) if is_static else None
        self._unwritten_inputs = self._find_unwritten_inputs()
        self._versions = self._version_record(read_only) if compiled.computed else None
        self._fast_call = self._make_fast_call()
        compiled.settle(context, self.name)
        context.routines.add(self)

    def rebind(self) -> None:
        """Take over arrays that were moved."""
        self.arrays = {at: held.array for at, held in self.buffers.items()}
        if self.static_run is not None:
            self.static_run = self.bind(self.arrays)

    def release(self) -> None:
        """Let go of all arrays: its context was finalized."""
        self.buffers, self.arrays = {}, {}
        self.reads = self.written = ()
        self.loads = self.writes = ()
        self.static_run = self._fast_call = None

    @property
    def bindings(self) -> Bindings:
        """Default arguments of calls by name: numbers, including static indices, and arrays."""
        return self._bindings

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Queue the routine; return None, or the results of the function, for which it waits.

        While a plan is recorded it is a step of the plan, and is not queued.

        Raises CdTypeError CD0436 for wrong arguments, CdValueError CD0844 where the merge buffer
        does not hold what it merges, and on an inline stream what the routine raises.
        """
        if RUNTIME.planning and (recorder := RUNTIME.planning.get(threading.get_ident())):
            return recorder.call(self, args, kwargs)
        fast_call = self._fast_call
        if fast_call is not None and not args and not kwargs and not _is_logged() and fast_call():
            return None
        return self._call_with(args, kwargs)

    def _call_with(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Queue the routine without the fast path."""
        self.context.require_live(self.name)
        if self.owner is not None:
            raise unseen(self.name, self.owner)
        stream = self.context.stream
        if self.static_run is not None and not args and not kwargs:
            self.require_order()
            recorded = RUNTIME.recording(_is_logged()) is not None
            run = self.recorded(self.arrays) if recorded else self.static_run
            stream.worker.wait_for_slot()
            stream.flush(self._schedule(run, self.reads))
            return None
        results: list[Array] = []
        values, arguments, waited = self.arguments_of(args, kwargs)
        source_streams = () if self.source is None else (self.source.stream,)

        def decision() -> Event:
            self.require_order()
            if self.source is not None and self.merge_input is not None:
                self.source.fill(self, self.merge_input, streaming=True)
            self._merge()  # first: an error leaves the state unchanged
            self._refresh_arrays()
            hazards.detach_readers(self.written)  # also the merge source, if this routine writes it
            merge = self._merge()
            reads = self.reads if merge is None else (*self.reads, merge.buffer)
            arrays = self.arrays | arguments
            if merge is not None:
                arrays |= dict.fromkeys(self.compiled.merged, merge.array)
            call = self.recorded(arrays)
            event = self._schedule(lambda: results.extend(call()), reads)
            if merge is not None and merge.once:
                stream.merge = None
            return event

        event = decide(decision, *source_streams, stream)
        if waited or self.compiled.procedure.results:
            failure = event.settle()
            if failure is not None:  # even if another thread has raised it: there are no results
                raise failure.tell()
        return self.compiled.returned(results, values)

    def explain_memory(self) -> MemoryReport:
        """Return which array each field has here, who may write it, and why; `print` shows a table.

        Raises CdBackendError CD0845 where its context was finalized.
        """
        self.context.require_live(self.name)
        with RUNTIME.scheduling.lock:
            return report_memory(self.compiled, self.context, self.buffers)

    def merge_from_host(self, field: Any) -> None:
        """Fill the merge buffer of the stream with the host's version of a field.

        It is valid for any number of calls. Raises CdValueError CD0844 where the routine merges
        another field, or none.
        """
        field, stream = field_of(field), self.context.stream
        expect_merge(self, field)
        self.context.require_live()
        if recorder := RUNTIME.planned():
            recorder.merge(self, field, None, once=False)
            return
        decide(lambda: merge_copy(stream, field, field.host, once=False), stream)

    def arguments_of(
        self, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[Mapping[str, Any], dict[int, Any], bool]:
        """Return the arguments of a call by name, as arrays by position, and whether the call is
        synchronous: where one is written or on a device, its owner may use it after the call.

        Raises CdTypeError CD0436 for wrong arguments, and what converting and comparing them
        raises.
        """
        compiled, arguments, is_synchronous = self.compiled, dict[int, Any](), False
        span = compiled.procedure.span
        values = bind_arguments(self.name, compiled.names, self._bindings, args, kwargs, span)
        backend = self.context.device.code
        for at, (slot, parameter) in enumerate(compiled.parameters):
            if isinstance(slot, Argument):
                arguments[at] = convert_argument(slot.name, values[slot.name], parameter, backend)
                is_synchronous = (
                    is_synchronous or parameter.written or isinstance(arguments[at], PlacedArray)
                )
        if is_synchronous:
            require_disjoint(list(arguments.values()), self.name)
        return values, arguments, is_synchronous

    def require_order(self, written: Container[Field] = ()) -> None:
        """Raise CdValueError CD0850 where a routine linked before has to be called first, unless
        what it reads is `written`; and what `require_versions` raises."""
        self.require_written(written)
        self.require_versions()
        if not written:
            self._unwritten_inputs = ()
            self._fast_call = self._make_fast_call()

    def require_written(self, written: Container[Field]) -> None:
        """Raise CdValueError CD0850 where a routine linked before has to be called first, unless
        what it reads is `written`."""
        for field, first in self._unwritten_inputs:
            if field.is_blank and field not in written:
                raise CdValueError(
                    Diagnostic(
                        "CD0850",
                        f"`{self.name}` reads `{field.label}`, which nothing has written so far",
                        (Label(self.compiled.procedure.span),),
                        (f"`{first}`, which was linked before it, writes `{field.label}`",),
                        (f"call `{first}` first, or give it a value: `{field.label}[...] = 0`",),
                    )
                )

    def require_versions(self) -> None:
        """Raise CdValueError CD0850 or CD0859 where it recomputes of other versions than the
        routine did whose values it computes again."""
        for check in self._version_checks:
            check.require(self.name, self.compiled.procedure.span)

    def note_versions(self) -> None:
        """Record the versions that it reads, for routines that recompute its values."""
        if self._versions is not None:
            self._versions.note()

    @property
    def compares_versions(self) -> bool:
        """Whether it computes again what other routines computed, or is what others compute."""
        return bool(self._version_checks) or self._versions is not None

    def _make_fast_call(self) -> Callable[[], bool] | None:
        """Return the fast path of a call without arguments, None where there is none."""
        if (
            self.static_run is None
            or self.owner is not None
            or self._unwritten_inputs
            or self._version_checks
            or self._versions
        ):
            return None
        return self._make_fast_path(self.static_run)

    def _find_unwritten_inputs(self) -> tuple[tuple[Field, str], ...]:
        """Return the read-only fields without a value, with the routine that writes each."""
        blank = [f for f in self.inputs if f.is_blank and f not in self.outputs]
        writers = ((field, self.context.find_note(field)) for field in blank)
        return tuple((field, first) for field, first in writers if first)

    def _version_record(self, reads: Sequence[tuple[Field, Buffer]]) -> ReadVersions:
        """Return the record of the versions it reads, for routines that recompute its values."""
        existing: ReadVersions | None = self.context.find_note(self.compiled)
        record = existing or ReadVersions(self.name, tuple(reads))
        self.context.notes[self.compiled] = record
        return record

    def _make_fast_path(self, run: Callable[[], object]) -> Callable[[], bool]:
        """Return the fast path that runs or queues the routine."""
        stream = self.context.stream
        uses = RoutineAccesses(self.reads, self.loads, self.writes)
        if not stream.threaded:
            return run_path(stream, run, self.context, uses)
        queue_step, code = queue_path(stream, run, self.context, uses), self._code
        if not isinstance(code, LaunchesAsync):
            return queue_step
        start = code.prepare_launch([self.arrays[at] for at in range(len(self.arrays))])
        if start is None:
            return queue_step
        launch = launch_path(stream, self.name, code, start, self.context, uses)
        return lambda: launch() or queue_step()

    def _schedule(self, run: Callable[[], object], reads: Sequence[Buffer]) -> Event:
        """Queue a step in dependence order with all uses of the same arrays."""
        with RUNTIME.scheduling.lock:
            RUNTIME.scheduling.decisions += 1
            self.require_versions()
            self._refresh_arrays()
            stream = self.context.stream
            run = RUNTIME.timed(self.name, "routine", stream.name, run)
            event = hazards.enqueue(stream, run, reads, self.written)
            self.note_versions()
            for held_field, buffer in self.writes:
                held_field.record_write(buffer)
        return event

    def _refresh_arrays(self) -> None:
        """Queue copies of newer host versions; raises CdBackendError CD0845 after `finalize`."""
        self.context.require_live(self.name)
        for held_field, buffer in self.loads:
            if held_field.host_tick > buffer.tick:
                self.context.refresh(held_field, buffer)

    def recorded(self, arrays: Mapping[int, Any]) -> Callable[[], Any]:
        """Return the call of the code with arrays for its parameters, which a trace or log observes
        where there is one; it allocates results."""
        recorder, stream = RUNTIME.recording(_is_logged()), self.context.stream
        if recorder is None:
            return self.bind(arrays)
        ordered = [arrays[at] for at in range(len(arrays))]
        ordered = [
            array.unsynchronized if isinstance(array, DeviceArray) else array for array in ordered
        ]
        title = self.name, stream.device.code, stream.name
        run = recorder.step(self.compiled.codes, ordered, title)
        return self._annotate_errors(run) if stream.threaded else run

    @functools.cached_property
    def arena_bytes(self) -> int:
        """The bytes that `bind` takes an arena of for its temporaries; 0 where it takes none."""
        code = self._borrowing
        return 0 if code is None else code.arena_bytes(self._known_arrays)

    @property
    def temporary_bytes(self) -> int | None:
        """The bytes of the temporaries of a call, None where the code does not tell."""
        code = self._borrowing
        return None if code is None else code.temporary_bytes(self._known_arrays)

    @functools.cached_property
    def _borrowing(self) -> BorrowsMemory | None:
        return self._code if isinstance(self._code, BorrowsMemory) else None

    @property
    def _known_arrays(self) -> list[Array | None]:
        """The arrays of its parameters, None for what calls give."""
        return [self.arrays.get(at) for at in range(len(self.compiled.slots))]

    def bind(self, arrays: Mapping[int, Any], arena: Array | None = None) -> Callable[[], Any]:
        """Return the call of the code without recording, with its temporaries in an arena, if
        given."""
        empty_results = (None for _ in self.compiled.procedure.results)
        ordered = [*(arrays[at] for at in range(len(arrays))), *empty_results]
        if arena is None or (code := self._borrowing) is None:
            run = self._code.bind(ordered)
        else:
            run = code.bind_in(ordered, arena)
        return self._annotate_errors(run) if self.context.stream.threaded else run

    def prepare_capture(
        self, arrays: Mapping[int, Any], place: GraphPlace, numbers: Sequence[int]
    ) -> Callable[[], object]:
        """Return what queues the call of the code as a step of a graph; see `CanCapture`."""
        if not isinstance(self._code, CanCapture):
            raise NotCapturable("has code that no graph can hold")
        ordered = [arrays[at] for at in range(len(arrays))]
        return self._code.prepare_capture(ordered, place, numbers)

    def _annotate_errors(self, run: Callable[[], Any]) -> Callable[[], Any]:
        """Return a call whose errors, raised asynchronously, name the routine and its stream."""
        note = f"in the routine `{self.name}` on {self.context.stream.name}"

        def annotated() -> Any:
            try:
                return run()
            except CdError as error:
                first, *other_diagnostics = error.diagnostics
                with_note = replace(first, notes=(*first.notes, note))
                raise type(error)(with_note, *other_diagnostics) from None

        return annotated

    def _merge(self) -> MergeContent | None:
        """Return the content of the stream's merge buffer; CD0844 where it has another field."""
        if self.merge_input is None:
            return None
        stream = self.context.stream
        merge = stream.merge
        if merge is not None and merge.field is self.merge_input:
            return merge
        holds = "is empty" if merge is None else f"holds `{merge.field.label}`"
        label = self.merge_input.label
        raise CdValueError(
            Diagnostic(
                "CD0844",
                f"`{self.name}` merges `{label}`, and the merge buffer of {stream.name} {holds}",
                (Label(self.compiled.procedure.span),),
                helps=(f"fill it first: `source.merge_into(routine, {label})`",),
            )
        )

    def __repr__(self) -> str:
        return f"<routine {self.name} on {self.context.stream.name}>"


def _is_logged() -> bool:
    """Whether the current settings ask for a log of routines."""
    return settings.current().debug_log_from_routines
