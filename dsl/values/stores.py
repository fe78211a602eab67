"""Stores into arrays: NumPy's broadcasting, casting, compound operators and masks."""

from __future__ import annotations

from ...base.diagnostic import CdError, CdShapeError, CdTypeError, CdValueError, Span
from ...lowering.ir.dtypes import DType
from ...lowering.ir.expressions import Apply, Cast, Dynamic, Expr, Read
from ...lowering.ir.indexing import Affine, const, var
from ...lowering.ir.ops import OPS, Op
from .arrays import as_array, as_stored, describe
from .broadcasting import broadcast_to, shape_text
from .builder import Context, error
from .masks import aligned
from .types import SIGNS, Kind, admit, cast, join, same_kind
from .values import Array, Masked, Scalar, Static, Value

_BITWISE = ("shl", "shr", "bitand", "bitor", "bitxor")
"""Bitwise operators, which floats do not have."""


def assign(
    ctx: Context, target: Array | Masked, value: Value, span: Span, op: Op | None = None
) -> None:
    """Emit `target = value`, or `target op= value`, over the whole target.

    CdTypeError CD0405 where the value's type cannot be stored, CdValueError CD0451 where the target
    cannot be written, CdShapeError where shapes do not broadcast.
    """
    where: Expr | None = None
    if isinstance(target, Masked):
        array, where = target.array, target.where
        if not isinstance(value, Scalar | Static):
            value = _broadcast_to_selection(ctx, target, value, span)
    else:
        array = target
    writable(array, span)
    if op is not None:
        refuse_duplicates(array, span)
    stored = value if op is not None else as_stored(ctx, value, array.kind.dtype, span)
    given = as_array(ctx, stored, span)
    operand = broadcast_to(ctx, given if op else _of_rank(given, array.rank), array.shape, span)
    element = operand.at(tuple(var(axis) for axis in array.axes))
    store_element(ctx, array, (element, operand.kind), span, op, where, value)


def _of_rank(value: Array, rank: int) -> Array:
    """Return an array without leading axes of size 1 beyond a rank, which NumPy's stores ignore."""
    extra = max(0, value.rank - rank)
    if not extra or any(size.constant != 1 for size in value.shape[:extra]):
        return value
    body = value.at((*(const(0),) * extra, *map(var, value.axes[extra:])))
    return Array(value.axes[extra:], value.shape[extra:], body, value.kind, copied=True)


def refuse_duplicates(target: Array, span: Span) -> None:
    """Refuse (CdTypeError CD0507) to update elements of which one may be meant several times."""
    read = target.base
    gathers = read is not None and any(isinstance(i, Dynamic) for i in read.index)
    if gathers and not distinct(target):
        raise error(
            "CD0507", CdTypeError, "`x[idx] op= v` drops duplicate positions in NumPy", span,
            helps=("write it with an index letter, which counts each one: `x[idx[n]] += v[n]`",),
        )  # fmt: skip


def _broadcast_to_selection(ctx: Context, target: Masked, value: Value, span: Span) -> Array:
    """Return what is stored under a mask, so that it broadcasts to the array that is written.

    CdTypeError CD0403 for another selection, or an array along the selected axis.
    """
    is_selection = isinstance(value, Masked)
    given = value if isinstance(value, Masked) else as_array(ctx, value, span)
    operand = aligned(ctx, given, target, span)
    if operand is not None:
        return operand
    text = "a masked target takes a number, an array along its other axes, or a selection under "
    hint = "write `x[mask] = y[mask]`, or `x[...] = np.where(mask, y, x)`"
    raise error(
        "CD0403", CdTypeError,
        "both sides have to be selected by the same mask" if is_selection else f"{text}its mask",
        span,
        helps=("name the mask, and use that name on both sides" if is_selection else hint,),
    )  # fmt: skip


def writable(target: Array, span: Span) -> Read:
    """Return the elements that a write to an array goes to.

    CdValueError CD0462 for a copy or a read-only view, CD0451 for new values; CdTypeError CD0707
    for lists.
    """
    read = target.base
    if target.sealed:
        raise error(
            "CD0462",
            CdValueError,
            f"this {target.sealed}; writing it would not write the original",
            span, helps=("take a copy to write on: `.copy()`", "or write the original array"),
        )  # fmt: skip
    if target.listed:
        raise no_array(span)
    if read is None:
        raise error(
            "CD0451", CdValueError, "this is a new value, not a place that can be assigned to", span
        )
    return read


def no_array(span: Span) -> CdError:
    """Return CdTypeError CD0707 for a write to a list, which is an array here only."""
    name = span.text if span.text.isidentifier() else "y"
    what = f"`{name}` is written, and a list" if name == span.text else "a list"
    return error(
        "CD0707", CdTypeError, f"{what} cannot be written in place", span,
        helps=(f"write an array: `{name} = np.array({name})` before, or pass one",),
    )  # fmt: skip


def assign_product(ctx: Context, target: Array, value: Value, product: Array, span: Span) -> None:
    """Emit `target @= value`, whose product has to have the shape of `target`.

    Axes of size 1 of the product are not broadcast, as in NumPy. CdShapeError CD0302.
    """
    shape, wanted = product.shape, target.shape
    extra = len(shape) - len(wanted)
    fits = as_array(ctx, value, span).rank > 1 and extra >= 0
    fits = fits and all(size.constant == 1 for size in shape[:extra])
    pairs = list(zip(shape[extra:], wanted, strict=True)) if fits else []
    if not fits or any(ctx.assumptions.differ(size, wanted_size) for size, wanted_size in pairs):
        raise error(
            "CD0302", CdShapeError, f"the product has shape {shape_text(shape)}, and cannot be "
            f"stored by `@=` in an array of shape {shape_text(wanted)}", span,
            label=f"{describe(target)} @= {describe(value)}",
            helps=("to keep the product as a new array: `z = x @ y`",),
        )  # fmt: skip
    for size, wanted_size in pairs:
        ctx.equal_extents(
            size, wanted_size, "the product does not have the shape of the target", span
        )
    inner = tuple(const(0) for _ in shape[:extra])
    axes = ctx.axes(len(wanted))
    body = product.at((*inner, *map(var, axes)))
    assign(ctx, target, Array(axes, wanted, body, product.kind, copied=True), span)


def distinct(target: Array) -> bool:
    """Whether the elements of a gathered array are distinct, whatever the positions hold.

    Those of `x[np.arange(n), idx]` are: the first subscript is injective in the axis.
    """
    read = target.base
    assert read is not None
    symbol_sets = [i.symbols() for i in read.index if isinstance(i, Affine)]
    return all(
        extent.constant == 1 or frozenset({axis}) in map(frozenset, symbol_sets)
        for axis, extent in zip(target.axes, target.shape, strict=True)
    )


def store_element(
    ctx: Context,
    target: Array,
    pair: tuple[Expr, Kind],
    span: Span,
    op: Op | None,
    where: Expr | None,
    shown: Value,
) -> None:
    """Emit `target op= pair` over the axes of `target`, where `where` holds.

    `shown` is the value as error messages describe it.
    """
    expr, kind = pair
    dtype = target.kind.dtype
    if op is not None:
        computed = operated(op, target.kind, kind, span)
        if computed.dtype.compute is dtype:
            if target.part is None:
                ctx.store(target, cast(expr, dtype), span, logical(op, dtype.kind), where)
                return
        expr, kind = _combine(op, target, expr, computed), computed
    require_storable(kind, dtype, shown, span)
    if target.part is None:
        ctx.store(target, cast(expr, dtype), span, None, where)
        return
    read, number = with_part(target, cast(expr, dtype))
    whole = Array(target.axes, target.shape, read, Kind(number.dtype))
    ctx.store(whole, number, span, None, where)


def part_updated(target: Array, value: Scalar, op: Op | None, span: Span) -> Expr:
    """Return the complex number that `target op= value` stores, where `target` is a part of it."""
    expr, kind = value.expr, value.kind
    if op is not None:
        computed = operated(op, target.kind, kind, span)
        expr, kind = _combine(op, target, expr, computed), computed
    require_storable(kind, target.kind.dtype, value, span)
    return with_part(target, cast(expr, target.kind.dtype))[1]


def with_part(target: Array, value: Expr) -> tuple[Read, Expr]:
    """Return the complex element that a store to a part of it writes, and its new value."""
    assert target.part is not None, "a part of complex numbers"
    name, read = target.part
    other_part = Apply(OPS["imag" if name == "real" else "real"], (read,), value.dtype)
    parts = (value, other_part) if name == "real" else (other_part, value)
    return read, Apply(OPS["complex"], parts, read.dtype)


def operated(op: Op, target: Kind, value: Kind, span: Span) -> Kind:
    """Return the kind in which `target op= value` is computed; it must be storable in the target.

    CdTypeError CD0404 where the operation is undefined, CD0405 where the result is not storable.
    """
    try:
        kind = admit(logical(op, target.dtype.kind), join(target, value))
    except TypeError as problem:
        helps = ("convert to integers first: `x.astype(np.int64)`",) if op.name in _BITWISE else ()
        raise error("CD0404", CdTypeError, str(problem), span, helps=helps) from None
    if not same_kind(kind, target.dtype):
        name = f"np.{kind.dtype}"
        hint = f"make it `{name}` before: an array by `.astype({name})`, a number by `{name}(...)`"
        raise error(
            "CD0405",
            CdTypeError,
            f"`{SIGNS.get(op.name, op.name)}` of {target} and {value} gives {kind}, which "
            f"cannot be stored in {target}",
            span,
            helps=(hint,),
        )
    return kind


def logical(op: Op, kind: str) -> Op:
    """Return the operator for a kind of element: on bools `+` is or, `*` is and, as in NumPy."""
    names = {"add": "or", "mul": "and"}
    return OPS[names[op.name]] if kind == "b" and op.name in names else op


def require_storable(kind: Kind, dtype: DType, shown: Value, span: Span) -> None:
    """Refuse (CdTypeError CD0405) a store that loses more than NumPy's `same_kind` permits."""
    if same_kind(kind, dtype):
        return
    if isinstance(shown, Static) and isinstance(shown.value, float) and shown.value.is_integer():
        hint = f"write `{int(shown.value)}`"
    else:
        name = "bool" if dtype.kind == "b" else f"np.{dtype}"
        array = isinstance(shown, Array) and shown.rank > 0
        hint = f"convert it: `.astype({name})`" if array else f"convert it: `{name}(...)`"
    raise error(
        "CD0405", CdTypeError, f"{kind} values cannot be stored in {dtype} without a cast", span,
        label=f"this is {describe(shown)}", helps=(hint,),
    )  # fmt: skip


def _combine(op: Op, target: Array, expr: Expr, kind: Kind) -> Expr:
    dtype = kind.dtype.compute
    result = Apply(op, (cast(target.body, dtype), cast(expr, dtype)), dtype)
    return Cast(result, target.kind.dtype)
