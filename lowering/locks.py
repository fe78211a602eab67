"""Locks that are held for long, and that a forked child gets anew.

What a thread holds when another one forks is never given back in the child, which does not have
that thread: whatever needs the lock there would wait for ever.
"""

from __future__ import annotations

import os
import threading
import weakref


class Locked:
    """Has a lock, which its thread may take again."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        _all.add(self)

    def _renew(self) -> None:
        self._lock = threading.RLock()


_all: weakref.WeakSet[Locked] = weakref.WeakSet()


def _after_fork() -> None:
    for one in list(_all):
        one._renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
