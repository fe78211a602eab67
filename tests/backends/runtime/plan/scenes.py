"""What tests of plans share: functions, tensors, and routines of one context."""

from __future__ import annotations

from typing import Any

import numpy as np

import plusequals as pe
from plusequals import cd
from plusequals.idx import i

SIZE = 4


@cd
def double(y, x):
    y[i] = x[i] * 2.0


@cd
def add(z, x, y):
    z[i] = x[i] + y[i]


@cd
def count_up(x):
    x[i] += 1.0


@cd
def shift(x, amount):
    x[i] += amount


@cd
def put(x, at):
    x[at] = 7.0


@cd
def take(x, values):
    x[i] = values[i] + 1.0


@cd
def give(x, out):
    out[i] = x[i] * 2.0


@cd
def merged(x):
    x += x.merge


class Scene:
    """Tensors of one size by their labels, and routines of them in one context."""

    def __init__(self, labels: str = "abcd", device: str = "cc", threaded: bool = False) -> None:
        self.stream = pe.device(device).stream(threaded=threaded)
        self.context = self.stream.context()
        for at, label in enumerate(labels):
            tensor = pe.tensor(label, SIZE, dtype="float64", init=float(at))
            setattr(self, label, tensor)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)

    def link(self, function: Any, *arguments: Any) -> Any:
        routine = function.compile(*arguments).link(self.context)
        self.context = routine.context
        return routine

    def first(self, *tensors: Any) -> list[float]:
        """Return the first element of each tensor."""
        return [float(np.asarray(tensor)[0]) for tensor in tensors]
