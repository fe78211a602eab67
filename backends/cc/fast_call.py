"""Fast path of calls: the compiled library that checks the guards of cache entries.

`csrc/warm.c` interprets the words of entries, see `backends.call_entry`. It uses no headers of
Python or NumPy; where it cannot be compiled or loaded, or where this Python's object layouts are
not the expected ones, every call takes the slow path, as do all calls without a matching entry.
"""

from __future__ import annotations

import ctypes
import struct
import sys
import threading
from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ...base import settings
from ..cache.cache import Cache, Entry, cache_key
from .compiler import AdvanceCompilation
from .compiler import compile_flags as flags
from .loader import LoadError, load_module, read_csrc
from .toolchain import Toolchain

if TYPE_CHECKING:
    from ..interface import Array

_OPTIMIZE: settings.Effort = 1
_ARRAY = struct.Struct("2P P i4x P P P P i")
"""The head of a NumPy array: object head, data, rank, shape, strides, base, type, flags."""
_NAMES = ("settings", "base", "cell_contents", "_plans", "_call")
"""The attributes of settings, cells and functions that the library reads."""


class FastPath:
    """The library of the fast path: loaded from disk or compiled, once per process."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self.after_fork()
        self._asked = False
        self._code = b""
        self._coming: AdvanceCompilation | None = None
        """Its compilation in progress."""
        self.caller: type | None = None
        """The class of callables with the fast path, None until it is loaded."""
        self._empty: Callable[..., Array] | None = None

    def after_fork(self) -> None:
        """Create the lock; in a forked child a new one, as a thread of the parent may hold it."""
        self._lock = threading.Lock()

    def begin(self, toolchain: Callable[[], Toolchain]) -> None:
        """Start its compilation asynchronously, where it is not on disk.

        Raises CdBackendError where no compiler can be started.
        """
        if self._asked or not self._lock.acquire(blocking=False):
            return
        try:
            self._begin(toolchain)
        finally:
            self._lock.release()

    @property
    def is_compiling(self) -> bool:
        """Whether the library is being compiled."""
        return self._coming is not None

    def wanted(
        self, toolchain: Callable[[], Toolchain], watching: list[object], wait: bool = True
    ) -> type | None:
        """Return the class of callables, None where it is unavailable, loaded by another thread, or
        not ready and `wait` is false.

        `watching` is the list of observers of calls: the fast path is taken while it is empty.
        Raises as `begin` does.
        """
        if self.caller is not None or not self._lock.acquire(blocking=False):
            return self.caller
        try:
            self._begin(toolchain)
            self._end(wait)
            code, self._code = self._code, b""
            warm_module = _load_module(code, watching) if code else None
            if warm_module is not None:
                self.caller, self._empty = warm_module.Caller, warm_module.empty
        finally:
            self._lock.release()
        return self.caller

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """Return an uninitialized array; a large one reuses memory of earlier results.

        Raises MemoryError.
        """
        if self._empty is None:
            return np.empty(shape, dtype)
        return self._empty(shape, dtype, dtype.itemsize * prod(shape))

    def _begin(self, toolchain: Callable[[], Toolchain]) -> None:
        """Load the library from disk, or start its compilation; once."""
        if self._asked:
            return
        compiler, self._asked = toolchain(), True
        if not is_supported():
            return
        text = read_csrc("pool", "results", "warm")
        all_flags = flags(compiler, _OPTIMIZE)
        key = cache_key(warm=text, flags=all_flags, compiler=compiler.written())
        entry = self._cache.get(key)
        if entry is not None:
            self._code = entry.object
            return

        def keep(code: bytes) -> None:  # also a failure, as empty code
            self._cache.put(key, Entry({"name": "warm"}, text, code))

        self._coming = AdvanceCompilation(text, "warm.c", compiler, all_flags, self._cache, keep)

    def _end(self, wait: bool) -> None:
        """Take the compiled library, if it is ready or `wait` is true."""
        compilation = self._coming
        if (
            compilation is not None
            and compilation.is_of_this_process()
            and (wait or compilation.is_over())
        ):
            self._coming = None
            self._code, _ = compilation.ended()


def is_supported() -> bool:
    """Whether objects, arrays and numbers of this Python have the expected layouts."""
    return (
        sys.implementation.name == "cpython"
        and "t" not in sys.abiflags  # free-threaded builds have another object head
        and (sys.byteorder, struct.calcsize("P"), object.__basicsize__) == ("little", 8, 16)
        and all(map(_has_expected_layout, _samples()))
        and all(map(_has_value_after_head, (1.5, 2.0 - 1j, *map(np.float32, (-0.5, 3.25)))))
    )


def _samples() -> list[Any]:
    packed = np.zeros(9, np.uint8)[1:].view("float64")
    fixed = np.broadcast_to(np.float32(1), (2, 3))
    return [np.zeros(()), np.zeros((2, 3), np.int16).T[::-1], np.zeros((0, 4)), packed, fixed]


def _has_expected_layout(array: Any) -> bool:
    if np.ndarray.__basicsize__ < _ARRAY.size:
        return False
    head = _ARRAY.unpack(ctypes.string_at(id(array), _ARRAY.size))
    _, kind, data, rank, shape, strides, _, descr, flags = head
    sizes = struct.unpack(f"{rank}q", ctypes.string_at(shape, 8 * rank))
    steps = struct.unpack(f"{rank}q", ctypes.string_at(strides, 8 * rank))
    expected = array.__array_interface__["data"][0], array.shape, array.strides, array.flags.num
    has_same_types = (kind, descr) == (id(np.ndarray), id(array.dtype))
    return has_same_types and (data, sizes, steps, flags) == expected


def _has_value_after_head(number: Any) -> bool:
    array = np.asarray(number)
    return ctypes.string_at(id(number) + 16, array.itemsize) == array.tobytes()


def _load_module(code: bytes, watching: list[object]) -> Any:
    """Load the library as a module; None where it cannot be loaded or used."""
    try:
        warm_module: Any = load_module(code, "warm")
    except LoadError:
        return None
    table = np._core._multiarray_umath._ARRAY_API  # type: ignore[attr-defined]
    state = (settings._process, settings._overrides, watching, np.ndarray, table, _NAMES)
    return warm_module if warm_module.setup(*state) else None
