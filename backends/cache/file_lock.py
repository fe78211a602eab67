"""File locks between processes, by the operating system: they end with their process.

On systems without `flock` the package `filelock` is used. Its import takes longer than compiling a
small function, so `flock` is called directly where it exists.
"""

from __future__ import annotations

import contextlib
import functools
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...base.lazy_import import LazyModule

if TYPE_CHECKING:
    import fcntl
else:
    fcntl = LazyModule("fcntl", None)

_PAUSE = 0.01
"""The polling interval of a wait in seconds."""


class FileLockContext:
    """A context manager that holds the lock of a file, and yields whether it does: not where others
    hold it for longer than `timeout` seconds, nor where the file cannot be created.

    Not a generator: out of memory, one might never be resumed, and hold the lock for good.
    """

    __slots__ = ("_held", "_path", "_timeout")

    def __init__(self, path: str, timeout: float) -> None:
        self._path, self._timeout = path, timeout
        self._held: Callable[[], object] | None = None

    def __enter__(self) -> bool:
        wait = _flock if os.name == "posix" else _file_lock
        self._held = wait(self._path, self._timeout)
        return self._held is not None

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        release, self._held = self._held, None
        if release is not None:
            release()


def _flock(path: str, timeout: float) -> Any:
    """Return a function that releases the lock, None where it could not be acquired."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        opened = os.open(path, flags, 0o600)
    except OSError:
        return None
    try:
        until = time.monotonic() + timeout
        while not _try_lock(opened):
            if time.monotonic() >= until:
                os.close(opened)
                return None
            time.sleep(_PAUSE)
        return functools.partial(_release, fcntl.flock, fcntl.LOCK_UN, opened)
    except OSError:
        os.close(opened)
        return None
    except BaseException:  # such as MemoryError: a file left open stays locked
        os.close(opened)
        raise


def _release(flock: Any, unlock: int, opened: int) -> None:
    """Release the lock of an open file, which a forked child may share, and close it."""
    try:
        flock(opened, unlock)
    finally:
        os.close(opened)  # in any case


def try_hold(opened: int) -> bool:
    """Lock an open file or folder until it is closed or its process ends; return whether it is: not
    where others hold it, or the system has no locks."""
    with contextlib.suppress(OSError, ImportError):
        return _try_lock(opened)
    return False


def hold_path(path: str) -> int | None:
    """Return a descriptor that holds a file or folder while it is open, None where it cannot."""
    with contextlib.suppress(OSError):
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        if try_hold(opened):
            return opened
        os.close(opened)
    return None


def is_held(path: str, otherwise: bool) -> bool:
    """Whether a process holds a file or folder; `otherwise` where unknown. Raises OSError."""
    opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return not _try_lock(opened)
    except (OSError, ImportError):
        return otherwise
    finally:
        os.close(opened)


def _try_lock(opened: int) -> bool:
    """Try to acquire the lock; return whether it succeeded. Raises OSError without locks."""
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _file_lock(path: str, timeout: float) -> Any:
    """Return as `_flock`, on other systems."""
    from filelock import FileLock, Timeout  # costs start-up, and only used here

    lock = FileLock(path)
    try:
        lock.acquire(timeout=timeout)
    except (Timeout, OSError, NotImplementedError):
        return None
    return lock.release
