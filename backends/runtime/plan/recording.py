"""The recording of a plan: calls of a thread become nodes, in program order, instead of running.

What needs a value does not work meanwhile (CD0862); tests of loops and branches are functions that
the plan calls when it runs.
"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field as item
from pathlib import PurePath
from types import FrameType
from typing import Any, TypeAlias, assert_never

from ....base.dataclass import dataclass
from ....base.diagnostic import CdError, CdTypeError, CdValueError, Diagnostic
from ..argument_checks import expect_merge, field_of
from ..device import Context, device
from ..field import Field
from ..memory import Buffer, memory_guard
from ..parameter_slots import Resident
from ..routine import Compiled, Routine
from .steps import (
    Body,
    Branch,
    Carry,
    Counter,
    Loop,
    Node,
    Predicate,
    Step,
    conditional_accesses,
    copy_work,
    devices_of,
    scheduled,
)
from .work import routine_step

_PACKAGE = __name__.partition(".")[0]


@dataclass
class _Merge:
    """What the merge buffer of a stream holds at some point of the program."""

    field: Field
    buffer: Buffer
    once: bool
    in_place: bool
    """Whether it is the array of the source itself."""


@dataclass
class _Open:
    """A body that is being recorded; `refusal` says why it takes no steps itself."""

    nodes: list[Step | Draft] = item(default_factory=list)
    merges: dict[Any, _Merge] = item(default_factory=dict)
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class Recorded:
    """What was recorded: the nodes, and what has to be brought up to date before a run."""

    nodes: tuple[Node, ...]
    loads: tuple[tuple[Context, Field, Buffer], ...]
    """The arrays that take over the host's newer versions."""
    contexts: tuple[Context, ...]
    on_host: tuple[Field, ...]
    """The fields that no step uses, whose host's array loops and branches read or write."""
    asked: tuple[tuple[Field, Buffer], ...]
    """The arrays of loops and branches: what they may not write keeps the newest value."""
    own: frozenset[Context]
    """The contexts of the plan's own: their arrays take over every newer version."""


@dataclass(frozen=True, slots=True)
class PredicateSpec:
    """A predicate as the user gives it: a function of fields, or a field alone."""

    function: Callable[..., Any] | None
    reads: tuple[Any, ...]
    counted: bool = False
    """Whether the function gets the number of iterations before the values."""

    @classmethod
    def of(cls, given: Any, reads: Sequence[Any], in_loop: bool = False) -> PredicateSpec:
        """Return the predicate of a function of `reads`, or of a tensor with one element.

        That of a loop gets the number of iterations, too, if it takes one argument more. Raises
        CdTypeError CD0852 for anything else, CD0863 for a function of other arguments.
        """
        if hasattr(given, "field") or isinstance(given, Field) or not callable(given):
            return cls(None, (field_of(given),))
        least, most = _argument_counts(given)
        for counted in (True, False) if in_loop else (False,):
            if least <= len(reads) + counted <= most:
                return cls(given, tuple(reads), counted)
        wanted = f"{len(reads)} values" + (", and the number of iterations" if in_loop else "")
        message = f"a predicate that takes {least} arguments or more is given {wanted}"
        if most < len(reads):
            message = f"a predicate that takes {most} arguments at most is given {wanted}"
        raise CdTypeError(
            Diagnostic(
                "CD0863", message,
                helps=("let it take one argument for each of `reads`: `lambda x, y: ...`",),
            )
        )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class LoopDraft:
    """A loop whose arrays are still fields."""

    name: str
    predicate: PredicateSpec
    before: Sequence[Step | Draft]
    after: Sequence[Step | Draft]
    carry: Mapping[Any, Any]
    counter: Counter
    at_most: int | None
    line: str
    writes = ()


@dataclass(frozen=True, slots=True, eq=False)
class BranchDraft:
    """A branch whose arrays are still fields."""

    name: str
    predicate: PredicateSpec
    branches: Sequence[Sequence[Step | Draft]]
    otherwise: Mapping[Any, Any]
    line: str
    writes = ()


Draft: TypeAlias = LoopDraft | BranchDraft


class Recorder:
    """Records the calls of a thread. See `RUNTIME.plan` for how it gets them."""

    def __init__(self, max_streams: int | None) -> None:
        self.max_streams = max_streams
        self._routines: dict[object, tuple[Compiled, Routine]] = {}
        """What functions were linked to, by code and fields."""
        self._homes: dict[str, Context] = {}
        """The contexts of functions that no routine has a context for, by device."""
        self.clear()

    def clear(self) -> None:
        """Forget what was recorded."""
        self._open = [_Open()]
        self._loads: dict[tuple[Context, Field, Buffer], None] = {}
        self._contexts: dict[Context, None] = {}
        self._fields: dict[Buffer, Field] = {}
        self._written: set[Field] = set()
        self._on_host: dict[Field, Buffer] = {}
        """The arrays of which fields were copied to the host."""

    def recorded(self) -> Recorded:
        """Return everything so far.

        Raises CdValueError CD0867 where arrays cannot change places, CdTypeError CD0866 where it is
        open which array of a field a loop or branch means.
        """
        (body,) = self._open
        steps = tuple(_steps(body.nodes))
        builder = _Builder(self._fields, steps, self.max_streams, self._device())
        nodes = builder.nodes(body.nodes)
        maybe = {r: None for node in nodes if not isinstance(node, Step) for r in node.reads}
        asked = tuple((self._fields[r], r) for r in maybe if r in self._fields)
        return Recorded(
            nodes, tuple(self._loads), tuple(self._contexts), tuple(builder.on_host), asked,
            frozenset(self._homes.values()),
        )  # fmt: skip

    def linked(self, compiled: Compiled, device_name: str) -> Routine:
        """Return a function's routine, linked where a routine recorded before has its arrays, else
        into a context of the plan's own, which takes over every newer version."""
        fields = [
            slot.field if isinstance(slot, Resident) else slot.name for slot in compiled.slots
        ]
        key = id(compiled.codes), device_name, *fields
        if key in self._routines:
            return self._routines[key][1]
        place = device(device_name)
        held = [slot.field for slot in compiled.slots if isinstance(slot, Resident)]
        for context in reversed(self._contexts):
            if context.device is place and any(context.find(field) for field in held):
                home = context
                break
        else:
            home = self._homes.get(device_name) or place.stream(threaded=False).context()
            self._homes[device_name] = home
        for slot, parameter in compiled.parameters:
            if isinstance(slot, Resident) and not slot.merged:
                home.adopt(slot.field, parameter.written)
        routine = compiled.link(home)
        self._routines[key] = compiled, routine
        return routine

    # ------------------------------------------------------------------- what a thread calls

    def call(self, routine: Routine, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Record a call of a routine.

        Raises what the call raises for wrong arguments, and CdTypeError CD0862 for one that returns
        something, CD0866 for what plans do not take.
        """
        routine.context.require_live(routine.name)
        if routine.compiled.procedure.results:
            raise needs_value(f"`{routine.name}` returns something", (
                "let it write what it computes into a tensor: `y[i] = ...`",
            ))  # fmt: skip
        if routine.compares_versions:
            raise _not_taken(
                f"`{routine.name}` shares a virtual tensor with another routine",
                "make the tensor without `memory=`",
            )
        routine.require_order(self._written)
        if routine.source is not None and routine.merge_input is not None:
            self.merge(routine, routine.merge_input, routine.source, once=True)
        merge = self._merged(routine)
        for field, buffer in routine.loads:
            if self._on_host.get(field, buffer) is not buffer:
                raise _not_taken(
                    f"`{routine.name}` would load `{field.label}` after `to_host` of another array",
                    "copy it between the contexts: `context.copy_from(other, field)`",
                )
            self._loads[routine.context, field, buffer] = None
        line = caller_line()
        self._add(
            routine_step(routine, tuple(args), kwargs, merge.buffer if merge else None, line),
            routine.context,
        )
        for at, buffer in routine.buffers.items():
            slot = routine.compiled.slots[at]
            assert isinstance(slot, Resident), "what has an array of its own is a field"
            self._touch_array(slot.field, buffer, written=False)
        for field, buffer in routine.writes:
            self._touch_array(field, buffer, written=True)
        if merge is not None and merge.once:
            del self._open[-1].merges[routine.context.stream]

    def function(
        self, function: Any, arguments: Mapping[str, Any], backend: str | None
    ) -> tuple[()] | tuple[Any]:
        """Return (): functions are not recorded here, and are called."""
        return ()

    def copy(self, field: Field, source: Buffer, target: Buffer, context: Context) -> None:
        """Record a copy of a field between two of its arrays, the source's in a context."""
        if source is target:
            return
        if source is not field.host:
            self._loads[context, field, source] = None
        self._contexts[context] = None
        name = f"copy {field.label}"

        def note() -> None:
            target.tick = source.tick
            if target is field.host:
                field.host_tick = target.tick
            else:
                field.keep_newest()

        if target is field.host:
            self._on_host[field] = source
        device = self._device()
        self._add(Step(name, "copy", (device,), (source,), (target,),
                       copy_work(name, source, target), note, line=caller_line()))  # fmt: skip
        self._touch_array(field, source, written=False)
        self._touch_array(field, target, written=True)

    def merge(self, consumer: Routine, field: Field, source: Context | None, once: bool) -> None:
        """Record the fill of the merge buffer of a routine's stream from a context, or the host."""
        expect_merge(consumer, field)
        stream = consumer.context.stream
        buffer = field.host if source is None else source.array(field)
        in_place = False
        if source is not None:
            if buffer is not field.host:
                self._loads[source, field, buffer] = None
            self._contexts[source] = None
            in_place = once and source.device is stream.device and buffer not in consumer.written
        merge = _Merge(field, buffer, once, in_place)
        if not in_place:
            merge.buffer = self._copied(merge, stream)
        self._open[-1].merges[stream] = merge
        self._touch_array(field, buffer, written=False)

    def touch(self, label: str) -> None:
        """Raise CdTypeError CD0862: a value is needed."""
        raise needs_value(
            f"`{label}` is read or written on the host",
            ("do it before or after the `with`; in it, let a routine do that",
             "for what depends on a value: `plan.while_(...)`, `plan.case_of(...)`"),
        )  # fmt: skip

    # ---------------------------------------------------------------------------- control flow

    @contextmanager
    def body(self, refusal: str = "") -> Iterator[_Open]:
        """Record what is called in the `with` into a body of its own."""
        for stream, merge in self._open[-1].merges.items():
            self._settle(merge, stream)  # the body may write its source
        opened = _Open(refusal=refusal)
        self._open.append(opened)
        try:
            yield opened
        finally:
            assert self._open.pop() is opened

    def add(self, draft: Draft) -> None:
        """Record a loop or a branch whose bodies have been recorded."""
        self._add(draft)

    # ----------------------------------------------------------------------------------- nodes

    def _add(self, node: Step | Draft, context: Context | None = None) -> None:
        body = self._open[-1]
        if body.refusal:
            raise CdTypeError(
                Diagnostic("CD0868", f"`{node.name}` {body.refusal}",
                           helps=("put it into one: `with case.branch():`",))
            )  # fmt: skip
        for stream, merge in body.merges.items():
            if merge.in_place and merge.buffer in node.writes:
                self._settle(merge, stream)
        if context is not None:
            self._contexts[context] = None
        self._open[-1].nodes.append(node)

    def _settle(self, merge: _Merge, stream: Any) -> None:
        """Copy what a merge buffer has in place of its own: its source is about to be written."""
        if merge.in_place:
            merge.in_place, merge.buffer = False, self._copied(merge, stream)

    def _copied(self, merge: _Merge, stream: Any) -> Buffer:
        """Record a copy into a new merge buffer, and return that."""
        source, label = merge.buffer, merge.field.label
        model = merge.field.host.array
        with memory_guard(f"a merge buffer of {stream.name}", model.nbytes):
            array = stream.like(label, model)
        buffer = Buffer(f"{label}.merge", array, stream.account)
        name = f"merge {label}"
        self._open[-1].nodes.append(
            Step(name, "merge", (stream.device.name,), (source,), (buffer,),
                 copy_work(name, source, buffer), _nothing, line=caller_line())
        )  # fmt: skip
        return buffer

    def _merged(self, routine: Routine) -> _Merge | None:
        """Return what a routine merges; CD0844 where there is nothing, or another field."""
        if routine.merge_input is None:
            return None
        stream = routine.context.stream
        for at in range(len(self._open) - 1, -1, -1):
            merge = self._open[at].merges.get(stream)
            if merge is None or merge.once and at < len(self._open) - 1:
                continue
            if merge.field is routine.merge_input:
                return merge
        label = routine.merge_input.label
        raise CdValueError(
            Diagnostic(
                "CD0844", f"`{routine.name}` merges `{label}`, which nothing here has merged",
                helps=(f"fill it first: `source.merge_into(routine, {label})`",),
            )
        )  # fmt: skip

    def _touch_array(self, field: Field, buffer: Buffer, written: bool) -> None:
        self._fields[buffer] = field
        if written:
            self._written.add(field)

    def _device(self) -> str:
        """Return the device of the steps so far, that of the host if there is none."""
        return next((context.device.name for context in self._contexts), "cc:0")


class _Builder:
    """Makes nodes of drafts, when it is known which arrays a plan has."""

    def __init__(
        self, fields: Mapping[Buffer, Field], steps: Sequence[Step], cap: int | None, device: str
    ) -> None:
        self._fields, self._steps, self._cap, self._device = fields, steps, cap, device
        self.on_host: dict[Field, None] = {}

    def nodes(self, drafts: Sequence[Step | Draft]) -> tuple[Node, ...]:
        """Return the nodes of a body."""
        return tuple(each if isinstance(each, Step) else self._node(each) for each in drafts)

    def _node(self, draft: Draft) -> Node:
        match draft:
            case LoopDraft():
                return self._loop(draft)
            case BranchDraft():
                return self._branch(draft)
            case _:
                assert_never(draft)

    def _loop(self, draft: LoopDraft) -> Loop:
        steps = tuple(_steps((*draft.before, *draft.after)))
        before, after = (self._body(part) for part in (draft.before, draft.after))
        carries = tuple(self._carry(t, s, steps, draft.name, s) for t, s in draft.carry.items())
        predicate = self._predicate(draft.predicate, steps)
        targets = {carry.target for carry in carries}
        sources = {carry.source for carry in carries}
        reads, writes = conditional_accesses(
            (before, after), (*predicate.buffers, *targets), sources - targets
        )
        writes = tuple(resource for resource in writes if resource not in targets)
        devices = devices_of((before, after), self._device)
        return Loop(
            draft.name, predicate, before, after, carries, draft.counter, draft.at_most, reads,
            writes, devices, draft.line,
        )  # fmt: skip

    def _branch(self, draft: BranchDraft) -> Branch:
        steps = tuple(step for branch in draft.branches for step in _steps(branch))
        bodies = tuple(self._body(branch) for branch in draft.branches)
        copies = tuple(self._carry(t, s, steps, draft.name, t) for t, s in draft.otherwise.items())
        predicate = self._predicate(draft.predicate, ())
        reads, writes = conditional_accesses(
            bodies,
            (*predicate.buffers, *(copy.source for copy in copies)),
            [copy.target for copy in copies],
        )
        devices = devices_of(bodies, self._device)
        return Branch(draft.name, predicate, bodies, copies, reads, writes, devices, draft.line)

    def _body(self, drafts: Sequence[Step | Draft]) -> Body:
        return scheduled(self.nodes(drafts), self._cap)

    def _predicate(self, spec: PredicateSpec, steps: Sequence[Step]) -> Predicate:
        reads = tuple(
            read if isinstance(read, Counter) else self._array(field_of(read), steps)
            for read in spec.reads
        )
        return Predicate(spec.function, reads, spec.counted)

    def _carry(
        self, target: Any, source: Any, steps: Sequence[Step], name: str, written: Any
    ) -> Carry:
        held, given = (self._array(field_of(each), steps) for each in (target, source))
        arrays = held.array, given.array
        if arrays[0].shape != arrays[1].shape or arrays[0].dtype != arrays[1].dtype:
            raise CdValueError(
                Diagnostic(
                    "CD0867", f"`{name}` cannot carry `{given.label}` to `{held.label}`: they have "
                    f"the shapes {arrays[1].shape} and {arrays[0].shape}, and the types "
                    f"{arrays[1].dtype} and {arrays[0].dtype}",
                    helps=("carry between tensors of one shape and type",),
                )
            )  # fmt: skip
        field = field_of(written)
        field.require_writable()
        buffer = given if written is source else held

        def note() -> None:
            field.record_write(buffer)
            if buffer is field.host:
                field.host_tick = field.clock

        return Carry(held, given, note)

    def _array(self, field: Field, steps: Sequence[Step]) -> Buffer:
        """Return the array of a field that some steps use, else the plan's, else the host's."""
        for some in (steps, self._steps):
            used = {r: None for step in some for r in (*step.reads, *step.writes)}
            found = [b for b in used if isinstance(b, Buffer) and self._fields.get(b) is field]
            if len(found) == 1:
                return found[0]
            if found:
                raise _not_taken(
                    f"`{field.label}` has an array for each of several contexts here",
                    "link the routines into one context: `code.link(first.context)`",
                )
        self.on_host[field] = None
        return field.host


def _steps(drafts: Sequence[Step | Draft]) -> Iterator[Step]:
    """Yield all steps in program order, also those inside."""
    for each in drafts:
        match each:
            case Step():
                yield each
            case LoopDraft():
                yield from _steps((*each.before, *each.after))
            case BranchDraft():
                for branch in each.branches:
                    yield from _steps(branch)


def _argument_counts(function: Callable[..., Any]) -> tuple[int, float]:
    """Return how many positional arguments a function takes, at least and at most."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # of a builtin
        return 0, math.inf
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    least = sum(p.default is p.empty for p in positional)
    return least, math.inf if any(p.kind is p.VAR_POSITIONAL for p in parameters) else len(
        positional
    )


def _nothing() -> None:
    """Record no version."""


def caller_line() -> str:
    """Return where the package was called: `train.py:12`."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").startswith(_PACKAGE):
        frame = frame.f_back
    if frame is None:
        return ""
    return f"{PurePath(frame.f_code.co_filename).name}:{frame.f_lineno}"


def needs_value(what: str, helps: tuple[str, ...]) -> CdError:
    """Return the error CD0862: something needs a value while a plan is recorded."""
    message = f"{what} while a plan is recorded, which has computed nothing so far"
    return CdTypeError(Diagnostic("CD0862", message, helps=helps))


def _not_taken(what: str, fix: str) -> CdError:
    message = f"{what}: a plan does not take that"
    return CdTypeError(Diagnostic("CD0866", message, helps=(fix,)))
