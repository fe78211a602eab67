"""What went wrong in work that was queued: told once, to whoever waits for it first."""

from __future__ import annotations

import copy
import sys
import time
from contextlib import suppress


class Failure:
    """What went wrong in a step, and whether anybody was told.

    It may be kept for as long as a queue is, so it holds no frames: they hold whatever was in use.
    Where nobody is left who could be told, it is written to the standard error; not where it is
    `quiet`.
    """

    __slots__ = ("error", "quiet", "told", "when")

    def __init__(self, error: BaseException, quiet: bool = False) -> None:
        self.quiet = quiet
        self.error = error
        link: BaseException | None = error
        while link is not None and link.__traceback__ is not None:
            link.__traceback__ = None
            link = link.__cause__ or link.__context__
        self.told = False
        self.when = 0
        """When it was told: work submitted later is not dropped because of it."""

    def tell(self) -> BaseException:
        """Return the error, which is to be raised; it counts as told."""
        self.when = time.monotonic_ns()
        self.told = True
        error = self.error
        with suppress(Exception):  # of classes of the user's, which may take other arguments
            self.error = copy.copy(error)  # the one that is raised will have frames
        return error.with_traceback(None)

    def say(self) -> None:
        """Write what went wrong to the standard error, unless somebody was told."""
        if self.told or self.quiet:
            return
        self.told = True
        what = f"{type(self.error).__name__}: {self.error}"
        print(f"plusequals: work failed, and nothing waited for it\n{what}", file=sys.stderr)

    def __del__(self) -> None:
        with suppress(Exception):  # what it needs may be gone when the process ends
            self.say()
