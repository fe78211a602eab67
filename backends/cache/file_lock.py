"""A lock between processes: the operating system's on a file, which ends with its process.

Systems without `flock` are left to `filelock`. Importing that takes longer than to compile a small
function, so where one call of the system does the same it is called here.
"""

from __future__ import annotations

import contextlib
import functools
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...base.lazy_import import Later

if TYPE_CHECKING:
    import fcntl
else:
    fcntl = Later("fcntl", None)

_PAUSE = 0.01
"""Seconds after which one who waits looks again."""


class locked:
    """Hold the lock of a file inside, and give whether it is held: not where others have it for
    longer than `timeout` seconds, and not where there can be no such file.

    No generator: where memory is short that might not come to its end, and hold the lock for good.
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
        held, self._held = self._held, None
        if held is not None:
            held()


def _flock(path: str, timeout: float) -> Any:
    """Return what gives the lock back, None where it could not be taken."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        opened = os.open(path, flags, 0o600)
    except OSError:
        return None
    try:
        until = time.monotonic() + timeout
        while not _taken(opened):
            if time.monotonic() >= until:
                os.close(opened)
                return None
            time.sleep(_PAUSE)
        return functools.partial(_give_back, fcntl.flock, fcntl.LOCK_UN, opened)
    except OSError:
        os.close(opened)
        return None
    except BaseException:  # such as that memory is short: what is left open stays locked
        os.close(opened)
        raise


def _give_back(flock: Any, unlock: int, opened: int) -> None:
    """Give back the lock of an open file, which a forked child may have open, too, and close it."""
    try:
        flock(opened, unlock)
    finally:
        os.close(opened)  # which nothing keeps from being done


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
