"""Compiled functions and routines: what `f.compile(...)` gives, linked into a context and run.

    Compiled := what a function means for given tensors and arrays; no device, no memory of its own
    Routine  := that, in a child context: its arrays are there, calling it queues one step

The step waits for what its arrays need and leaves behind what it read and wrote; see `order`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...base import settings
from ...base.diagnostic import CdError, CdValueError, Diagnostic, Label
from ..gpu.device_array import DeviceArray, Placed
from ..interface import Array, HasLanes, RunsAhead
from . import hazards
from .argument_checks import expect_merge, field_of
from .async_dispatch import ahead
from .bindings import Bindings
from .call_arguments import by_name, fitting, require_apart
from .device import Context
from .field import Field
from .memory import Buffer
from .parameter_slots import Given, Resident
from .prepared_calls import Uses, direct, queued
from .queue import Event
from .read_versions import Ran
from .signature import Bound
from .state import RUNTIME
from .transfer import Merge, merge_copy, scheduling


class Compiled(Bound):
    """A function compiled for its tensors and kinds of arrays; independent of any device.

    The code of a backend is made when it is first linked there, and kept.
    """

    def link(self, context: Context, merge_from: Context | None = None) -> Routine:
        """Return the routine in a new child of a context.

        With `merge_from` each call first fills the merge buffer with that context's version. Raises
        CdBackendError where it cannot be compiled or a context was finalized, CdTypeError CD0804
        where it writes a constant, CD0847 for what is no context and CD0851 where it reads what an
        earlier routine did not keep, and CdValueError CD0843 where a shared array would be written
        by a second stream, CD0842 or CD0844 where there is nothing to merge, and CD0858 where it
        computes again what nothing that was linked before it computes.
        """
        self.require_context(context)
        if merge_from is not None:
            self.require_source(merge_from)
        self.require_kept(context)  # before it is compiled, which may fail for that very reason
        self.codes.on(context.device.code)
        with scheduling(context.stream):
            return Routine(self, Context(context.stream, context), merge_from)

    def __repr__(self) -> str:
        return f"<compiled {self.name}>"


class Routine:
    """A compiled function in a context. Calling it queues one step on the context's stream.

    Arrays and numbers that it was compiled with, other than tensors, are given by each call or by
    `bindings`. A routine that is given an array to write, or that returns something, is waited for.
    """

    def __init__(
        self, compiled: Compiled, context: Context, merge_from: Context | None = None
    ) -> None:
        self.compiled = compiled
        self.context = context
        self.name = compiled.name
        self._source = merge_from
        self._bindings = Bindings(self.name, compiled.names)
        for slot in compiled.slots:
            if isinstance(slot, Given) and slot.default is not None:
                self._bindings[slot.name] = slot.default
        code = compiled.codes.on(context.device.code)
        lane = context.stream.lane
        self._code = code.in_lane(lane) if isinstance(code, HasLanes) else code
        compiled.require_writable(context)  # all of it before any array is made
        compiled.require_kept(context)  # also by those that are linked before it in a batch
        self._again = compiled.again(context)
        self._arrays: dict[int, Array] = {}
        loads, reads, merged = [], [], []
        ticks: list[tuple[Field, Buffer]] = []
        only: list[tuple[Field, Buffer]] = []
        needed = compiled.codes.needed
        for at, (slot, parameter) in enumerate(compiled.parameters):
            match slot:
                case Resident(held, True):
                    merged.append(held)
                case Resident(held, False):
                    buffer = context.adopt(held, parameter.written)
                    self._arrays[at] = buffer.array
                    if at in needed:
                        loads.append((held, buffer))
                    if at in needed or not parameter.written:
                        reads.append(buffer)
                    (ticks if parameter.written else only).append((held, buffer))
        self.merge_input: Field | None = merged[0] if merged else None
        self.inputs: tuple[Field, ...] = tuple(held for held, _ in loads)
        """The fields whose contents before the routine matter."""
        self.outputs: tuple[Field, ...] = tuple(held for held, _ in ticks)
        """The fields that it writes."""
        self.reads = tuple(reads)
        self.written = tuple(buffer for _, buffer in ticks)
        self._loads = tuple(pair for pair in loads if pair[1] is not pair[0].host)
        self._ticks = tuple(ticks)
        whole = len(self._arrays) == len(compiled.slots) and not compiled.procedure.results
        self._whole = self._plain(self._arrays) if whole else None
        self._awaited = self._missing()
        self._ran = self._noted(only) if compiled.computed else None
        self._prepared = self._made_ready()
        compiled.settle(context, self.name)

    @property
    def bindings(self) -> Bindings:
        """What calls need not give, by name: numbers, static indices among them, and arrays."""
        return self._bindings

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Queue the routine; return None, or what the function returns when it is done.

        Raises CdTypeError CD0436 for wrong arguments, CdValueError CD0844 where the merge buffer
        does not hold what it merges, and on an inline stream what the routine raises.
        """
        prepared = self._prepared
        if prepared is not None and not args and not kwargs and not _is_logged() and prepared():
            return None
        return self._call_with(args, kwargs)

    def _call_with(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Queue the routine where not all of it is prepared."""
        stream = self.context.stream
        if self._whole is not None and not args and not kwargs:
            self._require_order()
            recorded = RUNTIME.recording(_is_logged()) is not None
            run = self._call(self._arrays) if recorded else self._whole
            stream.worker.make_room()
            stream.flush(self._schedule(run, self.reads))
            return None
        results: list[Array] = []
        values = by_name(
            self.name, self.compiled.names, self._bindings, args, kwargs,
            self.compiled.procedure.span,
        )  # fmt: skip
        given, waited = self._given(values)
        filler = () if self._source is None else (self._source.stream,)
        with scheduling(*filler, stream):
            self._require_order()
            if self._source is not None and self.merge_input is not None:
                self._source.fill(self, self.merge_input, streaming=True)
            self._merge()  # what is refused leaves everything as it was
            self._refresh()
            hazards.reclaim(self.written)  # also what this routine merges, if it writes that
            merge = self._merge()
            reads = self.reads if merge is None else (*self.reads, merge.buffer)
            arrays = self._arrays | given
            if merge is not None:
                arrays |= dict.fromkeys(self.compiled.merged, merge.array)
            call = self._call(arrays)
            event = self._schedule(lambda: results.extend(call()), reads)
            if merge is not None and merge.once:
                stream.merge = None
        if waited or self.compiled.procedure.results:
            failure = event.settle()
            if failure is not None:  # also where another thread was told: there are no results
                raise failure.tell()
        return self.compiled.returned(results, values)

    def merge_from_host(self, field: Any) -> None:
        """Fill the merge buffer of the stream with the host's version of a field.

        It serves any number of calls. Raises CdValueError CD0844 where the routine merges another
        field, or none.
        """
        field, stream = field_of(field), self.context.stream
        expect_merge(self, field)
        self.context.require_live()
        with scheduling(stream):
            merge_copy(stream, field, field.host, once=False)

    def _given(self, values: Mapping[str, Any]) -> tuple[dict[int, Any], bool]:
        """Return arrays for the parameters that a call gives, and whether it is waited for.

        It is where one is written, or is on a device: its owner goes on using it behind the call.
        """
        compiled, found, waited = self.compiled, dict[int, Any](), False
        backend = self.context.device.code
        for at, (slot, parameter) in enumerate(compiled.parameters):
            if isinstance(slot, Given):
                found[at] = fitting(slot.name, values[slot.name], parameter, backend)
                waited = waited or parameter.written or isinstance(found[at], Placed)
        if waited:
            require_apart(list(found.values()), self.name)
        return found, waited

    def _require_order(self) -> None:
        """Raise CdValueError CD0850 where a routine that was linked before has to come first."""
        for field, first in self._awaited:
            if field.is_blank:
                raise CdValueError(
                    Diagnostic(
                        "CD0850",
                        f"`{self.name}` reads `{field.label}`, which nothing has written so far",
                        (Label(self.compiled.procedure.span),),
                        (f"`{first}`, which was linked before it, writes `{field.label}`",),
                        (f"call `{first}` first, or give it a value: `{field.label}[...] = 0`",),
                    )
                )
        for again in self._again:
            again.require(self.name, self.compiled.procedure.span)
        self._awaited = ()
        self._prepared = self._made_ready()

    def _made_ready(self) -> Callable[[], bool] | None:
        """Return the call without arguments, prepared; None where a call has more to do."""
        if self._whole is None or self._awaited or self._again or self._ran:
            return None
        return self._step(self._whole)

    def _missing(self) -> tuple[tuple[Field, str], ...]:
        """Return what it only reads and nobody has written, with the routine that should have."""
        blank = [f for f in self.inputs if f.is_blank and f not in self.outputs]
        found = ((field, self.context.note_of(field)) for field in blank)
        return tuple((field, first) for field, first in found if first)

    def _noted(self, reads: Sequence[tuple[Field, Buffer]]) -> Ran:
        """Return where its versions are noted, for those that compute again what it computes."""
        before: Ran | None = self.context.note_of(self.compiled)
        made = before or Ran(self.name, tuple(reads))
        self.context.notes[self.compiled] = made
        return made

    def _step(self, run: Callable[[], object]) -> Callable[[], bool]:
        """Return what runs or queues the routine where nothing has to be done before that."""
        stream = self.context.stream
        uses = Uses(self.reads, self._loads, self._ticks)
        if not stream.threaded:
            return direct(stream, run, self.context, uses)
        by_thread, code = queued(stream, run, self.context, uses), self._code
        if not isinstance(code, RunsAhead):
            return by_thread
        start = code.ahead([self._arrays[at] for at in range(len(self._arrays))])
        if start is None:
            return by_thread
        at_once = ahead(stream, self.name, code, start, self.context, uses)
        return lambda: at_once() or by_thread()

    def _schedule(self, run: Callable[[], object], reads: Sequence[Buffer]) -> Event:
        """Queue a step in order with everything that uses the same arrays."""
        with RUNTIME.scheduling:
            for again in self._again:
                again.require(self.name, self.compiled.procedure.span)
            self._refresh()
            stream = self.context.stream
            run = RUNTIME.timed(self.name, "routine", stream.name, run)
            event = hazards.enqueue(stream, run, reads, self.written)
            if self._ran is not None:
                self._ran.note()
            for held, buffer in self._ticks:
                held.ticked(buffer)
        return event

    def _refresh(self) -> None:
        """Queue loads of what the host wrote; raises CdBackendError CD0845 after `finalize`."""
        self.context.require_live()
        for held, buffer in self._loads:
            if held.host_tick > buffer.tick:
                self.context.refresh(held, buffer)

    def _call(self, arrays: Mapping[int, Any]) -> Callable[[], Any]:
        """Return the call of the code with arrays for its parameters; results are made for it."""
        recorder, stream = RUNTIME.recording(_is_logged()), self.context.stream
        if recorder is None:
            return self._plain(arrays)
        given = [arrays[at] for at in range(len(arrays))]
        given = [one.settled if isinstance(one, DeviceArray) else one for one in given]
        title = self.name, stream.device.code, stream.name
        run = recorder.step(self.compiled.codes, given, title)
        return self._named(run) if stream.threaded else run

    def _plain(self, arrays: Mapping[int, Any]) -> Callable[[], Any]:
        """Return the call of the code that records nothing."""
        made = (None for _ in self.compiled.procedure.results)
        run = self._code.bind([*(arrays[at] for at in range(len(arrays))), *made])
        return self._named(run) if self.context.stream.threaded else run

    def _named(self, run: Callable[[], Any]) -> Callable[[], Any]:
        """Return a call whose errors, raised far from it, say which routine failed and where."""
        note = f"in the routine `{self.name}` on {self.context.stream.name}"

        def named() -> Any:
            try:
                return run()
            except CdError as error:
                first, *others = error.diagnostics
                noted = replace(first, notes=(*first.notes, note))
                raise type(error)(noted, *others) from None

        return named

    def _merge(self) -> Merge | None:
        """Return what the stream's merge buffer holds; CdValueError CD0844 where it is wrong."""
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
    """Whether the settings of now ask for a log of what runs."""
    return settings.current().debug_log_from_routines
