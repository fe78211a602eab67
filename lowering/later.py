"""A module of our own that is imported when something of it is first used.

A call that was compiled before needs few of our modules, so those that it begins in name the
others in this way, under a type checker's import of the same:

    if TYPE_CHECKING:
        from . import parse
    else:
        parse = Later(".parse", __package__)

What few programs need is named so, too: a compilation needs some hundred of our modules, and each
takes half a millisecond to import.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Later:
    """Stands for a module; what is asked of it imports the module."""

    __slots__ = ("_name", "_package")

    def __init__(self, name: str, package: str | None) -> None:
        self._name, self._package = name, package

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name, self._package), name)

    def __repr__(self) -> str:
        return f"<{self._name} of {self._package}, later>"


def later(package: str | None, *names: str) -> tuple[Later, ...]:
    """Return what stands for modules of a package."""
    return tuple(Later(name, package) for name in names)
