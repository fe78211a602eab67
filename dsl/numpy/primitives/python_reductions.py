"""Python's built-in reductions `sum`, `max`, `min`, `any`, `all`, and `len`.

Over a sequence they unroll at compile time; over an array of rank 1 they are a reduction.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ....base.diagnostic import CdTypeError, CdValueError
from ....base.lazy_import import LazyModule
from ....lowering.ir import dtypes
from ....lowering.ir.expressions import Position, Read
from ....lowering.ir.indexing import Affine
from ....lowering.ir.ops import OPS
from ...values.arrays import as_scalar, describe, elementwise
from ...values.builder import NO_ORIGINS, error
from ...values.call_site import ONE, ZERO, Body, Site, array_of, constant, items_of
from ...values.types import WEAK_INT, Kind, kind_of_number, truth
from ...values.values import Array, Listed, Masked, Scalar, Static, Value
from .elementwise import arithmetic, extremum
from .reductions import (
    Reduction,
    accumulate,
    as_pythons,
    operand,
    require_elements,
    require_ordered,
    truth_reducer,
)
from .ufuncs import combine_of

if TYPE_CHECKING:
    from . import averages
else:  # imported at the first use
    averages = LazyModule(".averages", __package__)

_MAX_CHAIN = 32
"""After so many items the partial result is stored, which bounds the depth of expressions."""


def _store_partial(site: Site, value: Value) -> Value:
    """Return a partial result stored in a variable or an array; in pointwise code, unchanged."""
    if site.ctx.pointwise:
        return value
    if isinstance(value, Scalar):
        return Scalar(Read(site.ctx.variable("so_far", value, site.span), ()), value.kind)
    return site.ctx.materialize(value, "so_far", site.span) if isinstance(value, Array) else value


def python_sum(site: Site, iterable: Value, /, start: Value = ZERO) -> Value:
    """Return Python's `sum` along the first axis, in the type of the items (int64 for bools)."""
    return _folded(site, "sum", iterable, start)


def python_product(site: Site, iterable: Value, /, *, start: Value = ONE) -> Value:
    """Return `math.prod` along the first axis, in the type of the items (int64 for bools)."""
    return _folded(site, "prod", iterable, start)


def _folded(site: Site, name: str, iterable: Value, start: Value) -> Value:
    """Return `start` plus, or for "prod" times, the items one after the other."""
    symbol, op, neutral = ("+", "add", ZERO) if name == "sum" else ("*", "mul", ONE)
    items = items_of(iterable)
    if items is not None:
        for n, item in enumerate(items, 1):
            start = arithmetic(site, symbol, start, item)
            start = _store_partial(site, start) if n % _MAX_CHAIN == 0 else start
        return start
    over = python_operand(site, iterable, name)
    is_neutral = start == neutral and type(constant(start)) is int
    of_items = over.array.kind
    if not is_neutral:  # the first operation may widen the items
        item = Scalar(over.array.body, of_items)
        of_items = array_of(site, arithmetic(site, symbol, start, item)).kind
    kind = Kind(dtypes.int64 if of_items.dtype.kind == "b" else of_items.dtype, of_items.weak)
    total = accumulate(site, OPS[op], over.array, over.axes, kind, False, over.where)
    total = _with_item_kind(total, kind)
    return total if is_neutral else arithmetic(site, symbol, start, total)


def _with_item_kind(value: Value, kind: Kind) -> Value:
    """Return a reduction's result with the kind of its items: weak for those of a comprehension."""
    return replace(value, kind=kind) if isinstance(value, Scalar) and kind.weak else value


def python_operand(site: Site, value: Value, name: str) -> Reduction:
    """Return the operand of a Python reduction: of rank 1, or a list of arrays, which a sum adds.

    CdTypeError CD0553 for another rank.
    """
    given = value if isinstance(value, Masked) else array_of(site, value)
    adds_arrays = name == "sum" and isinstance(given, Array) and given.listed is Listed.ARRAYS
    if given.rank != 1 and not adds_arrays:
        what = f"{describe(given)}" if given.rank else "one number"
        raise error(
            "CD0553", CdTypeError,
            f"Python's `{name}` goes over the first axis only, and is given {what}", site.span,
            helps=(f"`np.{name}(...)` takes all elements, `np.{name}(..., axis=0)` an axis",),
        )  # fmt: skip
    return operand(site, given, ZERO)


def python_extreme(name: str) -> Body:
    """Return the handler of Python's `max` or `min`, of an array, a sequence or several values."""

    def body(site: Site, *values: Value) -> Value:
        items = values if len(values) > 1 else items_of(values[0]) if values else ()
        if items is not None:
            if not items:
                raise error("CD0459", CdValueError, f"`{name}` of nothing has no value", site.span)
            _require_one_kind(site, items)
            while len(items) > _MAX_CHAIN:
                partial = _store_partial(site, extremum(site, name, items[:_MAX_CHAIN]))
                items = (partial, *items[_MAX_CHAIN:])
            return items[0] if len(items) == 1 else extremum(site, name, items)
        over = python_operand(site, values[0], name)
        array = over.array
        require_ordered(site, array, name)
        require_elements(site, array, over.axes, name, over.where)
        result = accumulate(site, OPS[name], array, over.axes, array.kind, False, over.where)
        return _with_item_kind(result, array.kind)

    return body


def _require_one_kind(site: Site, items: Sequence[Value]) -> None:
    """Require as static the inputs that alone select one of several numbers of different types,
    of which Python returns the one with its type."""
    numbers = [item for item in items if isinstance(item, Static | Scalar)]
    origins = [site.ctx.origins_of(n.expr) for n in numbers if isinstance(n, Scalar)]
    kinds = {n.kind if isinstance(n, Scalar) else kind_of_number(n.value) for n in numbers}
    if len(numbers) < len(items) or None in origins or len(kinds) == 1:
        return
    site.ctx.require_known(NO_ORIGINS.union(*(one for one in origins if one is not None)))


def python_truth(name: str) -> Body:
    """Return the handler of Python's `any` or `all` of a rank-1 array or sequence."""

    def body(site: Site, iterable: Value) -> Value:
        if isinstance(iterable, Static) and isinstance(iterable.value, range):
            numbers = iterable.value
            has_any = bool(numbers[1:]) or any(numbers)  # two numbers are not both zero
            return Static(0 not in numbers if name == "all" else has_any)
        items = items_of(iterable)
        if items is not None:
            ufunc = np.logical_or if name == "any" else np.logical_and
            result: Value = Static(name == "all")
            for n, item in enumerate(items, 1):
                result = elementwise(site.ctx, combine_of(ufunc, True), [result, item], site.span)
                result = _store_partial(site, result) if n % _MAX_CHAIN == 0 else result
            return as_pythons(result)
        over = python_operand(site, iterable, name)
        given = over.array if over.selection is None else over.selection
        return as_pythons(truth_reducer(name)(site, given))

    return body


def python_len(site: Site, obj: Value) -> Value:
    """Return Python's `len`: the extent of the first axis. CdTypeError CD0553 for a number."""
    items = items_of(obj)
    if items is not None:
        return Static(len(items))
    if isinstance(obj, Static) and isinstance(obj.value, Sized):
        return Static(len(obj.value))
    if isinstance(obj, Masked):
        return shape_of(site, obj)[0]
    array = array_of(site, obj)
    if not array.rank:
        raise error("CD0553", CdTypeError, "a number has no `len`", site.span)
    return as_number(array.shape[0])


def shape_of(site: Site, value: Array | Masked) -> tuple[Value, ...]:
    """Return the shape of an array, or of a selection: along its selected axis a run-time int."""
    if isinstance(value, Array):
        return tuple(map(as_number, value.shape))
    mask, sizes = value.mask, value.array.shape
    axes, where = tuple(range(mask.rank)), truth(mask.body)
    number = averages.number_of_elements(site, mask, axes, where)
    selected = Scalar(as_scalar(number, site.span).expr, WEAK_INT)
    after = sizes[value.start + mask.rank :]
    return (*map(as_number, sizes[: value.start]), selected, *map(as_number, after))


def as_number(extent: Affine) -> Value:
    """Return an extent as a value: a static Python int, or a dynamic index expression."""
    if extent.constant is not None:
        return Static(extent.constant)
    return Scalar(Position(extent), Kind(dtypes.int64, True))
