"""Lookup of handlers: which operation of the language an object of Python or NumPy stands for.

`lookup` for functions, by identity; `method` for array methods, by name; `WORDS` for bare names;
`refusal` for what is recognized and rejected. The handlers are in the modules of this folder.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from ...base.diagnostic import CdTypeError
from ...base.lazy_import import LazyModule, lazy_modules
from ..values.builder import error
from ..values.call_site import Handler, Site, Word, dtype_object, static_int, static_shape
from ..values.fix_hints import FILL, PICK
from ..values.values import Value
from .primitives import python_functions
from .primitives.elementwise import arithmetic

if TYPE_CHECKING:
    from . import registry
    from .primitives import creation, grids
else:  # imported at the first function of NumPy
    creation, grids = lazy_modules(__package__, ".primitives.creation", ".primitives.grids")
    registry = LazyModule(".registry", __package__)


_LENGTH = "gives an array whose length is known only at run time"
_FACTOR = "is not part of the language"
_OUTSIDE = "call it outside and pass its result in"

_FUNCTIONS: tuple[tuple[object, str, str], ...] = (
    (np.nonzero, f"`np.nonzero` {_LENGTH}", FILL),
    (np.flatnonzero, f"`np.flatnonzero` {_LENGTH}", FILL),
    (np.argwhere, f"`np.argwhere` {_LENGTH}", FILL),
    (np.unique, f"`np.unique` {_LENGTH}", _OUTSIDE),
    (np.extract, f"`np.extract` {_LENGTH}", PICK),
    (np.compress, f"`np.compress` {_LENGTH}", PICK),
    (np.intersect1d, f"`np.intersect1d` {_LENGTH}", _OUTSIDE),
    (np.union1d, f"`np.union1d` {_LENGTH}", _OUTSIDE),
    (np.delete, "`np.delete` is not part of the language", "join the parts: `np.concatenate`"),
    (np.insert, "`np.insert` is not part of the language", "join the parts: `np.concatenate`"),
    (np.piecewise, f"`np.piecewise` {_FACTOR}", "use `np.select([test], [value], other)`"),
    (np.choose, f"`np.choose` {_FACTOR}", "stack the choices and index them, or use `np.select`"),
    (np.ndenumerate, f"`np.ndenumerate` {_FACTOR}", "write one `for` over `range` for each axis"),
    (np.ndindex, f"`np.ndindex` {_FACTOR}", "write one `for` over `range` for each axis"),
    (np.nditer, f"`np.nditer` {_FACTOR}", "write one `for` over `range` for each axis"),
    (np.vectorize, "`np.vectorize` is not needed here", "call the function on elements in a loop"),
    (np.apply_along_axis, "`np.apply_along_axis` is not needed here", "write a loop over the axis"),
    (np.frompyfunc, "`np.frompyfunc` is not needed here", "call the function itself"),
    (np.linalg.eig, f"`np.linalg.eig` {_FACTOR}", _OUTSIDE),
    (np.linalg.eigh, f"`np.linalg.eigh` {_FACTOR}", _OUTSIDE),
    (np.linalg.eigvals, f"`np.linalg.eigvals` {_FACTOR}", _OUTSIDE),
    (np.linalg.eigvalsh, f"`np.linalg.eigvalsh` {_FACTOR}", _OUTSIDE),
    (np.linalg.svd, f"`np.linalg.svd` {_FACTOR}", _OUTSIDE),
    (np.linalg.qr, f"`np.linalg.qr` {_FACTOR}", _OUTSIDE),
    (np.linalg.lstsq, f"`np.linalg.lstsq` {_FACTOR}", "solve the normal equations, or " + _OUTSIDE),
    (np.linalg.pinv, f"`np.linalg.pinv` {_FACTOR}", _OUTSIDE),
    (np.linalg.matrix_rank, f"`np.linalg.matrix_rank` {_FACTOR}", _OUTSIDE),
    (np.linalg.cond, f"`np.linalg.cond` {_FACTOR}", _OUTSIDE),
    (open, "files cannot be opened in a compiled function", "read it outside and pass the data in"),
    (input, "a compiled function cannot ask for input", "ask outside and pass the answer in"),
    (eval, "`eval` cannot be compiled", "write the expression itself"),
    (exec, "`exec` cannot be compiled", "write the statements themselves"),
    (dict, "dictionaries cannot be built in a compiled function", "use arrays indexed by numbers"),
    (set, "sets cannot be built in a compiled function", "use a bool array as a mask"),
    (sorted, "Python's `sorted` makes a list", "use `np.sort`"),
    (iter, "iterators cannot be used in a compiled function", "use a `for` loop"),
    (next, "iterators cannot be used in a compiled function", "use a `for` loop"),
)  # fmt: skip
_BY_OBJECT = {id(function): (message, way_out) for function, message, way_out in _FUNCTIONS}

_MODULES: tuple[tuple[str, str, str], ...] = (
    ("numpy.random", "random numbers cannot be drawn in a compiled function",
     "draw them outside and pass them in"),
    ("numpy.fft", "`np.fft` is not part of the language", _OUTSIDE),
    ("numpy.linalg", "this function of `np.linalg` is not part of the language", _OUTSIDE),
    ("random", "random numbers cannot be drawn in a compiled function",
     "draw them outside and pass them in"),
    ("scipy", "SciPy is not part of the language", _OUTSIDE),
    ("time", "a compiled function cannot ask for the time", "ask outside and pass it in"),
)  # fmt: skip


def refusal(function: object) -> tuple[str, str] | None:
    """Return the error text and the suggested fix for an unsupported function, else None."""
    entry = _BY_OBJECT.get(id(function))
    if entry is not None:
        return entry
    owner = getattr(function, "__self__", None)
    if isinstance(owner, np.ufunc):
        name = f"np.{owner.__name__}.{getattr(function, '__name__', '')}"
        return f"`{name}` is not part of the language", "write it with an index letter or a loop"
    module = _module_of(function, owner)
    for name, message, way_out in _MODULES:
        if module == name or module.startswith(name + "."):
            return message, way_out
    if module == "numpy" or module.startswith("numpy."):
        name = str(getattr(function, "__name__", function))
        public = getattr(np, name, None) is function
        shown = f"np.{name}" if public else f"{module}.{name}".replace("numpy", "np", 1)
        return f"`{shown}` is not known to the language", _OUTSIDE
    return None


def _module_of(function: object, owner: object) -> str:
    """Return the module of a function, of its class, or of the object it is bound to."""
    if isinstance(function, types.FunctionType | type | np.ufunc):
        return getattr(function, "__module__", None) or ""
    module = getattr(function, "__module__", None)
    if isinstance(module, str) and module:
        return module
    if owner is not None and not isinstance(owner, types.ModuleType):
        return type(owner).__module__
    return type(function).__module__ if module is None else ""


_METHODS: tuple[tuple[str, str, str], ...] = (
    ("tolist", "`tolist` makes a Python list", "keep the array, or return it"),
    ("nonzero", f"`nonzero` {_LENGTH}", FILL),
    ("tobytes", "`tobytes` makes a Python object", "return the array"),
    ("tofile", "files cannot be written in a compiled function", "return the array"),
    ("view", "`view` under another type is not part of the language", "convert: `x.astype(...)`"),
    ("resize", "arrays do not change their size", "make an array of the final size"),
    ("append", "arrays do not grow", "make an array of the final size"),
    ("extend", "arrays do not grow", "make an array of the final size"),
)  # fmt: skip
METHOD_REFUSALS = {name: (message, way_out) for name, message, way_out in _METHODS}


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
