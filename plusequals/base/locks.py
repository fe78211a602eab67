"""Long-held locks that refuse to deadlock in interrupted threads, and that a fork renews.

While a thread compiles, a finalizer, a weak reference's callback or a signal handler may call what
is compiled, in the same thread. It would wait for itself, or two such threads for each other. So a
thread that asks for a lock is refused it where that would be a deadlock, and then works without:
the lock only avoids duplicate work.

A lock that a thread holds when another one forks is never released in the child, where that thread
does not exist: every later acquisition there would block for ever.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

from .process_state import State, register

_NO_THREAD = 0


class ReentrantLock:
    """Has a lock, which its thread may request again."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._owner = _NO_THREAD
        _all.add(self)

    @property
    def is_held_here(self) -> bool:
        """Whether the calling thread holds the lock."""
        return self._owner == threading.get_ident()

    @contextmanager
    def turn(self) -> Iterator[bool]:
        """Hold the lock inside, and yield True; False, without the lock, where this thread holds it
        already, or its holder waits for this thread."""
        thread = threading.get_ident()
        if thread in _waiting or self._owner == thread:  # called from a handler
            yield False
            return
        try:
            _waiting[thread] = self
            if not self._waits_for(thread):
                with self._lock:
                    self._owner = thread
                    del _waiting[thread]
                    try:
                        yield True
                    finally:
                        self._owner = _NO_THREAD
                return
        finally:
            if _waiting.get(thread) is self:
                del _waiting[thread]
        yield False

    def _waits_for(self, thread: int) -> bool:
        """Whether the holder of the lock waits for a thread, directly or through others (wait-for
        graph)."""
        lock: ReentrantLock | None = self
        for _ in range(len(_waiting) + 1):
            owner = _NO_THREAD if lock is None else lock._owner
            if owner == thread:
                return True
            lock = _waiting.get(owner)
        return False

    def _renew(self) -> None:
        self._lock = threading.RLock()
        if not self.is_held_here:
            self._owner = _NO_THREAD


_all: weakref.WeakSet[ReentrantLock] = weakref.WeakSet()
_waiting: dict[int, ReentrantLock] = {}
"""The lock that each thread waits for. Of two threads that both write before they read, each sees
both."""


def _renew_after_fork() -> None:
    for lock in list(_all):
        lock._renew()
    waited_for = _waiting.get(threading.get_ident())
    _waiting.clear()
    if waited_for is not None:
        _waiting[threading.get_ident()] = waited_for


register(
    lambda: State(
        name="locks that are held for long, and which thread waits for which",
        owner=__name__,
        holders=("_all", "_waiting"),
        lock="the interpreter's lock",
        in_child="renewed",
        after_fork=_renew_after_fork,
    )
)
