"""The backends there are, by name: our own, and those that installed packages offer.

A package offers one by an entry point of the group `plusequals.backends`, whose name is the
backend's and whose object makes a `Backend` when called.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from ..lowering.diagnostic import CdBackendError, CdError, Diagnostic, nearest
from .interface import API_VERSION, Backend

GROUP = "plusequals.backends"
_PACKAGE = __package__ or "plusequals.backends"
OURS = {
    "cc": f"{_PACKAGE}.cc.backend:CompiledC",
    "cuda": f"{_PACKAGE}.cuda.backend:CompiledCuda",
    "numpy": f"{_PACKAGE}.interpreter:Interpreter",
}


def backends() -> dict[str, str]:
    """Return every known backend by name: `available`, or the sentence why it cannot run here."""
    return {name: _state(name) for name in sorted(_entries())}


def get(name: str) -> Backend:
    """Return a new instance of the backend of that name.

    Raises CdBackendError: CD0801 where there is none of that name, or it cannot be loaded.
    """
    entries = _entries()
    if name not in entries:
        near = nearest(name, entries)
        raise _unknown(
            f"there is no backend `{name}`; there are " + ", ".join(sorted(entries)),
            (f'did you mean "{near}"?',) if near else (),
        )
    try:
        made: Callable[[], Any] = entries[name].load()
        backend: Backend = made()
    except CdError:
        raise
    except Exception as why:  # a plug-in is anybody's code
        raise _unknown(
            f"the backend `{name}` cannot be loaded from {entries[name].value}: {why}",
            ("`pip` can reinstall or remove the package that offers it",),
        ) from why
    if getattr(backend, "api_version", None) != API_VERSION:
        raise _unknown(
            f"the backend `{name}` is made for another version of plusequals",
            (f"its `api_version` has to be {API_VERSION}: look for a newer release of it",),
        )
    return backend


def _entries() -> dict[str, EntryPoint]:
    """Return where each backend is found; ours cannot be replaced."""
    offered = {entry.name: entry for entry in entry_points(group=GROUP)}
    return offered | {name: EntryPoint(name, value, GROUP) for name, value in OURS.items()}


def _state(name: str) -> str:
    try:
        why: CdError | None = get(name).unavailable()
    except CdError as broken:
        why = broken
    return "available" if why is None else why.diagnostics[0].message


def _unknown(message: str, helps: tuple[str, ...]) -> CdBackendError:
    return CdBackendError(Diagnostic("CD0801", message, helps=helps))
