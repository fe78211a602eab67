"""What a test kernel is: a plain NumPy function, and inputs for it at two sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

Size = Literal["tiny", "medium"]
Arguments = tuple[tuple[Any, ...], dict[str, Any]]
Make = Callable[[Size, int], Arguments]
Dims = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Kernel:
    """A function that runs undecorated, and what a test needs to run it both ways."""

    name: str
    function: Callable[..., Any]
    make: Make
    """`make(size, seed)` returns new positional and keyword arguments."""
    mutated: tuple[int, ...] = ()
    """The positions of the arguments that the function may change in place."""
    rtol: float = 1e-9
    """How far floating-point values may differ, relative to the largest value of their array."""

    def __repr__(self) -> str:
        return self.name


def inputs(
    fill: Callable[..., tuple[Any, ...]],
    tiny: Dims,
    medium: Dims,
    keywords: Mapping[str, Any] | None = None,
) -> Make:
    """Return a maker: `fill(generator, *dims)` gives the positional arguments of one size.

    Tiny sizes are for the interpreter (under about 20,000 scalar operations), medium ones for
    compiled code.
    """

    def make(size: Size, seed: int) -> Arguments:
        dims = tiny if size == "tiny" else medium
        return fill(np.random.default_rng(seed), *dims), dict(keywords or {})

    return make
