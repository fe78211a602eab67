"""plusequals: a new `@cd` function for each cell, so that each size has code of its own."""

from __future__ import annotations

from types import ModuleType

import plusequals
from plusequals import cd

from .library import Function, Task, Writing


class Library(Writing):
    """Threads and other settings come from the environment."""

    def __init__(self, threads: int, kept: bool = False) -> None:
        pass

    def version(self) -> str:
        """Return the version, and the settings that are not the defaults."""
        now = plusequals.settings.current()
        changed = [
            f"{name}={getattr(now, name)}"
            for name, default, _ in plusequals.settings.describe()
            if repr(getattr(now, name)) != default and name not in ("threads", "cache_dir")
        ]
        return " ".join((f"plusequals {plusequals.__version__}", *changed))

    def function(self, functions: ModuleType, task: Task) -> Function:
        """Return the function, as if it were new."""
        found: Function = cd(getattr(functions, task.name).__wrapped__)
        return found
