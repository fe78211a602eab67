"""A module of our own that is imported when something of it is first used.

A call that was compiled before needs few of our modules, so those that it begins in name the
others in this way, under a type checker's import of the same:

    if TYPE_CHECKING:
        from . import parse
    else:
        parse = Later(".parse", __package__)

What few programs need is named so, too: a compilation needs some hundred of our modules, and each
takes half a millisecond to import.

A thread of its own does the importing, while the one that asked waits. A signal's handler runs in
the thread that waits, and may need the same module: it waits, too, where it would have met half of
one. The garbage collector, whose finalizers may do the same, is off until the module is there.

A process that is forked while another thread imports would wait for that thread, which it does not
have, as soon as it needs the same module. So a fork waits until such imports have ended.
"""

from __future__ import annotations

import _thread
import atexit
import contextlib
import os
import sys
import threading
from importlib import import_module
from types import ModuleType
from typing import Any

from .garbage_collector import paused

_LOOK = 0.5
"""Seconds after which it is looked whether who imports has begun: there may be no memory for it."""
_LONGEST = 30.0
"""Seconds that a fork waits for imports: one of them may wait for what forks."""


class Ending(ImportError):
    """The interpreter ends, and imports nothing any more."""


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

    @property
    def is_any(self) -> bool:
        """Whether any thread imports one."""
        return bool(self._threads)

    @property
    def is_own(self) -> bool:
        """Whether the calling thread imports one."""
        return threading.get_ident() in self._threads

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
    """Return a module, imported now if need be; a fork waits until it is.

    Raises Ending where the interpreter imports nothing any more.
    """
    full = _full(name, package)
    found = _complete(full)
    if found is not None:
        return found
    ends = sys.is_finalizing()  # from then on no other thread runs
    if sys.meta_path is None or (ends and _imports.is_any):
        raise Ending(f"the interpreter ends: {full} cannot be imported any more")
    with paused():
        if ends or _imports.is_own or _is_initialized_here(full):
            with _imports:
                return import_module(full)
        return _by_another_thread(full)


def _full(name: str, package: str | None) -> str:
    """Return the whole name of a module that is named from within a package."""
    parts, level = (package or "").split("."), len(name) - len(name.lstrip("."))
    around = parts[: len(parts) + 1 - level] if level else []
    return ".".join((*around, name[level:]))


def _complete(full: str) -> ModuleType | None:
    """Return a module that was imported, None where it was not or is being imported."""
    module = (sys.modules or {}).get(full)
    is_there = module is not None and not getattr(module.__spec__, "_initializing", False)
    return module if is_there else None


def _is_initialized_here(full: str) -> bool:
    """Whether a package around a module is being imported: by this thread, for all that is known,
    for which another one would wait."""
    around = full.split(".")[:-1]
    packages = (sys.modules.get(".".join(around[: n + 1])) for n in range(len(around)))
    return any(getattr(getattr(one, "__spec__", None), "_initializing", False) for one in packages)


def _by_another_thread(full: str) -> ModuleType:
    """Return a module that another thread imports while this one waits; raises what that raises."""
    made: list[ModuleType] = []
    failed: list[BaseException] = []
    done = _thread.allocate_lock()

    def work() -> None:
        try:
            with _imports:
                made.append(import_module(full))
        except BaseException as problem:
            failed.append(problem)
        finally:
            done.release()

    done.acquire()
    thread: int | None = None
    with contextlib.suppress(RuntimeError, MemoryError):
        thread = _thread.start_new_thread(work, ())
    while thread is not None and not done.acquire(timeout=_LOOK):  # a handler may raise here
        if thread not in sys._current_frames():
            thread = None  # it has ended before it began
    if thread is None:  # there is no thread to be had
        with _imports:
            return import_module(full)
    if failed:
        raise failed[0]
    return made[0]


class Later:
    """Stands for a module; what is asked of it imports the module."""

    __slots__ = ("_module", "_name", "_package")

    def __init__(self, name: str, package: str | None) -> None:
        self._name, self._package = name, package
        self._module: ModuleType | None = None
        _all.append(self)

    def __getattr__(self, name: str) -> Any:
        if self._module is None:
            self._module = imported(self._name, self._package)
        return getattr(self._module, name)

    def __repr__(self) -> str:
        return f"<{self._name} of {self._package}, later>"


_all: list[Later] = []


def _hold_all() -> None:
    """Have what stands for modules hold those that are there: finalizers that run while the
    interpreter ends find no module by its name."""
    for one in _all:
        if one._module is None:
            one._module = _complete(_full(one._name, one._package))


atexit.register(_hold_all)


def later(package: str | None, *names: str) -> tuple[Later, ...]:
    """Return what stands for modules of a package."""
    return tuple(Later(name, package) for name in names)
