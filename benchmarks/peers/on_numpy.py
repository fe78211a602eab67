"""NumPy: functions as they are."""

from __future__ import annotations

from types import ModuleType

import numpy as np

from .library import Function, Task, Writing


class Library(Writing):
    """Its BLAS takes the number of threads from the environment; all else has one."""

    def __init__(self, threads: int, kept: bool = False) -> None:
        pass

    def version(self) -> str:
        """Return the version and that of the BLAS."""
        config = np.show_config(mode="dicts")
        assert isinstance(config, dict), "NumPy was asked for dictionaries"
        blas = config["Build Dependencies"]["blas"]
        return f"NumPy {np.__version__} with {blas['name']} {blas['version']}"

    def function(self, functions: ModuleType, task: Task) -> Function:
        """Return the function of that name."""
        found: Function = getattr(functions, task.name)
        return found
