"""Subscripts of arrays: basic and advanced indexing, masks, and boundary rules.

Slices and scalar positions of a view are views; integer arrays are gathers; boundary rules are
clamped, wrapped or predicated reads; a mask gives a selection. Every position is proven in range or
checked at run time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ....base.diagnostic import CdIndexError, CdTypeError, Span
from ....lowering.ir import dtypes
from ....lowering.ir.expressions import Apply, Domain, Expr, Position, Select  # fmt: skip
from ....lowering.ir.indexing import Affine, Range, Symbol, const, multiply, var  # fmt: skip
from ....lowering.ir.ops import OPS
from ...values.arrays import as_array, as_scalar, describe
from ...values.bounds_messages import index_fault
from ...values.broadcasting import broadcast_shape, broadcast_to
from ...values.builder import Context, error
from ...values.memory_order import based, of_operands, of_rest
from ...values.positions import cut_of, edge_of, element_at, position_on
from ...values.types import WEAK_TYPES, Kind, both, cast, number
from ...values.values import (
    Array,
    Edge,
    Group,
    Listed,
    Masked,
    Order,
    Scalar,
    Section,
    Static,
    Value,
)


def subscript(ctx: Context, base: Array, items: Sequence[Value], span: Span, name: str) -> Value:
    """Return `base[items]`: an `Array` (rank 0 for one element) or a `Masked` selection.

    `name` is how the array is called in messages. CdIndexError CD0502 for too many subscripts.
    """
    base = based(ctx, base, span)
    copied = _copies(base, items)
    is_chosen = any(isinstance(item, Array) and not item.rank for item in items)
    normalized = [_normalize_item(ctx, item, span) for item in items]
    items = _expand_ellipsis(ctx, base, normalized, span, name)
    if any(isinstance(item, Array) and item.kind.dtype.kind == "b" for item in items):
        return _select_by_mask(ctx, base, items, _are_parted(normalized), span, name)
    gathers = [n for n, item in enumerate(items) if isinstance(item, Array)]
    if gathers:
        return _gather(ctx, base, items, _are_parted(normalized), span, name)
    axes: list[Symbol] = []
    shape: list[Affine] = []
    index: list[Affine | Expr] = []
    tests: list[Expr] = []
    fill: Value | None = None
    for item in items:
        axis = len(index)
        match item:
            case Static(None):
                axes.append(ctx.symbol("i"))
                shape.append(const(1))
            case Section():
                cut = cut_of(ctx, item, base.shape[axis], span)
                symbol = ctx.symbol(base.axes[axis].name)
                axes.append(symbol)
                shape.append(cut.extent)
                index.append(multiply(var(symbol), cut.step) + cut.start)
            case Edge():
                where, at = edge_of(ctx, item, base.shape[axis], axis, span, name)
                index.append(at)
                if where is not None:
                    if tests and fill != item.fill:
                        raise error(
                            "CD0412", CdTypeError,
                            f"two `pad`s of `{name}` fill with different numbers", span,
                            helps=("give both the same fill",),
                        )  # fmt: skip
                    tests.append(where)
                    fill = item.fill
            case _:
                index.append(position_on(ctx, item, base.shape[axis], axis, span, name))
    location = element_at(ctx, base, index, span)
    is_number = base.listed is Listed.NUMBERS and not axes and base.kind.dtype in WEAK_TYPES
    kind = Kind(base.kind.dtype, True) if is_number else base.kind
    over, sizes = tuple(axes), tuple(shape)
    listed = Listed.NO if _is_array_of_list(base, items) else base.listed
    result = Array(over, sizes, location, kind, copied, base.sealed, listed, is_chosen)
    test = both(*tests)
    if test is None:
        return result
    dtype = base.kind.dtype.compute
    outside = number(0, base.kind) if fill is None else as_scalar(fill, span, "the fill").expr
    return replace(
        result, body=Select(test, cast(location, dtype), cast(outside, dtype)), copied=True
    )


def _are_parted(items: Sequence[Value]) -> bool:
    """Whether a slice, None or `...` parts the advanced subscripts, arrays and numbers.

    The axis of what they choose is then the first one; else it is where they are.
    """
    parts = [isinstance(item, Section) or item in (Static(None), Static(...)) for item in items]
    while parts and parts[0]:
        del parts[0]
    while parts and parts[-1]:
        del parts[-1]
    return any(parts)


def _copies(base: Array, items: Sequence[Value]) -> bool:
    """Whether a subscript is a copy: a slice of a list is one, and shares only arrays in it."""
    is_sliced = any(isinstance(item, Section) for item in items)
    return base.copied or is_sliced and base.listed in (Listed.LIST, Listed.NUMBERS)


def _is_array_of_list(base: Array, items: Sequence[Value]) -> bool:
    """Whether a subscript gives an array in a list of arrays, not a list of some of them."""
    return base.listed is Listed.ARRAYS and not isinstance(items[0], Section)


def spread_out(items: Sequence[Value], comma: bool = False) -> list[Value]:
    """Return subscripts with slice objects and tuples expanded into written subscripts.

    A single tuple is the whole subscript; any other, or one followed by a `comma`, is an array of
    positions.
    """
    alone = items[0] if len(items) == 1 and not comma else None
    match alone:
        case Group(inner, "tuple"):
            items = inner
        case Static(tuple() as constants):
            items = [Static(item) for item in constants]
    return [_expand_item(item) for item in items]


def _expand_item(item: Value) -> Value:
    """Return one subscript with a slice object as a section, a sequence as a list of positions."""
    match item:
        case Static(slice() as constant):
            ends = (constant.start, constant.stop, constant.step)
            return Section(*(None if end is None else Static(end) for end in ends))
        case Static(tuple() | list() as constant):
            return Group(tuple(map(Static, constant)), "list")
        case Group(inner, "tuple"):
            return Group(inner, "list")
        case _:
            return item


def _normalize_item(ctx: Context, item: Value, span: Span) -> Value:
    """Return a subscript with lists as arrays and rank-0 arrays as scalars."""
    match item:
        case Group((), "list"):
            return Array(
                ctx.axes(1), (const(0),), Position(const(0)), Kind(dtypes.int64), copied=True
            )
        case Group(_, "list"):
            return as_array(ctx, item, span)
        case Array() if item.rank == 0 and item.kind.dtype.kind != "b":
            return Scalar(item.body, item.kind)
        case _:
            return item


def _consumed_axes(item: Value) -> int:
    match item:
        case Static(None):
            return 0
        case Array() if item.kind.dtype.kind == "b":
            return item.rank
        case _:
            return 1


def _expand_ellipsis(
    ctx: Context, base: Array, items: Sequence[Value], span: Span, name: str
) -> list[Value]:
    """Return the items with the ellipsis, or missing ones at the end, as full slices.

    CdIndexError CD0502 for too many subscripts or ellipses.
    """
    dots = [n for n, item in enumerate(items) if item == Static(...)]
    consumed = sum(_consumed_axes(item) for item in items) - len(dots)
    missing = base.rank - consumed
    if len(dots) > 1:
        text = f"`{name}` is indexed with more than one `...`"
        raise error("CD0502", CdIndexError, text, span, helps=("keep one: `x[..., 0]`",))
    if missing < 0:
        raise error(
            "CD0502",
            CdIndexError,
            f"`{name}` has {base.rank} {'axis' if base.rank == 1 else 'axes'} and is "
            f"indexed with {consumed}",
            span,
            label=f"`{name}` is {describe(base)}",
        )
    full: list[Value] = [Section(None, None, None)] * missing
    if not dots:
        return [*items, *full]
    return [*items[: dots[0]], *full, *items[dots[0] + 1 :]]


def _gather(
    ctx: Context, base: Array, items: Sequence[Value], at_front: bool, span: Span, name: str
) -> Array:
    """Return a gather by integer arrays, broadcast together, in NumPy's order of the result's axes.

    Broadcast axes replace adjacent advanced subscripts, and come first (`at_front`) where a slice
    parts them.
    """
    if base.base is None:
        base = ctx.materialize(base, "gathered", span)
    advanced = [n for n, item in enumerate(items) if isinstance(item, Array | Scalar)
              or isinstance(item, Static) and isinstance(item.value, int)]  # fmt: skip
    arrays = {n: as_array(ctx, items[n], span) for n in advanced}
    shape = broadcast_shape(ctx, [array.shape for array in arrays.values()], span)
    names = ctx.axes(len(shape))
    axes: list[Symbol] = list(names) if at_front else []
    extents: list[Affine] = list(shape) if at_front else []
    index: list[Affine | Expr] = []
    for n, item in enumerate(items):
        axis = len(index)
        if n in arrays:
            if n == advanced[0] and not at_front:
                axes += names
                extents += shape
            wide = broadcast_to(ctx, arrays[n], shape, span)
            point = wide.at(tuple(var(name) for name in names))
            ranges = tuple(Range(a, const(0), e) for a, e in zip(names, shape, strict=True))
            index.append(_gather_position(ctx, point, base.shape[axis], axis, ranges, span, name))
        elif item == Static(None):
            axes.append(ctx.symbol("i"))
            extents.append(const(1))
        elif isinstance(item, Section):
            cut = cut_of(ctx, item, base.shape[axis], span)
            axes.append(ctx.symbol("j"))
            extents.append(cut.extent)
            index.append(multiply(var(axes[-1]), cut.step) + cut.start)
        else:
            raise error(
                "CD0505",
                CdTypeError,
                f"{describe(item)} cannot index `{name}` beside an array",
                span,
            )
    body = element_at(ctx, base, index, span)
    order = _gather_order(ctx, base, items, arrays, (tuple(axes), names), shape)
    return Array(tuple(axes), tuple(extents), body, base.kind, chosen=True, order=order)


def _gather_order(
    ctx: Context,
    base: Array,
    items: Sequence[Value],
    arrays: Mapping[int, Array],
    axes: tuple[tuple[Symbol, ...], tuple[Symbol, ...]],
    extents: tuple[Affine, ...],
) -> Order:
    """Return the memory order of a gather: broadcast axes outermost, then the base's in its order.

    Without axes of the base, the order is that of the index arrays. None, unknown, where new axes
    are added to a base with an order of its axes.
    """
    if not ctx.orders:
        return ()
    result, chosen = axes
    inside = [n for n in range(base.rank) if n not in _axes_of_items(items, arrays)]
    rest = of_rest(ctx, base, inside)
    others = [axis for axis in result if axis not in chosen]
    added = len(others) - len(inside)
    picked = () if inside else of_operands(ctx, tuple(arrays.values()), extents)
    if picked is None or rest is None or rest and added:
        return None
    outer = [chosen[n] for n in picked] if picked else chosen
    inner = [others[n] for n in rest] if rest else others
    order = tuple(result.index(axis) for axis in (*outer, *inner))
    return () if order == tuple(range(len(order))) else order


def _axes_of_items(items: Sequence[Value], arrays: Mapping[int, Array]) -> set[int]:
    """Return the axes of the base that index arrays subscript."""
    consuming = [n for n, item in enumerate(items) if item != Static(None)]
    return {axis for axis, n in enumerate(consuming) if n in arrays}


def as_read(value: Value) -> Value:
    """Return a subscript's value as an rvalue: a gather is a copy, also where it is affine."""
    if isinstance(value, Array) and value.chosen:
        return replace(value, copied=True)
    return value


def _gather_position(
    ctx: Context,
    point: Expr,
    extent: Affine,
    axis: int,
    ranges: tuple[Range, ...],
    span: Span,
    name: str,
) -> Affine | Expr:
    """Return the position that a gather reads on one axis; negative ones count from the end.

    CdTypeError CD0501 for positions that are no integers; the range is proven or checked.
    """
    if point.dtype.kind not in "iu":
        raise error("CD0501", CdTypeError, f"`{name}` is indexed with {point.dtype} numbers", span)
    value = cast(point, dtypes.int64)
    size = Position(extent)
    low = Apply(OPS["ge"], (value, Position(-extent)), dtypes.bool_)
    high = Apply(OPS["lt"], (value, size), dtypes.bool_)
    test = Apply(OPS["and"], (low, high), dtypes.bool_)
    domain = Domain((*ctx.domain, *ranges))
    if isinstance(value, Position):
        assumptions = ctx.assumptions.with_ranges(ranges)
        if assumptions.nonnegative(value.index) and assumptions.less(value.index, extent):
            return value.index
    fault, values = index_fault(value, extent, axis, name, domain.ranges)
    ctx.check(test, fault, values, span, domain)
    if point.dtype.kind == "u":
        return value
    below = Apply(OPS["lt"], (value, Position(const(0))), dtypes.bool_)
    return Select(below, Apply(OPS["add"], (value, size), dtypes.int64), value)


def _select_by_mask(
    ctx: Context, base: Array, items: Sequence[Value], at_front: bool, span: Span, name: str
) -> Masked:
    """Return the selection by a boolean mask; the other subscripts are applied first.

    The selected axis is where the mask is, or the first one (`at_front`). CdTypeError CD0506 for
    another array beside the mask.
    """
    masks = [n for n, item in enumerate(items) if isinstance(item, Array)]
    if len(masks) > 1:
        raise error(
            "CD0506",
            CdTypeError,
            f"`{name}` is indexed with more than one array beside a mask",
            span,
        )
    mask = items[masks[0]]
    assert isinstance(mask, Array)
    rest: list[Value] = []
    lead = sum(1 for item in items[: masks[0]] if isinstance(item, Section) or item == Static(None))
    spanned = [Section(None, None, None)] * mask.rank if mask.rank else [Static(None)]
    for n, item in enumerate(items):
        rest += spanned if n == masks[0] else [item]
    inner = subscript(ctx, base, rest, span, name)
    assert isinstance(inner, Array)
    if not mask.rank:  # it selects once or never
        mask = replace(mask, axes=(ctx.symbol("i"),), shape=(const(1),))
    for axis in range(mask.rank):
        what = f"the mask of `{name}` does not have its size along axis {lead + axis}"
        ctx.equal_extents(mask.shape[axis], inner.shape[lead + axis], what, span)
    if at_front and lead:
        order = [*range(lead, lead + mask.rank), *range(lead)]
        order += range(lead + mask.rank, inner.rank)
        axes, shape = tuple(inner.axes[n] for n in order), tuple(inner.shape[n] for n in order)
        inner, lead = replace(inner, axes=axes, shape=shape, order=()), 0
    mask = Array(mask.axes, mask.shape, mask.body, mask.kind, copied=True)
    return Masked(inner, mask, start=lead)
