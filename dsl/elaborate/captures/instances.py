"""Which objects code depends on by themselves, and which by their type and what is read of them.

an instance   of a class of the user's: another one with the like attributes is as good
a method      its function, and then its owner, which is found from it like any attribute
all else      functions, modules, classes, members of enumerations: the very object
"""

from __future__ import annotations

import enum
import functools
import types
from collections.abc import Mapping
from inspect import getattr_static
from typing import Any

import numpy as np

from ...source import fingerprint
from ...source.function_source import MISSING

FUNCTIONS = (
    types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType, type,
    types.CodeType, np.ufunc, types.MethodWrapperType, types.WrapperDescriptorType,
    types.MethodDescriptorType,
)  # fmt: skip


def is_library(value: object) -> bool:
    """Return whether a module, class or function comes with Python, NumPy or this package."""
    name = "__name__" if isinstance(value, types.ModuleType) else "__module__"
    return fingerprint.is_library(str(getattr(value, name, "")))


def has_state(value: object) -> bool:
    """Whether attributes of an object may change, so that they are looked up at every call.

    Those of functions and of what Python and NumPy bring along do not; those of the user's
    modules, classes and objects may.
    """
    if isinstance(value, types.ModuleType | type):
        return not is_library(value)
    return not isinstance(value, FUNCTIONS) and not hasattr(value, "__cd_function__")


def is_function(value: object) -> bool:
    """Whether a value is a function of the user's, plain or under `@cd`, with attributes of its own
    that may change."""
    if hasattr(value, "__cd_function__"):
        return True
    return isinstance(value, types.FunctionType) and not is_library(value)


def is_instance(value: object) -> bool:
    """Whether an object is known by its type: all else that matters of it is an attribute.

    Not what is called without its source being read, whose results may depend on anything, nor
    marks: members of enumerations, an `object()`, what says that a name is nothing.
    """
    if not has_state(value) or isinstance(value, types.ModuleType | type | enum.Enum):
        return False
    if value is MISSING or type(value) is object:
        return False
    return not callable(value) or (runs_source(value) and not is_method(value))


def has_plain(value: object, name: str) -> bool:
    """Whether an attribute is the object's own, and assigning what it has already does nothing.

    >>> class Point:
    ...     kind = 1
    ...     def __init__(self):
    ...         self.x = 2
    >>> has_plain(Point(), "x"), has_plain(Point(), "kind")
    (True, False)
    """
    if type(value).__setattr__ is not object.__setattr__:
        return False
    found = getattr_static(type(value), name, MISSING)
    slot = isinstance(found, types.MemberDescriptorType)
    return slot or (not hasattr(type(found), "__set__") and name in getattr(value, "__dict__", ()))


def runs_source(value: object) -> bool:
    """Whether an object is called by a function of its class that can be read."""
    called = getattr(type(value), "__call__", None)  # noqa: B004 - it may be inherited
    return isinstance(called, types.FunctionType) or hasattr(called, "__cd_function__")


def is_method(value: object) -> bool:
    """Whether a value is a function taken from an object: `obj.step`, plain or under `@cd`."""
    if isinstance(value, types.MethodType):
        return True
    return isinstance(value, functools.partial) and hasattr(value, "__func__")


def fields_of(value: object) -> tuple[str, ...]:
    """Return the fields of a named tuple where they are its items, nothing for others."""
    return fields_of_class(type(value))


def fields_of_class(kind: type) -> tuple[str, ...]:
    """Return the fields of a class of named tuples where they are items, nothing for others."""
    named: Mapping[str, Any] = next(
        (vars(one) for one in kind.__mro__ if "_fields" in vars(one)), {}
    )
    fields: tuple[str, ...] = named.get("_fields", ())
    own = all(getattr_static(kind, name) is named.get(name) for name in fields)
    return fields if own else ()
