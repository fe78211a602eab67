"""Calls that may be computed while compiling: their results follow from their arguments alone.

    is_value(object)          constants that no code can change
    is_pure(function, args)   what may be called now, with values: its result is a constant of the
                              code, and the call has no effect
    reads_only(method)        methods written in C whose results are asked for in each call

Whatever is called once, when a function is compiled, has its effects once, and gives one result to
all calls. So all else is refused: what asks for the time, the environment, or the state of a
module, what draws or prints, what changes a container.
"""

from __future__ import annotations

import enum
import functools
import operator
import types
from collections import deque
from collections.abc import Sequence
from dataclasses import MISSING
from typing import Any, cast

import numpy as np

from ...source.fingerprint import is_immutable
from ...values.call_site import Word
from .instances import c_method_of

_PURE_MODULES = ("math", "cmath", "_operator", "operator")
_ON_VALUES = frozenset((
    abs, ascii, bin, callable, chr, divmod, format, hash, hex, isinstance, issubclass, len, max,
    min, oct, ord, pow, repr, round, sum, any, all, bool, int, float, complex, str, bytes, tuple,
    frozenset, range, slice, np.dtype, np.finfo, np.iinfo,
))  # fmt: skip
"""Functions and classes of Python and NumPy whose results follow from values."""
_ON_CLASSES = frozenset((isinstance, issubclass, callable, type, repr, hash))
"""Those that take classes and functions, too."""
_VALUE_CLASSES = frozenset((
    ("datetime", "timedelta"), ("datetime", "date"), ("datetime", "time"), ("datetime", "datetime"),
    ("datetime", "timezone"), ("decimal", "Decimal"), ("fractions", "Fraction"),
))  # fmt: skip
"""Immutable classes of Python's library, which is not imported for them."""
_ALTERNATIVE = ("fromhex", "from_bytes", "from_float", "fromisoformat", "fromordinal", "maketrans")
"""Class methods that make values."""
_ENVIRONMENTAL = ("timestamp", "astimezone", "strftime", "ctime", "now", "today", "utcnow")
"""Methods of dates whose results depend on the time zone or the clock."""
_ITERATORS = (enumerate, reversed, zip)
"""Iterators, which nothing here goes along but a loop; those of `itertools` as well."""
_CALLERS = (operator.itemgetter, operator.attrgetter, operator.methodcaller)
_READING = frozenset((
    dict.get, dict.__contains__, dict.__len__, dict.__getitem__, list.__contains__, list.__len__,
    set.__contains__, set.__len__, set.isdisjoint, set.issubset, set.issuperset,
    frozenset.isdisjoint, frozenset.issubset, frozenset.issuperset, deque.count, deque.__len__,
    types.MappingProxyType.get, types.MappingProxyType.__contains__,
))  # fmt: skip
"""Methods of containers that change nothing, and whose results no one else can change."""
_CHANGING = frozenset((
    "add", "append", "appendleft", "clear", "discard", "extend", "extendleft", "insert", "pop",
    "popitem", "popleft", "remove", "reverse", "rotate", "setdefault", "sort", "update", "write",
    "writelines", "intersection_update", "difference_update", "symmetric_difference_update",
    "__setitem__", "__delitem__",
))  # fmt: skip


def is_value(value: object) -> bool:
    """Whether a value is a constant that no code can change.

    >>> is_value((1, "a")), is_value([1]), is_value(([],))
    (True, False, False)
    """
    kind = type(value)
    if kind in (tuple, frozenset):
        items: Any = value
        return all(map(is_value, items))
    if isinstance(value, enum.Enum | Word | range | slice) or is_immutable(value):
        return True
    return _is_value_class(kind)


def is_pure(function: Any, args: Sequence[object]) -> bool:
    """Whether a function may be called now with these arguments.

    >>> import os
    >>> is_pure("abc".upper, ()), is_pure([].append, (1,)), is_pure(os.getcwd, ())
    (True, False, False)
    """
    if function is functools.partial:
        return True  # it only holds them
    if not all(is_value(arg) or _is_class(function, arg) for arg in args):
        return False
    if function is type:
        return len(args) == 1
    if isinstance(function, np.ufunc):  # of any package; those of objects call what they hold
        return any("O" not in signature for signature in function.types)
    if isinstance(function, type):
        return (
            function in _ON_VALUES or _is_value_class(function) or function in _CALLERS
            or function in _ITERATORS or function.__module__ == "itertools"
            or _finds_members(function) and len(args) == 1 or _is_plain_data(function)
        )  # fmt: skip
    if isinstance(function, types.BuiltinFunctionType | types.MethodWrapperType):
        return _is_pure_builtin(function)
    if isinstance(function, types.MethodDescriptorType | types.WrapperDescriptorType):
        return _has_pure_methods(function.__objclass__, function.__name__)
    return isinstance(function, _CALLERS)


def reads_only(method: Any) -> bool:
    """Whether a bound method written in C changes nothing, and gives what no one else changes."""
    owner = method.__self__
    return c_method_of(method) in _READING or _has_pure_methods(type(owner), method.__name__)


def changes(method: Any) -> bool:
    """Whether a bound method written in C is known to change its owner."""
    return method.__name__ in _CHANGING


def _is_class(function: object, arg: object) -> bool:
    if isinstance(arg, tuple):
        return all(_is_class(function, item) for item in arg)
    is_code = isinstance(arg, type | types.FunctionType | types.BuiltinFunctionType)
    return is_code and any(function is known for known in _ON_CLASSES)


def _is_value_class(kind: type) -> bool:
    return (kind.__module__, kind.__qualname__) in _VALUE_CLASSES


def _has_pure_methods(kind: type, name: str) -> bool:
    if name in _ENVIRONMENTAL:
        return False
    immutable = str, bytes, int, float, complex, bool, tuple, frozenset, range, slice, np.dtype
    return kind in immutable or issubclass(kind, np.generic) or _is_value_class(kind)


def _is_pure_builtin(function: Any) -> bool:
    owner = function.__self__
    if owner is None or isinstance(owner, types.ModuleType):
        return function in _ON_VALUES or function.__module__ in _PURE_MODULES
    if isinstance(owner, type):
        return function.__name__ in _ALTERNATIVE and _has_pure_methods(owner, function.__name__)
    return is_value(owner) and _has_pure_methods(type(owner), function.__name__)


def _finds_members(kind: Any) -> bool:
    """Whether a class is an enumeration that finds its members by value without code of the
    user's."""
    if not isinstance(kind, type) or type(kind).__call__ is not enum.EnumMeta.__call__:
        return False
    home = next(base for base in kind.__mro__ if "_missing_" in vars(base))
    return home in (enum.Enum, enum.Flag)


def _is_plain_data(kind: Any) -> bool:
    """Whether a class is a dataclass whose construction runs no code of the user's."""
    fields = getattr(kind, "__dataclass_fields__", None)
    if fields is None or hasattr(kind, "__post_init__"):
        return False
    made, plain = vars(kind).get("__init__"), cast(Any, object)
    is_generated = isinstance(made, types.FunctionType) and made.__code__.co_filename == "<string>"
    sets_plainly = kind.__dataclass_params__.frozen or kind.__setattr__ is plain.__setattr__
    makes_plainly = type(kind) is type and kind.__new__ is plain.__new__
    return (
        is_generated
        and makes_plainly
        and sets_plainly
        and all(item.default_factory is MISSING for item in fields.values())
    )
