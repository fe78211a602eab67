"""Index letters as importable names, for linters and type checkers: see `plusequals.dsl.idx`.

    from plusequals.idx import i, j, k
"""

from typing import Any

from .dsl import idx as _letters
from .dsl.idx import a, b, c, d, e, f, g, h, i, j, k, l, m  # noqa: E741
from .dsl.idx import n, o, p, q, r, s, t, u, v, w, x, y, z

__all__ = [  # noqa: PLE0604 - only strings
    "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m",
    "n", "o", "p", "q", "r", "s", "t", "u", "v", "w", "x", "y", "z",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Return the letter of any other admitted spelling: `i0`, `k_`, `j2`."""
    return getattr(_letters, name)
