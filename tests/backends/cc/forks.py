"""Children of this process: begun by a fork, and waited for, but not for ever."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable


def begun(child: Callable[[], bool]) -> int:
    """Return the number of a forked process that ends with status 0 where the child says so."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pid = os.fork()
    if pid == 0:
        try:
            os._exit(0 if child() else 1)
        finally:
            os._exit(2)
    return pid


def status_of(pid: int, seconds: float) -> int | None:
    """Return how a child ended, None where it has not after so many seconds."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status
        time.sleep(0.001)
    return None
