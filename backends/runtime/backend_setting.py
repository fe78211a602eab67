"""Public functions for settings, which check that a named backend exists."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from ...base import settings
from ...base.settings import Settings
from .state import RUNTIME


def use(backend: str | None = None, **changes: Any) -> Settings:
    """Change settings for the whole process; return the settings in effect.

    Raises CdNameError for an unknown setting, CdValueError for a value that does not fit,
    CdBackendError CD0801 for a backend that does not exist.
    """
    _require_backend(backend)
    return settings.use(backend, **changes)


def override(backend: str | None = None, **changes: Any) -> AbstractContextManager[Settings]:
    """Change settings inside the `with`, in this thread or task only; yields those in effect.

    Raises CdNameError for an unknown setting, CdValueError for a value that does not fit,
    CdBackendError CD0801 for a backend that does not exist.
    """
    _require_backend(backend)
    return settings.override(backend, **changes)


def _require_backend(backend: object) -> None:
    if isinstance(backend, str):  # other types are rejected with the other settings
        RUNTIME.require(backend)
