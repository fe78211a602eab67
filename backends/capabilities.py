"""Optional protocols of backends and code, found by an attribute that only they have.

Calls ask for them; `isinstance` would import the protocols, which takes 5 ms of a first call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .direct_calls import Allocator, HasCallerLibrary, HasDirectCalls, StoresCode
    from .interface import Backend, Code, Prepares


def direct_calls(code: Code) -> HasDirectCalls | None:
    """Return code that can be called without Python, None for other code."""
    capability: HasDirectCalls | None = _with_attribute(code, "direct_call")
    return capability


def allocator(code: Code) -> Allocator:
    """Return what allocates uninitialized arrays like the results of the code."""
    empty: Allocator = getattr(code, "empty", np.empty)
    return empty


def caller_library(backend: Backend) -> HasCallerLibrary | None:
    """Return a backend that has the library of the fast path, None for others."""
    capability: HasCallerLibrary | None = _with_attribute(backend, "load_caller")
    return capability


def stored_code(backend: Backend) -> StoresCode | None:
    """Return a backend whose code other processes can load, None for others."""
    capability: StoresCode | None = _with_attribute(backend, "restore")
    return capability


def preparation(backend: Backend) -> Prepares | None:
    """Return a backend that prepares for a compilation, None for others."""
    capability: Prepares | None = _with_attribute(backend, "prepare")
    return capability


def _with_attribute(value: Any, name: str) -> Any:
    return value if hasattr(value, name) else None
