"""The context manager `profile()`: a timeline of all runs, by stream."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...backends.runtime.state import RUNTIME
from ...backends.runtime.timeline import Timeline


@contextmanager
def profile() -> Iterator[Timeline]:
    """Record all runs inside the `with`, on any thread; yield the timeline.

    At the end of the `with` all queued work is finished and recorded. Of nested profiles the inner
    one records. Exceptions are raised where they are awaited, as without a profile.
    """
    outer, timeline = RUNTIME.timeline, Timeline()
    RUNTIME.settle()
    try:
        RUNTIME.note(timeline)
        yield timeline
        RUNTIME.settle()
    finally:
        RUNTIME.note(outer)
        for worker in list(RUNTIME.workers):
            worker.latest.keep().settle()
