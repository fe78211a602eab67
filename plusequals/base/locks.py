"""Locks that are held for long: a thread that is inside already goes on alone, and a fork renews.

While a thread compiles, a finalizer, a weak reference's callback or a signal's handler may call
what is compiled, in the same thread. It would wait for itself, or two such threads for each other.
So who asks for a turn is told where waiting would never end, and then does without: what the lock
saves is work that is done twice.

What a thread holds when another one forks is never given back in the child, which does not have
that thread: whatever needs the lock there would wait for ever.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

_NOBODY = 0


class Locked:
    """Has a lock, which its thread may take again."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._owner = _NOBODY
        _all.add(self)

    @property
    def is_own(self) -> bool:
        """Whether the calling thread is inside of a turn."""
        return self._owner == threading.get_ident()

    @contextmanager
    def turn(self) -> Iterator[bool]:
        """Hold the lock inside, and yield True; False, without the lock, where this thread is in a
        turn already, or whoever holds the lock waits for this thread."""
        me = threading.get_ident()
        if me in _waiting or self._owner == me:  # it was interrupted
            yield False
            return
        try:
            _waiting[me] = self
            if not self._waits_for(me):
                with self._lock:
                    self._owner = me
                    del _waiting[me]
                    try:
                        yield True
                    finally:
                        self._owner = _NOBODY
                return
        finally:
            if _waiting.get(me) is self:
                del _waiting[me]
        yield False

    def _waits_for(self, thread: int) -> bool:
        """Whether who holds the lock waits for a thread, itself or through others."""
        lock: Locked | None = self
        for _ in range(len(_waiting) + 1):
            owner = _NOBODY if lock is None else lock._owner
            if owner == thread:
                return True
            lock = _waiting.get(owner)
        return False

    def _renew(self) -> None:
        self._lock = threading.RLock()
        if not self.is_own:
            self._owner = _NOBODY


_all: weakref.WeakSet[Locked] = weakref.WeakSet()
_waiting: dict[int, Locked] = {}
"""For which lock a thread waits. What two threads wrote before they looked, both see."""


def _after_fork() -> None:
    for one in list(_all):
        one._renew()
    own = _waiting.get(threading.get_ident())
    _waiting.clear()
    if own is not None:
        _waiting[threading.get_ident()] = own


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
