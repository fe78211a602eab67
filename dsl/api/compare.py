"""Differential runs of a function on several backends: the first assignment that differs."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from ...backends import registry
from ...backends.device_arrays.foreign_arrays import as_placed, require_usable
from ...backends.device_arrays.protocols import may_be_device_array
from ...backends.runtime.call_arguments import as_device_array
from ...backends.runtime.field import Field
from ...backends.runtime.tensor import FleetingTensor, Tensor
from ...base import settings
from ...base.dataclass import dataclass
from ...base.diagnostic import CdTypeError, Diagnostic
from ..tracing.bisect import Bisection, find_first_change
from ..tracing.differences import Difference, find_difference
from ..tracing.taking import trace
from ..tracing.trace import Trace
from .cd import BoundFunction, CdFunction

_LEAVES = (
    type(None), bool, int, float, complex, str, bytes, np.ndarray, np.generic, type, FleetingTensor,
)  # fmt: skip
"""Types of values that refer to no tensors."""


@dataclass(frozen=True, slots=True, repr=False)
class Comparison:
    """The runs of one call on several backends. True where all assignments agree."""

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
        if not any(trace.runs for trace in self.traces):
            return "no @cd function was called: there was nothing to compare"
        count, names = min(map(len, self.traces)), " and ".join(self.backends)
        if dropped := max(trace.dropped for trace in self.traces):
            return f"{names} agree in {count} assignments; up to {dropped} more were dropped"
        return f"{names} agree in all of {count} assignments"

    __repr__ = __str__


def compare(
    function: Callable[..., Any],
    args: Sequence[Any] = (),
    backends: Sequence[str] = registry.COMPARED,
    rtol: float | None = None,
    atol: float | None = None,
    **wanted: Any,
) -> Comparison:
    """Run a function on copies of its arguments on each backend, and compare every assignment.

    Arrays of a device are copied there for backends of devices, and to the host for others. A plain
    Python function is run with each backend as the default: all calls and routines in it are
    compared. Arguments are not modified, nor are tensors that it captures or that attributes lead
    to; tensors that a plain function reaches in other ways are, and then differ between backends.

    Without tolerances numbers may differ by the errors of the elementary functions (`exp`, `sin`,
    `pow`, the table of docs/numerics.md) in the statements so far; without such functions, and
    always with `rtol=0`, they must be bit-identical. In both cases the calls have the profile
    `strict`, in which backends agree except for these functions. With a tolerance each assigned
    value, also of an intermediate, may differ by `atol + rtol * abs(b)` from that of the first
    backend, where `b` is the other's, as in `np.allclose`, and the calls have the current profile.
    NaNs are equal, an infinity only to itself, and integers and booleans must always be equal.
    `wanted` are filters of `trace`. Raises CdTypeError
    CD0875 for arguments or backends that are not in a tuple or list, and what the calls raise.
    """
    require_items("args", args, "(x,)")
    if "backend" in wanted:
        wanted_backend = wanted["backend"]
        raise _argument_error("backend", wanted_backend, f"backends={('numpy', wanted_backend)}")
    require_items("backends", backends, "backends=('numpy', 'cc')")
    if isinstance(function, BoundFunction | MethodType):  # the object is an argument, too
        owner: object = function.__self__
        function, args = function.__func__, (owner, *args)
    by_table = rtol is None and atol is None
    rtol, atol = rtol or 0.0, atol or 0.0
    traces, results = [], []
    for name in backends:
        copies = copy.deepcopy(tuple(args), _deepcopy_memo(args, name))
        options = settings.override(backend=name, **_profile(rtol, atol))
        with options, _restoring_tensors(function, name, copies) as call:
            with trace(**wanted) as recorded:
                results.append(call(*copies))
        traces.append(recorded)
    first_difference = None
    for compared in traces[1:]:
        first_difference = first_difference or find_difference(
            traces[0], compared, rtol, atol, by_table
        )
    return Comparison(tuple(backends), tuple(traces), tuple(results), first_difference)


def require_items(name: str, given: object, instead: str) -> None:
    """Raise CdTypeError CD0875 for a single item in place of a tuple or list of items."""
    if not isinstance(given, tuple | list):
        raise _argument_error(name, given, instead)


def _argument_error(name: str, given: object, instead: str) -> CdTypeError:
    text = repr(given) if isinstance(given, str) else f"of type `{type(given).__name__}`"
    message = f"`{name}` of a comparison cannot be {text}"
    return CdTypeError(Diagnostic("CD0875", message, helps=(f"write `{instead}`",)))


def _deepcopy_memo(args: Sequence[Any], backend: str) -> dict[int, Any]:
    """Return the `deepcopy` memo for arguments of a backend: tensors are shared, device arrays are
    copied on the device, or to the host where the backend is on another device."""
    memo: dict[int, Any] = {}
    for item in _reachable(
        args, lambda item: isinstance(item, Tensor) or may_be_device_array(item)
    ):
        device_array = None if isinstance(item, Tensor) else as_placed(item)
        if isinstance(item, Tensor):
            memo[id(item)] = item
        elif device_array is not None:
            array = as_device_array(device_array)
            require_usable(device_array, False, "argument", array.device)
            is_same_device = backend.partition(":")[0] == array.device.partition(":")[0]
            memo[id(item)] = array.copy() if is_same_device else array.numpy()
    return memo


def _profile(rtol: float, atol: float) -> dict[str, str]:
    """Return the profile setting of compared calls: `strict` without tolerances."""
    return {} if rtol or atol else {"profile": "strict"}


@contextmanager
def _restoring_tensors(
    function: Callable[..., Any], backend: str, given: Sequence[Any]
) -> Iterator[Callable[..., Any]]:
    """Yield the function on a backend; restore written tensors at the end of the `with`."""
    if isinstance(function, CdFunction | BoundFunction):
        function = function.on(backend)
        match, arguments = function.matched(*given)
        fields = [
            owner(arguments).field(name) for owner, name in match.specialization.writes_fields
        ]
    else:
        tensors = _tensors([*given, function], getattr(function, "__globals__", None))
        fields = [tensor.field(name) for tensor in tensors for name in tensor.fields]
        fields = [field for field in fields if not field.constant]
    saved = [np.array(field.numpy()) for field in fields]
    try:
        yield function
    finally:
        for field, array in zip(fields, saved, strict=True):
            field[...] = array


def bisect(
    function: CdFunction[..., Any] | BoundFunction[..., Any],
    args: Sequence[Any] = (),
    rtol: float = 0.0,
    atol: float = 0.0,
) -> Bisection | None:
    """Return the first stage of compilation that changes the result of a call, None for none.

    A stage is `lower`, a pass by its name, or `compile`. The arguments are not modified. Without
    tolerances results must be bit-identical, and the call has the profile `strict`: others allow
    reassociation of sums. Raises
    CdTypeError CD0875 for arguments that are not in a tuple or list, and what compiling the call
    raises.
    """
    require_items("args", args, "(x,)")
    with settings.override(**_profile(rtol, atol)):
        return find_first_change(*function.matched(*args), rtol, atol)


def _tensors(value: Any, home: object = None) -> Iterator[Tensor]:
    """Yield the tensors with arrays that are reachable from a value."""
    return _reachable(value, lambda item: isinstance(item, Tensor), home)


def _reachable(
    value: Any, is_wanted: Callable[[object], bool], home: object = None
) -> Iterator[Any]:
    """Yield the wanted objects reachable from a value: by items, attributes, and captured names of
    `@cd` functions and of functions of the module with the namespace `home`."""
    todo, seen = [value], dict[int, object]()
    while todo:
        item = todo.pop()
        if isinstance(item, _LEAVES) or id(item) in seen:
            continue
        seen[id(item)] = item
        if is_wanted(item):
            yield item
        else:
            todo += _references(item, home)


def _references(item: object, home: object) -> Iterable[Any]:
    """Return the objects that a value refers to directly."""
    match item:
        case Field():
            return (item.tensor,)
        case list() | tuple() | set() | frozenset():
            return item
        case dict():
            return item.values()
        case ModuleType():
            return [value for value in vars(item).values() if isinstance(value, Tensor)]
        case BoundFunction() | MethodType():
            return (item.__self__, item.__func__)
        case CdFunction():
            return _captured(getattr(item, "__wrapped__", None))
        case FunctionType():
            return _captured(item) if item.__globals__ is home else ()
        case _:
            slots = [name for kind in type(item).__mro__ for name in _slots(kind)]
            slot_values = [getattr(item, name, None) for name in slots]
            return (*getattr(item, "__dict__", {}).values(), *slot_values)


def _captured(function: object) -> list[Any]:
    """Return the captured values of a function."""
    if not isinstance(function, FunctionType):
        return []
    closure = inspect.getclosurevars(function)
    return [*closure.nonlocals.values(), *closure.globals.values()]


def _slots(kind: type) -> tuple[str, ...]:
    slots = vars(kind).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)
