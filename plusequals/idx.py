"""Index variables as importable names: `from plusequals.idx import i, j, k`.

For linters and type checkers only: an unbound letter is an index variable anyway.
"""

from typing import Any

from .dsl.source import idx as _letters
from .dsl.source.idx import (
    a,
    b,
    c,
    d,
    e,
    f,
    g,
    h,
    i,
    j,
    k,
    l,
    m,
    n,
    o,
    p,
    q,
    r,
    s,
    t,
    u,
    v,
    w,
    x,
    y,
    z,
)

__all__ = [
    "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m",
    "n", "o", "p", "q", "r", "s", "t", "u", "v", "w", "x", "y", "z",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Return the index variable of any other admitted spelling: `i0`, `k_`, `j2`."""
    return getattr(_letters, name)
