"""Plans of routines and of functions on tensors: `pe.plan`, `pe.deferred`, `pe.eval`, `pe.sync`.

with pe.plan() as plan:     calls are recorded; `plan()` runs them, on streams by analysis
with pe.deferred():         the same, run when the `with` ends, or a value is looked at
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self

from ...backends.runtime.argument_checks import field_of, wrong_argument
from ...backends.runtime.call_arguments import own_value
from ...backends.runtime.device import Context, Device
from ...backends.runtime.field import Field, unseen
from ...backends.runtime.parameter_slots import Argument, Resident
from ...backends.runtime.plan.plan import Plan
from ...backends.runtime.plan.recording import Recorder
from ...backends.runtime.plan.steps import Counter
from ...backends.runtime.routine import Routine
from ...backends.runtime.state import RUNTIME
from ...base import settings


def plan(max_streams: int | None = None, name: str | None = None) -> Plan:
    """Return a plan, to be recorded in a `with` and called then.

    Inside, routines, functions on tensors, transfers and merges are recorded in program order,
    which is the meaning. `max_streams` is a soft limit; without it there are as many streams as
    there is work that may run at once. Raises CdValueError CD0868 for a limit below 1.
    """
    return Plan(max_streams, name, _Recording)


class _Recording(Recorder):
    """Records functions on tensors, too."""

    def function(
        self, function: Any, arguments: Mapping[str, Any], backend: str | None
    ) -> tuple[()] | tuple[Any]:
        """Record a call of a function that uses tensors; return what the call returns, () where it
        uses none, so that it is called as everywhere.

        Calls that share code share a routine: each is given the captured values, and those in
        objects and lists, that are there when it is recorded.

        Raises what compiling and linking it raises, and CdTypeError CD0862 where it returns
        something.
        """
        numbers = {name: 0 for name, value in arguments.items() if isinstance(value, Counter)}
        compiled = function.compile_bound({**arguments, **numbers})
        if not any(isinstance(slot, Resident) for slot in compiled.slots):
            return ()
        routine = self.linked(compiled, backend or settings.current().backend)
        named = {name: arguments[name] for name in compiled.names if name in arguments}
        return (self.call(routine, (), compiled.given | named),)


class deferred:  # a context manager, used like a function
    """Calls in the `with` are deferred, and run as a plan when it ends or a value is looked at.

    What returns or merges something is computed at once, after what was deferred before it.
    """

    def __init__(self, max_streams: int | None = None) -> None:
        self._max_streams = max_streams
        self._before: Any = None

    def __enter__(self) -> Self:
        self._before = RUNTIME.planned()
        if self._before is not None:
            self._before.touch("a deferred block")
        RUNTIME.plan(_Deferring(self._max_streams))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        recorder = RUNTIME.planned()
        try:
            if isinstance(recorder, _Deferring):  # also before an error: it was called before
                recorder.flush()
        finally:
            RUNTIME.plan(self._before)


class _Deferring(_Recording):
    """Records what a deferred block puts off, until somebody looks."""

    def call(self, routine: Routine, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Put a call off; one that returns or merges something runs now."""
        compiled = routine.compiled
        is_late = not compiled.procedure.results and routine.merge_input is None
        if not is_late or routine.compares_versions:
            return self._run_now(partial(routine, *args, **kwargs))
        slots = [(s, p) for s, p in compiled.parameters if isinstance(s, Argument)]
        written = {slot.name for slot, parameter in slots if parameter.written}
        copied = {*compiled.names} - written
        given = {**dict(zip(compiled.names, args, strict=False)), **kwargs}
        own = {
            name: own_value(value, name)
            if name in copied and not isinstance(value, Counter)
            else value
            for name, value in {**routine.bindings, **given}.items()
        }
        super().call(routine, args[len(compiled.names) :], own)
        if written:
            self.flush()  # the caller may look at it at once
        return None

    def merge(self, consumer: Routine, field: Field, source: Context | None, once: bool) -> None:
        """Fill the merge buffer of a stream now: calls after the block find it there, too."""
        if source is None:
            self._run_now(partial(consumer.merge_from_host, field))
        else:
            mode = "streaming" if once else "copy"
            self._run_now(partial(source.merge_into, consumer, field, mode))

    def _run_now(self, run: Callable[[], Any]) -> Any:
        """Return what a call returns, which runs after what was deferred."""
        self.flush()
        RUNTIME.plan(None)
        try:
            return run()
        finally:
            RUNTIME.plan(self)

    def touch(self, label: str) -> None:
        """Run what was deferred: a value is needed, or replaced."""
        self.flush()

    def settle(self) -> None:
        """Run what was deferred: an observer begins or ends."""
        self.flush()

    def link(self, name: str, fields: Sequence[Any]) -> None:
        """Run what was deferred: new arrays get the values of now."""
        self.flush()

    def flush(self) -> None:
        """Run what was deferred."""
        recorded = self.recorded()
        self.clear()
        if not recorded.nodes:
            return
        RUNTIME.plan(None)
        try:
            Plan.of(recorded, self.max_streams, "deferred")()
        finally:
            RUNTIME.plan(self)


def eval(*tensors: Any) -> None:  # the name that other array libraries have for it
    """Wait until the newest versions of tensors, or fields, have been computed.

    In a deferred block what was deferred runs first. Raises, once, the errors of what computes it;
    CdTypeError CD0852 for anything but tensors and fields.
    """
    fields = [field_of(given) for given in tensors]
    for field in fields:
        if field.owner is not None:
            raise unseen(field.label, field.owner)
    if recorder := RUNTIME.planned():
        recorder.touch(", ".join(field.label for field in fields) or "what was deferred")
    for field in fields:
        field.newest().writer.wait()


def sync(device: Device | None = None) -> None:
    """Wait until all work of a device is done, without one of all devices in use.

    In a deferred block what was deferred runs first. Raises the first failure; CdTypeError CD0852
    for anything but a device.
    """
    if device is not None and not isinstance(device, Device):
        raise wrong_argument("device", device, 'give one: `pe.device("cc")`')
    if recorder := RUNTIME.planned():
        recorder.touch("a device")
    for each in [device] if device is not None else list(RUNTIME.devices.values()):
        each.synchronize()
