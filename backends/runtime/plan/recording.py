"""The recording of a plan: calls of a thread become nodes, in program order, instead of running.

What needs a value does not work meanwhile (CD0862); predicates of loops and branches are functions
that the plan calls when it runs.
"""

from __future__ import annotations

import sys
from collections import Counter as Counter_
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field as item
from pathlib import PurePath
from types import FrameType
from typing import Any

from ....base.dataclass import dataclass
from ....base.diagnostic import CdError, CdTypeError, CdValueError, Diagnostic
from ..argument_checks import expect_merge
from ..device import Context, HostContext, device
from ..field import Field, unseen
from ..memory import Buffer, memory_guard
from ..parameter_slots import Resident
from ..routine import Compiled, Routine
from .drafts import Builder, Draft, fields_of, misuse, not_taken, on_host_like, steps_of
from .steps import (
    Counter,
    Maker,
    Node,
    Step,
    copy_step,
)
from .work import routine_step

_PACKAGE = __name__.partition(".")[0]


MAX_NESTED = 64
"""How deep loops and branches may be nested: each takes frames of the interpreter's stack."""


@dataclass(eq=False)
class _Merge:
    """What the merge buffer of a stream holds at some point of the program."""

    field: Field
    buffer: Buffer
    once: bool
    in_place: bool
    """Whether it is the array of the source itself."""
    is_lost: bool = False
    """Whether a loop or a branch may have put something else there."""

    def is_refilled_by(self, other: _Merge) -> bool:
        """Whether another fill, in a loop or branch, leaves what later routines expect there."""
        return self.buffer is other.buffer and self.field is other.field


@dataclass
class _Open:
    """A body that is being recorded; `refusal` says why it takes no steps itself."""

    nodes: list[Step | Draft] = item(default_factory=list)
    merges: dict[Any, _Merge] = item(default_factory=dict)
    refusal: str = ""
    is_repeated: bool = False
    merged: set[_Merge] = item(default_factory=set)
    """What its steps have merged of the bodies around it."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """What was recorded: the nodes, and what has to be brought up to date before a run."""

    nodes: tuple[Node, ...]
    loads: tuple[tuple[Context, Field, Buffer], ...]
    """The arrays that take over the host's newer versions."""
    contexts: tuple[Context, ...]
    on_host: tuple[Field, ...]
    """The fields whose host's array functions, loops or branches use."""
    asked: tuple[tuple[Field, Buffer], ...]
    """The arrays of loops and branches: what they may not write keeps the newest value."""
    private: Mapping[Buffer, Maker]
    """The arrays that only the plan sees, with what makes arrays where they are."""
    moved: tuple[Routine, ...]
    """The routines that use them."""


class Recorder:
    """Records the calls of a thread. See `RUNTIME.plan` for how it gets them."""

    def __init__(self, max_streams: int | None) -> None:
        self.max_streams = max_streams
        self.owner: object = None
        """The plan, whose own tensors it records."""
        self._routines: dict[object, Routine] = {}
        """What functions were linked to, by device, code and tensors."""
        self._hosts: dict[str, HostContext] = {}
        """Where functions are linked, by device."""
        self.counters: set[Counter] = set()
        """The counters of the loops that are being recorded."""
        self.clear()

    def clear(self) -> None:
        """Forget what was recorded."""
        self._open = [_Open()]
        self._loads: dict[tuple[Context, Field, Buffer], None] = {}
        self._contexts: dict[Context, None] = {}
        self._fields: dict[Buffer, Field] = {}
        self._makers: dict[Buffer, Maker] = {}
        self._private: dict[Buffer, Maker] = {}
        self._moved: dict[Routine, None] = {}
        self._written: set[Field] = set()
        self._on_host: dict[Field, None] = {}
        self._newest: dict[Field, Buffer] = {}
        """The array of each field that was written last, outside of loops and branches."""
        self._offered: Counter_[Field] = Counter_()
        """How often the host's array of each field was written, by functions or `to_host`."""
        self._seen: dict[Buffer, int] = {}
        """How often that was when an array was last brought up to date."""
        self._fresh: dict[Field, set[Buffer]] = {}
        """The arrays that have the value of that one."""

    def recorded(self) -> Recorded:
        """Return everything so far.

        Raises CdValueError CD0867 where arrays cannot change places, CdTypeError CD0866 where it is
        open which array of a field a loop or branch means.
        """
        (body,) = self._open
        steps = tuple(steps_of(body.nodes))
        builder = Builder(
            self._fields, self._makers, steps, self.max_streams, self._device(), self.owner
        )
        nodes = builder.nodes(body.nodes)
        maybe = {r: None for node in nodes if not isinstance(node, Step) for r in node.reads}
        asked = tuple((self._fields[r], r) for r in maybe if r in self._fields)
        on_host = tuple(self._on_host | builder.on_host)
        return Recorded(
            nodes,
            tuple(load for load in self._loads if load[1].owner is None),
            tuple(self._contexts),
            tuple(field for field in on_host if field.owner is None),
            tuple((field, buffer) for field, buffer in asked if field.owner is None),
            self._private | builder.private,
            tuple(self._moved),
        )

    def linked(self, compiled: Compiled, device_name: str) -> Routine:
        """Return a function's routine on the host's arrays, which plain calls use, too."""
        key = device_name, compiled.link_key
        if key not in self._routines:
            host = self._hosts.get(device_name)
            if host is None:
                host = HostContext(device(device_name).stream(threaded=False))
                self._hosts[device_name] = host
            self._routines[key] = Routine(compiled, host)
        return self._routines[key]

    # ------------------------------------------------------------------- what a thread calls

    def call(self, routine: Routine, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Record a call of a routine.

        Raises what the call raises for wrong arguments, and CdTypeError CD0862 for one that returns
        something, CD0866 for what plans do not take.
        """
        routine.context.require_live(routine.name)
        if routine.owner is not None and routine.owner is not self.owner:
            raise unseen(routine.name, routine.owner)
        on_host = isinstance(routine.context, HostContext)
        for value in (*args, *kwargs.values()):
            if isinstance(value, Counter):
                self.require_open(value)
        self._require_taken(routine, on_host)
        if routine.source is not None and routine.merge_input is not None:
            self.merge(routine, routine.merge_input, routine.source, once=True)
        merge = self._merged(routine)
        line = caller_line()
        made = self._step(routine, (tuple(args), kwargs), merge.buffer if merge else None, line)
        for field, buffer in routine.loads:
            self._loads[routine.context, field, buffer] = None
        loaded = {buffer for _, buffer in routine.loads}
        for at, buffer in routine.buffers.items():
            slot = routine.compiled.slots[at]
            assert isinstance(slot, Resident), "what has an array of its own is a field"
            self._fields[buffer] = slot.field
            if buffer is not slot.field.host:
                self._makers[buffer] = routine.context.stream.like
            if slot.field.owner is not None:
                self._private[buffer] = self._makers.get(buffer, on_host_like)
                self._moved[routine] = None
            if on_host:
                self._on_host[slot.field] = None
            if on_host or buffer in loaded:
                self._follow(slot.field, buffer)
        self._add(made, routine.context)
        for field, buffer in routine.writes:
            self._wrote(field, buffer, on_host)
        if merge is not None and merge.once:
            del self._open[-1].merges[routine.context.stream]
        return None

    def _require_taken(self, routine: Routine, on_host: bool) -> None:
        """Raise CdTypeError CD0862 for a routine that returns something, CD0866 for one that
        computes again what another one does, in a context, and what `require_order` raises."""
        if routine.compiled.procedure.results:
            raise needs_value(f"`{routine.name}` returns something", (
                "let it write what it computes into a tensor: `y[i] = ...`",
            ))  # fmt: skip
        if routine.compares_versions and not on_host:
            raise not_taken(
                f"`{routine.name}` shares a virtual tensor with another routine",
                "make the tensor without `memory=`",
            )
        own = (field for field in routine.inputs if field.owner is not None)
        routine.require_order(self._written.union(own))  # what is its own is looked at in the end

    def _step(
        self,
        routine: Routine,
        arguments: tuple[tuple[Any, ...], Mapping[str, Any]],
        merged: Buffer | None,
        line: str,
    ) -> Step:
        """Return the step of a call; raises what the call raises for wrong arguments."""
        return routine_step(routine, *arguments, merged, line)

    def is_innermost(self, body: object) -> bool:
        """Whether a body is the one that is being recorded."""
        return self._open[-1] is body

    def require_open(self, counter: Counter) -> None:
        """Raise CdTypeError CD0868 for the counter of a loop that is not being recorded."""
        if counter not in self.counters:
            raise misuse(
                f"the count of `{counter.loop}` is used outside of that loop",
                "use it inside of its `with`, or let a routine count in a tensor",
            )

    def _follow(self, field: Field, buffer: Buffer) -> None:
        """Record the copy that brings an array up to date, outside of loops and branches.

        An array of a context follows the host's, that of the host every one.
        """
        newest, host = self._newest.get(field), field.host
        if len(self._open) > 1:
            return
        if buffer is host:
            if newest is not None and host not in self._fresh[field]:
                self._bring(field, newest, host)
        elif self._offered[field] > self._seen.get(buffer, 0):
            self._bring(field, host, buffer)

    def _bring(self, field: Field, source: Buffer, target: Buffer) -> None:
        """Record the copy that brings one array of a field up to another one."""

        def note() -> None:
            target.tick = source.tick

        name, ends = f"copy {field.label}", (source, target)
        self._add(copy_step(name, "copy", self._device(), ends, note, caller_line()))
        self._fields[source] = self._fields[target] = field
        self._seen[target] = self._offered[field]
        if source in self._fresh.get(field, ()):
            self._fresh[field].add(target)

    def _wrote(self, field: Field, buffer: Buffer, of_host: bool) -> None:
        """Note that a step has written an array, which is the host's write if `of_host`."""
        self._written.add(field)
        self._fields[buffer] = field
        if len(self._open) == 1:
            self._offered[field] += of_host
            self._newest[field] = buffer
            self._fresh[field] = {buffer}
            self._seen[buffer] = self._offered[field]

    def function(
        self, function: Any, arguments: Mapping[str, Any], backend: str | None
    ) -> tuple[()] | tuple[Any]:
        """Return (): functions are not recorded here, and are called."""
        return ()

    def copy(
        self,
        field: Field,
        ends: tuple[Buffer, Buffer],
        source: Context | None,
        target: Context | None,
    ) -> None:
        """Record a copy of a field from one of its arrays to another one, between contexts, of
        which None is the host."""
        begin, end = ends
        if field.owner is not None:
            raise unseen(field.label, field.owner)
        if begin is end:
            return
        if source is not None and begin is not field.host:
            self._follow(field, begin)
            self._loads[source, field, begin] = None
        contexts = [context for context in (source, target) if context is not None]
        self._contexts |= dict.fromkeys(contexts)

        def note() -> None:
            end.tick = begin.tick
            if target is None:
                field.host_tick = end.tick
            else:
                field.keep_newest()

        self._fields[begin] = self._fields[end] = field
        name, stream = f"copy {field.label}", contexts[-1].stream
        self._add(copy_step(name, "copy", self._device(), ends, note, caller_line(), stream))
        self._written.add(field)
        if len(self._open) > 1:
            return
        if target is None:  # routines with older arrays load it
            self._offered[field] += 1
            self._newest[field] = end
            self._fresh[field] = {begin, end}
        elif field in self._fresh:
            if begin in self._fresh[field]:
                self._fresh[field].add(end)
            else:
                self._fresh[field].discard(end)
        self._seen[end] = self._offered[field]

    def merge(self, consumer: Routine, field: Field, source: Context | None, once: bool) -> None:
        """Record the fill of the merge buffer of a routine's stream from a context, or the host."""
        expect_merge(consumer, field)
        if field.owner is not None and field.owner is not self.owner:
            raise unseen(field.label, field.owner)
        stream = consumer.context.stream
        buffer = field.host if source is None else source.array(field)
        in_place = False
        if source is not None:
            if buffer is not field.host:
                self._follow(field, buffer)
                self._loads[source, field, buffer] = None
            self._contexts[source] = None
            in_place = once and source.device is stream.device and buffer not in consumer.written
        merge = _Merge(field, buffer, once, in_place)
        if not in_place:
            merge.buffer = self._copied(merge, stream)
        self._require_kept(merge, stream)
        self._open[-1].merges[stream] = merge
        self._fields[buffer] = field
        if field.owner is not None:
            self._private[buffer] = self._makers.get(buffer, on_host_like)

    def _require_kept(self, merge: _Merge, stream: Any) -> None:
        """Note what is lost outside of a loop or branch where a merge buffer is filled in it.

        Raises CdTypeError CD0866 where an earlier step of the loop would find it lost in the next
        iteration.
        """
        for at, opened in enumerate(self._open[:-1]):
            before = opened.merges.get(stream)
            if before is None or before.is_refilled_by(merge):
                continue
            before.is_lost = True
            if any(each.is_repeated and before in each.merged for each in self._open[at + 1 :]):
                raise _lost_merge(before.field.label, "an earlier step of the loop")

    def touch(self, label: str) -> None:
        """Raise CdTypeError CD0862: a value is needed."""
        raise needs_value(
            f"`{label}` is read or written on the host",
            ("do it before or after the `with`; in it, let a routine do that",
             "for what depends on a value: `plan.while_(...)`, `plan.case_of(...)`"),
        )  # fmt: skip

    def settle(self) -> None:
        """Do nothing: a plan runs when it is called."""

    def link(self, name: str, fields: Sequence[Field]) -> None:
        """Raise CdTypeError CD0862 where a routine would get an array of what a routine of the plan
        writes: the array would have the value that is there before the plan runs."""
        for field in fields:
            newest = self._newest.get(field)
            if field in self._written and newest is not field.host and field.owner is None:
                raise needs_value(
                    f"`{name}` is linked, with an array of `{field.label}`, which the plan writes,",
                    ("link it before the `with`, or into the context of what writes that: "
                     "`code.link(routine.context)`",),
                )  # fmt: skip

    # ---------------------------------------------------------------------------- control flow

    @contextmanager
    def body(self, refusal: str = "", is_repeated: bool = False) -> Iterator[_Open]:
        """Record what is called in the `with` into a body of its own, of a loop if repeated."""
        if len(self._open) > MAX_NESTED:
            what = f"loops and branches are nested deeper than {MAX_NESTED}"
            raise not_taken(what, "write the inner ones as loops of a function")
        for stream, merge in self._open[-1].merges.items():
            self._settle(merge, stream)  # the body may write its source
        opened = _Open(refusal=refusal, is_repeated=is_repeated)
        self._open.append(opened)
        try:
            yield opened
        finally:
            assert self._open.pop() is opened
            self._open[-1].merged |= opened.merged

    def add(self, draft: Draft) -> None:
        """Record a loop or a branch whose bodies have been recorded.

        Raises CdTypeError CD0866 where functions and routines of a context use a field in it that
        it writes: it would depend on the iteration which of their arrays is newer.
        """
        looked_at, outputs = fields_of((draft,))
        self._written.update(outputs)
        if len(self._open) > 1:  # looked at with the loop or branch around it
            self._add(draft)
            return
        used: dict[Field, list[Buffer]] = {}
        written: dict[Field, Buffer] = {}
        for step in steps_of((draft,)):
            for at, resource in enumerate((*step.writes, *step.reads)):
                if isinstance(resource, Buffer) and resource in self._fields:
                    field = self._fields[resource]
                    if resource not in used.setdefault(field, []):
                        used[field].append(resource)
                    if at < len(step.writes):
                        written[field] = resource
        for field in {**used, **looked_at, **outputs}:
            self._settle_field(draft, field, used.get(field, []), (written, looked_at, outputs))
        self._add(draft)
        for field, buffer in written.items():
            self._wrote(field, buffer, buffer is field.host and field in self._on_host)

    def _settle_field(
        self,
        draft: Draft,
        field: Field,
        buffers: list[Buffer],
        roles: tuple[dict[Field, Buffer], Mapping[Field, None], Mapping[Field, None]],
    ) -> None:
        """Bring the arrays up to date that a loop or branch uses of a field; record what it writes.

        Raises CdTypeError CD0866 where it would depend on the iteration which of them is newest.
        """
        written, looked_at, outputs = roles
        newest = self._newest.get(field)
        for buffer in buffers:
            self._follow(field, buffer)
        used_as_one = field in written or field in outputs or field in looked_at
        if len(buffers) > 1 and field.host in buffers and used_as_one:
            raise not_taken(
                f"`{draft.name}` writes or asks for `{field.label}`, of which functions and "
                "routines of a context use an array each in it",
                "link the functions, too: `f.compile(...).link(routine.context)`",
            )
        if field in outputs and (buffers or newest is not None):
            written.setdefault(field, buffers[0] if buffers else newest or field.host)

    @property
    def newest(self) -> Mapping[Field, Buffer]:
        """The array of each field that was written last so far."""
        return dict(self._newest)

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
        """Record a copy into a merge buffer, and return that.

        In a loop or branch it is the one filled around it, if any: later routines find the copy
        there.
        """
        source, label = merge.buffer, merge.field.label
        buffer = None if merge.once else self._filled_around(merge.field, stream)
        if buffer is None:
            buffer = self._merge_buffer(merge.field, stream)
            self._private[buffer] = stream.like
        name, ends = f"merge {label}", (source, buffer)
        self._open[-1].nodes.append(
            copy_step(name, "merge", stream.device.name, ends, _nothing, caller_line(), stream)
        )
        return buffer

    def _merge_buffer(self, field: Field, stream: Any) -> Buffer:
        """Return a new array for what a stream merges of a field."""
        model = field.host.array
        with memory_guard(f"a merge buffer of {stream.name}", model.nbytes):
            array = stream.like(field.label, model)
        return Buffer(f"{field.label}.merge", array, stream.account)

    def _filled_around(self, field: Field, stream: Any) -> Buffer | None:
        """Return the merge buffer that holds a field around this body, for any number of calls."""
        merges = (opened.merges.get(stream) for opened in reversed(self._open[:-1]))
        nearest = next((merge for merge in merges if merge is not None), None)
        is_kept = nearest is not None and not nearest.once and not nearest.is_lost
        return nearest.buffer if nearest and is_kept and nearest.field is field else None

    def _merged(self, routine: Routine) -> _Merge | None:
        """Return what a routine merges; CD0844 where there is nothing, or another field, and CD0866
        where that may be gone."""
        if routine.merge_input is None:
            return None
        stream = routine.context.stream
        for at in range(len(self._open) - 1, -1, -1):
            merge = self._open[at].merges.get(stream)
            if merge is None or merge.once and at < len(self._open) - 1:
                continue
            if merge.field is routine.merge_input:
                if merge.is_lost:
                    raise _lost_merge(merge.field.label, f"`{routine.name}`")
                for inner in self._open[at + 1 :]:
                    inner.merged.add(merge)
                return merge
        label = routine.merge_input.label
        raise CdValueError(
            Diagnostic(
                "CD0844", f"`{routine.name}` merges `{label}`, which nothing here has merged",
                helps=(f"fill it first: `source.merge_into(routine, {label})`",),
            )
        )  # fmt: skip

    def _device(self) -> str:
        """Return the device of the steps so far, that of the host if there is none."""
        return next((context.device.name for context in self._contexts), "cc:0")


def _nothing() -> None:
    """Record no version."""


def _lost_merge(label: str, what: str) -> CdError:
    """Return the error CD0866: a merge buffer may hold something else than what is merged."""
    return not_taken(
        f"{what} merges `{label}`, and a loop or branch may have put something else into that "
        "merge buffer",
        f"fill it again before: `source.merge_into(routine, {label})`",
    )


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
