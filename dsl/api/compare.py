"""One call that runs a function on several backends and finds where they part."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from ...backends.gpu.foreign_arrays import as_placed as found
from ...backends.gpu.foreign_arrays import require_usable
from ...backends.gpu.protocols import may_be_device_array
from ...backends.runtime.call_arguments import as_device_array
from ...backends.runtime.field import Field
from ...backends.runtime.tensor import FleetingTensor, Tensor
from ...base import settings
from ...base.dataclass import dataclass
from ..tracing.bisect import Bisection, bisected
from ..tracing.differences import Difference, difference
from ..tracing.taking import trace
from ..tracing.trace import Trace
from .cd import BoundFunction, CdFunction

_LEAVES = (
    type(None), bool, int, float, complex, str, bytes, np.ndarray, np.generic, type, FleetingTensor,
)  # fmt: skip
"""What leads to no tensor."""


@dataclass(frozen=True, slots=True, repr=False)
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
        count, names = min(map(len, self.traces)), " and ".join(self.backends)
        if dropped := max(trace.dropped for trace in self.traces):
            return f"{names} agree in {count} assignments; up to {dropped} more were dropped"
        return f"{names} agree in all of {count} assignments"

    __repr__ = __str__


def compare(
    function: Callable[..., Any],
    args: Sequence[Any] = (),
    backends: Sequence[str] = ("numpy", "cc"),
    rtol: float | None = None,
    atol: float | None = None,
    **wanted: Any,
) -> Comparison:
    """Run a function on copies of its arguments on each backend, and compare every assignment.

    Arrays of a device are copied there for backends of devices, and to the host for others. A plain
    Python function is run with each backend as the default: all calls and routines in it are
    compared. Arguments and tensors stay as they are, those among them that it captures or that
    attributes lead to; tensors that a plain function finds in other ways do not, and would differ
    from backend to backend.

    Without tolerances numbers may differ by what the elementary functions (`exp`, `sin`, `pow`, the
    table of docs/numerics.md) of the statements so far may differ by on two backends; where there
    are none every bit counts, as it does everywhere with `rtol=0`. Both times the calls have the
    profile `strict`, in which backends compute the same but for these functions. With a tolerance
    numbers may differ by `atol + rtol * abs(b)`, as in `np.allclose`, and the calls have the
    profile that is set. Whole numbers and truth values have to be equal in any case. `wanted` are
    filters of `trace`. Raises what the calls raise.
    """
    if isinstance(function, BoundFunction | MethodType):  # the object is an argument, too
        owner: object = function.__self__
        function, args = function.__func__, (owner, *args)
    by_table = rtol is None and atol is None
    rtol, atol = rtol or 0.0, atol or 0.0
    traces, results = [], []
    for name in backends:
        given = copy.deepcopy(tuple(args), _copies(args, name))
        chosen = settings.override(backend=name, **_profile(rtol, atol))
        with chosen, _kept(function, name, given) as call:
            with trace(**wanted) as taken:
                results.append(call(*given))
        traces.append(taken)
    apart = None
    for other in traces[1:]:
        apart = apart or difference(traces[0], other, rtol, atol, by_table)
    return Comparison(tuple(backends), tuple(traces), tuple(results), apart)


def _copies(args: Sequence[Any], backend: str) -> dict[int, Any]:
    """Return what stands for values in copies of arguments for a backend: tensors for themselves,
    arrays of a device for copies there, or on the host where the backend is elsewhere."""
    made: dict[int, Any] = {}
    for one in _reached(args, lambda one: isinstance(one, Tensor) or may_be_device_array(one)):
        there = None if isinstance(one, Tensor) else found(one)
        if isinstance(one, Tensor):
            made[id(one)] = one
        elif there is not None:
            held = as_device_array(there)
            require_usable(there, False, "argument", held.device)
            stays = backend.partition(":")[0] == held.device.partition(":")[0]
            made[id(one)] = held.copy() if stays else held.numpy()
    return made


def _profile(rtol: float, atol: float) -> dict[str, str]:
    """Return the setting of calls that are compared: `strict` where every bit counts."""
    return {} if rtol or atol else {"profile": "strict"}


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
        tensors = _tensors([*given, function], getattr(function, "__globals__", None))
        fields = [tensor.field(name) for tensor in tensors for name in tensor.fields]
        fields = [field for field in fields if not field.constant]
    before = [np.array(field.numpy()) for field in fields]
    try:
        yield function
    finally:
        for field, array in zip(fields, before, strict=True):
            field[...] = array


def bisect(
    function: CdFunction[..., Any] | BoundFunction[..., Any],
    args: Sequence[Any] = (),
    rtol: float = 0.0,
    atol: float = 0.0,
) -> Bisection | None:
    """Return the first stage of compiling after which a call gives another result, None for none.

    A stage is `lower`, a pass by its name, or `compile`. The arguments stay as they are. Without
    tolerances every bit counts, and the call has the profile `strict`: others leave the order of
    sums open. Raises what compiling the call raises.
    """
    with settings.override(**_profile(rtol, atol)):
        return bisected(*function.matched(*args), rtol, atol)


def _tensors(value: Any, home: object = None) -> Iterator[Tensor]:
    """Yield the tensors with arrays that a value leads to."""
    return _reached(value, lambda one: isinstance(one, Tensor), home)


def _reached(value: Any, is_wanted: Callable[[object], bool], home: object = None) -> Iterator[Any]:
    """Yield what is wanted of all that a value leads to: by items, attributes, and captured names
    of `@cd` functions and of functions of the module that `home` is the namespace of."""
    todo, seen = [value], dict[int, object]()
    while todo:
        one = todo.pop()
        if isinstance(one, _LEAVES) or id(one) in seen:
            continue
        seen[id(one)] = one
        if is_wanted(one):
            yield one
        else:
            todo += _next(one, home)


def _next(one: object, home: object) -> Iterable[Any]:
    """Return what a value leads to directly."""
    match one:
        case Field():
            return (one.tensor,)
        case list() | tuple() | set() | frozenset():
            return one
        case dict():
            return one.values()
        case ModuleType():
            return [value for value in vars(one).values() if isinstance(value, Tensor)]
        case BoundFunction() | MethodType():
            return (one.__self__, one.__func__)
        case CdFunction():
            return _captured(getattr(one, "__wrapped__", None))
        case FunctionType():
            return _captured(one) if one.__globals__ is home else ()
        case _:
            slots = [name for kind in type(one).__mro__ for name in _slots(kind)]
            held = [getattr(one, name, None) for name in slots]
            return (*getattr(one, "__dict__", {}).values(), *held)


def _captured(function: object) -> list[Any]:
    """Return what a function finds around it."""
    if not isinstance(function, FunctionType):
        return []
    found = inspect.getclosurevars(function)
    return [*found.nonlocals.values(), *found.globals.values()]


def _slots(kind: type) -> tuple[str, ...]:
    slots = vars(kind).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)
