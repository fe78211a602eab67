"""A module of our own that is imported when something of it is first used.

A call that was compiled before needs few of our modules, so those that it begins in name the
others in this way, under a type checker's import of the same:

    if TYPE_CHECKING:
        from . import parse
    else:
        parse = Later(".parse", __package__)

What few programs need is named so, too: a compilation needs some hundred of our modules, and each
takes half a millisecond to import.

A process that is forked while another thread imports would wait for that thread, which it does not
have, as soon as it needs the same module. So a fork waits until such imports have ended.
"""

from __future__ import annotations

import os
import sys
import threading
from importlib import import_module
from types import ModuleType
from typing import Any

_LONGEST = 30.0
"""Seconds that a fork waits for imports: one of them may wait for what forks."""


class _Imports:
    """The threads that import one of these modules now, each as often as its imports nest."""

    __slots__ = ("_changed", "_threads")

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._threads: list[int] = []

    def __enter__(self) -> None:
        with self._changed:
            self._threads.append(threading.get_ident())

    def __exit__(self, *problem: object) -> None:
        with self._changed:
            self._threads.remove(threading.get_ident())
            self._changed.notify_all()

    def wait(self) -> None:
        """Wait until no other thread imports, and let none begin before `go_on`."""
        self._changed.acquire()
        own = threading.get_ident()
        self._changed.wait_for(lambda: all(one == own for one in self._threads), _LONGEST)

    def go_on(self) -> None:
        """Let others import again."""
        self._changed.release()

    def after_fork(self) -> None:
        """Forget the threads that a child does not have."""
        own = threading.get_ident()
        self._changed = threading.Condition()
        self._threads = [one for one in self._threads if one == own]


_imports = _Imports()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_imports.wait, after_in_parent=_imports.go_on, after_in_child=_imports.after_fork
    )


def imported(name: str, package: str | None = None) -> ModuleType:
    """Return a module, imported now if need be; a fork waits until it is."""
    with _imports:
        return import_module(name, package)


class Later:
    """Stands for a module; what is asked of it imports the module."""

    __slots__ = ("_full", "_name", "_package")

    def __init__(self, name: str, package: str | None) -> None:
        self._name, self._package = name, package
        parts, level = (package or "").split("."), len(name) - len(name.lstrip("."))
        around = parts[: len(parts) + 1 - level] if level else []
        self._full = ".".join((*around, name[level:]))

    def __getattr__(self, name: str) -> Any:
        module = sys.modules.get(self._full)
        if module is None or getattr(module.__spec__, "_initializing", False):
            module = imported(self._name, self._package)
        return getattr(module, name)

    def __repr__(self) -> str:
        return f"<{self._name} of {self._package}, later>"


def later(package: str | None, *names: str) -> tuple[Later, ...]:
    """Return what stands for modules of a package."""
    return tuple(Later(name, package) for name in names)
