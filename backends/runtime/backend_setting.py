"""Settings that people change: a backend that does not exist is refused when it is named."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from ...base import settings
from ...base.settings import Settings
from .state import RUNTIME


def use(backend: str | None = None, **changes: Any) -> Settings:
    """Change settings for the whole process; return what holds now.

    Raises CdNameError for an unknown setting, CdValueError for a value that does not fit,
    CdBackendError CD0801 for a backend that does not exist.
    """
    _require(backend)
    return settings.use(backend, **changes)


def override(backend: str | None = None, **changes: Any) -> AbstractContextManager[Settings]:
    """Change settings inside the `with`, in this thread or task only; what holds there is yielded.

    Raises CdNameError for an unknown setting, CdValueError for a value that does not fit,
    CdBackendError CD0801 for a backend that does not exist.
    """
    _require(backend)
    return settings.override(backend, **changes)


def _require(backend: object) -> None:
    if isinstance(backend, str):  # what is no text is refused as every setting is
        RUNTIME.require(backend)
