"""The floating-point modes of the calling thread, while Python computes what a program means.

A library that was linked with `-ffast-math` flushes subnormal numbers to zero in the thread that
loads it, and any code may choose another rounding mode. Constants that are folded, numbers that are
printed into a program's text, and what the interpreter computes are those of the default modes.
Compiled code sets the modes itself.

>>> with default():
...     are_default()
True
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .lazy_import import Later

if TYPE_CHECKING:
    import ctypes
else:
    ctypes = Later("ctypes", None)

_ROOM = 256
"""Bytes that hold the floating-point environment of any system: 28 to 40 are usual."""
_ONE, _STEP = 1.0, 2.0**-52
_LEAST = sys.float_info.min


def are_default() -> bool:
    """Whether results are rounded to nearest and subnormal numbers are kept."""
    half = _STEP * 0.5
    is_nearest = _ONE + half == _ONE and _ONE + _STEP + half > _ONE + _STEP
    return is_nearest and _LEAST * 0.75 > 0.0


@contextmanager
def default() -> Iterator[None]:
    """Have the default modes inside, and what was before after it. As decorator, too.

    Where the system cannot be asked for them nothing is changed.
    """
    functions = None if are_default() else _functions()
    if functions is None:
        yield
        return
    get, put, initial = functions
    before = ctypes.create_string_buffer(_ROOM)
    get(before)
    put(initial)
    try:
        yield
    finally:
        put(before)


def _functions() -> tuple[Any, Any, Any] | None:
    """Return C's `fegetenv`, `fesetenv` and FE_DFL_ENV; None where there are none."""
    try:
        library = ctypes.CDLL(None if os.name == "posix" else "ucrtbase")
        library = library if hasattr(library, "fesetenv") else ctypes.CDLL("libm.so.6")
        found = library.fegetenv, library.fesetenv
        if sys.platform == "darwin":
            return (*found, ctypes.byref(ctypes.c_char.in_dll(library, "_FE_DFL_ENV")))
        return (*found, ctypes.c_void_p(-1)) if sys.platform == "linux" else None
    except (OSError, AttributeError, ValueError):
        return None
