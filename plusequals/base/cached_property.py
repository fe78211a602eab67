"""A property that is computed when it is first asked for, and kept.

`functools.cached_property` of Python 3.11 holds one lock for all objects of a class meanwhile. A
process that another thread forks then has the lock, and nobody who would ever give it back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class once(Generic[T]):
    """Decorates a method without arguments. Of two threads that compute it both get the first."""

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make, self._name, self.__doc__ = make, make.__name__, make.__doc__

    @overload
    def __get__(self, owner: None, kind: type) -> Self: ...
    @overload
    def __get__(self, owner: object, kind: type | None = None) -> T: ...
    def __get__(self, owner: object | None, kind: type | None = None) -> Self | T:
        if owner is None:
            return self
        kept: T = owner.__dict__.setdefault(self._name, self._make(owner))
        return kept
