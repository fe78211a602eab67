"""Random programs of routines, transfers, merges and host accesses, against their serial meaning.

    python -m tests.backends.runtime.random_steps --programs 5000 --seed 1

A program runs over 1 to 4 streams, inline and threaded, on 1 to 3 devices, with delays put into
the workers. Every look of the host is compared at once, and everything again at the end.
"""

from __future__ import annotations

import argparse
import random
import time
from typing import Any

import numpy as np

import plusequals as pe
from plusequals import cd
from plusequals.backends.runtime.device import Device
from plusequals.backends.runtime.routine import Compiled
from plusequals.idx import i
from tests.backends.runtime import serial

SIZE = 5
NAMES = "abc"


@cd
def mix(x, y):
    x[i] = x[i] * 0.5 + y[i]


@cd
def overwrite(x, y):
    x[i] = y[i] + 1.0


@cd
def chain(x, y):
    x[i] = y[i] + 2.0
    y[i] = x[i] * 0.25


@cd
def add(x, v):
    x[i] += v[i]


@cd
def merge_add(x):
    x += x.merge


@cd
def merge_other(y, x):
    y[i] = x.merge[i] - y[i]


@cd
def total(x):
    return np.sum(x)


FUNCTIONS: dict[str, tuple[Any, int, serial.Function]] = {
    "mix": (mix, 2, serial.Function((0, 1), (0,), None, lambda x, y: [x * 0.5 + y])),
    "overwrite": (overwrite, 2, serial.Function((1,), (0,), None, lambda x, y: [y + 1.0])),
    "chain": (chain, 2, serial.Function((1,), (0, 1), None, lambda x, y: [y + 2, (y + 2) / 4])),
    "add": (add, 1, serial.Function((0,), (0,), None, lambda x, v: [x + v])),
    "merge_add": (merge_add, 1, serial.Function((0,), (0,), 0, lambda x, m: [x + m])),
    "merge_other": (merge_other, 2, serial.Function((0,), (0,), 1, lambda y, x, m: [m - y])),
}
"""Each function, how many fields it takes, and its serial meaning."""


def compiled(name: str, tensors: tuple[Any, ...]) -> Compiled:
    """The function for tensors of one shape; elaborated once for all programs."""
    function, count, _ = FUNCTIONS[name]
    assert len(tensors) == count
    return function.compile(*tensors, *([np.zeros(SIZE)] if name == "add" else []))


class Program:
    """One random program: the run-time and its serial meaning, side by side."""

    def __init__(self, seed: int, backend: str = "cc") -> None:
        self.rng = rng = random.Random(seed)
        self.log: list[str] = []
        contents = [np.array([rng.randrange(9) for _ in range(SIZE)], float) for _ in NAMES]
        self.tensors = [
            pe.tensor(name, SIZE, dtype="float64", init=content)
            for name, content in zip(NAMES, contents, strict=True)
        ]
        self.fields = [serial.Field(content) for content in contents]
        count = rng.randint(1, 3)
        devices = [(pe.device(f"{backend}:{n}"), serial.Device(n)) for n in range(count)]
        self.contexts: list[tuple[Any, serial.Context]] = []
        self.routines: list[tuple[Any, serial.Context, str, tuple[int, ...]]] = []
        for _ in range(rng.randint(1, 4)):
            self._stream(*rng.choice(devices))

    def _stream(self, device: Device, model: serial.Device) -> None:
        stream = device.stream(threaded=self.rng.random() < 0.75)
        self.contexts.append((stream.context(), serial.Context(serial.Stream(model))))

    def run(self, steps: int) -> int:
        """Do random things; return how many. Raises AssertionError where the two sides differ."""
        for _ in range(3):
            self.link()
        things = [self.call] * 8 + [self.link, self.merge, self.merge, self.copy, self.copy]
        things += [self.transfer, self.host_write, self.host_write, self.host_read, self.look]
        things += [self.delay, self.delay, self.plain, self.wait, self.finalize]
        for _ in range(steps):
            self.rng.choice(things)()
        self.compare()
        return len(self.log)

    def compare(self) -> None:
        """Compare everything that can be seen."""
        for n in range(len(NAMES)):
            self.host_read(n)
            for at in range(len(self.contexts)):
                self.look(at, n)
        for context, _ in self.contexts:
            context.stream.synchronize()
        for tensor, model in zip(self.tensors, self.fields, strict=True):
            field = tensor.field()
            self.same(field.host.array, model.host.content, "the host's array")
            found = field.clock, field.host_tick, field.host.tick
            assert found == (model.clock, model.offered, model.host.tick), self.log

    # ------------------------------------------------------------ the things

    def refused(self, what: str, real: Any, model: Any) -> Any:
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
            assert expected and expected in str(problem), (expected, str(problem), self.log)
            return None
        assert not expected, (expected, self.log)
        return found, wanted

    def same(self, found: Any, wanted: Any, what: str) -> None:
        assert np.array_equal(found, wanted), (what, found, wanted, self.log)

    def some(self, count: int) -> tuple[int, ...]:
        return tuple(self.rng.sample(range(len(NAMES)), count))

    def link(self) -> None:
        name = self.rng.choice(list(FUNCTIONS))
        _, count, model = FUNCTIONS[name]
        chosen = self.some(count)
        context, there = self.rng.choice(self.contexts)
        if not context.live:
            return
        code = compiled(name, tuple(self.tensors[n] for n in chosen))
        both = self.refused(
            f"link {name} {chosen} {context}",
            lambda: code.link(context),
            lambda: there.link(model, [self.fields[n] for n in chosen]),
        )
        if both:
            self.routines.append((both[0], both[1], name, chosen))
            self.contexts.append((both[0].context, both[1]))

    def call(self) -> None:
        if not self.routines:
            return
        routine, there, name, chosen = self.rng.choice(self.routines)
        if not routine.context.live:
            return
        given = [np.array([self.rng.randrange(5) for _ in range(SIZE)], float)]
        given = given if name == "add" else []
        fields = [self.fields[n] for n in chosen]
        self.refused(
            f"call {routine} {chosen}",
            lambda: routine(*given),
            lambda: there.call(FUNCTIONS[name][2], fields, given),
        )
        for array in given:
            array[:] = -1  # the caller's own again

    def merge(self) -> None:
        mergers = [r for r in self.routines if r[0].merge_input and r[0].context.live]
        if not mergers:
            return
        routine, there, name, chosen = self.rng.choice(mergers)
        n = chosen[FUNCTIONS[name][2].merges or 0]
        source, model = self.alive()
        mode = self.rng.choice(("copy", "streaming"))
        done = self.refused(
            f"merge {NAMES[n]} of {source} into {routine} {mode}",
            lambda: source.merge_into(routine, self.tensors[n], mode),
            lambda: model.merge_into(there.stream, self.fields[n], mode == "streaming"),
        )
        if done and self.rng.random() < 0.7:
            self.refused(
                f"call {routine}",
                routine,
                lambda: there.call(FUNCTIONS[name][2], [self.fields[n] for n in chosen], []),
            )

    def alive(self) -> tuple[Any, serial.Context]:
        return self.rng.choice([one for one in self.contexts if one[0].live])

    def copy(self) -> None:
        (source, there), (target, here) = self.alive(), self.alive()
        n = self.rng.randrange(len(NAMES))
        self.refused(
            f"copy {NAMES[n]} from {source} to {target}",
            lambda: target.copy_from(source, self.tensors[n]),
            lambda: here.copy_from(there, self.fields[n]),
        )

    def transfer(self) -> None:
        (context, there), n = self.alive(), self.rng.randrange(len(NAMES))
        which = self.rng.choice(("from_host", "to_host"))
        self.refused(
            f"{which} {NAMES[n]} {context}",
            lambda: getattr(context, which)(self.tensors[n]),
            lambda: getattr(there, which)(self.fields[n]),
        )

    def host_write(self) -> None:
        n, kind = self.rng.randrange(len(NAMES)), self.rng.randrange(4)
        tensor, value = self.tensors[n], float(self.rng.randrange(9))
        self.log.append(f"host write {NAMES[n]} {kind}")
        at = slice(None) if kind == 0 or kind == 3 else slice(1, 3)
        if kind == 0:
            tensor[...] = value
        elif kind == 1:
            tensor[at] = value
        elif kind == 2:
            with tensor.edit() as array:
                array[at] = value
        else:
            tensor.value = value
        self.fields[n].write_on_host(lambda content: content.__setitem__(at, value))

    def host_read(self, n: int | None = None) -> None:
        n = self.rng.randrange(len(NAMES)) if n is None else n
        self.log.append(f"host read {NAMES[n]}")
        self.same(self.tensors[n].numpy(), self.fields[n].newest().content, f"host {NAMES[n]}")

    def look(self, at: int | None = None, n: int | None = None) -> None:
        at = self.rng.randrange(len(self.contexts)) if at is None else at
        n = self.rng.randrange(len(NAMES)) if n is None else n
        context, there = self.contexts[at]
        if context.live:
            both = self.refused(
                f"look {NAMES[n]} {context}",
                lambda: context.numpy(self.tensors[n]),
                lambda: there.numpy(self.fields[n]),
            )
            if both:
                self.same(*both, f"{NAMES[n]} on {context}")

    def plain(self) -> None:
        (n, m), write = self.some(2), self.rng.random() < 0.5
        self.log.append(f"plain call {NAMES[n]} {NAMES[m]} {write}")
        if write:
            mix(self.tensors[n], self.tensors[m])
            other = self.fields[m].newest().content
            self.fields[n].write_on_host(lambda x: x.__setitem__(slice(None), x * 0.5 + other))
        else:
            wanted = sum(self.fields[n].newest().content.tolist(), 0.0)
            assert total(self.tensors[n]) == wanted, self.log

    def delay(self) -> None:
        context, _ = self.rng.choice(self.contexts)
        if context.stream.threaded:
            seconds = self.rng.random() * 0.002
            context.stream.submit(lambda: time.sleep(seconds))

    def wait(self) -> None:
        (one, _), (other, _) = self.rng.choice(self.contexts), self.rng.choice(self.contexts)
        if self.rng.random() < 0.5:
            one.stream.synchronize()
            assert one.stream.query()
        else:
            other.stream.wait(one.stream.record())

    def finalize(self) -> None:
        if self.rng.random() < 0.5:
            return
        context, there = self.alive()
        if there.parent and not any(one.parent is there for _, one in self.contexts):
            self.log.append(f"finalize {context}")
            context.finalize()
            there.finalize()
            context.finalize()


def main() -> None:
    """Run random programs and say how many; an AssertionError shows the first that differs."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--backend", default="cc")
    given = parser.parse_args()
    for seed in range(given.seed, given.seed + given.programs):
        try:
            Program(seed, given.backend).run(given.steps)
        except BaseException:
            print(f"--programs 1 --seed {seed} --steps {given.steps}")
            raise
    print(f"{given.programs} programs of {given.steps} steps agree")


if __name__ == "__main__":
    main()
