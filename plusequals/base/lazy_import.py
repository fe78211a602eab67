"""Lazy imports: a module that is imported when an attribute of it is first used.

A call that was compiled before needs few modules, so those on its path name the others in this way,
below a type checker's import of the same:

    if TYPE_CHECKING:
        from . import parse
    else:
        parse = LazyModule(".parse", __package__)

Modules that few programs need are lazy, too: a compilation needs some hundred of them, and each
takes half a millisecond to import. Where such a module is needed for one function, which is stored
before it is called, `lazy_functions` names that.

A separate thread imports, while the requesting one waits. A signal handler runs in the waiting
thread, and may need the same module: it waits, too, where it would have seen a half-initialized
one. The garbage collector, whose finalizers may do the same, is paused until the import is done.

A process that is forked while another thread imports would wait for that thread, which it does not
have, as soon as it needs the same module. So a fork waits until such imports have ended.
"""

from __future__ import annotations

import _thread
import atexit
import contextlib
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

from .garbage_collector import gc_paused
from .process_state import State, register

_CHECK_SECONDS = 0.5
"""Seconds between checks that the importing thread has started: there may be no memory for it."""
_MAX_FORK_WAIT = 30.0
"""Seconds that a fork waits for imports: one of them may wait for the forking thread."""


class ShutdownError(ImportError):
    """The interpreter is shutting down, and imports nothing any more."""


class _Imports:
    """The threads that import lazy modules now, each as often as its imports nest."""

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
    def is_active(self) -> bool:
        """Whether any thread is importing."""
        return bool(self._threads)

    @property
    def is_importing_here(self) -> bool:
        """Whether the calling thread is importing."""
        return threading.get_ident() in self._threads

    def wait(self) -> None:
        """Wait until no other thread imports, and block new imports until `go_on`."""
        self._changed.acquire()
        this_thread = threading.get_ident()
        self._changed.wait_for(
            lambda: all(thread == this_thread for thread in self._threads), _MAX_FORK_WAIT
        )

    def resume(self) -> None:
        """Allow imports again."""
        self._changed.release()

    def after_fork(self) -> None:
        """Drop the threads that do not exist in a child."""
        this_thread = threading.get_ident()
        self._changed = threading.Condition()
        self._threads = [thread for thread in self._threads if thread == this_thread]


_imports = _Imports()
_all: list[LazyModule] = []
register(
    lambda: State(
        name="modules that are imported when first used, and who imports them now",
        owner=__name__,
        holders=("_imports", "_all"),
        lock="a condition; the import system's locks",
        in_child="kept: a fork waits for the imports of other threads",
        before_fork=_imports.wait,
        after_fork_in_parent=_imports.resume,
        after_fork=_imports.after_fork,
    )
)


def load_module(name: str, package: str | None = None) -> ModuleType:
    """Return a module, imported now if necessary; a fork waits until it is.

    Raises ShutdownError where the interpreter is shutting down.
    """
    full = _absolute_name(name, package)
    module = _loaded_module(full)
    if module is not None:
        return module
    is_ending = sys.is_finalizing()  # no other thread runs any more
    if sys.meta_path is None or (is_ending and _imports.is_active):
        raise ShutdownError(f"the interpreter ends: {full} cannot be imported any more")
    with gc_paused():
        if is_ending or _imports.is_importing_here or _is_package_initializing(full):
            with _imports:
                return import_module(full)
        return _import_in_thread(full)


def _absolute_name(name: str, package: str | None) -> str:
    """Return the absolute name of a module from a relative one in a package."""
    parts, level = (package or "").split("."), len(name) - len(name.lstrip("."))
    package_parts = parts[: len(parts) + 1 - level] if level else []
    return ".".join((*package_parts, name[level:]))


def _loaded_module(full: str) -> ModuleType | None:
    """Return a module that is imported completely, else None."""
    module = (sys.modules or {}).get(full)
    is_loaded = module is not None and not getattr(module.__spec__, "_initializing", False)
    return module if is_loaded else None


def _is_package_initializing(full: str) -> bool:
    """Whether an enclosing package is being imported: possibly by this thread, for which another
    one would wait."""
    parent_parts = full.split(".")[:-1]
    packages = (sys.modules.get(".".join(parent_parts[: n + 1])) for n in range(len(parent_parts)))
    return any(
        getattr(getattr(package, "__spec__", None), "_initializing", False) for package in packages
    )


def _import_in_thread(full: str) -> ModuleType:
    """Return a module that another thread imports while this one waits; raises its exceptions."""
    modules: list[ModuleType] = []
    problems: list[BaseException] = []
    done = _thread.allocate_lock()

    def work() -> None:
        try:
            with _imports:
                modules.append(import_module(full))
        except BaseException as problem:
            problems.append(problem)
        finally:
            done.release()

    done.acquire()
    thread: int | None = None
    with contextlib.suppress(RuntimeError, MemoryError):
        thread = _thread.start_new_thread(work, ())
    # a handler may raise here
    while thread is not None and not done.acquire(timeout=_CHECK_SECONDS):
        if thread not in sys._current_frames():
            thread = None  # it ended before it started
    if thread is None:  # no thread can be started
        with _imports:
            return import_module(full)
    if problems:
        raise problems[0]
    return modules[0]


class LazyModule:
    """Proxy of a module; the first attribute access imports it."""

    __slots__ = ("_module", "_name", "_package")

    def __init__(self, name: str, package: str | None) -> None:
        self._name, self._package = name, package
        self._module: ModuleType | None = None
        _all.append(self)

    def __getattr__(self, name: str) -> Any:
        if self._module is None:
            self._module = load_module(self._name, self._package)
        return getattr(self._module, name)

    def __repr__(self) -> str:
        return f"<{self._name} of {self._package}, later>"


def _resolve_all() -> None:
    """Resolve proxies of modules that are imported: finalizers at interpreter shutdown find no
    module by its name."""
    for module in _all:
        if module._module is None:
            module._module = _loaded_module(_absolute_name(module._name, module._package))


atexit.register(_resolve_all)


def lazy_modules(package: str | None, *names: str) -> tuple[LazyModule, ...]:
    """Return the proxies of modules of a package."""
    return tuple(LazyModule(name, package) for name in names)


class LazyFunction:
    """Proxy of a function; the first call imports its module."""

    __slots__ = ("_module", "_name")

    def __init__(self, module: LazyModule, name: str) -> None:
        self._module, self._name = module, name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the function returns."""
        return self.resolve()(*args, **kwargs)

    def resolve(self) -> Callable[..., Any]:
        """Return the function itself, its module imported if necessary."""
        function: Callable[..., Any] = getattr(self._module, self._name)
        return function

    def __repr__(self) -> str:
        return f"<{self._name} of {self._module!r}>"


def lazy_functions(package: str | None, *homes: str) -> tuple[Callable[..., Any], ...]:
    """Return the proxies of functions of a package, each given as `module:name`."""
    split = (home.split(":") for home in homes)
    return tuple(LazyFunction(LazyModule(module, package), name) for module, name in split)
