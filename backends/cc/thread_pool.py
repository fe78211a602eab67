"""The run-time library of generated code: compiled once, loaded once, its workers ended with it.

It has the threads of parallel loops, and asks Python now and then whether a long call is to end.
Python answers in its main thread, where alone the handlers of signals run: a function of ours is
called, Python runs the handlers on the way, and what one of them raises ends the call.
"""

from __future__ import annotations

import threading
import weakref
from functools import cache
from typing import TYPE_CHECKING, Any, Self

from ...base import settings
from ...base.lazy_import import Later
from .loader import Library, csrc, ffi

if TYPE_CHECKING:
    from ...lowering.passes import buffer_sharing
    from ..codegen import prelude
    from ..codegen import source as texts
else:  # what only compiling needs
    buffer_sharing = Later("...lowering.passes.buffer_sharing", __package__)
    prelude, texts = Later("..codegen.prelude", __package__), Later("..codegen.source", __package__)

ENTRY = "pe_threads"
LOADED: tuple[str, settings.Effort] = ("the run-time library", 1)
"""What it is called, and how well it is compiled: it computes nothing."""
_ASK: Any = ffi.typeof("int(*)(void)")
_NUMBERS: Any = ffi.typeof("int64_t[]")
_POINTERS: Any = ffi.typeof("void *[]")
_START, _FILL, _END = range(3)


@cache
def text() -> str:
    """Return the C of the library."""
    body = csrc("pool", "threads")
    head = "#define _GNU_SOURCE\n#include <stddef.h>\n#include <stdint.h>\n"
    return "\n".join((head, *prelude.needed(body), body))


@cache
def source() -> texts.Source:
    """Return the C of the library with what its numbers mean."""
    return texts.Source(text(), ENTRY, {}, (), (), buffer_sharing.Memory((), (), (), ()), 0)


class Threads:
    """The loaded library. Any number of threads may run code that uses it."""

    __slots__ = ("__weakref__", "_answers", "_callback", "_function", "_library", "_tables")

    def __init__(self, library: Library) -> None:
        """Take the functions of the library, which `start` starts; Library raises Broken where it
        is another one."""
        self._library = library
        self._function = library.function(ENTRY)
        self._answers = answers = _Answers()
        self._callback = ffi.callback(_ASK, answers.ask, error=1, onerror=answers.failed)
        self._tables: dict[tuple[int, int], Any] = {}

    def start(self) -> Self:
        """Return this, started: once for a library. Its workers end with this."""
        main = threading.main_thread().ident or 0
        _call(self._function, (_START, main), self._callback)
        ending = weakref.finalize(self, _end, self._function, self._library)
        ending.atexit = False  # at exit a thread may still be inside
        return self

    @property
    def key(self) -> str:
        """The key of the library's code."""
        return self._library.key

    def table(self, threads: int, worth: int) -> Any:
        """Return what code is given that may share loops of that much work among that many
        threads; it lives as long as this."""
        found = self._tables.get((threads, worth))
        if found is None:
            table = ffi.new(_NUMBERS, 6)  # a shared_run
            _call(self._function, (_FILL, threads, worth), table)
            found = self._tables.setdefault((threads, worth), table)
        return found

    def error(self) -> BaseException:
        """Return what a call of this thread is to raise that was interrupted."""
        return self._answers.taken()


class _Answers:
    """What handlers of signals have raised, by the thread that ran them."""

    __slots__ = ("_errors",)

    def __init__(self) -> None:
        self._errors: dict[int, BaseException] = {}

    def ask(self) -> int:
        """Return 0: a signal's handler has run before that, and may have raised."""
        for _ in range(2):  # Python looks for signals where a loop goes on
            pass
        return 0

    def failed(self, kind: object, error: BaseException, traceback: object) -> None:
        """Keep what was raised; the answer is 1."""
        self._errors[threading.get_ident()] = error

    def taken(self) -> BaseException:
        """Return what was raised in this thread, and forget it."""
        return self._errors.pop(threading.get_ident(), None) or KeyboardInterrupt()


def _call(function: Any, numbers: tuple[int, ...], pointer: Any) -> None:
    held = ffi.new(_NUMBERS, numbers)
    function(ffi.new(_POINTERS, [held, pointer]))


def _end(function: Any, library: Library) -> None:
    """End the workers, before the library is closed."""
    _call(function, (_END,), ffi.NULL)
