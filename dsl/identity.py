"""What a captured value is, in words that mean the same in another process.

    described(value)       lists and texts, equal where compiled code may depend on it alike
    fingerprint(function)  a digest of a function's text, of its code and of its default values

A function's own text does not say what the names in it are: those are described one by one. What
has no such words, above all objects of the user's, raises `Unknown`.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator, Sequence
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from .recipe import FLAGS
from .source import MISSING, lines_of

_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...))
_OURS = ("Letter", "Word", "ArrayType")
"""Classes of words of the language, which are known by how they are written."""
_PACKAGES = ("numpy", "ml_dtypes", "plusequals")
_PYTHON = os.path.dirname(os.__file__) + os.sep

Described = list[Any]


class Unknown(Exception):
    """There are no words for a value that mean the same in another process."""


def described(value: object) -> Described:
    """Return what code may depend on of a captured value; raises Unknown."""
    kind = type(value)
    if value is MISSING:
        return ["missing"]
    if kind in _PLAIN:
        return ["constant", kind.__name__, repr(value)]
    if isinstance(value, np.ndarray | np.generic | np.dtype):
        return _numeric(value)
    if isinstance(value, tuple) and kind is tuple:
        return ["tuple", *map(described, value)]
    if isinstance(value, ModuleType):
        if sys.modules.get(value.__name__) is not value:
            raise Unknown
        return ["module", value.__name__]
    if kind.__module__.startswith("plusequals.") and kind.__name__ in _OURS:
        return ["word", kind.__name__, repr(value)]
    if kind is FunctionType and not is_library(str(getattr(value, "__module__", ""))):
        return ["function", fingerprint(value)]
    if kind.__module__.startswith("plusequals.") and kind.__name__ == "CdFunction":
        return ["cd", fingerprint(value.__wrapped__)] if hasattr(value, "__wrapped__") else _none()
    return ["library", *_place(value)]


def fingerprint(function: object, lines: Sequence[str] | None = None) -> str:
    """Return a digest of a Python function: its text, its code, its defaults. Raises Unknown.

    `lines` are those of its file, read now where they are not given.
    """
    if type(function) is not FunctionType:
        raise Unknown
    defaults = function.__defaults__ or (), tuple(sorted((function.__kwdefaults__ or {}).items()))
    text = text_around(function.__code__, lines_of(function) if lines is None else lines)
    parts = (text, *_code(function.__code__), *map(described, defaults))
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def text_around(code: CodeType, lines: Sequence[str]) -> str:
    """Return the lines that hold the text of a function: all of it, maybe more; raises Unknown.

    They go from its first line (that of a decorator) to the last with code, and on while lines
    are indented further than the first, empty, or comments.
    """
    first = code.co_firstlineno
    last = max((line for inner in _codes(code) for line in _last_lines(inner)), default=first)
    if not lines or last > len(lines):
        raise Unknown
    margin = _margin(lines[first - 1])
    while last < len(lines) and (_is_blank(lines[last]) or _margin(lines[last]) > margin):
        last += 1
    return "".join(lines[first - 1 : last]).rstrip()


def _none() -> Described:
    raise Unknown


def _numeric(value: Any) -> Described:
    """Describe an array by its layout, a number by its bits, a type by its name."""
    if isinstance(value, np.generic):
        return ["number", *_numeric(value.dtype), value.tobytes().hex()]
    dtype = value.dtype if isinstance(value, np.ndarray) else value
    if np.dtype(dtype.str) is not dtype or dtype.hasobject:
        raise Unknown
    if isinstance(value, np.dtype):
        return ["dtype", dtype.str]
    if type(value) is not np.ndarray:
        raise Unknown
    return ["array", dtype.str, list(value.shape), list(value.strides), value.flags.num & FLAGS]


def is_library(name: str) -> bool:
    """Whether a module of that name comes with Python, NumPy or this package.

    A file of the user's may have the name of one of Python's modules, and hide it.
    """
    top = name.partition(".")[0]
    if top in _PACKAGES:
        return True
    if top not in sys.stdlib_module_names or top == "__main__":
        return False
    file = getattr(sys.modules.get(top), "__file__", None)
    return file is None or (file.startswith(_PYTHON) and "-packages" not in file)


def _place(value: object) -> Iterator[str]:
    """Yield where a function or class of Python's or NumPy's is found: a module, then a name."""
    home = "numpy" if type(value) is np.ufunc else getattr(value, "__module__", None)
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    if not isinstance(home, str) or not isinstance(name, str) or not is_library(home):
        raise Unknown
    found: object = sys.modules.get(home)
    for step in name.split("."):
        found = getattr(found, step, None)
    if found is not value:
        raise Unknown
    yield from (home, name)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _last_lines(code: CodeType) -> Iterator[int]:
    for line, end, _, _ in code.co_positions():
        if line is not None:
            yield line if end is None else end


def _code(code: CodeType) -> tuple[object, ...]:
    """Return all of a code object but where its file is, and where it stands there."""
    constants = tuple(
        _code(one) if isinstance(one, CodeType)
        else sorted(map(repr, one)) if isinstance(one, frozenset)
        else (type(one).__name__, repr(one))
        for one in code.co_consts
    )  # fmt: skip
    counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    return code.co_code, constants, counts, names, code.co_linetable, code.co_name


def _margin(line: str) -> int:
    return len(line) - len(line.lstrip())


def _is_blank(line: str) -> bool:
    text = line.strip()
    return not text or text.startswith("#")
