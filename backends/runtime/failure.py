"""Failures of queued work: raised once, in the first wait for it."""

from __future__ import annotations

import copy
import sys
import time
from contextlib import suppress


class Failure:
    """The error of a step, and whether it has been reported.

    It may live as long as a queue, so it holds no frames, which would keep their locals alive.
    Where it is collected unreported, it is written to the standard error, unless it is `quiet`.
    """

    __slots__ = ("error", "quiet", "reported", "when")

    def __init__(self, error: BaseException, quiet: bool = False) -> None:
        self.quiet = quiet
        self.error = error
        link: BaseException | None = error
        while link is not None and link.__traceback__ is not None:
            link.__traceback__ = None
            link = link.__cause__ or link.__context__
        self.reported = False
        self.when = 0
        """When it was reported: work submitted later is not dropped because of it."""

    def tell(self) -> BaseException:
        """Return the error, which the caller raises; it counts as reported."""
        self.when = time.monotonic_ns()
        self.reported = True
        error = self.error
        with suppress(Exception):  # user classes may have other constructors
            self.error = copy.copy(error)  # the raised one will hold frames
        return error.with_traceback(None)

    def say(self) -> None:
        """Write the error to the standard error, unless it has been reported."""
        if self.reported or self.quiet:
            return
        self.reported = True
        description = f"{type(self.error).__name__}: {self.error}"
        print(f"plusequals: work failed, and nothing waited for it\n{description}", file=sys.stderr)

    def __del__(self) -> None:
        with suppress(Exception):  # modules may be gone at interpreter exit
            self.say()
