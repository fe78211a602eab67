"""PyTorch, eager: without gradients recorded."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch

from ..cell import Array
from .library import Arguments, Function, Task


class Library:
    """The tensors lie in the memory of the NumPy arrays."""

    def __init__(self, threads: int, kept: bool = False) -> None:
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)

    def version(self) -> str:
        """Return the version."""
        return f"PyTorch {torch.__version__}"

    def function(self, functions: ModuleType, task: Task) -> Function:
        """Return the function of that name."""
        found: Function = getattr(functions, task.name)
        return found

    def arguments(self, functions: ModuleType, task: Task) -> Arguments:
        """Return outputs and inputs as tensors, laid out as the library likes them; numbers."""
        tensors = [torch.from_numpy(array) for array in (*task.empty(), *task.inputs)]
        return (*getattr(functions, f"layout_{task.name}", list)(tensors), *task.numbers)

    def answer(self, returned: Any, arguments: Arguments, task: Task) -> tuple[Array, ...]:
        """Return the tensors that came back, the outputs where none did."""
        if returned is None:
            returned = arguments[: len(task.results)]
        several = returned if isinstance(returned, tuple) else (returned,)
        return tuple(tensor.numpy() for tensor in several)
