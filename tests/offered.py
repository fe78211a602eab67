"""A backend of a test's own under a name, for as long as the test needs it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from plusequals.backends.runtime.state import RUNTIME


@contextmanager
def offered(name: str, backend: Any) -> Iterator[None]:
    """Let a name be this backend inside the `with`, with devices of its own."""
    held = _taken(name)
    RUNTIME._backends[name] = backend
    try:
        yield
    finally:
        _taken(name)
        for table, entries in zip(_tables(), held, strict=True):
            table.update(entries)


def _tables() -> tuple[dict[Any, Any], dict[Any, Any]]:
    """The backends in use by name, and their devices."""
    return RUNTIME._backends, RUNTIME.devices


def _taken(name: str) -> list[dict[Any, Any]]:
    """Remove what is in use under a name, and under those of its devices; return it."""
    backends, devices = _tables()
    of_backends = [key for key in backends if key.partition(":")[0] == name]
    of_devices = [key for key in devices if key[0] == name]
    return [
        {key: backends.pop(key) for key in of_backends},
        {key: devices.pop(key) for key in of_devices},
    ]
