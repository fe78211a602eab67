"""Numba: compiled with fast mathematics; with threads where a cell is not a small one."""

from __future__ import annotations

import warnings
from types import ModuleType

import numba
from numba.core.errors import NumbaPerformanceWarning

from .library import Function, Task, Writing


class Library(Writing):
    """Small arrays are not worth waking a thread, and its users know."""

    def __init__(self, threads: int, kept: bool = False) -> None:
        numba.set_num_threads(threads)
        self._threads = threads
        self._kept = kept
        warnings.simplefilter("ignore", NumbaPerformanceWarning)

    def version(self) -> str:
        """Return the version, and whether it has Intel's vector functions."""
        vectors = "with" if numba.config.USING_SVML else "without"
        return f"Numba {numba.__version__} {vectors} SVML"

    def function(self, functions: ModuleType, task: Task) -> Function:
        """Return the function of that name, to be compiled by its first call."""
        parallel = self._threads > 1 and task.regime != "small"
        compiled: Function = numba.njit(
            parallel=parallel, fastmath=True, error_model="numpy", cache=self._kept
        )(getattr(functions, task.name))
        return compiled
