"""Fork-safe cached property.

`functools.cached_property` of Python 3.11 holds one lock for all objects of a class during the
computation. A process forked by another thread meanwhile inherits the held lock, which nothing ever
releases.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class cached_property(Generic[T]):
    """Decorates a method without arguments. Two threads that compute it both get the first
    result."""

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make, self._name, self.__doc__ = make, make.__name__, make.__doc__

    @overload
    def __get__(self, owner: None, kind: type) -> Self: ...
    @overload
    def __get__(self, owner: object, kind: type | None = None) -> T: ...
    def __get__(self, owner: object | None, kind: type | None = None) -> Self | T:
        if owner is None:
            return self
        value: T = owner.__dict__.setdefault(self._name, self._make(owner))
        return value
