"""PyTorch, eager: the loss of a cell and its gradient, recorded and played back."""

from __future__ import annotations

from functools import reduce
from operator import add
from types import ModuleType
from typing import Any

import torch

from ..cell import Array
from . import on_torch
from .library import Arguments, Function, Task


class Library(on_torch.Library):
    """Functions make their results themselves: what is written into `out=` has no gradient."""

    def __init__(self, threads: int, kept: bool = False) -> None:
        super().__init__(threads, kept)
        torch.set_grad_enabled(True)

    def function(self, functions: ModuleType, task: Task) -> Function:
        """Return the loss with its gradient in all inputs of floats."""
        layout = getattr(functions, f"restore_{task.name}", tuple)
        loss = self.loss(functions, task)

        def both(*arguments: Any) -> Any:
            value = loss(*arguments)
            inputs = [arguments[n] for n in task.differentiated]
            return value, *layout(torch.autograd.grad(value, inputs))

        return both

    def loss(self, functions: ModuleType, task: Task) -> Function:
        """Return the sum of the squares of a task's results."""
        differentiable = getattr(functions, f"differentiable_{task.name}", None)
        return squares(differentiable or getattr(functions, task.name), task)

    def arguments(self, functions: ModuleType, task: Task) -> Arguments:
        """Return inputs as tensors whose gradients are recorded, laid out as usual; numbers."""
        laid_out = super().arguments(functions, task)[len(task.results) :]
        for n in task.differentiated:
            laid_out[n].requires_grad_()
        return laid_out

    def answer(self, returned: Any, arguments: Arguments, task: Task) -> tuple[Array, ...]:
        """Return the loss as an array, then the gradients."""
        return tuple(tensor.detach().numpy() for tensor in returned)


def squares(plain: Function, task: Task) -> Function:
    """Return the sum of the squares of what a function returns, as a function."""
    outputs = (None,) * len(task.results)

    def loss(*arguments: Any) -> Any:
        results = plain(*outputs, *arguments)
        several = results if isinstance(results, tuple) else (results,)
        return reduce(add, [result.square().sum() for result in several])

    return loss
