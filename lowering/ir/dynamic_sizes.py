"""Run-time sizes: symbols in the shapes of parameters, bound by the call."""

from __future__ import annotations

from typing import NamedTuple

from .assignments import Let
from .indexing import Symbol
from .loops import For, Program
from .walk import statements


class Size(NamedTuple):
    """A run-time size: its symbol, and the parameter and axis that give it."""

    symbol: Symbol
    parameter: int
    axis: int


def run_time_sizes(program: Program) -> tuple[Size, ...]:
    """Return the sizes that the shapes of parameters give, each with its first occurrence."""
    body = [stmt for kernel in program.kernels for stmt in statements(kernel.body)]
    bound = {stmt.symbol for stmt in body if isinstance(stmt, Let | For)}
    sizes: dict[Symbol, Size] = {}
    for position, parameter in enumerate(program.parameters):
        for axis, extent in enumerate(parameter.node.shape):
            symbol = extent.symbol
            if symbol is not None and symbol not in bound:
                sizes.setdefault(symbol, Size(symbol, position, axis))
    return tuple(sizes.values())
