"""One call that runs a function on several backends and finds where they part."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...backends.runtime.tensor import FleetingTensor, Tensor
from ..cd import BoundFunction, CdFunction
from .bisect import Bisection, bisected
from .differences import Difference, difference
from .taking import trace
from .trace import Trace


@dataclass(frozen=True, slots=True)
class Comparison:
    """What several backends made of one call. True where all assigned the same."""

    backends: tuple[str, ...]
    traces: tuple[Trace, ...]
    results: tuple[Any, ...]
    difference: Difference | None
    """The first assignment that differs from the first backend, None where none does."""

    def __bool__(self) -> bool:
        return self.difference is None

    def __str__(self) -> str:
        if self.difference is not None:
            return str(self.difference)
        count = len(self.traces[0])
        return f"{' and '.join(self.backends)} agree in all of {count} assignments"


def compare(
    function: CdFunction | BoundFunction,
    args: Sequence[Any] = (),
    backends: Sequence[str] = ("numpy", "cc"),
    rtol: float = 0.0,
    atol: float = 0.0,
    **wanted: Any,
) -> Comparison:
    """Run a function on copies of its arguments on each backend, and compare every assignment.

    The arguments stay as they are, tensors among them; what else the function writes, arrays that
    it captures, each run finds as the one before left it. Without tolerances every bit counts.
    `wanted` are filters of `trace`. Raises what the calls raise.
    """
    traces, results = [], []
    for name in backends:
        kept = {id(one): (one, _state(one)) for one in _tensors(args)}
        given = copy.deepcopy(tuple(args), {key: one for key, (one, _) in kept.items()})
        try:
            with trace(**wanted) as taken:
                results.append(function.on(name)(*given))
        finally:
            for tensor, state in kept.values():
                for field, array in state.items():
                    tensor.field(field)[...] = array
        traces.append(taken)
    found = None
    for other in traces[1:]:
        found = found or difference(traces[0], other, rtol, atol)
    return Comparison(tuple(backends), tuple(traces), tuple(results), found)


def bisect(
    function: CdFunction | BoundFunction,
    args: Sequence[Any] = (),
    rtol: float = 0.0,
    atol: float = 0.0,
) -> Bisection | None:
    """Return the first stage of compiling after which a call gives another result, None for none.

    A stage is `lower`, a pass by its name, or `compile`. The arguments stay as they are. Without
    tolerances every bit counts. Raises what compiling the call raises.
    """
    return bisected(*function.matched(*args), rtol, atol)


def _tensors(value: Any) -> Iterator[Tensor]:
    """Yield the tensors in arguments, those in lists and tuples too."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _tensors(one)


def _state(tensor: Tensor) -> dict[str, np.ndarray]:
    if isinstance(tensor, FleetingTensor):
        return {}
    return {name: np.array(tensor.numpy(name)) for name in tensor.fields}
