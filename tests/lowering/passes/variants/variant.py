"""A way to write a program."""

from __future__ import annotations

from typing import NamedTuple


class Variant(NamedTuple):
    """A way to write a program: its body, the types of its arguments, the arrays that stay."""

    name: str
    body: str
    arrays: dict[str, str]
    kept: tuple[str, ...]
