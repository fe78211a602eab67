"""Memory that compiled code has not written yet, filled so that reading it shows.

Three kinds of memory hold what was there before: what is asked of the system, variables and arrays
on the stack, and results. The first and the last are filled with bytes of ones (a NaN, or -1), the
stack by the compiler with a pattern of its own (-5.3e303 as float64).
"""

from __future__ import annotations

import os
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from plusequals.backends.cc import toolchain

BYTE = 0xFF
"""What each byte holds: all of them together are a NaN."""

HEAD = f"""
void *aligned_alloc(__SIZE_TYPE__ alignment, __SIZE_TYPE__ size);
static inline void *poisoned_alloc(__SIZE_TYPE__ alignment, __SIZE_TYPE__ size)
{{
    void *const made = aligned_alloc(alignment, size);
    return made ? __builtin_memset(made, {BYTE}, size) : made;
}}
#define aligned_alloc poisoned_alloc
"""
"""Stands above generated C, whose every request for memory without zeros is `aligned_alloc`."""


@cache
def flags(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return the options that fill the stack; none where the compiler knows none."""
    option = "-ftrivial-auto-var-init=pattern"
    with tempfile.TemporaryDirectory(prefix="plusequals-") as name:
        ran = toolchain.run_command((*command, option, "-E", "-x", "c", os.devnull), Path(name))
    return () if ran.status else (option,)


def empty(shape: Any, dtype: Any = np.float64) -> np.ndarray:
    """Return what `numpy.empty` does, filled."""
    made = np.empty(shape, dtype)
    made.reshape(-1).view(np.uint8)[...] = BYTE
    return made
