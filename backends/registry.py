"""Registry of backends by name: built-in ones, and plug-ins of installed packages.

A plug-in is an entry point of the group `plusequals.backends`, whose name is the backend's and
whose object returns a `Backend` when called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..base.lazy_import import LazyModule, load_module

if TYPE_CHECKING:
    from importlib import metadata

    from ..base import diagnostic
    from ..base.diagnostic import CdBackendError, CdError
    from . import interface
else:  # `import plusequals` imports none of them
    diagnostic, interface, metadata = (
        LazyModule("..base.diagnostic", __package__),
        LazyModule(".interface", __package__),
        LazyModule("importlib.metadata", None),
    )

GROUP = "plusequals.backends"
_PACKAGE = __package__ or "plusequals.backends"
BUILT_IN = {
    "cc": f"{_PACKAGE}.cc.backend:CompiledC",
    "cuda": f"{_PACKAGE}.cuda.backend:CompiledCuda",
    "numpy": f"{_PACKAGE}.interpreter:Interpreter",
}
"""The built-in backends, which plug-ins cannot replace."""
CALLER = "cc"
"""The backend with the library of the fast path, which calls code of all backends."""
COMPARED = ("numpy", "cc")
"""The backends that are compared with each other where none are named."""
DEVICE_ARRAYS = "cuda"
"""The backend whose code uses, in place, arrays of the CUDA array interface and of DLPack."""


def backends() -> dict[str, str]:
    """Return all known backends by name: `available`, or a sentence why it cannot run here."""
    return {name: _state(name) for name in sorted(_entries())}


def get(name: str) -> interface.Backend:
    """Return a new instance of a backend.

    Raises CdBackendError CD0801 where it is unknown, or cannot be loaded.
    """
    if name in BUILT_IN:
        module, _, maker = BUILT_IN[name].partition(":")
        instance: interface.Backend = getattr(load_module(module), maker)()
        return instance
    require(name)
    entries = _entries()
    try:
        factory: Callable[[], Any] = entries[name].load()
        backend: interface.Backend = factory()
    except diagnostic.CdError:
        raise
    except Exception as why:  # plug-ins may raise anything
        raise _unknown(
            f"the backend `{name}` cannot be loaded from {entries[name].value}: {why}",
            ("`pip` can reinstall or remove the package that offers it",),
        ) from why
    version = interface.API_VERSION
    if getattr(backend, "api_version", None) != version:
        raise _unknown(
            f"the backend `{name}` is made for another version of plusequals",
            (f"its `api_version` has to be {version}: look for a newer release of it",),
        )
    return backend


def require(name: str) -> None:
    """Raise CdBackendError CD0801 for an unknown backend, without loading any."""
    if name in BUILT_IN or name in (entries := _entries()):
        return
    suggestion = diagnostic.nearest(name, entries)
    raise _unknown(
        f"there is no backend `{name}`; there are " + ", ".join(sorted(entries)),
        (f'did you mean "{suggestion}"?',) if suggestion else (),
    )


def _entries() -> dict[str, metadata.EntryPoint]:
    """Return the entry points of all backends."""
    plugins = {entry.name: entry for entry in metadata.entry_points(group=GROUP)}
    return plugins | {n: metadata.EntryPoint(n, value, GROUP) for n, value in BUILT_IN.items()}


def _state(name: str) -> str:
    try:
        why: CdError | None = get(name).unavailable()
    except diagnostic.CdError as broken:
        why = broken
    return "available" if why is None else why.diagnostics[0].message


def _unknown(message: str, helps: tuple[str, ...]) -> CdBackendError:
    return diagnostic.CdBackendError(diagnostic.Diagnostic("CD0801", message, helps=helps))
