"""plusequals: the loss of a cell, the sum of its results' squares, whose gradient is taken."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from plusequals import cd_from_source

from ..cell import Array
from . import on_plusequals
from .library import Arguments, Function, Task


class Library(on_plusequals.Library):
    """The results are arrays of the loss itself, so that the compiler may do without them."""

    def function(self, functions: ModuleType, task: Task) -> Function:
        """Return the loss, as if it were new."""
        return loss(functions, task)

    def arguments(self, functions: ModuleType, task: Task) -> Arguments:
        """Return inputs and numbers."""
        return (*task.inputs, *task.numbers)

    def answer(self, returned: Any, arguments: Arguments, task: Task) -> tuple[Array, ...]:
        """Return the loss as an array."""
        return (np.asarray(returned),)


def names(task: Task) -> tuple[str, ...]:
    """Return the names of the parameters of a task's loss: inputs, then numbers."""
    inputs = [f"input_{n}" for n in range(len(task.inputs))]
    return (*inputs, *(f"number_{n}" for n in range(len(task.numbers))))


def loss(functions: ModuleType, task: Task) -> Function:
    """Return a function of inputs and numbers: the sum of the squares of a task's results."""
    results = [f"result_{n}" for n in range(len(task.results))]
    lines = [f"def {task.name}_loss({', '.join(names(task))}):"]
    for name, result in zip(results, task.results):
        lines.append(f"    {name} = np.empty({result.shape}, np.{result.dtype})")
    lines.append(f"    {task.name}({', '.join((*results, *names(task)))})")
    lines.append("    return " + " + ".join(f"np.sum({name} * {name})" for name in results))
    around = {"np": np, task.name: getattr(functions, task.name)}
    found: Function = cd_from_source("\n".join(lines) + "\n", around)
    return found
