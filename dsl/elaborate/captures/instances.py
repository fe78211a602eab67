"""Guards on objects: which are compared by identity, which by type and the attributes read.

an instance   of a user's class: by type; another with equal attributes is interchangeable
a method      its function, and its owner, which is reached from it like any attribute
all else      functions, modules, classes, members of enumerations: by identity
"""

from __future__ import annotations

import enum
import functools
import types
from collections import deque
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
    """Whether attributes of an object may change, so that they are looked up in every call.

    Those of functions and of Python's and NumPy's classes do not; those of the user's modules,
    classes and instances may. Of Python's modules `may_be_replaced` tells.
    """
    if isinstance(value, types.ModuleType | type):
        return not is_library(value)
    return not isinstance(value, FUNCTIONS) and not hasattr(value, "__cd_function__")


_FIXED_MODULES = (
    "numpy", "math", "cmath", "operator", "_operator", "builtins", "ml_dtypes", "plusequals",
)  # fmt: skip


def may_be_replaced(owner: object, member: object) -> bool:
    """Whether an attribute of a module or class of Python's or NumPy's is compared in every call.

    Those of NumPy and of mathematics do not change, but for containers; other modules have state:
    the arguments of the program, the environment, the streams.
    """
    if isinstance(owner, types.ModuleType):
        if owner.__name__.partition(".")[0] not in _FIXED_MODULES:
            return True
        return isinstance(member, dict | list | set)
    return isinstance(owner, type) and isinstance(member, dict | list | set | deque | bytearray)


def is_function(value: object) -> bool:
    """Whether a value is a user's function, plain or under `@cd`, whose attributes may change."""
    if hasattr(value, "__cd_function__"):
        return True
    return isinstance(value, types.FunctionType) and not is_library(value)


def is_instance(value: object) -> bool:
    """Whether an object is specified by its type: all else that code depends on is an attribute.

    Excluded are callables whose source is not read, since their results may depend on anything,
    and sentinels: members of enumerations, an `object()`, the marker of an unbound name.
    """
    if not has_state(value) or isinstance(value, types.ModuleType | type | enum.Enum):
        return False
    if value is MISSING or type(value) is object:
        return False
    return not callable(value) or (runs_source(value) and not is_method(value))


def is_of_user(value: object) -> bool:
    """Whether an object has a class of the user's, whose code and attributes may change."""
    return not isinstance(value, (*FUNCTIONS, tuple)) and not is_library(type(value))


def is_from_library(value: object, name: str) -> bool:
    """Whether an attribute of an object is what a class of Python's or NumPy's has by that name."""
    home = next((kind for kind in type(value).__mro__ if name in vars(kind)), None)
    return home is not None and is_library(home) and name not in getattr(value, "__dict__", ())


def has_plain(value: object, name: str) -> bool:
    """Whether an attribute is in the object's `__dict__` or a slot, so that assigning its present
    value has no effect.

    >>> class Point:
    ...     kind = 1
    ...     def __init__(self):
    ...         self.x = 2
    >>> has_plain(Point(), "x"), has_plain(Point(), "kind")
    (True, False)
    """
    if type(value).__setattr__ is not object.__setattr__ or computes_attributes(value):
        return False
    descriptor = getattr_static(type(value), name, MISSING)
    slot = isinstance(descriptor, types.MemberDescriptorType)
    return slot or (
        not hasattr(type(descriptor), "__set__") and name in getattr(value, "__dict__", ())
    )


def computes_attributes(value: object) -> bool:
    """Whether a class of the user's computes all attributes: it has a `__getattribute__`."""
    return isinstance(getattr(type(value), "__getattribute__", None), types.FunctionType)


def creates_new_object(value: object) -> bool:
    """Whether Python would make another object in each call, which the caller may change."""
    params = getattr(type(value), "__dataclass_params__", None)
    return hasattr(type(value), "__next__") or params is not None and not params.frozen


def runs_source(value: object) -> bool:
    """Whether an object's `__call__` is a function with readable source."""
    called = getattr(type(value), "__call__", None)  # noqa: B004 - it may be inherited
    return isinstance(called, types.FunctionType) or hasattr(called, "__cd_function__")


def is_method(value: object) -> bool:
    """Whether a value is a bound method: `obj.step`, plain or under `@cd`."""
    if isinstance(value, types.MethodType):
        return True
    return isinstance(value, functools.partial) and hasattr(value, "__func__")


def c_method_of(value: Any) -> Any:
    """Return the function, as the class has it, of a bound method written in C whose owner may
    change; None for other values.

    A new bound method comes with each access: only its owner and its function tell which it is.

    >>> c_method_of({}.get) is dict.get, c_method_of("a".upper), c_method_of(len)
    (True, None, None)
    """
    if not isinstance(value, types.BuiltinMethodType | types.MethodWrapperType):
        return None
    owner = value.__self__
    is_fixed = owner is None or isinstance(owner, types.ModuleType | type | np.ufunc)
    if is_fixed or fingerprint.is_immutable(owner):
        return None
    return getattr(type(owner), value.__name__, None)


def fields_of(value: object) -> tuple[str, ...]:
    """Return the field names of a named tuple, in the order of its items; empty for others."""
    return fields_of_class(type(value))


def fields_of_class(kind: type) -> tuple[str, ...]:
    """Return the field names of a named-tuple class, in the order of items; empty for others."""
    named: Mapping[str, Any] = next(
        (vars(base) for base in kind.__mro__ if "_fields" in vars(base)), {}
    )
    fields: tuple[str, ...] = named.get("_fields", ())
    unmodified = all(getattr_static(kind, name) is named.get(name) for name in fields)
    return fields if unmodified else ()
