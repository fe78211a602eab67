"""Other floating-point modes for tests: what a library linked with `-ffast-math`, or C, may set."""

from __future__ import annotations

import contextlib
import ctypes
import platform
import sys
from collections.abc import Iterator

_WORD = {"x86_64": 28, "aarch64": 0}.get(platform.machine())
"""Where in C's `fenv_t` the modes are, in bytes."""
IS_KNOWN = sys.platform == "linux" and _WORD is not None
_X86 = {"flushed": 0x8040, "down": 0x2000, "up": 0x4000, "to zero": 0x6000}
_ARM = {"flushed": 1 << 24, "down": 2 << 22, "up": 1 << 22, "to zero": 3 << 22}
MODES = _ARM if platform.machine() == "aarch64" else _X86
_FLAGS = 0x3F if platform.machine() == "x86_64" else 0


def _environment() -> ctypes.Array[ctypes.c_char]:
    held = ctypes.create_string_buffer(64)
    ctypes.CDLL("libm.so.6").fegetenv(held)
    return held


def now() -> int:
    """Return the modes of the calling thread, without the flags of what has happened."""
    assert _WORD is not None
    return int.from_bytes(_environment().raw[_WORD : _WORD + 4], "little") & ~_FLAGS


@contextlib.contextmanager
def mode(name: str) -> Iterator[int]:
    """Have a mode in the calling thread inside, and the environment of before after it."""
    assert _WORD is not None
    before, changed = _environment(), _environment()
    word = int.from_bytes(before.raw[_WORD : _WORD + 4], "little") | MODES[name]
    changed[_WORD : _WORD + 4] = word.to_bytes(4, "little")
    put = ctypes.CDLL("libm.so.6").fesetenv
    put(changed)
    try:
        yield now()
    finally:
        put(before)
