"""A driver that fails at a chosen call of a chosen verb, once or from then on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from plusequals.backends.gpu.driver_protocol import DriverError

from .late import LateContext, LateDriver

VERBS = (
    "allocate", "pinned", "upload", "download", "copy", "copy_from", "clear", "stream", "event",
    "record", "wait", "synchronize", "follow", "lead", "finish", "load", "function", "launch",
)  # fmt: skip


class FaultyDriver(LateDriver):
    """Devices that fail where they are told to."""

    verb, at, sticky = "", 0, False
    raising: type[DriverError] = DriverError
    times = 1
    failed = False

    def __init__(self) -> None:
        super().__init__()
        self.calls: Counter[str] = Counter()

    def open(self, device: int) -> FaultyContext:
        return FaultyContext(self, device)

    def arm(
        self, verb: str, at: int, raising: type[DriverError] = DriverError, sticky: bool = False,
        times: int = 1,
    ) -> None:  # fmt: skip
        """Fail so often from a call of a verb on, counted from now; sticky: whatever follows."""
        self.calls.clear()
        self.times = times
        self.verb, self.at, self.raising, self.sticky = verb, at, raising, sticky
        self.failed = False

    def called(self, verb: str) -> None:
        """Count a call, and fail where that is due."""
        self.calls[verb] += 1
        due = verb == self.verb and self.at <= self.calls[verb] < self.at + self.times
        if due or (self.failed and self.sticky):
            self.failed = True
            raise self.raising(f"{verb} fails, as asked")


class FaultyContext(LateContext):
    """One such device."""

    driver: FaultyDriver


def _failing(verb: str) -> Callable[..., Any]:
    def call(self: FaultyContext, *given: Any) -> Any:
        self.driver.called(verb)
        return getattr(LateContext, verb)(self, *given)

    return call


for _verb in VERBS:
    setattr(FaultyContext, _verb, _failing(_verb))
