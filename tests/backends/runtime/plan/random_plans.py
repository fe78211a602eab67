"""Random plans, each beside its serial meaning: loops, branches, carries, merges, copies, caps.

A plan is a tree of operations on arrays of several contexts. It is recorded on one side; on the
other the same operations are done one after another on NumPy's arrays.

    python -m tests.backends.runtime.plan.random_plans --plans 1000 --seed 7
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

import plusequals as pe
from plusequals.backends.runtime.plan.plan import Plan

SIZE = 5
OWN = 3
"""The tensors of each context that no other one has."""
MIX, OVERWRITE, CHAIN, SORTED = ("mix", "overwrite", "chain", "add_sorted")
ROOM = 1024
"""The elements of the temporaries of one of them: too many for the stack."""


def _add_sorted(x: Any, y: Any) -> list[Any]:
    at = np.arange(ROOM)
    return [x * 0.5 + np.sort(y[at % SIZE] + at)[:SIZE], y]


MEANING: dict[str, Callable[..., list[Any]]] = {
    MIX: lambda x, y: [x * 0.5 + y, y],
    OVERWRITE: lambda x, y: [y + 1.0, y],
    CHAIN: lambda x, y: [y + 2.0, (y + 2.0) * 0.25],
    SORTED: _add_sorted,
}
TEXTS = {
    MIX: "def mix(x, y):\n    x[i] = x[i] * 0.5 + y[i]\n",
    OVERWRITE: "def overwrite(x, y):\n    x[i] = y[i] + 1.0\n",
    CHAIN: "def chain(x, y):\n    x[i] = y[i] + 2.0\n    y[i] = x[i] * 0.25\n",
    SORTED: f"""def add_sorted(x, y):
    t = np.empty({ROOM})
    for k in range({ROOM}):
        t[k] = y[k % {SIZE}] + k
    s = np.sort(t[::-1])
    for k in range({SIZE}):
        x[k] = x[k] * 0.5 + s[k]
""",
    "merge": "def merge_add(x):\n    x += x.merge\n",
    "add": "def add_at(x, n):\n    x[i] += n + 1.0\n",
}

Place = tuple[int, int]
"""An array: the number of its context, and of its tensor there; the last one is common to all."""


@dataclass(frozen=True)
class Call:
    """A routine on two arrays of a context."""

    name: str
    context: int
    first: int
    second: int


@dataclass(frozen=True)
class Add:
    """A routine that adds the number of the iteration, or another number, to an element."""

    context: int
    tensor: int
    number: int | str


@dataclass(frozen=True)
class Move:
    """The common array of one context copied to another one."""

    source: int
    target: int


@dataclass(frozen=True)
class Merge:
    """The common array of one context added to that of another one; some steps in between."""

    source: int
    target: int
    mode: str
    between: tuple[Any, ...]


@dataclass(frozen=True)
class While:
    """A loop: as often as a number says, and while an element is less than another number."""

    times: int
    place: Place | None
    limit: float
    before: tuple[Any, ...]
    after: tuple[Any, ...]
    carry: tuple[tuple[Place, Place], ...]
    name: str


@dataclass(frozen=True)
class Choice:
    """A branch by the size of an element."""

    place: Place
    branches: tuple[tuple[Any, ...], ...]
    otherwise: tuple[tuple[Place, Place], ...]


@dataclass
class Generator:
    """Draws the operations of a plan."""

    rng: random.Random
    contexts: int
    calls: tuple[str, ...] = (MIX, MIX, OVERWRITE, CHAIN)
    loops: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def body(self, most: int, depth: int) -> tuple[Any, ...]:
        return tuple(self.operation(depth) for _ in range(self.rng.randint(0, most)))

    def place(self) -> Place:
        return self.rng.randrange(self.contexts), self.rng.randrange(OWN)

    def pairs(self) -> tuple[tuple[Place, Place], ...]:
        """Draw arrays that change places: up to two pairs of one context, or a chain."""
        context, rng = self.rng.randrange(self.contexts), self.rng
        numbers = rng.sample(range(OWN), OWN)
        places = [(context, n) for n in numbers]
        drawn = rng.random()
        if drawn < 0.5:
            return ((places[0], places[1]),)
        if drawn < 0.75:
            return ((places[0], places[1]), (places[1], places[2]))
        return ((places[0], places[1]), (places[2], places[1]))

    def operation(self, depth: int) -> Any:
        rng, drawn = self.rng, self.rng.random()
        context = rng.randrange(self.contexts)
        if depth and drawn < 0.12:
            name = f"loop {len(self.names)}"
            self.names.append(name)
            self.loops.append(name)
            before = self.body(1, depth - 1) if rng.random() < 0.4 else ()
            after = self.body(4, depth - 1)
            self.loops.pop()
            carry = self.pairs() if rng.random() < 0.4 else ()
            place = self.place() if rng.random() < 0.5 else None
            return While(rng.randint(0, 4), place, rng.choice((1, 4, 9, 50)), before, after, carry,
                         name)  # fmt: skip
        if depth and drawn < 0.22:
            branches = tuple(self.body(3, depth - 1) for _ in range(rng.randint(1, 3)))
            otherwise = self.pairs() if rng.random() < 0.5 else ()
            return Choice(self.place(), branches, otherwise)
        if drawn < 0.32:
            number = rng.choice((*self.loops, rng.randrange(SIZE)))
            return Add(context, rng.randrange(OWN), number)
        if drawn < 0.4 and self.contexts > 1:
            return Move(*rng.sample(range(self.contexts), 2))
        if drawn < 0.5 and self.contexts > 1:
            between = tuple(
                self.call(rng.randrange(self.contexts)) for _ in range(rng.randint(0, 2))
            )
            mode = rng.choice(("copy", "streaming"))
            return Merge(*rng.sample(range(self.contexts), 2), mode, between)
        return self.call(context)

    def call(self, context: int) -> Call:
        first, second = self.rng.sample(range(OWN + 1), 2)
        return Call(self.rng.choice(self.calls), context, first, second)


def functions() -> dict[str, Any]:
    """Return new functions: what they were compiled to belongs to a driver."""
    return {name: pe.cd_from_source(text, {"np": np}) for name, text in TEXTS.items()}


usual = cache(functions)


class Sides:
    """A plan and the arrays of its serial meaning."""

    def __init__(
        self,
        seed: int,
        backend: str = "cc",
        delays: bool = True,
        made: dict[str, Any] | None = None,
        straight: bool = False,
    ) -> None:
        """`straight`: without loops and branches, on one device."""
        self.functions = made or usual()
        self.rng = rng = random.Random(seed)
        count = rng.randint(1, 3)
        self.generator = Generator(rng, count)
        if backend == "cc":  # on others temporaries are not in the plan's memory
            self.generator.calls += (SORTED,)
        self.operations = self.generator.body(10, 0 if straight else 2) or (self.generator.call(0),)
        self.cap = rng.choice((None, None, 1, 2, 3))
        self.private = self._draw_private()
        """The arrays that only the plan sees."""
        self.operations = tuple(self._with_writes(self.operations))
        self.inits = np.array([[rng.randrange(5)] * SIZE for _ in range(count * OWN + 1)], float)
        self.plan = Plan(max_streams=self.cap)
        self.tensors = [
            self.plan.tensor(f"t{n}", SIZE, dtype="float64")
            if divmod(n, OWN) in self.private
            else pe.tensor(f"t{n}", SIZE, dtype="float64", init=init)
            for n, init in enumerate(self.inits)
        ]
        devices = [
            pe.device(f"{backend}:{rng.randrange(1 if straight else 2)}") for _ in range(count)
        ]
        self.contexts = [device.stream(threaded=False).context() for device in devices]
        self.backend, self.delays = backend, delays
        self.links: dict[Any, Any] = {}
        self.homes = [self._home(n) for n in range(count)]
        self.arrays = {
            (context, n): self.inits[-1 if n == OWN else context * OWN + n].copy()
            for context in range(count) for n in range(OWN + 1)
        }  # fmt: skip
        self.counts: dict[str, Any] = {}
        self.shared = 0
        """Whether arrays of the plan share memory."""
        self.lent = 0
        """Whether it lends memory for temporaries."""

    def _draw_private(self) -> set[Place]:
        rng, count = self.rng, self.generator.contexts
        if rng.random() < 0.4:
            return set()
        return {(c, n) for c in range(count) for n in range(1, OWN) if rng.random() < 0.6}

    def _with_writes(self, operations: tuple[Any, ...]) -> Iterator[Any]:
        """Write what only the plan sees before its first use."""
        missing = set(self.private)
        for operation in operations:
            for context, n in sorted(missing.intersection(_used(operation))):
                missing.discard((context, n))
                yield Call(OVERWRITE, context, n, 0)
            yield operation

    def _tensor(self, context: int, number: int) -> Any:
        return self.tensors[-1 if number == OWN else context * OWN + number]

    def _home(self, context: int) -> Any:
        """Link what writes every array of a context, so that each has one of its own."""
        last = self.contexts[context]
        for n in range(OWN + 1):
            tensor, key = self._tensor(context, n), ("add", context, n)
            last = self._link(last, key, self.functions["add"], tensor, 0)
        return last

    def _link(self, context: Any, key: Any, function: Any, *args: Any) -> Any:
        routine = function.compile(*args).link(context)
        if self.delays:
            bind, static = routine.bind, routine.static_run
            routine.bind = lambda arrays, arena=None: self._delayed(bind(arrays, arena))
            routine.static_run = None if static is None else self._delayed(static)
        self.links[key] = routine
        return routine.context

    def _delayed(self, run: Callable[[], Any]) -> Callable[[], Any]:
        def delayed() -> Any:
            if self.rng.random() < 0.1:
                time.sleep(self.rng.random() * 0.001)
            return run()

        return delayed

    def routine(self, key: Any, function: Any, context: int, *tensors: Any) -> Any:
        if key not in self.links:
            self._link(self.homes[context], key, function, *tensors)
        return self.links[key]

    # ------------------------------------------------------------------------------ both sides

    def record(self, plan: Plan, operations: tuple[Any, ...]) -> None:
        for operation in operations:
            self._record(plan, operation)

    def _record(self, plan: Plan, operation: Any) -> None:
        match operation:
            case Call(name, context, first, second):
                tensors = self._tensor(context, first), self._tensor(context, second)
                self.routine(operation, self.functions[name], context, *tensors)()
            case Add(context, tensor, number):
                self.links["add", context, tensor](n=self.counts.get(number, number))
            case Move(source, target):
                self.homes[target].copy_from(self.homes[source], self.tensors[-1])
            case Merge(source, target, mode, between):
                consumer = self.routine(
                    ("merge", target), self.functions["merge"], target, self.tensors[-1]
                )
                self.homes[source].merge_into(consumer, self.tensors[-1], mode=mode)
                self.record(plan, between)
                consumer()
            case While():
                reads = [] if operation.place is None else [self._tensor(*operation.place)]

                def holds(count: int, *values: Any) -> bool:
                    return count < operation.times and all(v[0] < operation.limit for v in values)

                carry = {self._tensor(*t): self._tensor(*s) for t, s in operation.carry}
                loop = plan.while_(holds, reads=reads, carry=carry, name=operation.name)
                with loop:
                    self.counts[operation.name] = loop.count
                    with loop.before():
                        self.record(plan, operation.before)
                    self.record(plan, operation.after)
                del self.counts[operation.name]
            case Choice(place, branches, otherwise):
                copies = {self._tensor(*t): self._tensor(*s) for t, s in otherwise}
                tensor, count = self._tensor(*place), len(branches)
                case = plan.case_of(lambda v: int(v[0]) % (count + 1) - 1, [tensor], copies)
                with case:
                    for branch in branches:
                        with case.branch():
                            self.record(plan, branch)

    def run(self, operations: tuple[Any, ...]) -> None:
        """Do the operations one after another."""
        arrays = self.arrays
        for operation in operations:
            match operation:
                case Call(name, context, first, second):
                    x, y = (context, first), (context, second)
                    arrays[x], arrays[y] = MEANING[name](arrays[x], arrays[y])
                case Add(context, tensor, number):
                    arrays[context, tensor] = (
                        arrays[context, tensor] + self.counts.get(number, number) + 1.0
                    )
                case Move(source, target):
                    arrays[target, OWN] = arrays[source, OWN]
                case Merge(source, target, _, between):
                    merged = arrays[source, OWN]
                    self.run(between)
                    arrays[target, OWN] = arrays[target, OWN] + merged
                case While():
                    self._run_loop(operation)
                case Choice(place, branches, otherwise):
                    index = int(arrays[place][0]) % (len(branches) + 1) - 1
                    if index >= 0:
                        self.run(branches[index])
                    else:
                        arrays.update({t: arrays[s] for t, s in otherwise})

    def _run_loop(self, loop: While) -> None:
        """A carried target is the loop's own: outside it keeps its first value."""
        arrays, count = self.arrays, 0
        targets = {target: arrays[target] for target, _ in loop.carry}
        outputs = {s: t for t, s in reversed(loop.carry) if s not in targets}
        while True:
            self.counts[loop.name] = count
            self.run(loop.before)
            values = [] if loop.place is None else [arrays[loop.place]]
            if not (count < loop.times and all(v[0] < loop.limit for v in values)):
                break
            self.run(loop.after)
            new = {t: arrays[s] for t, s in loop.carry}
            arrays.update(new)
            count += 1
        del self.counts[loop.name]
        if not count:
            written = {p for op in loop.before for p in _written(op)}
            for output, target in outputs.items():
                if output not in written:
                    arrays[output] = targets[target]
        arrays.update(targets)

    def check(self, times: int = 2) -> None:
        """Run both sides; raises AssertionError where they differ."""
        with self.plan as plan:
            self.record(plan, self.operations)
        memory = plan.program.memory
        self.shared += memory.unshared - memory.size > 0
        self.lent += bool(memory.lent)
        for _ in range(times):
            drawn = self.rng.random()
            if drawn < 0.4:
                plan()
            elif drawn < 0.5:
                with pe.trace():  # in program order
                    plan()
            else:
                plan.run(on=pe.device(self.backend).stream()).wait()
            self.run(self.operations)
            for (context, number), array in self.arrays.items():
                if (context, number) in self.private:
                    continue
                found = self.homes[context].numpy(self._tensor(context, number))
                assert np.array_equal(found, array), (context, number, found, array)


def _used(operation: Any) -> Iterator[Place]:
    """Yield the arrays that an operation uses."""
    match operation:
        case Call(_, context, first, second):
            yield from ((context, first), (context, second))
        case Add(context, tensor, _):
            yield context, tensor
        case Merge(between=between):
            for inner in between:
                yield from _used(inner)
        case While(place=place, before=before, after=after, carry=carry):
            if place is not None:
                yield place
            for inner in (*before, *after):
                yield from _used(inner)
            yield from (each for pair in carry for each in pair)
        case Choice(place, branches, otherwise):
            yield place
            for branch in branches:
                for inner in branch:
                    yield from _used(inner)
            yield from (each for pair in otherwise for each in pair)


def _written(operation: Any) -> Iterator[Place]:
    match operation:
        case Call(name, context, first, second):
            yield context, first
            if name == CHAIN:
                yield context, second
        case Add(context, tensor, _):
            yield context, tensor
        case Move(_, target):
            yield target, OWN
        case Merge(_, target, _, between):
            yield target, OWN
            for inner in between:
                yield from _written(inner)
        case While(carry=carry):
            targets = {t for t, _ in carry}
            for inner in (*operation.before, *operation.after):
                yield from (p for p in _written(inner) if p not in targets)
            yield from (s for _, s in carry if s not in targets)
        case Choice(_, branches, otherwise):
            yield from (t for t, _ in otherwise)
            for branch in branches:
                for inner in branch:
                    yield from _written(inner)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--plans", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    refused = wrong = shared = lent = 0
    for n in range(given.plans):
        sides = Sides(given.seed * 1_000_000 + n)
        try:
            sides.check()
            shared += sides.shared
            lent += sides.lent
        except pe.CdError as why:
            if getattr(why, "code", "") != "CD0866":
                wrong += 1
                print(f"seed {given.seed * 1_000_000 + n}: {why}\n{sides.operations}")
            refused += 1
        except AssertionError as why:
            wrong += 1
            print(f"seed {given.seed * 1_000_000 + n}: {why}\n{sides.operations}", flush=True)
        if n % 100 == 99:
            text = (
                f"{n + 1} plans, {refused} refused, {shared} share memory, {lent} lend it, "
                f"{wrong} wrong"
            )
            print(text, flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(bool(main()))
