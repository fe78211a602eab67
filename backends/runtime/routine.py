"""Compiled functions and routines: what `f.compile(...)` gives, linked into a context and run.

    Compiled := what a function means for given tensors and arrays; no device, no memory of its own
    Routine  := that, in a child context: its arrays are there, calling it queues one step

The step waits for what its arrays need and leaves behind what it read and wrote; see `order`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...lowering import settings
from ...lowering.diagnostic import CdError, CdTypeError, CdValueError, Diagnostic, Label
from ...lowering.ir.assignments import Parameter, Procedure
from ..interface import Array
from . import order
from .arrays import as_array, overlaps, relaid
from .bindings import Bindings
from .codes import Codes
from .device import Context, expect_merge, field_of
from .direct import direct
from .field import Field
from .link import allocate, unfit
from .memory import Buffer
from .queue import Event
from .state import RUNTIME
from .transfer import Merge, merge_copy, scheduling


@dataclass(frozen=True, slots=True)
class Resident:
    """A parameter that is a field of a tensor: its array stays on the device."""

    field: Field
    merged: bool = False
    """Whether it is another version of it, in the merge buffer."""


@dataclass(frozen=True, slots=True)
class Given:
    """A parameter that every call gives, by name: a NumPy array, or a number."""

    name: str
    default: Any = None
    """The number that it was compiled with, None for arrays."""


Slot = Resident | Given


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

    def link(self, context: Context) -> Routine:
        """Return the routine in a new child of a context.

        Raises CdBackendError where it cannot be compiled or the context was finalized,
        CdTypeError CD0804 where it writes a constant and CD0847 for what is no context, and
        CdValueError CD0843 where a shared array would be written by a second stream.
        """
        self.require_context(context)
        self.codes.on(context.device.backend)
        with scheduling(context.stream):
            return Routine(self, Context(context.stream, context))

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

    def __init__(self, compiled: Compiled, context: Context, name: str = "") -> None:
        self.compiled = compiled
        self.context = context
        self.name = name or compiled.name
        self._bindings = Bindings(self.name, compiled.names)
        for slot in compiled.slots:
            if isinstance(slot, Given) and slot.default is not None:
                self._bindings[slot.name] = slot.default
        self._code = compiled.codes.on(context.device.backend)
        self._logged = settings.current().debug_log_from_routines
        compiled.require_writable(context)  # all of it before any array is made
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
        self._direct = self._step() if whole and not context.stream.threaded else None

    @property
    def bindings(self) -> Bindings:
        """What calls need not give, by name: numbers, static indices among them, and arrays."""
        return self._bindings

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Queue the routine; return None, or what the function returns when it is done.

        Raises CdTypeError CD0436 for wrong arguments, CdValueError CD0844 where the merge buffer
        does not hold what it merges, and on an inline stream what the routine raises.
        """
        if self._whole is not None and not args and not kwargs:
            recorded = RUNTIME.recording(self._logged) is not None
            if self._direct is not None and not recorded and self._direct():
                return None
            run = self._call(self._arrays) if recorded else self._whole
            stream = self.context.stream
            stream.worker.make_room()
            stream.flush(self._schedule(run, self.reads))
            return None
        results: list[Array] = []
        stream = self.context.stream
        given, waited = self._given(args, kwargs)
        stream.worker.make_room()
        with RUNTIME.scheduling:
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
            event.wait()
        stream.flush(event)
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

    def _step(self) -> Callable[[], bool]:
        """Return what runs the routine at once where it can, on a stream without a thread."""
        assert self._whole is not None
        context = self.context
        return direct(context.stream, self._whole, context, self.reads, self._loads, self._ticks)

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

    def _given(
        self, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[dict[int, Array], bool]:
        """Return arrays for the parameters that a call gives, and whether any is written."""
        names = self.compiled.names
        values = {**self._bindings, **dict(zip(names, args, strict=False)), **kwargs}
        unknown = [name for name in kwargs if name not in names]
        missing = [name for name in names if name not in values]
        if unknown or missing or len(args) > len(names):
            takes = ", ".join(names) or "nothing"
            raise CdTypeError(
                Diagnostic(
                    "CD0436", f"the routine `{self.name}` is called with the wrong arguments",
                    (Label(self.compiled.procedure.span),), (f"it takes {takes}",),
                    (f"give it what it lacks: {', '.join(missing)}",) if missing else (),
                )
            )  # fmt: skip
        found: dict[int, Array] = {}
        waited = False
        for at, (slot, parameter) in enumerate(self.compiled.parameters):
            if isinstance(slot, Given):
                found[at] = _fitting(slot.name, values[slot.name], parameter)
                waited = waited or parameter.written
        if waited:
            _require_apart(list(found.values()), self.name)
        return found, waited

    def __repr__(self) -> str:
        return f"<routine {self.name} on {self.context.stream.name}>"


def _fitting(name: str, value: Any, parameter: Parameter) -> Array:
    """Return what a call gives for a parameter as the array that the code was compiled for.

    What is only read is copied: the caller may change it before the routine runs.
    """
    node = parameter.node
    if not node.shape and not parameter.written:
        return np.array(value, node.dtype.numpy)
    array = as_array(value, name)
    same = array.shape == node.static_shape and np.can_cast(array.dtype, node.dtype.numpy, "equiv")
    if same and not parameter.written:
        array = relaid(array.astype(node.dtype.numpy), node.strides)
    if why := unfit(parameter, array):
        raise CdTypeError(
            Diagnostic(
                "CD0702", f"`{name}` {why}",
                helps=("compile the function for such an array as well: `f.compile(...)`",),
            )
        )  # fmt: skip
    return array


def _require_apart(arrays: Sequence[Array], name: str) -> None:
    """Raise CdValueError CD0708 where arrays that one call gives share memory."""
    if overlaps(arrays):
        raise CdValueError(
            Diagnostic(
                "CD0708", f"arrays given to the routine `{name}` share memory, and one is written",
                helps=("give it copies of what it only reads",),
            )
        )  # fmt: skip
