"""One random program of routines, transfers, merges and host accesses, and its serial meaning."""

from __future__ import annotations

import gc
import random
import time
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

import plusequals as pe
from plusequals.backends.runtime.device import Device
from tests.backends.runtime import serial
from tests.backends.runtime.step_functions import (
    CONCEAL,
    KINDS,
    REVEAL,
    Kind,
    conceal,
    mix,
    moment,
    reveal,
    total,
)  # fmt: skip

SIZES = {"a": 5, "b": 5, "c": 5, "d": 11}
"""The tensors by their labels. Functions are of tensors of one size; merge buffers hold any."""
LABELS = tuple(SIZES)
FIELDS = ("value", "grad")


def content_of(array: Any) -> Any:
    """Return what foreign code finds in an array of any device."""
    return array if isinstance(array, np.ndarray) else array.numpy()


def write_into(array: Any, content: Any) -> None:
    """Write an array of any device, as foreign code does: on a device, behind its stream's work."""
    if isinstance(array, np.ndarray):
        array[:] = content
    else:
        opened, stream = array.home
        opened.upload(array.address, content, stream)


class Linked(NamedTuple):
    """A routine on both sides, its kind, the tensors it is for, and what it waits for."""

    routine: Any
    there: serial.Context
    kind: Kind
    chosen: tuple[int, ...]
    awaited: Any


class Program:
    """One random program: the run-time and its serial meaning, side by side."""

    def __init__(self, seed: int, backend: str = "cc") -> None:
        self.rng = rng = random.Random(seed)
        self.log: list[object] = []
        self.automatic = rng.random() < 0.9
        self.tensors, self.fields = [], []
        for label, size in SIZES.items():
            content = np.array([rng.randrange(9) for _ in range(size)], float)
            init = content if rng.random() < 0.8 else None
            self.tensors.append(pe.tensor(label, size, dtype="float64", init=init))
            value = serial.Field(
                np.zeros(size) if init is None else content, init is not None, self.automatic
            )
            grad = serial.Field(np.zeros(size), False, self.automatic)
            self.fields.append({"value": value, "grad": grad})
        count = rng.randint(1, 3)
        apart = backend == "cuda"  # its first device does not use arrays of the host
        devices = [(pe.device(f"{backend}:{n}"), serial.Device(n + apart)) for n in range(count)]
        self.contexts: list[tuple[Any, serial.Context]] = []
        self.routines: list[Linked] = []
        self.events: list[Any] = []
        self.nowhere = pe.tensor("h", SIZES["a"], dtype="float64", memory="virtual")
        self.hidden: dict[tuple[int, ...], Any] = {}
        """What was compiled to compute that tensor, by the tensors it is for."""
        for _ in range(rng.randint(1, 4)):
            self._stream(*rng.choice(devices))

    def _stream(self, device: Device, model: serial.Device) -> None:
        stream = device.stream(threaded=self.rng.random() < 0.75)
        self.contexts.append((stream.context(), serial.Context(serial.Stream(model))))

    def run(self, steps: int, alone: bool = True) -> int:
        """Do random things; return how many. Raises AssertionError where the two sides differ."""
        things = [self.call] * 7 + [self.burst, self.link, self.batch, self.merge, self.merge]
        things += [self.copy, self.copy, self.transfer, self.host_write, self.host_write]
        things += [self.host_read, self.look, self.delay, self.delay, self.plain, self.wait]
        things += [
            self.lend,
            self.lend,
            self.event,
            self.finalize,
            self.forget,
            self.conceal,
            self.reveal,
            self.reveal,
        ]
        with ExitStack() as stack:
            if not self.automatic:
                stack.enter_context(pe.override(automatic_host_transfers=False))
            if alone and self.rng.random() < 0.1:
                stack.enter_context(pe.profile())
            for _ in range(3):
                self.link()
            for _ in range(steps):
                self.rng.choice(things)()
            self.compare()
        return len(self.log)

    def compare(self) -> None:
        """Look from the host at everything, in contexts at some of it, then at all arrays."""
        for n in range(len(LABELS)):
            for name in FIELDS:
                self.host_read(n, name)
        for _ in range(2 + len(self.contexts)):
            self.look()
        for context, _ in self.contexts:
            context.stream.synchronize()
        for context, there in [one for one in self.contexts if one[0].live]:
            for tensor, models in zip(self.tensors, self.fields, strict=True):
                for name, model in models.items():
                    self.same_version(context.find(tensor.field(name)), there.find(model), name)
        for tensor, models in zip(self.tensors, self.fields, strict=True):
            for name, model in models.items():
                field = tensor.field(name)
                self.same(field.host.array, model.host.content, "the host's array")
                found = field.clock, field.host_tick, field.host.tick
                assert found == (model.clock, model.offered, model.host.tick), self.log

    def same_version(self, found: Any, wanted: serial.Version | None, what: str) -> None:
        """Compare an array of a context, and the tick of its content, with what they should be."""
        assert (found is None) == (wanted is None), (what, found, wanted, self.log)
        if found is not None and wanted is not None:
            self.same(found.array, wanted.content, what)
            assert found.tick == wanted.tick, (what, found, wanted, self.log)

    # ------------------------------------------------------------ the things

    def refused(self, what: object, real: Any, model: Any) -> Any:
        """Do something on both sides; they refuse it alike. Return both results, or None."""
        self.log.append(what)
        expected = ""
        try:
            wanted = model()
        except serial.Refused as problem:
            expected = str(problem)
        try:
            found = real()
        except pe.CdError as problem:
            assert expected == problem.code, (expected, str(problem), self.log)
            return None
        assert not expected, (expected, self.log)
        return found, wanted

    def same(self, found: Any, wanted: Any, what: str) -> None:
        assert np.array_equal(found, wanted), (what, found, wanted, self.log)

    def some(self, count: int) -> tuple[int, ...]:
        if count == 1 and self.rng.random() < 0.25:
            return (3,)
        return tuple(self.rng.sample(range(3), count))

    def one(self) -> tuple[int, str]:
        return self.rng.randrange(len(LABELS)), self.rng.choice((*FIELDS, "value"))

    def alive(self) -> tuple[Any, serial.Context]:
        return self.rng.choice([one for one in self.contexts if one[0].live])

    def _chosen(
        self, kind: Kind, chosen: tuple[int, ...]
    ) -> tuple[Any, Kind, tuple[int, ...], list[serial.Field]]:
        """A compiled function, its kind, its tensors and the fields that it is about."""
        tensors = [self.tensors[n] for n in chosen]
        code = kind.function.compile(*tensors, *kind.arguments(SIZES[LABELS[chosen[0]]]))
        return code, kind, chosen, self._fields(kind, chosen)

    def _fields(self, kind: Kind, chosen: tuple[int, ...]) -> list[serial.Field]:
        return [self.fields[n][name] for n, name in kind.of(chosen)]

    def link(self, count: int = 1) -> None:
        context, there = self.alive()
        first = self.rng.randrange(len(KINDS))
        kinds = [list(KINDS.values())[(first + n) % len(KINDS)] for n in range(count)]
        if count > 1:  # few texts, which are compiled: neighbours, of tensors of one size
            found = [self._chosen(k, tuple(self.rng.sample(range(3), k.tensors))) for k in kinds]
        else:
            found = [self._chosen(k, self.some(k.tensors)) for k in kinds]
        self._link(context, there, found)

    def _link(self, context: Any, there: serial.Context, found: list[Any]) -> None:
        codes = [code for code, *_ in found]

        def real() -> Any:
            batch = len(codes) > 1
            return pe.Batch(*codes).link(context) if batch else (codes[0].link(context),)

        names = [(code.name, chosen) for code, _, chosen, _ in found]
        both = self.refused(
            ("link", names, context.stream.name),
            real,
            lambda: there.link(*((kind.model, fields) for _, kind, _, fields in found)),
        )
        if both:
            routines, (child, awaited) = both
            self.contexts.append((routines[0].context, child))
            for routine, (_, kind, chosen, _), waits in zip(routines, found, awaited, strict=True):
                self.routines.append(Linked(routine, child, kind, chosen, waits))

    def conceal(self) -> None:
        """Link what computes the virtual tensor."""
        chosen = self.some(2)
        if chosen not in self.hidden:
            code = conceal.compile(self.nowhere, *(self.tensors[n] for n in chosen))
            self.hidden[chosen] = code
        kind = replace(CONCEAL, model=replace(CONCEAL.model, notes=chosen))
        self._link(*self.alive(), [(self.hidden[chosen], kind, chosen, self._fields(kind, chosen))])

    def reveal(self) -> None:
        """Link what computes it again, behind that as a rule."""
        known = [one for one in self.routines if one.kind.function is conceal]
        known = [one for one in known if one.routine.context.live]
        if not known:
            return
        first, n = self.rng.choice(known), self.rng.randrange(3)
        table = {self.nowhere: first.routine.compiled}
        code = reveal.compile(self.tensors[n], self.nowhere, inline=table)
        kind = replace(REVEAL, model=replace(REVEAL.model, again=first.chosen))
        chosen = n, first.chosen[0]
        where = (first.routine.context, first.there) if self.rng.random() < 0.8 else self.alive()
        self._link(*where, [(code, kind, chosen, self._fields(kind, chosen))])

    def batch(self) -> None:
        self.link(self.rng.randint(2, 3))

    def call(self, linked: Linked | None = None) -> None:
        usable = [one for one in self.routines if one.routine.context.live]
        if not usable:
            return
        routine, there, kind, chosen, awaited = linked or self.rng.choice(usable)
        given = kind.call(self.rng, SIZES[LABELS[chosen[0]]])
        fails = kind.given == "index" and given[0] >= SIZES[LABELS[chosen[0]]]

        def real() -> Any:
            if kind.given == "index" and self.rng.random() < 0.5:
                routine.bindings["n"] = given[0]
                found = routine()
            else:
                found = routine(*given)
            if fails:  # what is queued behind it would be dropped until somebody was told
                routine.context.stream.synchronize()
            return found if found is not None else given if kind.given == "out" else ()

        both = self.refused(
            (
                "call",
                routine.name,
                routine.context.stream.name,
                chosen,
                [np.copy(one) for one in given],
            ),
            real,
            lambda: there.call(kind.model, self._fields(kind, chosen), given, awaited),
        )
        for found, wanted in zip(*both, strict=True) if both else ():
            self.same(found, wanted, "what it gives")
        for array in given:
            if isinstance(array, np.ndarray):
                array[:] = -1  # the caller's own again

    def burst(self) -> None:
        """Call one or two routines in turns, as a loop of a user does."""
        usable = [one for one in self.routines if one.routine.context.live]
        chosen = [self.rng.choice(usable) for _ in range(self.rng.randint(1, 2)) if usable]
        for _ in range(self.rng.randint(1, 4)):
            for linked in chosen:
                self.call(linked)

    def merge(self) -> None:
        mergers = [r for r in self.routines if r.routine.merge_input and r.routine.context.live]
        if not mergers:
            return
        linked = self.rng.choice(mergers)
        routine, there, kind, chosen, _ = linked
        n, name = kind.of(chosen)[kind.model.merges or 0]
        field, held = self.tensors[n].field(name), self.fields[n][name]
        source, model = self.alive()
        mode = self.rng.choice(("copy", "streaming", "streaming", "host"))
        if mode == "host":
            real: Any = lambda: routine.merge_from_host(field)  # noqa: E731
            meant: Any = lambda: there.merge_from_host(held)  # noqa: E731
        else:
            real = lambda: source.merge_into(routine, field, mode)  # noqa: E731
            meant = lambda: model.merge_into(there.stream, held, mode == "streaming")  # noqa: E731
        done = self.refused(("merge", field.label, source.stream.name, mode), real, meant)
        if done and self.rng.random() < 0.7:
            self.call(linked)

    def copy(self) -> None:
        (source, there), (target, here), (n, name) = self.alive(), self.alive(), self.one()
        if self.fields[n][name].would_lose(here.find(self.fields[n][name])):
            return
        self.refused(
            ("copy", n, name, source.stream.name, target.stream.name),
            lambda: target.copy_from(source, self.tensors[n].field(name)),
            lambda: here.copy_from(there, self.fields[n][name]),
        )

    def transfer(self) -> None:
        (context, there), (n, name) = self.alive(), self.one()
        which, model = self.rng.choice(("from_host", "to_host")), self.fields[n][name]
        if model.would_lose(model.host if which == "to_host" else there.loaded(model)):
            return
        self.refused(
            (which, n, name, context.stream.name),
            lambda: getattr(context, which)(self.tensors[n].field(name)),
            lambda: getattr(there, which)(model),
        )

    def host_write(self) -> None:
        (n, name), kind = self.one(), self.rng.randrange(4)
        tensor, value = self.tensors[n], float(self.rng.randrange(9))
        field = tensor.field(name)
        self.log.append(("host write", n, name, kind))
        at = slice(None) if kind == 0 or kind == 3 else slice(1, 3)
        if kind == 0:
            field[...] = value
        elif kind == 1:
            field[at] = value
        elif kind == 2:
            with field.edit() as array:
                array[at] = value
        else:
            setattr(tensor, name, value)
        self.fields[n][name].write_on_host(lambda content: content.__setitem__(at, value))

    def host_read(self, n: int | None = None, name: str = "value") -> None:
        n, name = self.one() if n is None else (n, name)
        self.log.append(("host read", n, name))
        wanted = self.fields[n][name].newest().content
        self.same(self.tensors[n].numpy(name), wanted, "on the host")

    def look(self, at: int | None = None, n: int | None = None, name: str = "value") -> None:
        at = self.rng.randrange(len(self.contexts)) if at is None else at
        n, name = self.one() if n is None else (n, name)
        context, there = self.contexts[at]
        if context.live:
            both = self.refused(
                ("look", n, name, context.stream.name),
                lambda: context.numpy(self.tensors[n].field(name)),
                lambda: there.numpy(self.fields[n][name]),
            )
            if both:
                self.same(*both, "a look")

    def plain(self) -> None:
        (n, m), write = self.some(2), self.rng.random() < 0.5
        self.log.append(("plain call", n, m, write))
        values = [models["value"] for models in self.fields]
        if write:
            mix(self.tensors[n], self.tensors[m])
            other = values[m].newest().content
            values[n].write_on_host(lambda x: x.__setitem__(slice(None), x * 0.5 + other))
        else:
            wanted = sum(values[n].newest().content.tolist(), 0.0)
            assert total(self.tensors[n]) == wanted, self.log

    def lend(self) -> None:
        """Let foreign code read or write an array of a context."""
        (context, there), (n, name) = self.alive(), self.one()
        model, mode = self.fields[n][name], self.rng.choice(("r", "w", "rw"))
        opened, value = ExitStack(), float(self.rng.randrange(9))
        pointer = context.device_pointer(self.tensors[n].field(name), mode)
        both = self.refused(
            ("lend", n, name, context.stream.name, mode),
            lambda: opened.enter_context(pointer),
            lambda: there.lend(model, mode),
        )
        if not both:
            return
        array, version = both
        with opened:
            if "r" in mode:
                self.same(content_of(array), version.content, "what is lent")
            if mode == "r":
                return
            content = version.content * 0.5 + value if mode == "rw" else 0 * version.content + value
            time.sleep(moment(self.rng))
            write_into(array, content)
        model.write(version, content)

    def delay(self) -> None:
        context, _ = self.rng.choice(self.contexts)
        if context.stream.threaded:
            seconds = 2 * moment(self.rng)
            context.stream.submit(lambda: time.sleep(seconds))

    def wait(self) -> None:
        (one, _), (other, _) = self.rng.choice(self.contexts), self.rng.choice(self.contexts)
        if self.rng.random() < 0.5:
            one.stream.synchronize()
            assert one.stream.query()
        else:
            other.stream.wait(one.stream.record())

    def event(self) -> None:
        context, _ = self.rng.choice(self.contexts)
        which = self.rng.randrange(3)
        if which == 0 or not self.events:
            self.events.append(context.stream.record())
        elif which == 1:
            event = self.rng.choice(self.events)
            event.wait()
            assert event.query()
        else:
            context.stream.wait(self.rng.choice(self.events))

    def finalize(self) -> None:
        if self.rng.random() < 0.5:
            return
        context, there = self.alive()
        if there.parent and not any(one.parent is there for _, one in self.contexts):
            self.log.append(("finalize", context.stream.name))
            context.finalize()
            there.finalize()
            context.finalize()

    def forget(self) -> None:
        """Let go of the routines of a context, and of the context, wherever their work is."""
        ends = [one for one in self.contexts if one[1].parent and one[0].live]
        if ends and self.rng.random() < 0.5:
            gone = self.rng.choice(ends)
            self.log.append(("forget", gone[0].stream.name))
            gone[1].let_go()
            self.contexts = [one for one in self.contexts if one is not gone]
            self.routines = [one for one in self.routines if one.routine.context is not gone[0]]
            del gone, ends
            if self.rng.random() < 0.02:
                gc.collect()
