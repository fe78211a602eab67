"""Idioms of NumPy and Python as people write them, for `pairs_text` to put beside each other.

All are about the same names: vectors `v`, `w`, `y`, `z` of one length, tables `a`, `b`, `x` whose
rows are as long, a vector `r` of one element for each row, positions `q`, marks `mask`, numbers `s`
and `t`, an integer `p` and a truth value `g`. Arrays of their own are `d`, `e`, `u`, `h`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Idiom:
    """What people write, in several texts."""

    name: str
    texts: tuple[str, ...]
    is_table: bool
    """Whether it is about tables, not about vectors, which may be rows."""
    is_square: bool
    """Whether its tables have as many rows as columns."""


def parsed(text: str, is_table: bool) -> list[Idiom]:
    """Return the idioms of a text, in which a line with a `#` names each."""
    found = []
    for block in re.split(r"^# ", text, flags=re.MULTILINE)[1:]:
        head, _, rest = block.partition("\n")
        name, _, shape = head.partition(", ")
        texts = tuple(one.strip("\n") for one in rest.split("\n--\n"))
        found.append(Idiom(name, texts, is_table, shape == "square"))
    return found
