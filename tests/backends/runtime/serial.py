"""The serial meaning of the run-time, in plain NumPy: what random programs are compared with.

Everything happens at once and in the order of the program. A version is an array and the tick of
its content; the rules are those of the docstrings of field, device and transfer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray


class Refused(Exception):
    """What the rules refuse, by the code of the error."""


class Failed(Refused):
    """What a routine itself fails of, by the code of the error."""


@dataclass(eq=False)
class Version:
    content: Array
    tick: int = 0

    def load(self, other: Version) -> None:
        self.content, self.tick = other.content.copy(), other.tick


class Field:
    def __init__(self, content: Array, given: bool = True, automatic: bool = True) -> None:
        self.host = Version(content.copy())
        self.clock = self.offered = 0
        self.given, self.automatic = given, automatic
        self.copies: list[Version] = []
        self.was_let_go = False
        """Whether arrays of it were: older versions may be gone then, or not yet."""

    def would_lose(self, version: Version | None) -> bool:
        """Whether to load into a version would leave what is newest to the garbage collector."""
        newest = max(one.tick for one in (self.host, *self.copies))
        return self.was_let_go and version is not None and version.tick == newest

    def is_newer(self, version: Version) -> bool:
        return self.automatic and self.offered > version.tick

    def newest(self) -> Version:
        if not self.automatic:
            return self.host
        return max([self.host, *self.copies], key=lambda version: version.tick)

    @property
    def is_blank(self) -> bool:
        return self.clock == 0 and not self.given

    def write(self, version: Version, content: Array) -> None:
        self.clock += 1
        version.content, version.tick = content.copy(), self.clock

    def write_on_host(self, change: Callable[[Array], None]) -> None:
        content = self.newest().content.copy()
        change(content)
        self.write(self.host, content)
        self.offered = self.clock


@dataclass(eq=False)
class Device:
    ordinal: int
    shared: dict[Field, Version] = field(default_factory=dict)
    owners: dict[Field, object] = field(default_factory=dict)
    separate: set[Field] = field(default_factory=set)


@dataclass(eq=False)
class Stream:
    device: Device
    merge: tuple[Field, Array, bool] | None = None


@dataclass(frozen=True)
class Function:
    """A function of fields: which it needs, which it writes, what it computes.

    What it gives to its caller comes behind what it writes.
    """

    needs: tuple[int, ...]
    writes: tuple[int, ...]
    merges: int | None
    run: Callable[..., Sequence[Any]]
    notes: object = None
    """Under what it notes which version of its first field it read."""
    again: object = None
    """Under what that version of its last field was noted which it needs."""


class Context:
    def __init__(self, stream: Stream, parent: Context | None = None) -> None:
        self.stream, self.parent = stream, parent
        self.own: dict[Field, Version] = {}
        self.writes: set[Field] = set()
        self.notes: dict[object, list[int]] = {}
        self.alive = True

    def find(self, field: Field) -> Version | None:
        found = self.own.get(field)
        return found if found or not self.parent else self.parent.find(field)

    def array(self, field: Field) -> Version:
        found = self.find(field)
        if found is None:
            raise Refused("CD0842")
        return found

    def loaded(self, field: Field) -> Version | None:
        """Return what the host's version would be loaded into, None where that is made first."""
        return self.find(field) or self.stream.device.shared.get(field)

    def refreshed(self, field: Field) -> Version:
        version = self.array(field)
        if field.is_newer(version):
            version.load(field.host)
        return version

    def noted(self, name: object) -> list[int] | None:
        """Return the version noted under a name here or before, none before the first call."""
        before = None if self.parent is None else self.parent.noted(name)
        return self.notes.get(name) if before is None else before

    def is_written_before(self, field: Field) -> bool:
        before = self.parent is not None and self.parent.is_written_before(field)
        return before or field in self.writes

    def adopt(self, field: Field, written: bool) -> None:
        device, found = self.stream.device, self.find(field)
        shared = device.shared.get(field)
        if found is None:
            if shared is None and not written and field not in device.separate:
                shared = device.shared[field] = self._made(field, device.ordinal == 0)
            own = field in device.separate or (written and shared is None)
            if own:
                device.separate.add(field)
            found = self.own[field] = self._made(field, False) if own or not shared else shared
        if written and found is shared:
            device.owners[field] = self.stream

    def _made(self, field: Field, on_host: bool) -> Version:
        newest = field.newest()
        if on_host and newest is field.host:
            return newest
        version = Version(newest.content.copy(), newest.tick)
        field.copies.append(version)
        return version

    def may_write(self, field: Field) -> bool:
        device, found = self.stream.device, self.find(field)
        shared = device.shared.get(field)
        owner = device.owners.get(field, self.stream)
        return shared is None or found not in (None, shared) or owner is self.stream

    # ------------------------------------------------------------ what programs do

    def link(self, *linked: tuple[Function, Sequence[Field]]) -> Linked:
        """Several are a batch: what one of them writes is there for writing from the start."""
        for function, fields in linked:
            if not all(self.may_write(fields[at]) for at in function.writes):
                raise Refused("CD0843")
            if function.again is not None and self.noted(function.again) is None:
                raise Refused("CD0858")
        child = Context(self.stream, self)
        if len(linked) > 1:
            for function, fields in linked:
                for at in function.writes:
                    child.adopt(fields[at], True)
        awaited = []
        for function, fields in linked:
            for at, one in enumerate(fields):
                if at in function.needs or at in function.writes:
                    child.adopt(one, at in function.writes)
            own = [fields[at] for at in function.writes]  # one may be read by another name, too
            only = [fields[at] for at in function.needs if fields[at] not in own]
            only = [one for one in only if child.is_written_before(one)]
            awaited.append([one for one in only if one.is_blank])
            child.writes |= {fields[at] for at in function.writes}
            if function.notes is not None:
                known = self.noted(function.notes)
                child.notes[function.notes] = [] if known is None else known
        return Linked(child, awaited)

    def call(
        self,
        function: Function,
        fields: Sequence[Field],
        given: Sequence[Any],
        awaited: Sequence[Field] = (),
    ) -> Sequence[Any]:
        """Return what the function gives beside what it writes."""
        if any(one.is_blank for one in awaited):
            raise Refused("CD0850")
        self.require_noted(function, fields[-1])
        merged = ()
        if function.merges is not None:
            merge = self.stream.merge
            if merge is None or merge[0] is not fields[function.merges]:
                raise Refused("CD0844")
            merged = (merge[1],)
            if merge[2]:
                self.stream.merge = None
        for at in function.needs:
            self.refreshed(fields[at])
        if function.notes is not None:
            noted = self.noted(function.notes)
            assert noted is not None, "linking makes room for it"
            noted[:] = [self.array(fields[0]).tick]
        contents = [version.content if (version := self.find(one)) else merged[0] for one in fields]
        try:
            results = function.run(*contents, *merged, *given)
        except IndexError:
            for at in function.writes:  # it was to write, and has written nothing
                fields[at].write(self.array(fields[at]), contents[at])
            raise Failed("CD0601") from None
        count = len(function.writes)
        for at, result in zip(function.writes, results[:count], strict=True):
            fields[at].write(self.array(fields[at]), result)
        return results[count:]

    def require_noted(self, function: Function, field: Field) -> None:
        if function.again is not None:
            version, noted = self.array(field), self.noted(function.again)
            if not noted:
                raise Refused("CD0850")
            if field.is_newer(version) or [version.tick] != noted:
                raise Refused("CD0859")

    def from_host(self, field: Field) -> None:
        if self.find(field) is None:
            device = self.stream.device
            written = field not in device.shared
            self.adopt(field, written)
        self.array(field).load(field.host)

    def to_host(self, field: Field) -> None:
        version = self.refreshed(field)
        if version is not field.host:
            field.host.load(version)
        field.offered = field.host.tick

    def copy_from(self, source: Context, field: Field) -> None:
        source.array(field), self.array(field)
        self.array(field).load(source.refreshed(field))

    def merge_from_host(self, field: Field) -> None:
        self.stream.merge = field, field.host.content.copy(), False

    def merge_into(self, consumer: Stream, field: Field, streaming: bool) -> None:
        consumer.merge = field, self.refreshed(field).content.copy(), streaming

    def numpy(self, field: Field) -> Array:
        version = self.array(field)
        return (field.host if field.is_newer(version) else version).content

    def lend(self, field: Field, mode: str) -> Version:
        """Return the version that foreign code gets, which it may have to write afterwards."""
        version = self.array(field)
        if "w" in mode:
            if not self.may_write(field):
                raise Refused("CD0843")
            self.adopt(field, True)
        return self.refreshed(field) if "r" in mode else version

    def let_go(self) -> None:
        for one in self.own:
            one.was_let_go = True

    def finalize(self) -> None:
        if not self.alive:
            return
        self.alive = False
        self.let_go()
        for one, version in self.own.items():
            if self.stream.device.shared.get(one) is not version:
                one.copies.remove(version)
                if one.automatic and version.tick > one.newest().tick:
                    one.copies.append(Version(version.content.copy(), version.tick))


class Linked(NamedTuple):
    """The context of routines, and the blank fields that each waits for, in a serial way."""

    context: Context
    awaited: Sequence[Sequence[Field]]
