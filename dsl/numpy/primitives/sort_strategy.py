"""Lines in rising order, or parted around some places: by what way, their size and number say.

Floats are sorted as the integers of the same order, so that -0 comes before 0, and NaN is last.
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
from ..library.device_sorting import either, rounds_for
from .creation import filled
from .reshaping import reshaped
from .shaping import moveaxis, remap

_FEW = 12
"""Rows of up to so many numbers are sorted side by side, without a loop over them."""
_MANY = 256
"""For fewer rows such a text, which takes a second to compile, is not worth it."""
_SHORT = 2048
"""Rows of up to so many are sorted side by side where there are enough of them."""
_ORDINAL, _RANK, _OF_RANK = (Static(Word(name)) for name in ("ordinal", "rank", "of_rank"))


def inlined(site: Site, text: str, *args: Value, **keywords: Value) -> Value:
    """Return what a function of the library returns, its statements emitted here."""
    inline = site.ctx.inline_source
    assert inline is not None, "the library is inlined while a function is elaborated"
    return inline(text, args, keywords, site.span)


def fresh(site: Site, shape: tuple[Affine, ...], dtype: DType, label: str) -> Array:
    """Return a new array of zeros with storage of its own."""
    return site.ctx.materialize(filled(site, shape, 0, dtype), label, site.span)


def as_rows(site: Site, array: Array) -> Array:
    """Return an array of any rank as rows along its last axis; a view of what has storage."""
    if array.rank == 2:
        return array
    if array.rank == 1:
        axes = (site.ctx.symbol("r"), array.axes[0])
        return remap(array, axes, (const(1), array.shape[0]), (var(array.axes[0]),))
    return reshaped(site, array, (count(array.shape, range(array.rank - 1)), array.shape[-1]))


def in_order(site: Site, lines: Array) -> Array:
    """Return a new array with the values in rising order along the last axis."""
    if not _are_few(lines):
        made = site.ctx.materialize(lines, "sorted", site.span)
        sort_axis(site, made, lines.rank - 1)
        return made
    ahead = array_of(site, moveaxis(site, lines, Static(-1), ZERO))
    made = site.ctx.materialize(ahead, "sorted", site.span)
    sort_axis(site, made, 0)
    return array_of(site, moveaxis(site, made, ZERO, Static(-1)))


def sort_axis(site: Site, array: Array, place: int, stable: bool = False) -> None:
    """Sort an array that has storage along one axis in place."""
    lines = array_of(site, moveaxis(site, array, Static(place), Static(-1)))
    if stable:
        _through(
            site, lines, lambda rows: _sort_rows(site, as_rows(site, rows), False), place, True
        )
    elif not _are_few(lines):
        _through(site, lines, lambda rows: _sort_rows(site, as_rows(site, rows)), place)
    else:
        columns = array_of(site, moveaxis(site, array, Static(place), ZERO))
        _through(site, columns, lambda made: _exchange(site, made), array.rank - 1 - place)


def _are_few(lines: Array) -> bool:
    """Whether lines are so short, and so many, that they are sorted without a loop over them."""
    size = lines.shape[-1].constant
    rows = count(lines.shape, range(lines.rank - 1)).constant
    return size is not None and 1 < size <= _FEW and (rows is None or rows >= _MANY)


def _exchange(site: Site, made: Array) -> None:
    size = made.shape[0].constant
    assert size is not None, "it was asked before"
    columns = reshaped(site, made, (made.shape[0], None)) if made.rank > 2 else made
    inlined(site, sorting.sort_few(size), columns)


def parted(site: Site, lines: Array, turns: Group) -> Array:
    """Return a new array with places along the last axis, in rising order, as sorting has them."""

    def part(rows: Array) -> None:
        either(
            site,
            lambda: _merge_rows(site, rows),
            lambda: _beside_or(site, rows, lambda: select(site, rows, NONE, turns)),
        )

    made = site.ctx.materialize(lines, "parted", site.span)
    _through(site, made, lambda rows: part(as_rows(site, rows)), made.rank - 1)
    return made


def _through(
    site: Site, view: Array, change: Callable[[Array], None], place: int, stable: bool = False
) -> None:
    """Have `change` sort what has storage: floats, unless `stable`, as integers of the same order,
    and in a copy also what has another axis than the last where `change` wants that one, or many.

    `place` is the axis where the last one stands.
    """
    dtype = view.kind.dtype
    floats = dtype.kind == "f" and not stable
    with standing_in(site.ctx, site.span):
        if not floats and view.rank <= 2 and place == view.rank - 1:
            change(view)
            return
        own = dtypes.BY_SHORT[f"i{dtype.compute.bits}"] if floats else dtype
        copied = fresh(site, view.shape, own, "ranks" if floats else "lines")
        inlined(site, sorting.TURNED, view, copied, _RANK if floats else NONE)
        change(copied)
        inlined(site, sorting.TURNED, copied, view, _OF_RANK if floats else NONE)


def _sort_rows(site: Site, rows: Array, beside: bool = True) -> None:
    """Sort rows that have storage in place; `beside`, where they are integers."""

    def alone() -> None:
        by_digits(site, rows, NONE, fresh(site, rows.shape, rows.kind.dtype, "others"), NONE)

    either(
        site,
        lambda: _merge_rows(site, rows),
        lambda: _beside_or(site, rows, alone) if beside else alone(),
    )


def _beside_or(site: Site, rows: Array, alone: Callable[[], None]) -> None:
    """Emit what sorts rows side by side where they suit that, and `alone` for others."""
    number, size = rows.shape
    lanes = _lanes(size.constant, rows.kind.dtype)
    limits = (lanes // 2, number), (_FEW + 1, size), (size, _SHORT)
    tests = [_at_most(low, high) for low, high in limits]
    if rows.kind.dtype.kind == "b" or any(test == _NO for test in tests):
        alone()
        return
    tests = [test for test in tests if test != _YES]
    if not tests:
        _sort_beside(site, rows, lanes)
        return
    both = tests[0]
    for test in tests[1:]:
        both = Apply(OPS["and"], (both, test), dtypes.bool_)
    ctx = site.ctx
    ctx.control += 1
    with ctx.block() as then:
        _sort_beside(site, rows, lanes)
    with ctx.block() as other:
        alone()
    ctx.control -= 1
    ctx.emit(Branch(both, tuple(then), tuple(other), site.span))


_YES, _NO = Const(True, dtypes.bool_), Const(False, dtypes.bool_)


def _at_most(low: Affine | int, high: Affine | int) -> Expr:
    """Return whether a size is at most another one."""
    ends = [const(end) if isinstance(end, int) else end for end in (low, high)]
    known = (ends[1] - ends[0]).constant
    if known is not None:
        return _YES if known >= 0 else _NO
    return Apply(OPS["le"], tuple(map(Position, ends)), dtypes.bool_)


def _lanes(size: int | None, dtype: DType) -> int:
    """Return how many rows are sorted side by side: what the nearest cache holds of them."""
    return (128 if size is not None and size <= 256 else 64) // (dtype.bits // 8)


def _sort_beside(site: Site, rows: Array, lanes: int) -> None:
    number, size = rows.shape
    shape = floordiv(number + (lanes - 1), const(lanes)), size, const(lanes)
    inlined(site, sorting.SORT_BESIDE, rows, fresh(site, shape, rows.kind.dtype, "others"))


def _merge_rows(site: Site, rows: Array) -> None:
    """Sort rows in place as devices of many threads do."""
    scratch = fresh(site, rows.shape, rows.kind.dtype, "others")
    inlined(site, device_sorting.SORT_ROWS, rows, scratch, rounds_for(rows))


def by_digits(site: Site, rows: Array, order: Value, scratch: Array, places: Value) -> None:
    """Sort rows in place, and with them the positions in `order`; the other two are scratch."""
    digits = Static(rows.kind.dtype.compute.bits // 8)
    inlined(site, sorting.SORT_ROWS, rows, order, scratch, places, _ORDINAL, digits)


def select(site: Site, rows: Array, order: Value, turns: Group) -> None:
    """Part rows in place around `turns`, and with them the positions in `order`."""
    others = fresh(site, rows.shape, rows.kind.dtype, "others")
    places = order
    if not is_none(order):
        places = fresh(site, rows.shape, dtypes.int64, "places")
    inlined(site, sorting.SELECT_ROWS, rows, order, others, places, turns, _ORDINAL)
