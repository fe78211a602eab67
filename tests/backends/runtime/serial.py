"""The serial meaning of the run-time, in plain NumPy: what random programs are compared with.

Everything happens at once and in the order of the program. A version is an array and the tick of
its content; the rules are those of the docstrings of field, device and transfer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

Array = np.ndarray


class Refused(Exception):
    """What the rules refuse, by the code of the error."""


@dataclass(eq=False)
class Version:
    content: Array
    tick: int = 0

    def load(self, other: Version) -> None:
        self.content, self.tick = other.content.copy(), other.tick


class Field:
    def __init__(self, content: Array) -> None:
        self.host = Version(content.copy())
        self.clock = self.offered = 0
        self.copies: list[Version] = []

    def newest(self) -> Version:
        return max([self.host, *self.copies], key=lambda version: version.tick)

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
    """A function of fields: which it needs, which it writes, what it computes."""

    needs: tuple[int, ...]
    writes: tuple[int, ...]
    merges: int | None
    run: Callable[..., Sequence[Array]]


class Context:
    def __init__(self, stream: Stream, parent: Context | None = None) -> None:
        self.stream, self.parent = stream, parent
        self.own: dict[Field, Version] = {}
        self.alive = True

    def find(self, field: Field) -> Version | None:
        found = self.own.get(field)
        return found if found or not self.parent else self.parent.find(field)

    def array(self, field: Field) -> Version:
        found = self.find(field)
        if found is None:
            raise Refused("CD0842")
        return found

    def refreshed(self, field: Field) -> Version:
        version = self.array(field)
        if field.offered > version.tick:
            version.load(field.host)
        return version

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

    def link(self, function: Function, fields: Sequence[Field]) -> Context:
        if not all(self.may_write(fields[at]) for at in function.writes):
            raise Refused("CD0843")
        child = Context(self.stream, self)
        for at, one in enumerate(fields):
            if at in function.needs or at in function.writes:
                child.adopt(one, at in function.writes)
        return child

    def call(self, function: Function, fields: Sequence[Field], given: Sequence[Array]) -> None:
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
        contents = [version.content if (version := self.find(one)) else merged[0] for one in fields]
        results = function.run(*contents, *merged, *given)
        for at, result in zip(function.writes, results, strict=True):
            fields[at].write(self.array(fields[at]), result)

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

    def merge_into(self, consumer: Stream, field: Field, streaming: bool) -> None:
        consumer.merge = field, self.refreshed(field).content.copy(), streaming

    def numpy(self, field: Field) -> Array:
        version = self.array(field)
        return (field.host if field.offered > version.tick else version).content

    def finalize(self) -> None:
        if not self.alive:
            return
        self.alive = False
        for one, version in self.own.items():
            if self.stream.device.shared.get(one) is not version:
                one.copies.remove(version)
                if version.tick > one.newest().tick:
                    one.host.load(version)
