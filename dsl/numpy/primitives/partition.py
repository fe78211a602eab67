"""Selection of order statistics: `partition` and `argpartition` around positions `kth`.

After it element k is the one that sorting puts there, none before it is greater, none after less.
"""

from __future__ import annotations

from ....lowering.ir import dtypes
from ....lowering.ir.expressions import Apply, Domain, Position
from ....lowering.ir.indexing import Affine
from ....lowering.ir.ops import OPS
from ...values.bounds_messages import index_fault
from ...values.call_site import NONE, Site, array_of, axis_of, index_in, is_none, items_of
from ...values.memory_order import in_k_order
from ...values.stores import assign
from ...values.values import Array, Group, Static, Value
from ..library.device_sorting import either
from . import sorting
from .python_reductions import as_number
from .shaping import moveaxis, ravel
from .sort_strategy import as_rows, in_order, partition_sorted, select

_MAX_SORTED_SIZE = 64
"""Rows of up to so many elements are sorted."""
_MAX_POSITIONS = 8
"""Rows with more positions than these are sorted."""


def partition(site: Site, a: Value, kth: Value, axis: Value = Static(-1)) -> Value:
    """Return a copy partitioned along an axis: each `kth` is where sorting puts it."""
    positions = _kth_positions(site, a, kth, axis)
    lines, dim = sorting.along(site, a, axis, "partition")
    targets = turns_of(lines, positions)
    result = in_order(site, lines) if targets is None else partition_sorted(site, lines, targets)
    result = array_of(site, moveaxis(site, result, Static(-1), Static(dim)))
    return result if is_none(axis) else in_k_order(site.ctx, result, array_of(site, a))


def argpartition(site: Site, a: Value, kth: Value, axis: Value = Static(-1)) -> Value:
    """Return the positions (int64) that partition an axis around each `kth`."""
    positions = _kth_positions(site, a, kth, axis)
    lines, dim = sorting.along(site, a, axis, "argpartition")
    targets = turns_of(lines, positions)
    if targets is None:
        return sorting.argsort(site, a, axis)
    keys, order = sorting.keys_and_order(site, lines)
    either(
        site,
        lambda: sorting.order_by_merging(site, keys, order),
        lambda: select(site, keys, as_rows(site, order), targets),
    )
    return moveaxis(site, order, Static(-1), Static(dim))


def partition_in_place(site: Site, a: Value, kth: Value, axis: Value = Static(-1)) -> Value:
    """Partition an array in place around each `kth`; returns None."""
    array = array_of(site, a)
    assign(site.ctx, array, partition(site, array, kth, axis), site.span)
    return NONE


def turns_of(lines: Array, positions: tuple[Affine, ...], rising: bool = False) -> Group | None:
    """Return the positions to select, ascending; None where the rows have to be sorted instead.

    Rows are sorted where they are short, have elements of up to 8 bits, or many positions, or where
    the order of dynamic positions is unknown; `rising` asserts that it is ascending.
    """
    size = lines.shape[-1].constant
    short = size is not None and size <= _MAX_SORTED_SIZE or lines.kind.dtype.compute.bits <= 8
    if short or not 0 < len(positions) <= _MAX_POSITIONS:
        return None
    static_positions = sorted(
        {position.constant for position in positions if position.constant is not None}
    )
    if static_positions and all(position.constant is not None for position in positions):
        return Group(tuple(Static(at) for at in static_positions))
    if rising or len(positions) == 1:
        return Group(tuple(as_number(position) for position in positions))
    return None


def _kth_positions(site: Site, a: Value, kth: Value, axis: Value) -> tuple[Affine, ...]:
    """Return the positions `kth` of an axis, static negative ones counted from its end.

    CdIndexError CD0601 for positions out of range.
    """
    array = array_of(site, ravel(site, a) if is_none(axis) else a)
    dim = 0 if is_none(axis) else axis_of(site, axis, array.rank)
    items = items_of(kth)
    positions = [index_in(site, item, "kth") for item in ((kth,) if items is None else items)]
    extent = array.shape[dim]
    for position in positions:
        _require_position(site, position, extent, dim)
    return tuple(
        position + extent if (position.constant or 0) < 0 else position for position in positions
    )


def _require_position(site: Site, position: Affine, extent: Affine, axis: int) -> None:
    number, size = Position(position), Position(extent)
    low = Apply(OPS["ge"], (number, Position(-extent)), dtypes.bool_)
    high = Apply(OPS["lt"], (number, size), dtypes.bool_)
    fault, values = index_fault(number, extent, axis, "a", ())
    test = Apply(OPS["and"], (low, high), dtypes.bool_)
    site.ctx.check(test, fault, values, site.span, Domain())
