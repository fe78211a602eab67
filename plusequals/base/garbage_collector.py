"""Python's cyclic garbage collector, while a program is compiled.

A compilation makes tens of thousands of small objects and hardly a cycle. Each few hundred of them
the collector looks for cycles among those of late, now and then among all that are alive, to find
nothing: a fifth of the time that the passes take. What it would have found it finds afterwards.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused() -> Iterator[None]:
    """Leave the collector alone inside; on again after it where it was on. As decorator, too."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
