"""What is to be done when nobody can use something any more: behind all finalizers.

The garbage collector calls back for weak references to what goes with a circle before it runs the
finalizers of that circle; these may still use what they refer to, or keep it. A token that the
collector does not know goes when the last reference to it does, and so behind them.

>>> class Holder:
...     def __init__(self, token):
...         self.token, self.itself = token, self
...     def __del__(self):
...         print("it is used")
>>> import gc
>>> held = Holder(when_gone(print, "it is gone"))
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


def when_gone(do: Callable[..., object], *given: object) -> Any:
    """Return a token; when nobody holds it any more `do` is called, unless the process ends.

    That may be anywhere in any thread, also where a lock is held.
    """
    token = np.empty(0, np.bool_)
    weakref.finalize(token, do, *given).atexit = False
    return token
