"""The table: which operation of the language an object of Python or NumPy is, found by identity.

`lookup` for functions, `method` for arrays, `WORDS` for bare names, `refusal` for
what is known and refused. The meanings are in the modules beside this one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from ...base.diagnostic import CdTypeError
from ...base.lazy_import import LazyModule, lazy_modules
from ..values.builder import error
from ..values.call_site import Handler, Site, Word, dtype_object, static_int, static_shape
from ..values.values import Value
from .primitives import python_functions
from .primitives.elementwise import arithmetic
from .unsupported import METHOD_REFUSALS, refusal

if TYPE_CHECKING:
    from . import registry
    from .primitives import creation, grids
else:  # what only functions of NumPy need
    creation, grids = lazy_modules(__package__, ".primitives.creation", ".primitives.grids")
    registry = LazyModule(".registry", __package__)

__all__ = [
    "LIBRARY_SCOPE", "WORDS", "Handler", "Site", "Word", "arithmetic", "dtype_object",
    "elementwise_name", "lookup", "method", "reduction_of", "refusal",
    "special_subscript", "static_int", "static_shape",
]  # fmt: skip

_HANDLERS: dict[object, Handler] = dict(python_functions.handlers())


@cache
def _of_numpy() -> dict[object, Handler]:
    return {
        **dict(registry.handlers()),
        np.finfo: creation.finfo(np.finfo),
        np.iinfo: creation.finfo(np.iinfo),
    }


@cache
def _methods() -> dict[str, Handler]:
    return dict(registry.methods())


WORDS: dict[str, Value] = python_functions.words()
"""What a bare name is where it is neither bound, captured nor an index letter."""

LIBRARY_SCOPE: dict[str, object] = {"np": np}
"""The names that functions of the library see beside the words."""


def lookup(function: object) -> Handler | None:
    """Return the meaning of a function object, None where the table does not know it."""
    try:
        return _HANDLERS.get(function) or _of_numpy().get(function)
    except TypeError:  # an object without a hash is no function of ours
        return None


def method(name: str) -> Handler | None:
    """Return the meaning of an array method (its first argument is the array), else None.

    A method that the language refuses has a handler that says so (CdTypeError CD0555).
    """
    if name in METHOD_REFUSALS:
        return _refusing(*METHOD_REFUSALS[name])
    return _methods().get(name)


def methods() -> tuple[str, ...]:
    """Return the names of the methods that an array has."""
    return tuple(_methods())


def _refusing(message: str, way_out: str) -> Handler:
    def handle(site: Site, args: tuple[Value, ...], keywords: dict[str, Value]) -> Value:
        raise error("CD0555", CdTypeError, message, site.span, helps=(way_out,))

    return handle


def special_subscript(value: object) -> Callable[[Site, tuple[Value, ...]], Value] | None:
    """Return what subscripting an object such as `np.mgrid` means, None for other objects."""
    return next((meaning for known, meaning in grids.SPECIAL if known is value), None)


def reduction_of(function: object) -> str | None:
    """Return the name of the reduction over index letters that a function is, else None."""
    try:
        return python_functions.REDUCTIONS.get(function)
    except TypeError:
        return None


def elementwise_name(function: object) -> str | None:
    """Return the operation of the table that a function of elements is, else None."""
    try:
        return python_functions.ELEMENTWISE.get(function)
    except TypeError:
        return None
