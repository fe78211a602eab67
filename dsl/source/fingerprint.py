"""Fingerprints of captured values: descriptions that are valid across processes.

    described(value)       nested lists of strings and numbers; equal where compiled code may not
                           depend on a difference
    fingerprint(function)  a digest of a function's text, code and default values
    resolved(description)  the module or library object that a description refers to

The text of a function does not say what its names are bound to: captured values are described one
by one. Values without such a description, above all objects of the user's, raise `NotPortable`.
"""

from __future__ import annotations

import ast
import hashlib
import os
import struct
import sys
from collections.abc import Iterator, Sequence
from types import BuiltinMethodType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from ...backends.call_entry import FLAGS
from .definition_lines import lines_of
from .function_source import MISSING

_SCALAR_TYPES = (bool, int, float, complex, str, bytes, type(None), type(...))
_LANGUAGE_TYPES = ("Letter", "Word", "ArrayType")
"""Classes of words of the language, which `repr` identifies."""
_PACKAGES = ("numpy", "ml_dtypes", "plusequals")
_PYTHON = os.path.dirname(os.__file__) + os.sep

Description = list[Any]


class NotPortable(Exception):
    """A value has no description that is valid in another process."""


def describe(value: Any) -> Description:
    """Return a description of what code may depend on of a captured value; raises Unknown."""
    kind = type(value)
    if value is MISSING:
        return ["missing"]
    if kind in _SCALAR_TYPES:
        return ["constant", kind.__name__, constant_text(value)]
    if isinstance(value, np.ndarray | np.generic | np.dtype):
        return _numeric(value)
    if isinstance(value, tuple) and kind is tuple:
        return ["tuple", *map(describe, value)]
    if isinstance(value, ModuleType):
        if sys.modules.get(value.__name__) is not value:
            raise NotPortable
        return ["module", value.__name__, is_library(value.__name__)]
    if kind.__module__.startswith("plusequals.") and kind.__name__ in _LANGUAGE_TYPES:
        return ["word", kind.__name__, repr(value)]
    if kind is FunctionType and not is_library(str(getattr(value, "__module__", ""))):
        return ["function", fingerprint(value)]
    if (kind.__module__, kind.__name__) == ("plusequals.dsl.api.cd", "CdFunction"):
        return ["cd", value.definition.fingerprint or _not_portable()]
    if kind is BuiltinMethodType and type(value.__self__) is np.ufunc:
        return ["method", *_qualified_name(value.__self__), value.__name__]
    return ["library", *_qualified_name(value)]


def constant_text(value: Any) -> str:
    """Return a Python constant as text: equal texts only for the same type and bits.

    >>> constant_text(-0.0) == constant_text(0.0)
    False
    >>> constant_text(float("nan")) == constant_text(float("-nan"))
    False
    """
    match value:
        case float():
            return struct.pack("d", value).hex()
        case complex():
            return struct.pack("dd", value.real, value.imag).hex()
        case int() if type(value) is int:
            return hex(value)  # `repr` refuses long ones
        case tuple():
            return (
                f"({', '.join(f'{type(item).__name__} {constant_text(item)}' for item in value)})"
            )
        case frozenset():
            return str(sorted(f"{type(item).__name__} {constant_text(item)}" for item in value))
        case _:
            return repr(value)


def try_describe(value: object) -> Description | None:
    """Return the description of a value, None where it has none."""
    try:
        return describe(value)
    except NotPortable:
        return None


def resolve(description: Description) -> object:
    """Return the module or library object with this description; raises Unknown."""
    match description:
        case ["module", str() as name, _] if name in sys.modules:
            return sys.modules[name]
        case ["library", str() as home, str() as name]:
            return _import_path(home, name)
    raise NotPortable


def read_attribute(owner: object, name: str) -> object:
    """Return an attribute of an arbitrary object; raises Unknown where it cannot be read."""
    try:
        return getattr(owner, name)
    except Exception:  # whatever a module or an object of the user's does
        raise NotPortable from None


def is_immutable(value: object) -> bool:
    """Whether a value is immutable, so that its attributes are determined by the value."""
    return isinstance(value, (*_SCALAR_TYPES, np.dtype, np.generic, np.finfo, np.iinfo))


def fingerprint(function: object, lines: Sequence[str] | None = None) -> str:
    """Return a digest of a Python function: its text, its code, its defaults. Raises Unknown.

    `lines` are those of its file; they are read now where they are not given.
    """
    if type(function) is not FunctionType:
        raise NotPortable
    defaults = function.__defaults__ or (), tuple(sorted((function.__kwdefaults__ or {}).items()))
    text = definition_text(function.__code__, lines_of(function) if lines is None else lines)
    try:
        parts = (text, *_code_contents(function.__code__), *map(describe, defaults))
    except RecursionError:  # a function among its own default values
        raise NotPortable from None
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def definition_text(code: CodeType, lines: Sequence[str]) -> str:
    """Return the lines that contain the text of a function, maybe more; raises Unknown.

    They range from its first line (a decorator's) to the last with code, extended by lines that
    are indented further than the first, empty, or comments. Text without code, such as a type at
    the end, may continue further to the left: then the lines are no complete definition.
    """
    first = code.co_firstlineno
    ends = {end for inner in _nested_code(code) for end in _last_lines(inner)}
    last = max((end for end in ends if end is not None), default=first)
    if not lines or last > len(lines):
        raise NotPortable
    indent = _indentation(lines[first - 1])
    while last < len(lines) and (_is_blank(lines[last]) or _indentation(lines[last]) > indent):
        last += 1
    text = "".join(lines[first - 1 : last]).rstrip()
    if None in ends if code.co_name == "<lambda>" else not _is_definition(text, indent > 0):
        raise NotPortable
    return text


def _is_definition(text: str, indented: bool) -> bool:
    """Whether a text is exactly one definition of a function."""
    try:
        body = ast.parse(f"if 1:\n{text}\n" if indented else text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    if indented and isinstance(body[0], ast.If):
        body = [*body[0].body, *body[1:]]
    return len(body) == 1 and isinstance(body[0], ast.FunctionDef | ast.AsyncFunctionDef)


def _not_portable() -> str:
    raise NotPortable


def _numeric(value: Any) -> Description:
    """Describe an array by its layout, a number by its bits, a type by its name."""
    if isinstance(value, np.generic):
        return ["number", *_numeric(value.dtype), value.tobytes().hex()]
    dtype = value.dtype if isinstance(value, np.ndarray) else value
    if np.dtype(dtype.str) is not dtype or dtype.hasobject:
        raise NotPortable
    if isinstance(value, np.dtype):
        return ["dtype", dtype.str]
    if type(value) is not np.ndarray:
        raise NotPortable
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


def _qualified_name(value: object) -> Iterator[str]:
    """Yield the module and the qualified name of a function or class of Python or NumPy."""
    home = "numpy" if type(value) is np.ufunc else read_attribute(value, "__module__")
    name = read_attribute(value, "__name__" if type(value) is np.ufunc else "__qualname__")
    if (
        not isinstance(home, str)
        or not isinstance(name, str)
        or _import_path(home, name) is not value
    ):
        raise NotPortable
    yield from (home, name)


def _import_path(home: str, name: str) -> object:
    """Return the object of a qualified name in a library module; raises Unknown."""
    value: object = sys.modules.get(home) if is_library(home) else None
    for step in name.split("."):
        value = read_attribute(value, step)
    return value


def _nested_code(code: CodeType) -> Iterator[CodeType]:
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _nested_code(inner)


def _last_lines(code: CodeType) -> Iterator[int | None]:
    """Yield the end lines of instructions, None where only the first line of one is known."""
    for line, end in {(line, end) for line, end, _, _ in code.co_positions()}:
        if line is not None:
            yield end if end is not None else line
            if end is None:
                yield None


def _code_contents(code: CodeType) -> tuple[object, ...]:
    """Return the contents of a code object without its file name and first line."""
    constants = tuple(
        _code_contents(constant) if isinstance(constant, CodeType)
        else (type(constant).__name__, constant_text(constant))
        for constant in code.co_consts
    )  # fmt: skip
    counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    return code.co_code, constants, counts, names, code.co_linetable, code.co_name


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def _is_blank(line: str) -> bool:
    text = line.strip()
    return not text or text.startswith("#")
