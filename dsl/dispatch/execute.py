"""Execution of a specialization: preparation of its arguments, the run, and the return value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...backends.device_arrays.device_array import DeviceArray, PlacedArray, c_strides
from ...backends.device_arrays.foreign_arrays import as_placed, overlap_proxy_of, require_usable
from ...backends.runtime.arrays import (
    as_array,
    byte_offset,
    copy_with_strides,
    needs_packing,
    overlaps,
    prepare,
    require_disjoint_elements,
)
from ...backends.runtime.state import RUNTIME
from ...base.diagnostic import (
    CdError,
    CdMemoryError,
    CdTypeError,
    CdValueError,
    Diagnostic,
    Label,
    Span,
)
from ...base.lazy_import import LazyModule
from ...lowering.ir.assignments import Assign, Procedure
from ...lowering.ir.walk import writes
from ..elaborate.typed import (
    Argument,
    Constant,
    Items,
    Many,
    New,
    Part,
    Result,
    Return,
    Sliced,
    Strided,
    Update,
    Updating,
)
from ..specialize.signature import cheap_key, is_field, is_foreign, is_group, is_like_tuple
from ..specialize.variants import Getter, Match, Specialization, replaced_array_error
from ..values.values import Path

if TYPE_CHECKING:
    from ...backends.runtime import call_arguments as passed
    from ...backends.runtime.tensor import Tensor
else:  # what few programs need
    passed = LazyModule("...backends.runtime.call_arguments", __package__)

Arguments = Mapping[str, Any]
_PASSED_UNCHANGED = (np.ndarray, PlacedArray)


def run(match: Match, arguments: Arguments) -> Any:
    """Run a matched specialization, and return the function's result.

    Raises the `CdError` family; invalid arguments are refused before anything is written.
    """
    timeline = RUNTIME.timeline  # another thread may end the profile at any time
    if timeline is None:
        return _execute(match, arguments)
    with timeline.here(match.specialization.procedure.name, "call"):
        return _execute(match, arguments)


def _execute(match: Match, arguments: Arguments) -> Any:
    specialization, routine, find = (
        match.specialization,
        match.specialization.routine,
        match.specialization.find,
    )
    assert routine is not None, "a form that is called has code"
    inputs = match.given(arguments)
    recorder = RUNTIME.recording(specialization.situation.settings.debug_log_from_routines)
    try:
        if recorder is not None:
            arrays, after = prepare_arguments(specialization, inputs, arguments)
            _resolve_overlaps(arrays, inputs, specialization)
            title = specialization.procedure.name, specialization.situation.backend, ""
            results = recorder.step(specialization.codes, arrays, title)()
            for write_back in after:
                write_back()
        elif match.is_direct:
            results = routine.run(_convert_only(specialization, inputs))
        else:
            arrays, after = prepare_arguments(specialization, inputs, arguments)
            _resolve_overlaps(arrays, inputs, specialization)
            results = routine(arrays)
            for write_back in after:
                write_back()
            if match.clear and _is_direct(match, inputs, arrays, arguments):
                specialization.direct.add(match.key)
    except CdMemoryError as problem:
        raise problem.placed(specialization.procedure.span) from None
    finally:
        for owner, name in specialization.writes_fields:  # also where the run failed
            owner(arguments).field(name).record_host_write()
    return build_result(specialization.typed.returns, results, arguments, find)


def _convert_only(specialization: Specialization, given: Sequence[Any]) -> list[Any]:
    """Return the arrays of a call whose key implies that they need no preparation."""
    arrays = list(given)
    for at, (value, dtype) in enumerate(zip(given, specialization.scalars, strict=True)):
        if type(value) in _PASSED_UNCHANGED:
            continue
        if type(value) is list or dtype is not None:
            arrays[at] = np.asarray(value, dtype)
            continue
        path = specialization.typed.passed[at]
        arrays[at] = as_array(value, str(path))
        if specialization.procedure.parameters[at].written:
            _refuse_copy(value, arrays[at], path, specialization.procedure.span)
    return arrays


def _is_direct(
    match: Match, given: Sequence[Any], arrays: Sequence[Any], arguments: Arguments
) -> bool:
    """Whether all arrays were passed on unchanged, and the key or a guard covers each of them."""
    specialization = match.specialization
    watched = {watch.path for watch in specialization.watched}
    for path, array, value, dtype in zip(
        specialization.typed.passed, arrays, given, specialization.scalars, strict=True
    ):
        owner = path.owner or path
        if owner not in watched and not owner.is_table and not _is_covered_by_key(owner, arguments):
            return False
        if array is value or type(value) is list:
            continue
        if is_field(value) or (dtype is not None and not isinstance(value, np.ndarray)):
            continue
        if not is_foreign(value) or cheap_key(as_array(value), False) != cheap_key(array, False):
            return False
    return True


def _is_covered_by_key(path: Path, arguments: Arguments) -> bool:
    """Whether the key of an argument covers the value of a path; see `signature.quick_key`."""
    value: Any = None if path.captured else arguments[path.root]
    for step in path.steps:
        is_covered = is_like_tuple(type(value)) or is_group(value)
        if not is_covered or not isinstance(step, int):
            return False
        value = value[step]
    return not path.captured


def prepare_arguments(
    specialization: Specialization, given: Sequence[Any], arguments: Arguments
) -> tuple[list[Any], list[Callable[[], None]]]:
    """Return the arrays for the code, and the write-backs to call after the run."""
    arrays: list[Any] = []
    after: list[Callable[[], None]] = []
    span, parameters = specialization.procedure.span, specialization.procedure.parameters
    backend = specialization.situation.backend
    for value, path, parameter in zip(given, specialization.typed.passed, parameters, strict=True):
        if isinstance(value, PlacedArray):
            try:
                arrays.append(require_usable(value, parameter.written, str(path), backend))
                if parameter.written and value.strides is not None:
                    require_disjoint_elements(value.overlap_proxy, str(path))
            except CdError as problem:
                raise problem.placed(span) from None
            continue
        if not parameter.node.shape and not isinstance(value, np.ndarray):
            arrays.append(np.asarray(value, parameter.node.dtype.numpy))
            continue
        owner = path.owner
        if owner is not None and parameter.written:
            _refuse_constant(specialization.find(owner)(arguments), span)
        try:
            array = as_array(value, str(path))
            ready, write_back = prepare(array, parameter.written, str(path))
        except CdError as problem:
            raise problem.placed(span) from None
        if parameter.written:
            _refuse_copy(value, array, path, span)
        elif parameter.node.strides is None and not ready.flags.c_contiguous:
            ready = np.ascontiguousarray(ready)  # the code takes copies in C order
        arrays.append(ready)
        if write_back is not None:
            after.append(write_back)
    return arrays, after


def _refuse_constant(tensor: Tensor, span: Span) -> None:
    if tensor.constant:
        raise CdTypeError(
            Diagnostic(
                "CD0804", f"tensor `{tensor.label}` is constant, and the function writes it",
                (Label(span),), helps=("make it without `constant=True`",),
            )
        )  # fmt: skip


def _refuse_copy(value: object, array: Any, path: Path, span: Span) -> None:
    """Refuse to write a value that can only be copied: the caller would not see the result."""
    if isinstance(value, np.ndarray) or np.may_share_memory(array, as_array(value)):
        return
    kind = type(value).__name__
    raise CdTypeError(
        Diagnostic(
            "CD0707", f"`{path}` is written, and a {kind} cannot be written in place",
            (Label(span),), helps=(f"pass an array: `np.array({path})`",),
        )
    )  # fmt: skip


def _resolve_overlaps(
    arrays: list[Any], given: Sequence[Any], specialization: Specialization
) -> None:
    """Copy read arrays that overlap the written one, where NumPy does the same.

    The original arguments are compared, since packed copies no longer overlap. Raises CdValueError
    CD0708 where the result would depend on the order of element writes.
    """
    parameters = specialization.procedure.parameters
    if not any(parameter.written for parameter in parameters):
        return
    pairs = zip(given, map(overlap_proxy_of, arrays), strict=True)
    for pair in overlaps(
        [first if isinstance(first, np.ndarray) else proxy for first, proxy in pairs]
    ):
        first, second = pair.first, pair.second
        written = parameters[first].written, parameters[second].written
        if not any(written):
            continue
        copied = second if written[0] else first
        is_here = isinstance(arrays[copied], np.ndarray)
        if is_here and not all(written) and _writes_last(specialization.procedure):
            arrays[copied] = copy_with_strides(arrays[copied], parameters[copied].node.strides)
            continue
        names = [str(specialization.typed.passed[n]) for n in (first, second)]
        raise CdValueError(
            Diagnostic(
                "CD0708",
                f"arguments `{names[0]}` and `{names[1]}` share memory, and one is written",
                (Label(specialization.procedure.span),),
                helps=(f"pass a copy: `{names[1]}.copy()`",),
            )
        )


def _writes_last(procedure: Procedure) -> bool:
    """Whether inputs are written by the last statement only, an assignment: all else that reads
    them comes before, and NumPy copies an operand of an assignment that overlaps its target."""
    *before, last = procedure.body
    inputs = {parameter.node for parameter in procedure.parameters}
    return isinstance(last, Assign) and inputs.isdisjoint(writes(before))


def build_result(
    returns: Return,
    results: Sequence[Any],
    arguments: Arguments,
    find: Callable[[Path], Getter],
) -> Any:
    """Return the Python result: an argument itself, a view, a new array, or several of them."""
    match returns:
        case Constant(value):
            return value
        case Argument(path, Sliced() as view):
            value = find(path)(arguments)
            base = (
                passed.as_device_array(value)
                if isinstance(value, PlacedArray)
                else as_array(value, str(path))
            )
            return slice_view(base, view, results)
        case Argument(path, (None | Strided()) as view):
            value = find(path)(arguments)
            if isinstance(value, PlacedArray):
                return (
                    value.given
                    if view is None
                    else _device_view(passed.as_device_array(value), view)
                )
            return value if view is None else _view(as_array(value, str(path)), view)
        case New(number, Sliced() as view):
            return slice_view(results[number], view, results)
        case New(number, (None | Strided()) as view, kind):
            array = results[number]
            if kind is not None:
                return array.item() if kind.weak else array[()]
            if isinstance(array, DeviceArray) and view is not None:
                return _device_view(array, view)
            return array if view is None else _view(array, view)
        case Many(items, kind, tuple_type):
            parts = [build_result(item, results, arguments, find) for item in items]
            if tuple_type is not None:
                return tuple.__new__(tuple_type, parts)
            return parts if kind == "list" else tuple(parts)
        case Updating(item, updates):
            result = build_result(item, results, arguments, find)
            evaluate = partial(build_result, results=results, arguments=arguments, find=find)
            _set_attributes(updates, evaluate, lambda path: find(path)(arguments))
            return result
        case Items(item, plain, depth):
            return items_of(build_result(item, results, arguments, find), plain, depth)
        case Part(item, name):
            base = build_result(item, results, arguments, find)
            device_array = as_placed(base)
            return (
                getattr(as_array(base), name)
                if device_array is None
                else passed.as_device_array(device_array).part(name)
            )


def _set_attributes(
    updates: Iterable[Update], evaluate: Callable[[Return], Any], owner: Callable[[Path], Any]
) -> None:
    """Set the attributes of inputs; all values are computed before any is set."""
    updates_now = [
        (owner(update.owner), update.name, evaluate(update.value))
        for update in updates
        if update.given is None or evaluate(update.given)
    ]
    for target, name, value in updates_now:
        setattr(target, name, value)


def items_of(array: Any, plain: bool, depth: int) -> list[Any]:
    """Return the items along the first axis of an array, as Python's numbers where `plain`: in
    lists of lists where `depth` is more than one."""
    items: list[Any] = array.tolist() if plain else list(array)
    return items if plain or depth == 1 else [items_of(item, plain, depth - 1) for item in items]


def slice_view(array: Any, view: Sliced, results: Sequence[Any] | Mapping[int, Any]) -> Any:
    """Return a view of an array by slices whose bounds are results of the run."""

    def at(number: int | Result) -> int:
        return int(results[number.number]) if isinstance(number, Result) else number

    parts = [[at(entry) for entry in axis] for axis in view.axes]
    if isinstance(array, DeviceArray):
        steps = array.strides or c_strides(array.shape)
        pairs = list(zip(parts, steps, strict=True))
        sliced_axes = [(entry[2], entry[1] * stride) for entry, stride in pairs if len(entry) > 1]
        shape, strides = zip(*(sliced_axes[n] for n in view.order), strict=True)
        return array.make_view(sum(entry[0] * stride for entry, stride in pairs), shape, strides)
    part = array[tuple(entry[0] if len(entry) == 1 else _slice(*entry) for entry in parts)]
    part = part if not view.order else part.transpose(view.order)
    part.flags.writeable = part.flags.writeable and view.writable
    return part


def _slice(start: int, step: int, count: int) -> slice:
    """Return the slice of `count` elements, all of them in bounds."""
    stop = start + count * step
    return slice(start, None if stop < 0 else stop, step) if count else slice(0, 0)


def _device_view(array: DeviceArray, view: Strided) -> DeviceArray:
    return array.make_view(view.offset, view.shape, view.strides)


def _view(array: Any, view: Strided) -> Any:
    """Return a view of an array by offset and strides, in elements of its layout.

    Where the code runs on a packed copy of the array, it is the layout of the copy.
    """
    if not array.size or 0 in view.shape:
        return array.reshape(-1)[:0].reshape(view.shape)
    unit, offset, strides = array.itemsize, view.offset, view.strides
    if not array.flags.c_contiguous and needs_packing(array):
        unit, offset = 1, byte_offset(array, view.offset)
        strides = tuple(byte_offset(array, step) for step in view.strides)
    memory = _flat_memory(array, unit)
    lowest_offset = sum(
        min(0, (n - 1) * step) for n, step in zip(array.shape, array.strides, strict=True)
    )
    first = offset - lowest_offset // unit
    steps = [(n - 1) * step for n, step in zip(view.shape, strides, strict=True)]
    lowest, highest = (first + sum(bound(0, n) for n in steps) for bound in (min, max))
    if lowest < 0 or highest >= len(memory):
        raise replaced_array_error("an array that is returned", "the function runs", ())
    byte_strides = tuple(step * unit for step in strides)
    view_array = np.lib.stride_tricks.as_strided(memory[first:], view.shape, byte_strides)
    repeats = any(n > 1 and not step for n, step in zip(view.shape, strides, strict=True))
    if repeats or not (view.writable and array.flags.writeable):
        view_array.flags.writeable = False
    return view_array


def _flat_memory(array: Any, unit: int) -> Any:
    """Return the memory between an array's lowest and highest element as a 1-d array, with an
    element at each multiple of `unit` bytes."""
    forward = array[(*(slice(None, None, -1 if step < 0 else 1) for step in array.strides), ...)]
    span = sum((n - 1) * step for n, step in zip(forward.shape, forward.strides, strict=True))
    return np.lib.stride_tricks.as_strided(forward, (span // unit + 1,), (unit,))
