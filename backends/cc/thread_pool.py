"""Run-time library of generated code: the thread pool of parallel loops, and interruption.

It is compiled and loaded once; its workers end with it. It polls Python whether a long call is
interrupted. Signal handlers run only in Python's main thread: a callback of ours is called there,
Python runs pending handlers on the way, and an exception of a handler ends the call.
"""

from __future__ import annotations

import threading
import weakref
from functools import cache
from typing import TYPE_CHECKING, Any, Self

from ...base import settings
from ...base.lazy_import import LazyModule
from .loader import Library, ffi, read_csrc

if TYPE_CHECKING:
    from ...lowering.passes import buffer_sharing
    from ..codegen import prelude
    from ..codegen import source as texts
else:  # what only compiling needs
    buffer_sharing = LazyModule("...lowering.passes.buffer_sharing", __package__)
    prelude, texts = (
        LazyModule("..codegen.prelude", __package__),
        LazyModule("..codegen.source", __package__),
    )

ENTRY = "pe_threads"
LIBRARY_OPTIONS: tuple[str, settings.Effort] = ("the run-time library", 1)
"""Its name and its optimization level: it does no computation."""
_ASK: Any = ffi.typeof("int(*)(void)")
_NUMBERS: Any = ffi.typeof("int64_t[]")
_POINTERS: Any = ffi.typeof("void *[]")
_START, _FILL, _END = range(3)


@cache
def library_text() -> str:
    """Return the C text of the library."""
    body = read_csrc("pool", "threads")
    head = "#define _GNU_SOURCE\n#include <stddef.h>\n#include <stdint.h>\n"
    return "\n".join((head, *prelude.required_definitions(body), body))


@cache
def library_source() -> texts.Source:
    """Return the C text of the library with empty tables."""
    return texts.Source(
        library_text(), ENTRY, {}, (), (), buffer_sharing.MemoryPlan((), (), (), ()), 0
    )


class ThreadPool:
    """The loaded library; thread-safe."""

    __slots__ = ("__weakref__", "_answers", "_callback", "_function", "_library", "_tables")

    def __init__(self, library: Library) -> None:
        """Bind the library, which `start` starts; Library raises Broken for another one."""
        self._library = library
        self._function = library.function(ENTRY)
        self._answers = answers = _SignalErrors()
        self._callback = ffi.callback(_ASK, answers.ask, error=1, onerror=answers.failed)
        self._tables: dict[tuple[int, int], Any] = {}

    def start(self) -> Self:
        """Start the library; return self. Once per library. Its workers end with this object."""
        main = threading.main_thread().ident or 0
        _call(self._function, (_START, main), self._callback)
        ending = weakref.finalize(self, _stop_workers, self._function, self._library)
        ending.atexit = False  # at exit a thread may still be running its code
        return self

    @property
    def key(self) -> str:
        """The cache key of the library's code."""
        return self._library.key

    def table(self, threads: int, worth: int) -> Any:
        """Return the `shared_run` table of code that distributes loops over so many threads from so
        much work on; it lives as long as this object."""
        existing = self._tables.get((threads, worth))
        if existing is None:
            table = ffi.new(_NUMBERS, 6)  # a shared_run
            _call(self._function, (_FILL, threads, worth), table)
            existing = self._tables.setdefault((threads, worth), table)
        return existing

    def error(self) -> BaseException:
        """Return the exception of an interrupted call of this thread."""
        return self._answers.taken()


class _SignalErrors:
    """The exceptions of signal handlers, by the thread that ran them."""

    __slots__ = ("_errors",)

    def __init__(self) -> None:
        self._errors: dict[int, BaseException] = {}

    def ask(self) -> int:
        """Return 0; pending signal handlers run before that, and may raise."""
        for _ in range(2):  # Python checks signals at backward jumps
            pass
        return 0

    def failed(self, kind: object, error: BaseException, traceback: object) -> None:
        """Store an exception; cffi then returns 1."""
        self._errors[threading.get_ident()] = error

    def taken(self) -> BaseException:
        """Remove and return the exception of this thread."""
        return self._errors.pop(threading.get_ident(), None) or KeyboardInterrupt()


def _call(function: Any, numbers: tuple[int, ...], pointer: Any) -> None:
    number_array = ffi.new(_NUMBERS, numbers)
    function(ffi.new(_POINTERS, [number_array, pointer]))


def _stop_workers(function: Any, library: Library) -> None:
    """Stop the workers before the library is closed."""
    _call(function, (_END,), ffi.NULL)
