"""Floating-point environment of the calling thread during computations in Python.

A library that was linked with `-ffast-math` enables flush-to-zero in the thread that loads it, and
any code may choose another rounding mode. Constants that are folded, numbers that are printed into
a program's text, and results of the interpreter are those of the default modes. Compiled code sets
the modes itself.

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

from .lazy_import import LazyModule

if TYPE_CHECKING:
    import ctypes
else:
    ctypes = LazyModule("ctypes", None)

_ENVIRONMENT_BYTES = 256
"""Bytes that hold the floating-point environment (`fenv_t`) of any system: 28 to 40 are usual."""
_ONE, _STEP = 1.0, 2.0**-52
_MIN_NORMAL = sys.float_info.min


def are_default() -> bool:
    """Whether results are rounded to nearest and subnormal numbers are kept."""
    half = _STEP * 0.5
    is_nearest = _ONE + half == _ONE and _ONE + _STEP + half > _ONE + _STEP
    return is_nearest and _MIN_NORMAL * 0.75 > 0.0


@contextmanager
def default() -> Iterator[None]:
    """Set the default modes inside, and restore the previous ones afterwards. A decorator, too.

    Where the system has no functions for them nothing is changed.
    """
    functions = None if are_default() else _fenv_functions()
    if functions is None:
        yield
        return
    get, put, initial = functions
    before = ctypes.create_string_buffer(_ENVIRONMENT_BYTES)
    get(before)
    put(initial)
    try:
        yield
    finally:
        put(before)


def _fenv_functions() -> tuple[Any, Any, Any] | None:
    """Return C's `fegetenv`, `fesetenv` and FE_DFL_ENV; None where they are missing."""
    try:
        library = ctypes.CDLL(None if os.name == "posix" else "ucrtbase")
        library = library if hasattr(library, "fesetenv") else ctypes.CDLL("libm.so.6")
        get_and_set = library.fegetenv, library.fesetenv
        if sys.platform == "darwin":
            return (*get_and_set, ctypes.byref(ctypes.c_char.in_dll(library, "_FE_DFL_ENV")))
        return (*get_and_set, ctypes.c_void_p(-1)) if sys.platform == "linux" else None
    except (OSError, AttributeError, ValueError):
        return None
