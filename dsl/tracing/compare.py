"""One call that runs a function on several backends and finds where they part."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...backends.runtime.tensor import FleetingTensor, Tensor
from ...lowering import settings
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
    function: Callable[..., Any],
    args: Sequence[Any] = (),
    backends: Sequence[str] = ("numpy", "cc"),
    rtol: float = 0.0,
    atol: float = 0.0,
    **wanted: Any,
) -> Comparison:
    """Run a function on copies of its arguments on each backend, and compare every assignment.

    A plain Python function is run with each backend as the default: all calls and routines in it
    are compared. Arguments and tensors stay as they are, those that it captures among them, but
    not what a plain function finds elsewhere. Without tolerances every bit counts. `wanted` are
    filters of `trace`. Raises what the calls raise.
    """
    traces, results = [], []
    for name in backends:
        given = copy.deepcopy(tuple(args), {id(one): one for one in _tensors(args)})
        with settings.override(backend=name), _kept(function, name, given) as call:
            with trace(**wanted) as taken:
                results.append(call(*given))
        traces.append(taken)
    found = None
    for other in traces[1:]:
        found = found or difference(traces[0], other, rtol, atol)
    return Comparison(tuple(backends), tuple(traces), tuple(results), found)


@contextmanager
def _kept(
    function: Callable[..., Any], backend: str, given: Sequence[Any]
) -> Iterator[Callable[..., Any]]:
    """Yield the function on a backend; behind the `with` tensors are as they were before."""
    if isinstance(function, CdFunction | BoundFunction):
        function = function.on(backend)
        match, arguments = function.matched(*given)
        fields = [owner(arguments).field(name) for owner, name in match.known.writes_fields]
    else:
        captured = inspect.getclosurevars(function) if inspect.isfunction(function) else None
        around = [] if captured is None else [captured.nonlocals, captured.globals]
        tensors = _tensors([*given, *(value for names in around for value in names.values())])
        fields = [tensor.field(name) for tensor in tensors for name in tensor.fields]
        fields = [field for field in fields if not field.constant]
    before = [np.array(field.numpy()) for field in fields]
    try:
        yield function
    finally:
        for field, array in zip(fields, before, strict=True):
            field[...] = array


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
    """Yield the tensors with arrays in arguments, those in lists and tuples too."""
    if isinstance(value, Tensor) and not isinstance(value, FleetingTensor):
        yield value
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _tensors(one)
