"""Results of a call on the fast path: the parts that compiled code returns, and their assembly.

Where a tuple nests, or a view needs run-time bounds, the parts are assembled in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Protocol

from ...backends.call_entry import (
    AXES,
    RANK,
    WRITABLE,
    Guard,
    ResultKind,
    ReturnKind,
)
from ...lowering.ir import dtypes
from ..elaborate import typed as t
from ..values.types import WEAK_INT, Kind
from ..values.values import Path
from .execute import items_of, slice_view

if TYPE_CHECKING:
    from ...backends.direct_calls import HasDirectCalls
    from ...backends.interface import Array

_WEAK = {
    dtypes.float64: ResultKind.FLOAT, dtypes.int64: ResultKind.INTEGER,
    dtypes.bool_: ResultKind.BOOL,
    dtypes.complex128: ResultKind.COMPLEX,
}  # fmt: skip


class Unfit(Exception):
    """What a call needs has no place in a plan."""


class Steps(Protocol):
    """What a call compares, with the position of each value that it holds."""

    guards: list[Any]

    def part(self, returned: t.Return) -> tuple[int, Any]:
        """Return how a part of what is returned is made. Raises Unfit where it has no place."""

    def index_of(self, path: Path) -> int:
        """Return the position of the value at a path."""


Parts = list[tuple[int, Any]]


def flatten_return(
    steps: Steps, returns: t.Return
) -> tuple[int, Parts, Callable[..., object] | None]:
    """Return the parts of what is returned, how they are, and what makes more of them."""
    match returns:
        case t.Many(items, kind, None) if not any(isinstance(item, t.Many) for item in items):
            whole = ReturnKind.LIST if kind == "list" else ReturnKind.TUPLE
        case _:
            items, whole = (returns,), ReturnKind.ONE
    with suppress(Unfit):
        return whole, [steps.part(item) for item in items], None
    parts: Parts = []
    assemble = _assembled(steps, returns, parts)
    return ReturnKind.TUPLE, parts, lambda *given: assemble(given)


def _assembled(steps: Steps, returns: t.Return, parts: Parts) -> Callable[[Any], Any]:
    """Return what makes what is returned of all parts; adds those that it needs."""

    def of(returned: t.Return) -> int:
        parts.append(steps.part(returned))
        return len(parts) - 1

    match returns:
        case t.Many(items, kind, named_tuple):
            each = [_assembled(steps, item, parts) for item in items]
            if named_tuple is not None:
                return lambda given: tuple.__new__(
                    named_tuple, [element(given) for element in each]
                )
            of_kind = list if kind == "list" else tuple
            return lambda given: of_kind([element(given) for element in each])
        case t.Argument(path, t.Sliced() as view):
            return _assembled_slices(of(_numpys(steps, path)), view, of)
        case t.New(number, t.Sliced() as view):
            return _assembled_slices(of(t.New(number, None, None)), view, of)
        case t.Updating(item, updates):
            inner = _assembled(steps, item, parts)
            return partial(_updated, inner, [_update(steps, element, parts) for element in updates])
        case t.Items(item, plain, depth):
            inner = _assembled(steps, item, parts)
            return lambda given: items_of(inner(given), plain, depth)
        case t.Part(item, name):
            if isinstance(item, t.Argument) and item.view is None:
                item = _numpys(steps, item.path)
            inner = _assembled(steps, item, parts)
            return lambda given: getattr(inner(given), name)
        case _:
            return itemgetter(of(returns))


def _assembled_slices(
    at: int, view: t.Sliced, of: Callable[[t.Return], int]
) -> Callable[[Any], Any]:
    """Return what makes a view of the array among the parts at `at`; `of` adds its bounds."""
    numbers = {one.number: of(t.New(one.number, None, WEAK_INT)) for one in view.results}
    return lambda given: slice_view(
        given[at], view, {number: given[index] for number, index in numbers.items()}
    )


def _numpys(steps: Steps, path: Path) -> t.Argument:
    """Return an argument as it is, which is an array of NumPy's: what else one has is not known."""
    if steps.guards[steps.index_of(path)].check[0] != Guard.ARRAY:
        raise Unfit
    return t.Argument(path, None)


_Assembler = Callable[[Any], Any]
"""Makes something of all parts."""


def _update(
    steps: Steps, update: t.Update, parts: Parts
) -> tuple[_Assembler, str, _Assembler, _Assembler | None]:
    """Return what makes the object, the name and the value of an attribute that is set, and whether
    it is."""
    owner = _assembled(steps, t.Argument(update.owner, None), parts)
    given = None if update.given is None else _assembled(steps, update.given, parts)
    return owner, update.name, _assembled(steps, update.value, parts), given


def _updated(
    item: _Assembler,
    updates: Sequence[tuple[_Assembler, str, _Assembler, _Assembler | None]],
    parts: Any,
) -> Any:
    """Set attributes of objects, and return what the function returns."""
    result = item(parts)
    assignments = [
        (owner(parts), name, value(parts))
        for owner, name, value, given in updates
        if given is None or given(parts)
    ]
    for owner, name, value in assignments:
        setattr(owner, name, value)
    return result


def view_words(number: int, size: int, view: t.Strided, writable: bool) -> tuple[int, ...]:
    """Return the words of a view of an array with elements of that size."""
    repeats = any(n > 1 and not step for n, step in zip(view.shape, view.strides, strict=True))
    offset = 0 if 0 in view.shape else view.offset
    strides = (step * size for step in view.strides)
    flags = WRITABLE if writable and view.writable and not repeats else 0
    return (number, offset * size, flags, len(view.shape), *view.shape, *strides)


def describe_result(
    code: HasDirectCalls, number: int, held: Sequence[Array], kinds: set[Kind | None]
) -> tuple[int, Any, tuple[int, ...]]:
    """Return how a result is made: as an array, all of it written or not, or as a number."""
    if len(kinds) != 1:
        raise Unfit
    (kind,) = kinds
    node = code.results[number]
    if number in code.allocated_results:
        if kind is not None or node.rank > AXES:
            raise Unfit
        return ResultKind.MADE, node.dtype.numpy, (1,) * node.rank
    shape = code.shape_of(number, held)
    if len(shape) > RANK:
        raise Unfit
    if kind is None:
        result_kind = ResultKind.EMPTY if number in code.written_results else ResultKind.ARRAY
        return result_kind, node.dtype.numpy, shape
    number_of = _WEAK.get(node.dtype) if kind.weak else ResultKind.NUMBER
    if number_of is None or shape:
        raise Unfit
    return number_of, node.dtype.numpy, shape


def kinds_of_result(returns: t.Return, number: int) -> set[Kind | None]:
    """Return what a result is returned as: kinds of numbers, None for an array."""
    match returns:
        case t.New(at, _, kind) if at == number:
            return {kind}
        case t.Many(items):
            return {kind for item in items for kind in kinds_of_result(item, number)}
        case t.Updating(item, updates):
            more = (
                returned
                for up in updates
                for returned in (up.value, up.given)
                if returned is not None
            )
            return {
                kind for returned in (item, *more) for kind in kinds_of_result(returned, number)
            }
        case t.Part(item) | t.Items(item):
            return kinds_of_result(item, number)
        case t.Argument(_, t.Sliced() as view) | t.New(_, t.Sliced() as view) if (
            t.Result(number) in view.results
        ):
            return {WEAK_INT}
        case _:
            return set()
