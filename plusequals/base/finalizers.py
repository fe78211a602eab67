"""Finalizers that run after all others: called when an object is unreachable even for `__del__`.

The garbage collector calls weak-reference callbacks of a cycle before it runs the finalizers of
that cycle, which may still use the referents, or resurrect them. A token that the collector does
not track is released with its last reference, and so after them.

>>> class Holder:
...     def __init__(self, token):
...         self.token, self.itself = token, self
...     def __del__(self):
...         print("it is used")
>>> import gc
>>> held = Holder(call_when_unreachable(print, "it is gone"))
>>> del held
>>> _ = gc.collect()
it is used
it is gone
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np


def call_when_unreachable(do: Callable[..., object], *given: object) -> Any:
    """Return a token; when its last reference is released `do` is called, unless the process ends.

    That may happen anywhere in any thread, also while a lock is held.
    """
    token = np.empty(0, np.bool_)
    weakref.finalize(token, do, *given).atexit = False
    return token
