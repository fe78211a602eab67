"""A lock between processes: the operating system's on a file, which ends with its process.

Systems without `flock` are left to `filelock`. Importing that takes longer than to compile a small
function, so where one call of the system does the same it is called here.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..lowering.later import Later

if TYPE_CHECKING:
    import fcntl
else:
    fcntl = Later("fcntl", None)

_PAUSE = 0.01
"""Seconds after which one who waits looks again."""


@contextlib.contextmanager
def locked(path: str, timeout: float) -> Iterator[bool]:
    """Hold the lock of a file inside, and yield whether it is held: not where others have it for
    longer than `timeout` seconds, and not where there can be no such file."""
    held = _flock(path, timeout) if os.name == "posix" else _file_lock(path, timeout)
    try:
        yield held is not None
    finally:
        if held is not None:
            held()


def _flock(path: str, timeout: float) -> Any:
    """Return what gives the lock back, None where it could not be taken."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
        opened = os.open(path, flags, 0o600)
        stack.callback(os.close, opened)
        until = time.monotonic() + timeout
        while not _taken(opened):
            if time.monotonic() >= until:
                return None
            time.sleep(_PAUSE)
        stack.callback(fcntl.flock, opened, fcntl.LOCK_UN)  # a forked child may have it open, too
        return stack.pop_all().close
    return None


def hold(opened: int) -> bool:
    """Have an open file or folder held until it is closed, or its process ends; return whether it
    is: not where others hold it, or the system knows no locks."""
    with contextlib.suppress(OSError, ImportError):
        return _taken(opened)
    return False


def held(path: str) -> int | None:
    """Return what holds a file or folder as long as it is open, None where nothing does."""
    with contextlib.suppress(OSError):
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        if hold(opened):
            return opened
        os.close(opened)
    return None


def is_held(path: str, otherwise: bool) -> bool:
    """Whether a process holds a file or folder; `otherwise` where nobody knows. Raises OSError."""
    opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return not _taken(opened)
    except (OSError, ImportError):
        return otherwise
    finally:
        os.close(opened)


def _taken(opened: int) -> bool:
    """Whether nobody else has the lock, which is ours then. Raises OSError where there is none."""
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _file_lock(path: str, timeout: float) -> Any:
    """Return what `_flock` does, on other systems."""
    from filelock import FileLock, Timeout  # costs start-up, and only used here

    lock = FileLock(path)
    try:
        lock.acquire(timeout=timeout)
    except (Timeout, OSError, NotImplementedError):
        return None
    return lock.release
