"""Sizes that only a call knows: symbols in the shapes of parameters."""

from __future__ import annotations

from typing import NamedTuple

from .assignments import Let
from .indexing import Symbol
from .loops import For, Program
from .walk import statements


class Size(NamedTuple):
    """A size that the call knows: its symbol, and the parameter and axis that have it."""

    symbol: Symbol
    parameter: int
    axis: int


def sizes_of(program: Program) -> tuple[Size, ...]:
    """Return the sizes that only the shapes of parameters give, each with its first place."""
    body = [stmt for kernel in program.kernels for stmt in statements(kernel.body)]
    bound = {stmt.symbol for stmt in body if isinstance(stmt, Let | For)}
    found: dict[Symbol, Size] = {}
    for position, parameter in enumerate(program.parameters):
        for axis, extent in enumerate(parameter.node.shape):
            symbol = extent.symbol
            if symbol is not None and symbol not in bound:
                found.setdefault(symbol, Size(symbol, position, axis))
    return tuple(found.values())
