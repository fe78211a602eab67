"""JAX: compiled as a whole; a call waits for its results."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import jax
import numpy as np

from ..cell import Array
from .library import Arguments, Function, Task


class Library:
    """Threads are the processors that the process may run on."""

    def __init__(self, threads: int, kept: bool = False) -> None:
        jax.config.update("jax_enable_x64", True)
        if kept:
            jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
            jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)

    def version(self) -> str:
        """Return the version."""
        return f"JAX {jax.__version__}"

    def function(self, functions: ModuleType, task: Task) -> Function:
        """Return the function, compiled and waited for. Integers are static."""
        compiled = jax.jit(getattr(functions, task.name), static_argnums=static(task))

        def one(*arguments: Any) -> Any:
            return compiled(*arguments).block_until_ready()

        def several(*arguments: Any) -> Any:
            return jax.block_until_ready(compiled(*arguments))

        return one if len(task.results) == 1 else several

    def arguments(self, functions: ModuleType, task: Task) -> Arguments:
        """Return inputs and numbers: outputs are new arrays of the library's own."""
        return (*map(jax.numpy.asarray, task.inputs), *task.numbers)

    def answer(self, returned: Any, arguments: Arguments, task: Task) -> tuple[Array, ...]:
        """Return what came back."""
        several = returned if isinstance(returned, tuple | list) else (returned,)
        return tuple(np.asarray(array) for array in several)


def static(task: Task) -> list[int]:
    """Return the positions of a task's integers among its arguments."""
    first = len(task.inputs)
    return [first + n for n, value in enumerate(task.numbers) if isinstance(value, int)]
