"""PyTorch, compiled: the loss of a cell as one graph, and the one that goes back through it."""

from __future__ import annotations

from types import ModuleType

import torch

from . import on_torch_gradient
from .library import Function, Task
from .on_torch_compile import written
from .on_torch_gradient import squares


class Library(on_torch_gradient.Library):
    """As the eager one, but for how the loss is made."""

    def version(self) -> str:
        """Return the version."""
        return f"{super().version()}, compiled by inductor"

    def loss(self, functions: ModuleType, task: Task) -> Function:
        """Return the loss compiled. Raises LeftOut where one graph cannot be made of it."""
        name = f"differentiable_{task.name}"
        if not hasattr(functions, name):
            name = task.name
        plain, stepped = written(functions, name)
        torch._dynamo.reset()  # the sizes of other cells are not what a user has
        loss = squares(plain, task)
        if stepped:
            return loss
        compiled: Function = torch.compile(loss, dynamic=False, fullgraph=True)
        return compiled
