"""Lookup of handlers: which operation of the language an object of Python or NumPy stands for.

`lookup` for functions, by identity; `method` for array methods, by name; `WORDS` for bare names;
`refusal` for what is recognized and rejected. The handlers are in the modules of this folder.
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
else:  # imported at the first function of NumPy
    creation, grids = lazy_modules(__package__, ".primitives.creation", ".primitives.grids")
    registry = LazyModule(".registry", __package__)

__all__ = [
    "LIBRARY_SCOPE", "WORDS", "Handler", "Site", "Word", "arithmetic", "dtype_object",
    "elementwise_name", "lookup", "method", "reduction_of", "refusal",
    "special_subscript", "static_int", "static_shape",
]  # fmt: skip

_HANDLERS: dict[object, Handler] = dict(python_functions.handlers())


@cache
def _numpy_handlers() -> dict[object, Handler]:
    return {
        **dict(registry.handlers()),
        np.finfo: creation.finfo(np.finfo),
        np.iinfo: creation.finfo(np.iinfo),
    }


@cache
def _method_handlers() -> dict[str, Handler]:
    return dict(registry.methods())


WORDS: dict[str, Value] = python_functions.words()
"""Values of bare names that are neither bound, captured nor index variables."""

LIBRARY_SCOPE: dict[str, object] = {"np": np}
"""The global names that library definitions may use, apart from `WORDS`."""


def lookup(function: object) -> Handler | None:
    """Return the handler of a function object, None where the table has none."""
    try:
        return _HANDLERS.get(function) or _numpy_handlers().get(function)
    except TypeError:  # unhashable: not in the table
        return None


def method(name: str) -> Handler | None:
    """Return the handler of an array method (the first argument is the array), None for others.

    The handler of a method that the language rejects raises CdTypeError CD0555.
    """
    if name in METHOD_REFUSALS:
        return _rejecting_handler(*METHOD_REFUSALS[name])
    return _method_handlers().get(name)


def methods() -> tuple[str, ...]:
    """Return the names of the supported array methods."""
    return tuple(_method_handlers())


def _rejecting_handler(message: str, fix: str) -> Handler:
    def handle(site: Site, args: tuple[Value, ...], keywords: dict[str, Value]) -> Value:
        raise error("CD0555", CdTypeError, message, site.span, helps=(fix,))

    return handle


def special_subscript(value: object) -> Callable[[Site, tuple[Value, ...]], Value] | None:
    """Return the handler of subscripts of an object such as `np.mgrid`, None for other objects."""
    return next((handler for instance, handler in grids.SPECIAL if instance is value), None)


def reduction_of(function: object) -> str | None:
    """Return the name of the reduction over index variables that a function is, else None."""
    try:
        return python_functions.REDUCTIONS.get(function)
    except TypeError:
        return None


def elementwise_name(function: object) -> str | None:
    """Return the name of the elementwise operation that a function is, else None."""
    try:
        return python_functions.ELEMENTWISE.get(function)
    except TypeError:
        return None
