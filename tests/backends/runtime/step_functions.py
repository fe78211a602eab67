"""The functions of random programs, each beside its serial meaning; and delays for what runs."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from plusequals import cd
from plusequals.backends.runtime import queue
from plusequals.idx import i
from tests.backends.runtime import serial


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
def slope(x):
    x.grad[i] = x.value[i] - 3.0


@cd
def descend(x):
    x[i] -= 0.5 * x.grad[i]


@cd
def add(x, v):
    x[i] += v[i]


@cd
def give(x, v):
    v[i] = x[i] * 2.0


@cd
def sums(x):
    return np.sum(x), np.max(x)


@cd
def put(x, n):
    x[n] = 7.0


@cd
def merge_add(x):
    x += x.merge


@cd
def merge_grad(x):
    x.grad += x.grad.merge


@cd
def merge_other(y, x):
    y[i] = x.merge[i] - y[i]


@cd
def conceal(h, x, y):
    h[i] = x[i] * 2.0
    y.grad[i] = h[i] + 1.0


@cd
def reveal(z, h):
    z[i] = h[i] - z[i]


@cd
def total(x):
    return np.sum(x)


@dataclass(frozen=True)
class Kind:
    """A function of tensors of one size, what else a call gives it, and its serial meaning.

    `fields` are the fields that the meaning is about: a tensor's place and a name for each.
    """

    function: Any
    tensors: int
    model: serial.Function
    given: str = ""
    """`array` to be read, `out` to be written, `index`, or nothing."""
    fields: tuple[tuple[int, str], ...] = ()

    def of(self, tensors: tuple[int, ...]) -> tuple[tuple[int, str], ...]:
        """Return the fields of some tensors, by number and name."""
        places = self.fields or tuple((n, "value") for n in range(self.tensors))
        return tuple((tensors[n], name) for n, name in places)

    def arguments(self, size: int) -> list[Any]:
        """Return what it is compiled with beside tensors."""
        return {"": [], "index": [0]}.get(self.given, [np.zeros(size)])

    def call(self, rng: random.Random, size: int) -> list[Any]:
        """Return what a call gives it; one index of seven is out of range, or more."""
        if self.given == "index":
            return [rng.choice((rng.randrange(size),) * 6 + (size,))]
        numbers = [float(rng.randrange(5)) for _ in range(size)]
        return {"": [], "out": [np.zeros(size)]}.get(self.given, [np.array(numbers)])


def _put(x: np.ndarray, n: int) -> list[np.ndarray]:
    if n >= len(x):
        raise IndexError(n)
    return [np.where(np.arange(len(x)) == n, 7.0, x)]


_F = serial.Function
_BOTH = ((0, "value"), (0, "grad"))
KINDS: dict[str, Kind] = {
    "mix": Kind(mix, 2, _F((0, 1), (0,), None, lambda x, y: [x * 0.5 + y])),
    "overwrite": Kind(overwrite, 2, _F((1,), (0,), None, lambda x, y: [y + 1.0])),
    "chain": Kind(chain, 2, _F((1,), (0, 1), None, lambda x, y: [y + 2, (y + 2) / 4])),
    "slope": Kind(slope, 1, _F((0,), (1,), None, lambda x, g: [x - 3.0]), fields=_BOTH),
    "descend": Kind(descend, 1, _F((0, 1), (0,), None, lambda x, g: [x - 0.5 * g]), fields=_BOTH),
    "add": Kind(add, 1, _F((0,), (0,), None, lambda x, v: [x + v]), "array"),
    "give": Kind(give, 1, _F((0,), (), None, lambda x, v: [x * 2.0]), "out"),
    "sums": Kind(sums, 1, _F((0,), (), None, lambda x: [sum(x.tolist()), x.max()])),
    "put": Kind(put, 1, _F((0,), (0,), None, _put), "index"),
    "merge_add": Kind(merge_add, 1, _F((0,), (0,), 0, lambda x, m: [x + m])),
    "merge_grad": Kind(
        merge_grad, 1, _F((0,), (0,), 0, lambda g, m: [g + m]), fields=((0, "grad"),)
    ),
    "merge_other": Kind(merge_other, 2, _F((0,), (0,), 1, lambda y, x, m: [m - y])),
}


CONCEAL = Kind(
    conceal, 2, _F((0,), (1,), None, lambda x, g: [x * 2 + 1]), fields=((0, "value"), (1, "grad"))
)
"""Computes a virtual tensor of its first one."""
REVEAL = Kind(reveal, 2, _F((0, 1), (0,), None, lambda z, x: [x * 2 - z]))
"""Computes it again."""


def moment(rng: random.Random) -> float:
    """Return some seconds: microseconds as a rule, a millisecond at most."""
    return rng.random() ** 4 * 1e-3


@contextmanager
def delays(seed: int, often: float = 0.1) -> Iterator[None]:
    """Let work start late and be told late, at random, in whatever thread does it."""
    rng, original = random.Random(seed), queue._run_task

    def delayed(task: Any) -> Any:
        if rng.random() < often:
            time.sleep(moment(rng))
        failure = original(task)
        if rng.random() < often:
            time.sleep(moment(rng) / 2)
        return failure

    queue._run_task = delayed
    try:
        yield
    finally:
        queue._run_task = original
