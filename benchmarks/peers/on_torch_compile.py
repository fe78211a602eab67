"""PyTorch, compiled: one graph for each cell, for its sizes."""

from __future__ import annotations

from types import ModuleType

import torch

from . import on_torch
from .library import Function, LeftOut, Task


class Library(on_torch.Library):
    """As the eager one, but for how a function is made."""

    def version(self) -> str:
        """Return the version."""
        return f"{super().version()}, compiled by inductor"

    def function(self, functions: ModuleType, task: Task) -> Function:
        """Return the function compiled. Raises LeftOut where one graph cannot be made of it."""
        plain, stepped = written(functions, task.name)
        torch._dynamo.reset()  # the sizes of other cells are not what a user has
        if stepped:
            return plain
        compiled: Function = torch.compile(plain, dynamic=False, fullgraph=True)
        return compiled


def written(functions: ModuleType, name: str) -> tuple[Function, bool]:
    """Return a function as it is written for the compiler, and whether what it calls is compiled.

    Many steps make too large a graph. Raises LeftOut where one graph cannot be made of it.
    """
    why: dict[str, str] = getattr(functions, "NOT_COMPILED", {})
    if name in why:
        raise LeftOut(why[name])
    stepped: Function | None = getattr(functions, f"stepped_{name}", None)
    if stepped is not None:
        return stepped, True
    return getattr(functions, f"compiled_{name}", None) or getattr(functions, name), False
