"""What each parameter of a compiled function is: a field that stays, or what every call gives.

And what it has beside them of tensors that are nowhere between calls.
"""

from __future__ import annotations

from typing import Any

from ...base.dataclass import dataclass
from ...lowering.ir.node import Node
from .field import Field
from .tensor import Tensor


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


@dataclass(frozen=True, slots=True)
class Fleeting:
    """A field of a tensor that is there only while a procedure runs, and the array that it is."""

    tensor: Tensor
    field: str
    node: Node

    @property
    def label(self) -> str:
        """What it is called: `t`, or `t.grad`."""
        label = self.tensor.label
        return label if self.field == "value" else f"{label}.{self.field}"

    @property
    def key(self) -> tuple[Tensor, str]:
        """What it is in any procedure."""
        return self.tensor, self.field
