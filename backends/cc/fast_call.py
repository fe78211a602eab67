"""The short way of a call: plans that one compiled function compares with what a call was given.

`csrc/warm.c` reads a plan word by word; `pack` writes it. The library needs no headers of
Python or NumPy; where it cannot be compiled or loaded, or where this Python's objects do not lie in
memory as it takes for granted, every call goes the long way, as all do that no plan fits.
"""

from __future__ import annotations

import ctypes
import struct
import sys
import threading
from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ...base import settings
from ..cache.cache import Cache, Entry, content_key
from .compiler import Ahead, flags
from .loader import Broken, csrc, module
from .toolchain import Toolchain

if TYPE_CHECKING:
    from ..interface import Array

VALUES, ARRAYS, RESULTS, RANK, AXES = 96, 64, 16, 64, 7
"""The most that a plan may have of values, of arrays given to code, of results, and of axes: of
arrays, and of results that the code makes."""
_OPTIMIZE: settings.Effort = 1
_ARRAY = struct.Struct("2P P i4x P P P P i")
"""The head of an array: of an object, then data, rank, shape, strides, base, type, flags."""
_NAMES = ("settings", "base", "cell_contents", "_plans", "_call")
"""Attributes that are read: of settings, cells and functions."""

Words = tuple[int, ...]
Packed = tuple[
    bytes, tuple[object, ...], Callable[..., BaseException | None], Callable[..., object] | None,
    Callable[..., None] | None,
]  # fmt: skip
"""A plan: its words, the objects whose addresses they hold, what returns a run's error, None where
the long way meets it again, what makes of the parts what comes back, where that is more than one
thing, or a tuple or list, and what is called with all values once the code has run, if anything."""


class Source:
    """Where a value is found: in the call, by name, or from another value of the plan."""

    ARGUMENT, KEYWORD, NAME, CELL, ATTRIBUTE, ITEM, CONSTANT, MADE = range(8)


class Check:
    """What a value has to be."""

    ANY, SAME, TYPE, SIZED, EQUAL, ARRAY, FLOAT, INTEGER, NUMBER, BITS, LISTED, SHARED = range(12)


class New:
    """What is made of a result: an array of zeros, a number, an array of anything, or one of the
    memory that the code has made for it, whose sizes the run decides."""

    ARRAY, FLOAT, INTEGER, BOOL, COMPLEX, NUMBER, EMPTY, MADE = range(8)


class Part:
    """What is returned: an object, a value of the plan, a result, or a view of one of these."""

    OBJECT, VALUE, RESULT, VIEW = range(4)


class Whole:
    """How the parts are returned."""

    ONE, TUPLE, LIST = range(3)


def value(source: Words, check: Words) -> Words:
    """Return the words of a value: where it is found, and what it has to be.

    `source` is a `Source`, two numbers, and the address of a name, a key or an object.
    """
    kind, *rest = check
    return (*source, kind, 6 + len(rest), *rest)


def pack(
    settings: object,
    form: tuple[int, int],
    values: Sequence[Words],
    pairs: Sequence[tuple[int, int]],
    equals: Sequence[tuple[int, int]],
    inputs: Sequence[tuple[int, bool]],
    results: Sequence[Words],
    returned: Words,
    code: tuple[int, int, int],
) -> bytes | None:
    """Return the words of a plan, None where there are too many of something.

    `form` is how many arguments are given by place and by name. Of the values, no `pairs` may
    overlap, and `equals` have to be one object; `inputs` go to the code, as arrays where that is
    said. Of each result a `New`, the address of its type, its bytes (those of an element of what
    the code makes), its rank and its shape.
    `returned` is a `Whole`, how many parts, and of each a `Part` and what it is, of a view where
    its words stand behind them; `code` the addresses of the function, of the sizes that it is
    passed and of the run-time library's table.
    """
    few = len(values) <= VALUES and len(results) <= RESULTS
    if not few or len(inputs) + len(results) > ARRAYS:
        return None
    sections = [
        [word for value in values for word in value],
        [at for pair in (*pairs, *equals) for at in pair],
        [word for number, is_array in inputs for word in (number, int(is_array))],
        [word for result in results for word in result],
    ]
    counts = map(len, (values, pairs, equals, inputs, results))
    head = [id(settings), *form, *counts, *code]
    at = len(head) + len(sections)
    for section in sections:
        at += len(section)
        head.append(at)
    words = [*head, *(word for section in sections for word in section), *returned]
    return struct.pack(f"{len(words)}q", *words)


class ShortWay:
    """The library that takes the short way: taken from disk, or compiled, once in a process."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self.after_fork()
        self._asked = False
        self._code = b""
        self._coming: Ahead | None = None
        """What compiles it."""
        self.caller: type | None = None
        """The class whose objects are called in the short way, None until there is one."""
        self._empty: Callable[..., Array] | None = None

    def after_fork(self) -> None:
        """Make the lock, again in a forked child, which may lack the thread that holds it."""
        self._lock = threading.Lock()

    def begin(self, toolchain: Callable[[], Toolchain]) -> None:
        """Have it compiled beside what is done next, where there is none on disk.

        Raises CdBackendError where no compiler can be started.
        """
        if self._asked or not self._lock.acquire(blocking=False):
            return
        try:
            self._begin(toolchain)
        finally:
            self._lock.release()

    @property
    def is_coming(self) -> bool:
        """Whether the library is being compiled."""
        return self._coming is not None

    def wanted(
        self, toolchain: Callable[[], Toolchain], watching: list[object], wait: bool = True
    ) -> type | None:
        """Return the class, None where there cannot be one, or it is being made by another thread,
        or is not there yet and is not waited for.

        `watching` is a list of what has to see every call: while it is empty the short way is
        taken. Raises as `begin` does.
        """
        if self.caller is not None or not self._lock.acquire(blocking=False):
            return self.caller
        try:
            self._begin(toolchain)
            self._end(wait)
            code, self._code = self._code, b""
            made = _loaded(code, watching) if code else None
            if made is not None:
                self.caller, self._empty = made.Caller, made.empty
        finally:
            self._lock.release()
        return self.caller

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """Return an array of anything; a large one of memory that earlier results had.

        Raises MemoryError.
        """
        if self._empty is None:
            return np.empty(shape, dtype)
        return self._empty(shape, dtype, dtype.itemsize * prod(shape))

    def _begin(self, toolchain: Callable[[], Toolchain]) -> None:
        """Look for the library on disk, and where it is not there begin to compile it; once."""
        if self._asked:
            return
        compiler, self._asked = toolchain(), True
        if not is_possible():
            return
        text = csrc("pool", "results", "warm")
        chosen = flags(compiler, _OPTIMIZE)
        key = content_key(warm=text, flags=chosen, compiler=compiler.written())
        entry = self._cache.get(key)
        if entry is not None:
            self._code = entry.object
            return

        def keep(code: bytes) -> None:  # also that there is none
            self._cache.put(key, Entry({"name": "warm"}, text, code))

        self._coming = Ahead(text, "warm.c", compiler, chosen, self._cache, keep)

    def _end(self, wait: bool) -> None:
        """Take the library that was being compiled, if it is there or is to be waited for."""
        coming = self._coming
        if coming is not None and coming.is_ours() and (wait or coming.is_over()):
            self._coming = None
            self._code, _ = coming.ended()


def is_possible() -> bool:
    """Whether objects, arrays and numbers of this Python lie in memory as is taken for granted."""
    return (
        sys.implementation.name == "cpython"
        and "t" not in sys.abiflags  # objects without one lock for all have another head
        and (sys.byteorder, struct.calcsize("P"), object.__basicsize__) == ("little", 8, 16)
        and all(map(_lies_as_expected, _samples()))
        and all(map(_stands_behind_head, (1.5, 2.0 - 1j, *map(np.float32, (-0.5, 3.25)))))
    )


def _samples() -> list[Any]:
    packed = np.zeros(9, np.uint8)[1:].view("float64")
    fixed = np.broadcast_to(np.float32(1), (2, 3))
    return [np.zeros(()), np.zeros((2, 3), np.int16).T[::-1], np.zeros((0, 4)), packed, fixed]


def _lies_as_expected(array: Any) -> bool:
    if np.ndarray.__basicsize__ < _ARRAY.size:
        return False
    head = _ARRAY.unpack(ctypes.string_at(id(array), _ARRAY.size))
    _, kind, data, rank, shape, strides, _, descr, flags = head
    sizes = struct.unpack(f"{rank}q", ctypes.string_at(shape, 8 * rank))
    steps = struct.unpack(f"{rank}q", ctypes.string_at(strides, 8 * rank))
    known = array.__array_interface__["data"][0], array.shape, array.strides, array.flags.num
    same = (kind, descr) == (id(np.ndarray), id(array.dtype))
    return same and (data, sizes, steps, flags) == known


def _stands_behind_head(number: Any) -> bool:
    held = np.asarray(number)
    return ctypes.string_at(id(number) + 16, held.itemsize) == held.tobytes()


def _loaded(code: bytes, watching: list[object]) -> Any:
    """Return the library as a module; None where it cannot be loaded or used."""
    try:
        made: Any = module(code, "warm")
    except Broken:
        return None
    table = np._core._multiarray_umath._ARRAY_API  # type: ignore[attr-defined]
    state = (settings._process, settings._overrides, watching, np.ndarray, table, _NAMES)
    return made if made.setup(*state) else None


ALIGNED, WRITABLE = 0x0100, 0x0400


FLAGS = ALIGNED | WRITABLE
"""Of an array's flags, those that its strides do not tell: aligned, writable."""
