"""Index letters as importable names, for linters and type checkers.

    from plusequals.idx import i, j, k

The import has no effect on programs: an unbound letter is an index letter anyway. The names are
typed as `Any`, since inside `@cd` they take part in any arithmetic.
"""

from __future__ import annotations

import re
from typing import Any

from ...base.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Letter:
    """An index letter: a name and nothing else. It has no value outside a `@cd` function."""

    name: str

    def __repr__(self) -> str:
        return self.name


_LOWERCASE = "abcdefghijklmnopqrstuvwxyz"
"""`string.ascii_lowercase`; the module `string` compiles a pattern when it is imported."""
_LETTERS: tuple[Any, ...] = tuple(Letter(name) for name in _LOWERCASE)
a, b, c, d, e, f, g, h, i, j, k, l, m = _LETTERS[:13]  # noqa: E741
n, o, p, q, r, s, t, u, v, w, x, y, z = _LETTERS[13:]


def is_letter_name(name: str) -> bool:
    """Return whether `name` is spelled as an index letter: one letter, then digits or `_`."""
    return re.fullmatch(r"[a-z][0-9_]*", name) is not None


def __getattr__(name: str) -> Any:
    """Return the letter of any other admitted spelling: `i0`, `k_`, `j2`."""
    if is_letter_name(name):
        return Letter(name)
    raise AttributeError(f"{name!r} is not an index letter: one lower-case letter, then digits")
