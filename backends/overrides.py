"""Operators and methods that a user's class overrides.

Compiled code computes with numbers, tuples and arrays as the classes of Python and NumPy do. A
subclass that says otherwise would be ignored without a word, so that its values are refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import FunctionType
from typing import Any

import numpy as np

COMPARISONS = tuple(f"__{name}__" for name in ("eq", "ne", "lt", "le", "gt", "ge"))
_BINARY = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "pow", "matmul", "and", "or",
    "xor", "lshift", "rshift",
)  # fmt: skip
_ARITHMETIC = tuple(f"__{side}{name}__" for name in _BINARY for side in ("", "r", "i"))
_UNARY = tuple(f"__{name}__" for name in ("neg", "pos", "abs", "invert"))
_CONVERSIONS = tuple(
    f"__{name}__"
    for name in ("bool", "int", "float", "complex", "index", "round", "trunc", "floor", "ceil")
)
_OF_NUMPY = ("__array__", "__array_ufunc__", "__array_function__")
_LOOKUP = ("__getattribute__", "__getattr__")
ITEMS = ("__getitem__", "__iter__", "__len__", "__contains__", "__reversed__")
"""The methods by which a sequence yields its items."""
OF_SEQUENCES = (
    *COMPARISONS,
    *_ARITHMETIC,
    *_UNARY,
    "__bool__",
    *_LOOKUP,
)
OF_NUMBERS = (*COMPARISONS, *_ARITHMETIC, *_UNARY, *_CONVERSIONS, *_OF_NUMPY, *_LOOKUP)

BY_SIGN = {
    "+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow",
    "@": "matmul", "&": "and", "|": "or", "^": "xor", "<<": "lshift", ">>": "rshift",
    "==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge", "in": "eq",
    "not in": "eq",
}  # fmt: skip
"""The name in the methods of each operator; those of `in` compare items."""
REFLECTED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
"""The comparison of the right operand that each comparison tries; other operators try `r...`."""
_PACKAGES = ("builtins", "collections", "enum", "numpy", "ml_dtypes", "plusequals")
"""The packages whose classes compiled code follows."""
_OBJECT = (
    "__array_finalize__", "__array_prepare__", "__array_priority__", "__array_wrap__", "__class__",
    "__copy__", "__deepcopy__", "__delattr__", "__dir__", "__doc__", "__format__", "__getstate__",
    "__hash__", "__init__", "__init_subclass__", "__new__", "__reduce__", "__reduce_ex__",
    "__repr__", "__setattr__", "__setstate__", "__sizeof__", "__str__", "__subclasshook__",
    "__class_getitem__",
)  # fmt: skip
"""Attributes of arrays that decide nothing of what is computed."""
_OF_ARRAYS = tuple(name for name in dir(np.ndarray) if name not in _OBJECT) + ("__getattr__",)


def overridden(kind: type, names: Iterable[str]) -> str | None:
    """Return the first of these methods that a user's class overrides, None for none.

    >>> class Cents(int):
    ...     def __eq__(self, other):
    ...         return True
    >>> overridden(Cents, OF_NUMBERS), overridden(int, OF_NUMBERS)
    ('__eq__', None)
    """
    base = _library_base(kind)
    if base is kind:
        return None
    return next((name for name in names if _differs(kind, base, name)), None)


def overridden_in_array(kind: type) -> str | None:
    """Return the first attribute of NumPy's arrays that a user's subclass overrides."""
    return overridden(kind, _OF_ARRAYS)


def overridden_in_foreign(kind: type) -> str | None:
    """Return the first operator or subscript that a class with `__array__` defines in Python.

    None for the arrays of other packages, which follow the array standard or exchange memory by
    DLPack: their operators are those of arrays.
    """
    if hasattr(kind, "__dlpack__") or hasattr(kind, "__array_namespace__"):
        return None
    names = ("__getitem__", *_ARITHMETIC, *_UNARY, "__array_ufunc__", "__array_function__")
    return next((name for name in names if isinstance(_member(kind, name), FunctionType)), None)


def _library_base(kind: type) -> type:
    """Return the first class in a class's resolution order that comes with a library."""
    return next(
        (base for base in kind.__mro__ if str(base.__module__).partition(".")[0] in _PACKAGES),
        object,
    )


def _differs(kind: type, base: type, name: str) -> bool:
    member = _member(kind, name)
    if member is _member(base, name):
        return False
    home = str(getattr(member, "__module__", ""))  # `enum` copies its methods into its classes
    return home.partition(".")[0] not in ("enum", "collections")


def _member(kind: type, name: str) -> Any:
    """Return a member as instances find it: that of a metaclass has no part in it."""
    return next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)
