"""Parameter roles of a compiled function: resident fields, call arguments, transient fields."""

from __future__ import annotations

from typing import Any

from ...base.dataclass import dataclass
from ...lowering.ir.node import Node
from .field import Field
from .tensor import Tensor


@dataclass(frozen=True, slots=True)
class Resident:
    """A parameter that is a field of a tensor; its array is resident on the device."""

    field: Field
    merged: bool = False
    """Whether it is the version of the field in the merge buffer."""


@dataclass(frozen=True, slots=True)
class Argument:
    """A parameter that is an argument of every call, by name: a NumPy array, or a number."""

    name: str
    default: Any = None
    """What it was specialized for: a number, or a captured array; None for other arrays."""


Slot = Resident | Argument


@dataclass(frozen=True, slots=True)
class TransientField:
    """A transient field: a tensor's field that exists only during a call, and its array's node."""

    tensor: Tensor
    field: str
    node: Node

    @property
    def label(self) -> str:
        """Its name for users: `t`, or `t.grad`."""
        label = self.tensor.label
        return label if self.field == "value" else f"{label}.{self.field}"

    @property
    def key(self) -> tuple[Tensor, str]:
        """Its identity across procedures."""
        return self.tensor, self.field
