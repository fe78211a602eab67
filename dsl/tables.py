"""Where a function keeps the forms it has, and how many of them."""

from __future__ import annotations

from dataclasses import field

from ..lowering.dataclass import dataclass
from .forms import Specialisation
from .sizes import SizesSeen, Specs

MOST = 64
"""How many forms are kept for arguments of one kind: they differ by what is read of objects and
around the function. The latest stay."""

Forms = dict[object, tuple[Specialisation, ...]]


@dataclass
class Table:
    """The forms made under one choice of settings, by cheap key and by specifications."""

    quick: Forms = field(default_factory=dict)
    full: Forms = field(default_factory=dict)
    any_size: list[tuple[Specs, Specialisation]] = field(default_factory=list)
    """Forms with run-time sizes, and the specifications they were made for."""
    sizes: SizesSeen = field(default_factory=SizesSeen)
    apart: Forms = field(default_factory=dict)
    """Forms to be linked, which no call uses, by specifications."""


def keep(forms: Forms, key: object, made: Specialisation) -> None:
    """Add a form as the first to be tried for a key, and forget the oldest of too many."""
    forms[key] = (made, *forms.get(key, ())[: MOST - 1])
