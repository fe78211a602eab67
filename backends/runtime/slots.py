"""What each parameter of a compiled function is: a field that stays, or what every call gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .field import Field


@dataclass(frozen=True, slots=True)
class Resident:
    """A parameter that is a field of a tensor: its array stays on the device."""

    field: Field
    merged: bool = False
    """Whether it is another version of it, in the merge buffer."""


@dataclass(frozen=True, slots=True)
class Given:
    """A parameter that every call gives, by name: a NumPy array, or a number."""

    name: str
    default: Any = None
    """The number that it was compiled with, None for arrays."""


Slot = Resident | Given
