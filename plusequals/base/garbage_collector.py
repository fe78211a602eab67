"""Pausing Python's cyclic garbage collector during a compilation.

A compilation allocates tens of thousands of small objects and hardly a cycle. Every few hundred
allocations the collector traverses the young objects, now and then all of them, to find nothing: a
fifth of the time of the passes. Cycles that it would have found are collected afterwards.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from .process_state import State, register


class _Pauses:
    """The threads that have the collector paused, each as often as its pauses nest."""

    __slots__ = ("_depths", "_lock", "_was_enabled")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depths: dict[int, int] = {}
        self._was_enabled = False

    def begin(self) -> None:
        """Pause it for the calling thread."""
        me = threading.get_ident()
        with self._lock:
            if not self._depths:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._depths[me] = self._depths.get(me, 0) + 1

    def end(self) -> None:
        """End the last pause of the calling thread; the last of all enables what was enabled."""
        me = threading.get_ident()
        with self._lock:
            self._depths[me] -= 1
            if not self._depths[me]:
                del self._depths[me]
            self._resume()

    def after_fork(self) -> None:
        """Forget, in a forked child, the pauses of threads that it does not have."""
        me = threading.get_ident()
        self._lock = threading.Lock()
        paused = bool(self._depths)
        self._depths = {me: self._depths[me]} if me in self._depths else {}
        if paused:
            self._resume()

    def _resume(self) -> None:
        if not self._depths and self._was_enabled:
            gc.enable()


_PAUSES = _Pauses()
register(
    lambda: State(
        name="pauses of the garbage collector",
        owner=__name__,
        holders=("_PAUSES",),
        lock="a lock; counted for each thread",
        in_child="those of the thread that forked",
        after_fork=_PAUSES.after_fork,
    )
)


@contextmanager
def gc_paused() -> Iterator[None]:
    """Disable the collector inside; enable it where the last of all threads leaves, if it was
    enabled. A decorator, too."""
    _PAUSES.begin()
    try:
        yield
    finally:
        _PAUSES.end()
