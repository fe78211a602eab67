"""`profile()`: what ran when, on which stream."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...backends.runtime.state import RUNTIME
from ...backends.runtime.timeline import Timeline


@contextmanager
def profile() -> Iterator[Timeline]:
    """Note what runs inside the `with`, on any thread; yield the timeline.

    When the `with` ends, everything that was queued is done and noted. Of profiles inside each
    other the inner one notes. What fails is raised where it is waited for, as without a profile.
    """
    outer, made = RUNTIME.timeline, Timeline()
    RUNTIME.note(made)
    try:
        yield made
    finally:
        RUNTIME.note(outer)
        for worker in list(RUNTIME.workers):
            worker.latest.keep().settle()
