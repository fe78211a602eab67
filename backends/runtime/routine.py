"""Compiled functions and routines: what `f.compile(...)` gives, linked into a context and run.

    Compiled := what a function means for given tensors and arrays; no device, no memory of its own
    Routine  := that, in a child context: its arrays are there, calling it queues one step

The step waits for what its arrays need and leaves behind what it read and wrote; see `order`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...lowering import settings
from ...lowering.diagnostic import CdError, CdTypeError, CdValueError, Diagnostic, Label
from ...lowering.ir.assignments import Parameter, Procedure
from ...lowering.ir.node import Node
from ..interface import Array
from . import order
from .bindings import Bindings
from .checks import expect_merge, field_of
from .codes import Codes
from .device import Context
from .direct import Uses, direct, queued
from .field import Field
from .given import by_name, fitting, require_apart
from .link import allocate
from .memory import Buffer
from .queue import Event
from .slots import Given, Resident, Slot
from .state import RUNTIME
from .tensor import Tensor
from .transfer import Merge, merge_copy, scheduling


@dataclass(eq=False)
class Compiled:
    """A function compiled for its tensors and kinds of arrays; independent of any device.

    The code of a backend is made when it is first linked there, and kept.
    """

    name: str
    codes: Codes
    slots: tuple[Slot, ...]
    """What each parameter of the procedure is."""
    returned: Callable[[Sequence[Array]], Any]
    """Makes what Python gets of the results."""
    fleeting: tuple[tuple[Tensor, Node], ...] = ()
    """The tensors that it has only while it runs."""

    @property
    def procedure(self) -> Procedure:
        """What it does."""
        return self.codes.procedure

    @property
    def parameters(self) -> tuple[tuple[Slot, Parameter], ...]:
        """Each parameter of the procedure with what it is."""
        return tuple(zip(self.slots, self.procedure.parameters, strict=True))

    @property
    def names(self) -> tuple[str, ...]:
        """What a call gives, in order."""
        return tuple(dict.fromkeys(s.name for s in self.slots if isinstance(s, Given)))

    @property
    def merged(self) -> tuple[int, ...]:
        """The positions of what is read from the merge buffer."""
        return tuple(
            at for at, slot in enumerate(self.slots) if isinstance(slot, Resident) and slot.merged
        )

    def link(self, context: Context, merge_from: Context | None = None) -> Routine:
        """Return the routine in a new child of a context.

        With `merge_from` each call first fills the merge buffer with that context's version. Raises
        CdBackendError where it cannot be compiled or a context was finalized, CdTypeError CD0804
        where it writes a constant, CD0847 for what is no context and CD0851 where it reads what an
        earlier routine did not keep, and CdValueError CD0843 where a shared array would be written
        by a second stream, and CD0842 or CD0844 where there is nothing to merge.
        """
        self.require_context(context)
        if merge_from is not None:
            self.require_source(merge_from)
        self.require_kept(context)  # before it is compiled, which may fail for that very reason
        self.codes.on(context.device.backend)
        with scheduling(context.stream):
            return Routine(self, Context(context.stream, context), merge_from)

    def require_source(self, source: Context) -> None:
        """Raise CdValueError where it merges nothing, CD0844, or what is not there, CD0842."""
        self.require_context(source)
        merged = [slot.field for slot in self.slots if isinstance(slot, Resident) and slot.merged]
        if not merged:
            raise CdValueError(
                Diagnostic(
                    "CD0844", f"`{self.name}` merges nothing, and is linked with `merge_from`",
                    (Label(self.procedure.span),), helps=("link it without: `code.link(context)`",),
                )
            )  # fmt: skip
        source.array(merged[0])

    def require_kept(self, context: Context) -> None:
        """Raise CdTypeError CD0851 where it reads what an earlier routine computed and let go."""
        for tensor, node in self.fleeting:
            first = context.writer_of(tensor)
            if first and not self.codes.accesses.is_written(node):
                mode = tensor.memory
                raise CdTypeError(
                    Diagnostic(
                        "CD0851", f"`{self.name}` reads `{tensor.label}`, which is {mode}: what "
                        f"`{first}` computed of it is not kept between routines",
                        (Label(self.procedure.span),),
                        helps=(f"make `{tensor.label}` without `memory={mode!r}`, or compute it "
                               f"in `{self.name}` as well",),
                    )
                )  # fmt: skip

    def settle(self, context: Context, name: str) -> None:
        """Let what is linked into children of a context know what the routine of a name writes."""
        for slot, parameter in self.parameters:
            if isinstance(slot, Resident) and parameter.written:
                context.writers.setdefault(slot.field, name)
        for tensor, node in self.fleeting:
            if self.codes.accesses.is_written(node):
                context.writers.setdefault(tensor, name)

    def require_context(self, context: Context) -> None:
        """Raise CdTypeError CD0847 for what is no context, CdBackendError CD0845 after its end."""
        if not isinstance(context, Context):
            raise CdTypeError(
                Diagnostic(
                    "CD0847", f"`{self.name}` is linked into a {type(context).__name__}",
                    helps=("link it into a context: `code.link(stream.context())`",),
                )
            )  # fmt: skip
        context.require_live()

    def require_writable(self, context: Context) -> None:
        """Raise CdTypeError CD0804 or CdValueError CD0843 where it would write what it may not."""
        for slot, parameter in self.parameters:
            if isinstance(slot, Resident) and parameter.written:
                slot.field.require_writable()
                context.require_writable(slot.field)

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
        self._code = compiled.codes.on(context.device.backend)
        self._logged = settings.current().debug_log_from_routines
        compiled.require_writable(context)  # all of it before any array is made
        compiled.require_kept(context)  # also by those that are linked before it in a batch
        self._arrays: dict[int, Array] = {}
        loads, reads, ticks, merged = [], [], [], []
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
                    if parameter.written:
                        ticks.append((held, buffer))
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
        if prepared is not None and not args and not kwargs and prepared():
            return None
        return self._call_with(args, kwargs)

    def _call_with(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Queue the routine where not all of it is prepared."""
        stream = self.context.stream
        if self._whole is not None and not args and not kwargs:
            self._require_order()
            recorded = RUNTIME.recording(self._logged) is not None
            run = self._call(self._arrays) if recorded else self._whole
            stream.worker.make_room()
            stream.flush(self._schedule(run, self.reads))
            return None
        results: list[Array] = []
        given, waited = self._given(args, kwargs)
        filler = () if self._source is None else (self._source.stream,)
        with scheduling(*filler, stream):
            self._require_order()
            if self._source is not None and self.merge_input is not None:
                self._source.fill(self, self.merge_input, streaming=True)
            self._merge()  # what is refused leaves everything as it was
            self._refresh()
            order.reclaim(self.written)  # also what this routine merges, if it writes that
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
        return self.compiled.returned(results)

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

    def _given(
        self, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[dict[int, Array], bool]:
        """Return arrays for the parameters that a call gives, and whether any is written."""
        compiled, found, waited = self.compiled, dict[int, Array](), False
        span = compiled.procedure.span
        values = by_name(self.name, compiled.names, self._bindings, args, kwargs, span)
        for at, (slot, parameter) in enumerate(compiled.parameters):
            if isinstance(slot, Given):
                found[at] = fitting(slot.name, values[slot.name], parameter)
                waited = waited or parameter.written
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
        self._awaited = ()
        self._prepared = self._made_ready()

    def _made_ready(self) -> Callable[[], bool] | None:
        """Return the call without arguments, prepared; None where a call has more to do."""
        if self._whole is None or self._logged or self._awaited:
            return None
        return self._step(self._whole)

    def _missing(self) -> tuple[tuple[Field, str], ...]:
        """Return what it only reads and nobody has written, with the routine that should have."""
        blank = [f for f in self.inputs if f.is_blank and f not in self.outputs]
        found = ((field, self.context.writer_of(field)) for field in blank)
        return tuple((field, first) for field, first in found if first)

    def _step(self, run: Callable[[], object]) -> Callable[[], bool]:
        """Return what runs or queues the routine where nothing has to be done before that."""
        stream = self.context.stream
        make = queued if stream.threaded else direct
        return make(stream, run, self.context, Uses(self.reads, self._loads, self._ticks))

    def _schedule(self, run: Callable[[], object], reads: Sequence[Buffer]) -> Event:
        """Queue a step in order with everything that uses the same arrays."""
        with RUNTIME.scheduling:
            self._refresh()
            stream = self.context.stream
            run = RUNTIME.timed(self.name, "routine", stream.name, run)
            event = order.enqueue(stream, run, reads, self.written)
            for held, buffer in self._ticks:
                held.ticked(buffer)
        return event

    def _refresh(self) -> None:
        """Queue loads of what the host wrote; raises CdBackendError CD0845 after `finalize`."""
        self.context.require_live()
        for held, buffer in self._loads:
            if held.host_tick > buffer.tick:
                self.context.refresh(held, buffer)

    def _call(self, arrays: Mapping[int, Array]) -> Callable[[], Any]:
        """Return the call of the code with arrays for its parameters; results are made for it."""
        recorder, stream = RUNTIME.recording(self._logged), self.context.stream
        if recorder is None:
            return self._plain(arrays)
        given = [arrays[at] for at in range(len(arrays))]
        title = self.name, stream.device.backend, stream.name
        run = recorder.step(self.compiled.codes, given, title)
        return self._named(run) if stream.threaded else run

    def _plain(self, arrays: Mapping[int, Array]) -> Callable[[], Any]:
        """Return the call of the code that records nothing."""
        made = map(allocate, self.compiled.procedure.results)
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
