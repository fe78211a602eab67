"""plusequals: the loss of a cell and its gradient."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from plusequals import value_and_gradient

from ..cell import Array
from . import on_plusequals_loss
from .library import Arguments, Function, Task
from .on_plusequals_loss import loss, names


class Library(on_plusequals_loss.Library):
    """One function returns both."""

    def function(self, functions: ModuleType, task: Task) -> Function:
        """Return the loss with its gradient in all inputs of floats."""
        wrt = [names(task)[n] for n in task.differentiated]
        found: Function = value_and_gradient(loss(functions, task), wrt)
        return found

    def answer(self, returned: Any, arguments: Arguments, task: Task) -> tuple[Array, ...]:
        """Return the loss as an array, then the gradients."""
        value, gradients = returned
        return (np.asarray(value), *gradients)
