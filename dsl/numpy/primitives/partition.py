"""Partitions: some places get what sorting puts there, others what belongs on their side."""

from __future__ import annotations

from ....lowering.ir import dtypes
from ....lowering.ir.expressions import Apply, Domain, Position
from ....lowering.ir.indexing import Affine
from ....lowering.ir.ops import OPS
from ...values.bounds_messages import index_fault
from ...values.call_site import NONE, Site, array_of, axis_of, index_in, is_none, items_of
from ...values.memory_order import as_kept
from ...values.stores import assign
from ...values.values import Array, Group, Static, Value
from ..library.device_sorting import either
from . import sorting
from .python_reductions import as_number
from .shaping import moveaxis, ravel
from .sort_strategy import as_rows, in_order, parted, select

_SHORT = 64
"""Rows of so many are sorted."""
_MANY = 8
"""For more places than these, rows are sorted."""


def partition(site: Site, a: Value, kth: Value, axis: Value = Static(-1)) -> Value:
    """Return the values with each `kth` where sorting puts it, and no greater ones before it."""
    places = _places(site, a, kth, axis)
    lines, place = sorting.along(site, a, axis, "partition")
    turns = turns_of(lines, places)
    made = in_order(site, lines) if turns is None else parted(site, lines, turns)
    made = array_of(site, moveaxis(site, made, Static(-1), Static(place)))
    return made if is_none(axis) else as_kept(site.ctx, made, array_of(site, a))


def argpartition(site: Site, a: Value, kth: Value, axis: Value = Static(-1)) -> Value:
    """Return positions that part the values around each `kth`."""
    places = _places(site, a, kth, axis)
    lines, place = sorting.along(site, a, axis, "argpartition")
    turns = turns_of(lines, places)
    if turns is None:
        return sorting.argsort(site, a, axis)
    keys, order = sorting.keys_and_order(site, lines)
    either(
        site,
        lambda: sorting.order_by_merging(site, keys, order),
        lambda: select(site, keys, as_rows(site, order), turns),
    )
    return moveaxis(site, order, Static(-1), Static(place))


def partition_in_place(site: Site, a: Value, kth: Value, axis: Value = Static(-1)) -> Value:
    """Part an array itself around each `kth`; returns None."""
    array = array_of(site, a)
    assign(site.ctx, array, partition(site, array, kth, axis), site.span)
    return NONE


def turns_of(lines: Array, places: tuple[Affine, ...], rising: bool = False) -> Group | None:
    """Return the places in rising order; None where that is unknown, or sorting is as good."""
    size = lines.shape[-1].constant
    short = size is not None and size <= _SHORT or lines.kind.dtype.compute.bits <= 8
    if short or not 0 < len(places) <= _MANY:
        return None
    known = sorted({place.constant for place in places if place.constant is not None})
    if known and all(place.constant is not None for place in places):
        return Group(tuple(Static(at) for at in known))
    if rising or len(places) == 1:
        return Group(tuple(as_number(place) for place in places))
    return None


def _places(site: Site, a: Value, kth: Value, axis: Value) -> tuple[Affine, ...]:
    """Return places of the axis, from its end where negative: CdIndexError CD0601."""
    array = array_of(site, ravel(site, a) if is_none(axis) else a)
    place = 0 if is_none(axis) else axis_of(site, axis, array.rank)
    items = items_of(kth)
    given = [index_in(site, item, "kth") for item in ((kth,) if items is None else items)]
    extent = array.shape[place]
    for at in given:
        _require_place(site, at, extent, place)
    return tuple(at + extent if (at.constant or 0) < 0 else at for at in given)


def _require_place(site: Site, at: Affine, extent: Affine, axis: int) -> None:
    number, size = Position(at), Position(extent)
    low = Apply(OPS["ge"], (number, Position(-extent)), dtypes.bool_)
    high = Apply(OPS["lt"], (number, size), dtypes.bool_)
    fault, values = index_fault(number, extent, axis, "a", ())
    test = Apply(OPS["and"], (low, high), dtypes.bool_)
    site.ctx.check(test, fault, values, site.span, Domain())
