"""JAX: the loss of a cell and its gradient, compiled as a whole."""

from __future__ import annotations

from functools import reduce
from operator import add
from types import ModuleType
from typing import Any

import jax
import numpy as np

from ..cell import Array
from . import on_jax
from .library import Arguments, Function, Task


class Library(on_jax.Library):
    """The results of a cell are arrays within the loss, of which nothing is returned."""

    def function(self, functions: ModuleType, task: Task) -> Function:
        """Return the loss with its gradient in all inputs of floats."""
        plain = getattr(functions, task.name)

        def loss(*arguments: Any) -> Any:
            results = plain(*arguments)
            several = results if isinstance(results, tuple) else (results,)
            return reduce(add, (jax.numpy.sum(result * result) for result in several))

        both = jax.value_and_grad(loss, argnums=task.differentiated)
        compiled = jax.jit(both, static_argnums=on_jax.static(task))
        return lambda *arguments: jax.block_until_ready(compiled(*arguments))

    def answer(self, returned: Any, arguments: Arguments, task: Task) -> tuple[Array, ...]:
        """Return the loss as an array, then the gradients."""
        value, gradients = returned
        return tuple(np.asarray(array) for array in (value, *gradients))
