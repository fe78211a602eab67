"""Choice of a sorting algorithm by size and number of rows: network, SIMD lanes, radix, merge.

Floats are sorted as integers of the same order, so that -0 comes before 0, and NaN is last.
"""

from __future__ import annotations

from collections.abc import Callable

from ....lowering.ir import dtypes
from ....lowering.ir.assignments import Branch
from ....lowering.ir.dtypes import DType
from ....lowering.ir.expressions import Apply, Const, Expr, Position
from ....lowering.ir.indexing import Affine, const, floordiv, var
from ....lowering.ir.ops import OPS
from ...values.arrays import count
from ...values.attribution import standing_in
from ...values.call_site import NONE, ZERO, Site, Word, array_of, is_none
from ...values.values import Array, Group, Static, Value
from ..library import device_sorting, sorting
from ..library.device_sorting import either, merge_iterations
from .creation import filled
from .reshaping import reshaped
from .shaping import moveaxis, remap

_MAX_NETWORK_SIZE = 12
"""Rows of up to so many elements are sorted by a sorting network, vectorized over the rows."""
_MIN_NETWORK_ROWS = 256
"""For fewer rows the network, which takes a second to compile, does not pay."""
_MAX_LANE_SIZE = 2048
"""Rows of up to so many elements are sorted in SIMD lanes where there are enough of them."""
_ORDINAL, _RANK, _OF_RANK = (Static(Word(name)) for name in ("ordinal", "rank", "of_rank"))


def inlined(site: Site, text: str, *args: Value, **keywords: Value) -> Value:
    """Return the result of a function of the library, whose statements are inlined here."""
    inline = site.ctx.inline_source
    assert inline is not None, "the library is inlined while a function is elaborated"
    return inline(text, args, keywords, site.span)


def fresh(site: Site, shape: tuple[Affine, ...], dtype: DType, label: str) -> Array:
    """Return a new, stored array of zeros."""
    return site.ctx.materialize(filled(site, shape, 0, dtype), label, site.span)


def as_rows(site: Site, array: Array) -> Array:
    """Return an array as a matrix of rows along its last axis; a view where it has storage."""
    if array.rank == 2:
        return array
    if array.rank == 1:
        axes = (site.ctx.symbol("r"), array.axes[0])
        return remap(array, axes, (const(1), array.shape[0]), (var(array.axes[0]),))
    return reshaped(site, array, (count(array.shape, range(array.rank - 1)), array.shape[-1]))


def in_order(site: Site, lines: Array) -> Array:
    """Return a copy sorted in ascending order along the last axis."""
    if not _suits_network(lines):
        result = site.ctx.materialize(lines, "sorted", site.span)
        sort_axis(site, result, lines.rank - 1)
        return result
    columns = array_of(site, moveaxis(site, lines, Static(-1), ZERO))
    result = site.ctx.materialize(columns, "sorted", site.span)
    sort_axis(site, result, 0)
    return array_of(site, moveaxis(site, result, ZERO, Static(-1)))


def sort_axis(site: Site, array: Array, axis: int, stable: bool = False) -> None:
    """Sort a stored array along one axis in place."""
    lines = array_of(site, moveaxis(site, array, Static(axis), Static(-1)))
    if stable:
        _apply_to_view(
            site, lines, lambda rows: _sort_rows(site, as_rows(site, rows), False), axis, True
        )
    elif not _suits_network(lines):
        _apply_to_view(site, lines, lambda rows: _sort_rows(site, as_rows(site, rows)), axis)
    else:
        columns = array_of(site, moveaxis(site, array, Static(axis), ZERO))
        _apply_to_view(
            site, columns, lambda view: _apply_network(site, view), array.rank - 1 - axis
        )


def _suits_network(lines: Array) -> bool:
    """Whether lines are short and many enough for a sorting network, vectorized over them."""
    size = lines.shape[-1].constant
    rows = count(lines.shape, range(lines.rank - 1)).constant
    return (
        size is not None
        and 1 < size <= _MAX_NETWORK_SIZE
        and (rows is None or rows >= _MIN_NETWORK_ROWS)
    )


def _apply_network(site: Site, lines: Array) -> None:
    size = lines.shape[0].constant
    assert size is not None, "it was asked before"
    columns = reshaped(site, lines, (lines.shape[0], None)) if lines.rank > 2 else lines
    inlined(site, sorting.sort_few(size), columns)


def partition_sorted(site: Site, lines: Array, turns: Group) -> Array:
    """Return a copy partitioned along the last axis around the ascending positions `turns`."""

    def partition_rows(rows: Array) -> None:
        either(
            site,
            lambda: _merge_rows(site, rows),
            lambda: _sort_in_lanes_or(site, rows, lambda: select(site, rows, NONE, turns)),
        )

    result = site.ctx.materialize(lines, "parted", site.span)
    _apply_to_view(site, result, lambda rows: partition_rows(as_rows(site, rows)), result.rank - 1)
    return result


def _apply_to_view(
    site: Site, view: Array, change: Callable[[Array], None], dim: int, stable: bool = False
) -> None:
    """Apply `change` to a stored view: floats, unless `stable`, as integers of their order.

    Floats, views of rank above 2 and those whose last axis is not the last in memory are sorted in
    a copy, which is written back. `place` is the axis of the array that is the last of the view.
    """
    dtype = view.kind.dtype
    floats = dtype.kind == "f" and not stable
    with standing_in(site.ctx, site.span):
        if not floats and view.rank <= 2 and dim == view.rank - 1:
            change(view)
            return
        copy_dtype = dtypes.BY_SHORT[f"i{dtype.compute.bits}"] if floats else dtype
        copied = fresh(site, view.shape, copy_dtype, "ranks" if floats else "lines")
        inlined(site, sorting.TURNED, view, copied, _RANK if floats else NONE)
        change(copied)
        inlined(site, sorting.TURNED, copied, view, _OF_RANK if floats else NONE)


def _sort_rows(site: Site, rows: Array, in_lanes: bool = True) -> None:
    """Sort stored rows in place; with `beside` (integers of the order), also in SIMD lanes."""

    def sort_by_digits() -> None:
        by_digits(site, rows, NONE, fresh(site, rows.shape, rows.kind.dtype, "others"), NONE)

    either(
        site,
        lambda: _merge_rows(site, rows),
        lambda: _sort_in_lanes_or(site, rows, sort_by_digits) if in_lanes else sort_by_digits(),
    )


def _sort_in_lanes_or(site: Site, rows: Array, otherwise: Callable[[], None]) -> None:
    """Emit the sort of rows in SIMD lanes where number and size suit it, else that of `alone`.

    Dynamic sizes are versioned: a branch at run time.
    """
    number, size = rows.shape
    lanes = _lane_count(size.constant, rows.kind.dtype)
    limits = (lanes // 2, number), (_MAX_NETWORK_SIZE + 1, size), (size, _MAX_LANE_SIZE)
    tests = [_at_most(low, high) for low, high in limits]
    if rows.kind.dtype.kind == "b" or any(test == _NEVER for test in tests):
        otherwise()
        return
    tests = [test for test in tests if test != _ALWAYS]
    if not tests:
        _sort_in_lanes(site, rows, lanes)
        return
    condition = tests[0]
    for test in tests[1:]:
        condition = Apply(OPS["and"], (condition, test), dtypes.bool_)
    ctx = site.ctx
    ctx.control += 1
    with ctx.block() as then:
        _sort_in_lanes(site, rows, lanes)
    with ctx.block() as orelse:
        otherwise()
    ctx.control -= 1
    ctx.emit(Branch(condition, tuple(then), tuple(orelse), site.span))


_ALWAYS, _NEVER = Const(True, dtypes.bool_), Const(False, dtypes.bool_)


def _at_most(low: Affine | int, high: Affine | int) -> Expr:
    """Return the test `low <= high` of two sizes, folded where it is static."""
    ends = [const(end) if isinstance(end, int) else end for end in (low, high)]
    difference = (ends[1] - ends[0]).constant
    if difference is not None:
        return _ALWAYS if difference >= 0 else _NEVER
    return Apply(OPS["le"], tuple(map(Position, ends)), dtypes.bool_)


def _lane_count(size: int | None, dtype: DType) -> int:
    """Return the number of rows that are sorted together: those that the L1 cache holds."""
    return (128 if size is not None and size <= 256 else 64) // (dtype.bits // 8)


def _sort_in_lanes(site: Site, rows: Array, lanes: int) -> None:
    number, size = rows.shape
    shape = floordiv(number + (lanes - 1), const(lanes)), size, const(lanes)
    inlined(site, sorting.SORT_IN_LANES, rows, fresh(site, shape, rows.kind.dtype, "others"))


def _merge_rows(site: Site, rows: Array) -> None:
    """Sort rows in place by parallel merging, the algorithm for GPUs."""
    scratch = fresh(site, rows.shape, rows.kind.dtype, "others")
    inlined(site, device_sorting.SORT_ROWS, rows, scratch, merge_iterations(rows))


def by_digits(site: Site, rows: Array, order: Value, scratch: Array, positions: Value) -> None:
    """Radix-sort rows in place, and permute `order` with them; the other two arrays are scratch."""
    digits = Static(rows.kind.dtype.compute.bits // 8)
    inlined(site, sorting.SORT_ROWS, rows, order, scratch, positions, _ORDINAL, digits)


def select(site: Site, rows: Array, order: Value, turns: Group) -> None:
    """Partition rows in place around the positions `turns`, and permute `order` with them."""
    others = fresh(site, rows.shape, rows.kind.dtype, "others")
    places = order
    if not is_none(order):
        places = fresh(site, rows.shape, dtypes.int64, "places")
    inlined(site, sorting.SELECT_ROWS, rows, order, others, places, turns, _ORDINAL)
