"""Running a form on what a call gives, and handing back what Python expects of the function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...backends.gpu.device_array import DeviceArray, PlacedArray, c_strides
from ...backends.gpu.foreign_arrays import as_placed as found
from ...backends.gpu.foreign_arrays import overlap_proxy_of, require_usable
from ...backends.runtime.arrays import (
    as_array,
    copy_with_strides,
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
from ...lowering.ir.assignments import Assign, Check, Let, Procedure
from ..elaborate.typed import (
    Argument,
    Constant,
    Many,
    New,
    Part,
    Result,
    Return,
    Sliced,
    Strided,
    Updating,
)
from ..specialize.signature import has_arrays, is_field, is_foreign, is_like_tuple, quick_key
from ..specialize.variants import Getter, Match, Specialisation, exchanged
from ..values.values import Path

if TYPE_CHECKING:
    from ...backends.runtime import call_arguments as passed
    from ...backends.runtime.tensor import Tensor
else:  # what few programs need
    passed = LazyModule("...backends.runtime.call_arguments", __package__)

Arguments = Mapping[str, Any]
_AS_THEY_ARE = (np.ndarray, PlacedArray)


def run(match: Match, arguments: Arguments) -> Any:
    """Return what the function returns for the arguments that a form was matched with.

    Raises the `CdError` family; what is refused is refused before anything is written.
    """
    timeline = RUNTIME.timeline  # another thread may end the profile at any moment
    if timeline is None:
        return _run(match, arguments)
    with timeline.here(match.known.procedure.name, "call"):
        return _run(match, arguments)


def _run(match: Match, arguments: Arguments) -> Any:
    known, routine, find = match.known, match.known.routine, match.known.find
    assert routine is not None, "a form that is called has code"
    given = match.given(arguments)
    recorder = RUNTIME.recording(known.situation.settings.debug_log_from_routines)
    try:
        if recorder is not None:
            arrays, after = prepared(known, given, arguments)
            _separate(arrays, given, known)
            title = known.procedure.name, known.situation.backend, ""
            results = recorder.step(known.codes, arrays, title)()
            for write_back in after:
                write_back()
        elif match.is_direct:
            results = routine.run(_unprepared(known, given))
        else:
            arrays, after = prepared(known, given, arguments)
            _separate(arrays, given, known)
            results = routine(arrays)
            for write_back in after:
                write_back()
            if match.clear and _is_direct(match, given, arrays, arguments):
                known.direct.add(match.key)
    except CdMemoryError as problem:
        raise problem.placed(known.procedure.span) from None
    finally:
        for owner, name in known.writes_fields:  # also where it stopped half way
            owner(arguments).field(name).record_host_write()
    return returned(known.typed.returns, results, arguments, find)


def _unprepared(known: Specialisation, given: Sequence[Any]) -> list[Any]:
    """Return the arrays of a call whose key says that they need no preparation."""
    arrays = list(given)
    for at, (value, dtype) in enumerate(zip(given, known.scalars, strict=True)):
        if type(value) in _AS_THEY_ARE:
            continue
        if type(value) is list or dtype is not None:
            arrays[at] = np.asarray(value, dtype)
            continue
        path = known.typed.passed[at]
        arrays[at] = as_array(value, str(path))
        if known.procedure.parameters[at].written:
            _refuse_copy(value, arrays[at], path, known.procedure.span)
    return arrays


def _is_direct(
    match: Match, given: Sequence[Any], arrays: Sequence[Any], arguments: Arguments
) -> bool:
    """Whether all arrays were passed on as they came, and the key or the watches tell of them."""
    known = match.known
    watched = {watch.path for watch in known.watched}
    for path, array, value, dtype in zip(
        known.typed.passed, arrays, given, known.scalars, strict=True
    ):
        owner = path.owner or path
        if owner not in watched and not owner.is_table and not _is_told(owner, arguments):
            return False
        if array is value or type(value) is list:
            continue
        if is_field(value) or (dtype is not None and not isinstance(value, np.ndarray)):
            continue
        if not is_foreign(value) or quick_key(as_array(value), False) != quick_key(array, False):
            return False
    return True


def _is_told(path: Path, arguments: Arguments) -> bool:
    """Whether the key of an argument tells of what a path leads to; see `keys.quick_key`."""
    value: Any = None if path.captured else arguments[path.root]
    for step in path.steps:
        told = is_like_tuple(type(value)) or has_arrays(value)
        if not told or not isinstance(step, int):
            return False
        value = value[step]
    return not path.captured


def prepared(
    known: Specialisation, given: Sequence[Any], arguments: Arguments
) -> tuple[list[Any], list[Callable[[], None]]]:
    """Return what the code can be given, and what to call after it has run."""
    arrays: list[Any] = []
    after: list[Callable[[], None]] = []
    span, parameters = known.procedure.span, known.procedure.parameters
    backend = known.situation.backend
    for value, path, parameter in zip(given, known.typed.passed, parameters, strict=True):
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
            _refuse_constant(known.find(owner)(arguments), span)
        try:
            array = as_array(value, str(path))
            ready, write_back = prepare(array, parameter.written, str(path))
        except CdError as problem:
            raise problem.placed(span) from None
        if parameter.written:
            _refuse_copy(value, array, path, span)
        elif parameter.node.strides is None and not ready.flags.c_contiguous:
            ready = np.ascontiguousarray(ready)  # a form for any layout, by way of a copy
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
    """Refuse to write what only a copy could be made of: the caller would see nothing of it."""
    if isinstance(value, np.ndarray) or np.may_share_memory(array, as_array(value)):
        return
    kind = type(value).__name__
    raise CdTypeError(
        Diagnostic(
            "CD0707", f"`{path}` is written, and a {kind} cannot be written in place",
            (Label(span),), helps=(f"pass an array: `np.array({path})`",),
        )
    )  # fmt: skip


def _separate(arrays: list[Any], given: Sequence[Any], known: Specialisation) -> None:
    """Copy read arrays that overlap the one that is written, where that is what NumPy does.

    What was given decides: packed copies of it share nothing any more. CdValueError CD0708 where
    the result would depend on the order of element writes.
    """
    parameters = known.procedure.parameters
    if not any(parameter.written for parameter in parameters):
        return
    pairs = zip(given, map(overlap_proxy_of, arrays), strict=True)
    for pair in overlaps([one if isinstance(one, np.ndarray) else other for one, other in pairs]):
        one, two = pair.first, pair.second
        written = parameters[one].written, parameters[two].written
        if not any(written):
            continue
        spare = two if written[0] else one
        is_here = isinstance(arrays[spare], np.ndarray)
        if is_here and not all(written) and _is_one_assignment(known.procedure):
            arrays[spare] = copy_with_strides(arrays[spare], parameters[spare].node.strides)
            continue
        names = [str(known.typed.passed[n]) for n in (one, two)]
        raise CdValueError(
            Diagnostic(
                "CD0708",
                f"arguments `{names[0]}` and `{names[1]}` share memory, and one is written",
                (Label(known.procedure.span),),
                helps=(f"pass a copy: `{names[1]}.copy()`",),
            )
        )


def _is_one_assignment(procedure: Procedure) -> bool:
    """Whether one statement writes, and nothing reads after it."""
    *before, last = procedure.body
    return isinstance(last, Assign) and all(isinstance(one, Let | Check) for one in before)


def returned(
    returns: Return,
    results: Sequence[Any],
    arguments: Arguments,
    find: Callable[[Path], Getter],
) -> Any:
    """Return what Python gets: the given object itself, a view, a new array, or several."""
    match returns:
        case Constant(value):
            return value
        case Argument(path, Sliced() as view):
            value = find(path)(arguments)
            whole = (
                passed.as_device_array(value)
                if isinstance(value, PlacedArray)
                else as_array(value, str(path))
            )
            return sliced(whole, view, results)
        case Argument(path, (None | Strided()) as view):
            value = find(path)(arguments)
            if isinstance(value, PlacedArray):
                return value.given if view is None else _seen(passed.as_device_array(value), view)
            return value if view is None else _viewed(as_array(value, str(path)), view)
        case New(number, view, kind):
            array = results[number]
            if kind is not None:
                return array.item() if kind.weak else array[()]
            if isinstance(array, DeviceArray) and view is not None:
                return _seen(array, view)
            return array if view is None else _viewed(array, view)
        case Many(items, kind, made):
            parts = [returned(item, results, arguments, find) for item in items]
            if made is not None:
                return tuple.__new__(made, parts)
            return parts if kind == "list" else tuple(parts)
        case Updating(item, updates):
            made = returned(item, results, arguments, find)
            of = partial(returned, results=results, arguments=arguments, find=find)
            new = [
                (find(one.owner)(arguments), one.name, of(one.value))
                for one in updates
                if one.given is None or of(one.given)
            ]
            for owner, name, value in new:  # all of them were made before any is set
                setattr(owner, name, value)
            return made
        case Part(item, name):
            whole = returned(item, results, arguments, find)
            there = found(whole)
            return (
                getattr(as_array(whole), name)
                if there is None
                else passed.as_device_array(there).part(name)
            )


def sliced(array: Any, view: Sliced, results: Sequence[Any] | Mapping[int, Any]) -> Any:
    """Return a view of an array by slices whose ends the run has given."""

    def at(number: int | Result) -> int:
        return int(results[number.number]) if isinstance(number, Result) else number

    parts = [[at(one) for one in axis] for axis in view.axes]
    if isinstance(array, DeviceArray):
        steps = array.strides or c_strides(array.shape)
        pairs = list(zip(parts, steps, strict=True))
        kept = [(one[2], one[1] * by) for one, by in pairs if len(one) > 1]
        shape, strides = zip(*(kept[n] for n in view.order), strict=True)
        return array.make_view(sum(one[0] * by for one, by in pairs), shape, strides)
    part = array[tuple(one[0] if len(one) == 1 else _slice(*one) for one in parts)]
    return part if not view.order else part.transpose(view.order)


def _slice(start: int, step: int, count: int) -> slice:
    """Return the slice of so many elements, which all lie in the array."""
    stop = start + count * step
    return slice(start, None if stop < 0 else stop, step) if count else slice(0, 0)


def _seen(array: DeviceArray, view: Strided) -> DeviceArray:
    return array.make_view(view.offset, view.shape, view.strides)


def _viewed(array: Any, view: Strided) -> Any:
    """Return a view of an array given by offset and strides in elements of its layout.

    Where code was given a packed copy of an array that lies differently these are of the copy.
    """
    if not array.size or 0 in view.shape:
        return array.reshape(-1)[:0].reshape(view.shape)
    size = array.itemsize
    strides = tuple(step * size for step in view.strides)
    whole = all(step % size == 0 for step in array.strides)
    if not array.flags.c_contiguous and not (
        whole and array.flags.aligned and array.dtype.isnative
    ):
        if (found := _of_packed(array, view)) is not None:
            return found
        array = np.ascontiguousarray(array)
    start = _from_lowest(array)
    low = sum(min(0, (n - 1) * step) for n, step in zip(array.shape, array.strides, strict=True))
    first = view.offset - low // size
    steps = [(n - 1) * step for n, step in zip(view.shape, view.strides, strict=True)]
    lowest, highest = (first + sum(bound(0, n) for n in steps) for bound in (min, max))
    if lowest < 0 or highest >= len(start):
        raise exchanged("an array that is returned", "the function runs", ())
    found = np.lib.stride_tricks.as_strided(start[first:], view.shape, strides)
    repeats = any(n > 1 and not step for n, step in zip(view.shape, strides, strict=True))
    if repeats or not array.flags.writeable:
        found.flags.writeable = False
    return found


def _of_packed(array: Any, view: Strided) -> Any | None:
    """Return the view of an array that is given in the layout of a packed copy of it.

    Each step there is so many elements along each axis, as digits of a number whose bases are the
    sizes. None where a step goes on from the end of an axis to the next row.
    """
    first = _digits(view.offset, array.shape)
    steps = [_digits(step, array.shape) for step in view.strides]
    for axis, size in enumerate(array.shape):
        moves = [(n - 1) * step[axis] for n, step in zip(view.shape, steps, strict=True)]
        ends = (first[axis] + sum(bound(0, move) for move in moves) for bound in (min, max))
        if not all(0 <= end < size for end in ends):
            return None
    start = array[tuple(slice(at, None) for at in first)]
    strides = [sum(n * by for n, by in zip(step, array.strides, strict=True)) for step in steps]
    found = np.lib.stride_tricks.as_strided(start, view.shape, strides)
    repeats = any(n > 1 and not by for n, by in zip(view.shape, strides, strict=True))
    if repeats or not array.flags.writeable:
        found.flags.writeable = False
    return found


def _digits(number: int, sizes: Sequence[int]) -> list[int]:
    """Return how many elements along each axis so many elements of a packed array are."""
    left, found = abs(number), []
    for size in reversed(sizes[1:]):
        found.append(left % size if number >= 0 else -(left % size))
        left //= size
    found.append(left if number >= 0 else -left)
    return found[::-1]


def _from_lowest(array: Any) -> Any:
    """Return all memory between an array's lowest and highest element, as one axis."""
    forward = array[tuple(slice(None, None, -1 if step < 0 else 1) for step in array.strides)]
    reach = sum((n - 1) * step for n, step in zip(forward.shape, forward.strides, strict=True))
    extent = reach // array.itemsize + 1
    return np.lib.stride_tricks.as_strided(forward, (extent,), (array.itemsize,))
