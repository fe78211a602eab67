"""Derivatives that the user wrote of a block of IR 1, as procedures; see `assignments.Block`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...base.dataclass import dataclass
from .node import Node

if TYPE_CHECKING:  # blocks are statements of procedures
    from .assignments import Procedure


@dataclass(frozen=True, slots=True)
class LinearMap:
    """A linear map as statements: a product with a Jacobian, or with its transpose."""

    procedure: Procedure
    """Its parameters are the inputs, the outputs, then the vectors that it is applied to."""
    results: tuple[Node | None, ...]
    """The results of the procedure, None for those that are zero."""


@dataclass(frozen=True, slots=True)
class DerivativeRule:
    """Derivatives of a block that computes new arrays, `outputs`, from arrays of its own, `inputs`;
    they stand for those of its statements."""

    name: str
    """The function that the block is a call of."""
    inputs: tuple[Node, ...]
    outputs: tuple[Node, ...]
    cotangents: LinearMap | None = None
    """The cotangents of the inputs, from those of the outputs."""
    tangents: LinearMap | None = None
    """The tangents of the outputs, from those of the inputs."""
