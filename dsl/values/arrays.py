"""Primitives of array notation: broadcasting, elementwise operations, reductions, contractions.

Each maps values to a value; only `materialize` and run-time checks emit statements.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from functools import reduce as fold_left

import numpy as np

from ...base.diagnostic import CdOverflowError, CdShapeError, CdTypeError, Span
from ...lowering.ir import dtypes
from ...lowering.ir.expressions import Cast, Const, Domain, Expr, Position, Read, Reduce, walk
from ...lowering.ir.indexing import Affine, Range, const, multiply, var
from ...lowering.ir.ops import OPS, Op
from .adapting import require_fits
from .broadcasting import broadcast_shape, broadcast_to, shape_text
from .builder import Context, error
from .constant_tables import array_table
from .fix_hints import PICK
from .masks import aligned, unaligned
from .memory_order import in_memory, of_operands, of_rest
from .types import Kind, Unfit, apply, cast, fits, join, kind_of_number, number, same_kind
from .values import (
    Array,
    Bound,
    Edge,
    Group,
    Handle,
    Lazy,
    Masked,
    Opaque,
    Scalar,
    Section,
    Static,
    Unset,
    Value,
    replace_symbols,
)


def describe(value: Value) -> str:
    """Return a description of a value for users: `f32[512, 1024]`, `a Python float`, `a tuple`."""
    match value:
        case Array():
            sizes = ", ".join(str(extent) for extent in value.shape)
            return f"{value.kind.dtype.short}[{sizes}]"
        case Scalar(_, kind):
            return f"a run-time {kind}"
        case Static(inner):
            return _describe_object(inner)
        case Group(items, kind):
            return f"a {kind} of {len(items)}"
        case Masked(array):
            return f"{array.kind.dtype.short} elements under a mask"
        case Bound(_, method):
            return f"the method `{method}`"
        case Handle():
            return "a tensor"
        case Opaque(inner, _):
            return f"an object of type `{type(inner).__name__}`"
        case Lazy():
            return "a function"
        case Unset():
            return f"a name that {value.reason}"
        case Section():
            return "a slice"
        case Edge(mode, _, _):
            return f"`{mode}(...)`"


def _describe_object(value: object) -> str:
    """Return the description of a Python object for users."""
    match value:
        case None:
            return "None"
        case types.ModuleType() | type() | np.ufunc() | types.FunctionType():
            kind = {types.ModuleType: "module", type: "type"}.get(type(value), "function")
            return f"the {kind} `{value.__name__}`"
        case bool() | int() | float() | complex() | str() | tuple() | list() | np.generic():
            text = repr(value)
            return f"{type(value).__name__} {text if len(text) <= 60 else text[:57] + '...'}"
        case _:
            name = getattr(value, "__name__", None)
            kind = type(value).__name__
            fallback = f"an object of type `{kind}`"
            return f"the function `{name}`" if isinstance(name, str) else fallback


def as_scalar(value: Value, span: Span, what: str = "this", *helps: str) -> Scalar:
    """Return a number as a run-time scalar. CdTypeError CD0401 for other values."""
    match value:
        case Scalar():
            return value
        case Static(inner) if (kind := kind_of_number(inner)) is not None:
            plain = inner.item() if hasattr(inner, "item") else inner
            return Scalar(number(plain, kind), kind)  # type: ignore[arg-type]
        case Array() if value.rank == 0:
            return Scalar(value.body, value.kind)
        case _:
            raise error(
                "CD0401", CdTypeError, f"{what} has to be one number, and is {describe(value)}",
                span, helps=helps,
            )  # fmt: skip


def as_array(ctx: Context, value: Value, span: Span) -> Array:
    """Return a value as an array: numbers as rank 0, sequences stacked along a new first axis.

    CdTypeError CD0402 where the value has no element type.
    """
    match value:
        case Array():
            return value
        case Scalar(expr, kind):
            return Array((), (), expr, kind, copied=True)
        case Static(inner) if kind_of_number(inner) is not None:
            return as_array(ctx, as_scalar(value, span), span)
        case Handle() if ctx.tensor_value is not None:
            return ctx.tensor_value(value, span)
        case Static(range() as numbers) if numbers and _is_int64(numbers):
            (axis,) = ctx.axes(1)
            at = var(axis) * numbers.step + numbers.start
            size = const((numbers[-1] - numbers[0]) // numbers.step + 1)
            return Array((axis,), (size,), Position(at), Kind(dtypes.int64), copied=True)
        case Group(items, _) if items:
            rows, kinds = _rows(ctx, value, span)
            return _stack_rows(ctx, rows, fold_left(join, kinds), span)
        case Group():
            kind = Kind(dtypes.float64)
            return Array(ctx.axes(1), (const(0),), number(0.0, kind), kind)
        case Masked():
            raise error(
                "CD0403", CdTypeError,
                "the length of a masked selection is known only at run time", span,
                helps=(
                    "use `np.where(mask, x, other)`, or reduce it at once: `x[mask].sum()`", PICK
                ),
            )  # fmt: skip
        case _:
            raise error("CD0402", CdTypeError, f"{describe(value)} is not an array", span)


def as_stored(ctx: Context, value: Value, dtype: dtypes.DType, span: Span) -> Array:
    """Return a value to be stored in elements of a type as an array; see `as_array`.

    The items of a sequence are converted to that type at once, where its own may be stored in it.
    """
    if not isinstance(value, Group) or not value.items:
        return as_array(ctx, value, span)
    rows, kinds = _rows(ctx, value, span)
    kind = fold_left(join, kinds)
    return _stack_rows(ctx, rows, Kind(dtype) if same_kind(kind, dtype) else kind, span)


_Rows = Array | list["_Rows"]
"""The arrays in nested sequences."""


def _rows(ctx: Context, value: Value, span: Span) -> tuple[_Rows, list[Kind]]:
    """Return the arrays in nested sequences, and the strong kind of each in their order.

    NumPy makes an array of a sequence before any operation, in which Python's numbers are 64 bits
    wide: they do not adapt to the other items.
    """
    if not isinstance(value, Group) or not value.items:
        array = as_array(ctx, value, span)
        return array, [strong(array.kind)]
    table = array_table(ctx, value, span)
    if table is not None:
        return table, [table.kind]
    parts = [_rows(ctx, item, span) for item in value.items]
    return [rows for rows, _ in parts], [kind for _, kinds in parts for kind in kinds]


def _stack_rows(ctx: Context, rows: _Rows, kind: Kind, span: Span) -> Array:
    """Return nested sequences of arrays as one array of a kind."""
    if isinstance(rows, Array):
        return rows
    return stack(ctx, [_stack_rows(ctx, row, kind, span) for row in rows], 0, span, kind)


def _is_int64(numbers: range) -> bool:
    """Whether a range that is not empty, and its length, are numbers of 64 bits."""
    first, last = numbers[0], numbers[-1]
    return max(abs(first), abs(last), abs(last - first)) < 2**63


def strong(kind: Kind) -> Kind:
    """Return the non-adapting kind of the same element type: that of an array of such numbers."""
    return Kind(kind.dtype)


def elementwise(
    ctx: Context, combine: Callable[..., tuple[Expr, Kind]], values: Sequence[Value], span: Span
) -> Value:
    """Return `combine` applied elementwise to broadcast values; a scalar where none has axes.

    `combine` takes (expression, kind) pairs and gives one. Its TypeError becomes CD0404, and its
    Unfit, for a Python integer beyond the type that it adapts to, CdOverflowError CD0464.
    """
    masked = next((value for value in values if isinstance(value, Masked)), None)
    if masked is not None:
        return _apply_under_mask(ctx, combine, values, masked, span)
    arrays = [as_array(ctx, value, span) for value in values]
    try:
        require_fits(ctx, combine, arrays, span)
        has_axes = any(array.rank for array in arrays)
        if not has_axes and not any(isinstance(v, Array | Group | Handle) for v in values):
            expr, kind = combine(*((array.body, array.kind) for array in arrays))
            return Scalar(expr, kind)
        shape = broadcast_shape(ctx, [array.shape for array in arrays], span)
        axes = ctx.axes(len(shape))
        at = tuple(map(var, axes))
        operands = (
            (broadcast_to(ctx, operand, shape, span).at(at), operand.kind) for operand in arrays
        )
        expr, kind = combine(*operands)
    except TypeError as problem:
        if isinstance(problem, CdTypeError):
            raise
        kinds = " and ".join(describe(value) for value in values)
        shown = " and ".join(str(array.kind) for array in arrays)
        numbers = not any(array.rank for array in arrays)
        hint = _suggest_conversion(
            [array.kind.dtype.kind for array in arrays], numbers, str(problem)
        )
        text = f"{problem} (here: {kinds})" if len(kinds) < 200 else f"{problem} (here: {shown})"
        if isinstance(problem, Unfit):
            helps = _suggest_wider(problem, numbers) or (hint,)
            raise error("CD0464", CdOverflowError, text, span, helps=helps) from None
        raise error("CD0404", CdTypeError, text, span, helps=(hint,)) from None
    order = of_operands(ctx, arrays, shape)
    result = Array(axes, shape, expr, strong(kind), copied=True, order=order)
    return result if shape else Scalar(expr, result.kind)


def _suggest_wider(problem: Unfit, numbers: bool) -> tuple[str, ...]:
    """Return the fix hints for an integer beyond a type that no integer type is wider than."""
    dtype = problem.dtype
    if dtype.kind not in "iu":
        return ("use a float: `1e300`",)
    if dtype.bits < 64:
        return ()
    to, what = "float64", "floats"
    if dtype.kind == "i" and fits(problem.value, dtypes.uint64):
        to, what = "uint64", "unsigned integers"
    return (f"convert to {what} first: `{f'np.{to}(v)' if numbers else f'x.astype(np.{to})'}`",)


def _suggest_conversion(kinds: Sequence[str], numbers: bool, problem: str) -> str:
    """Return the fix hint for an operation that is not defined for operands of these kinds."""
    if "c" in kinds:
        return "take a real part first: `.real`, `.imag` or `abs(...)`"
    if "f" in kinds or "float" in problem:
        how, test = ("int(v)", "v > 0") if numbers else ("x.astype(np.int64)", "x > 0")
        return f"convert to integers first: `{how}`, or compare: `{test}`"
    if numbers:
        return "convert a number first: `np.int64(v)` or `np.float64(v)`"
    return "convert the array first: `x.astype(np.int64)` or `x.astype(np.float64)`"


def operate(ctx: Context, op: str | Op, values: Sequence[Value], span: Span) -> Value:
    """Return an operation of the operator table applied elementwise."""
    return elementwise(ctx, lambda *pairs: apply(op, *pairs), values, span)


def astype(ctx: Context, value: Value, dtype: dtypes.DType, span: Span) -> Value:
    """Return the value cast to an element type; an array gives a new array."""
    return elementwise(
        ctx, lambda pair: (cast(cast(pair[0], dtype), dtype.compute), Kind(dtype)), [value], span
    )


def is_cheap(value: Array) -> bool:
    """Whether an element costs at most a load and index arithmetic, so that no temporary pays."""
    return all(isinstance(e, Read | Position | Const | Cast) for e in walk(value.body))


def cheap_or_stored(ctx: Context, value: Array, label: str, span: Span) -> Array:
    """Return the array itself where its elements are cheap to recompute, else materialized."""
    return value if is_cheap(value) else in_memory(ctx, value, label, span)


def with_sums_stored(ctx: Context, value: Array, label: str, span: Span) -> Array:
    """Return the array, materialized where its elements contain reductions.

    For consumers that read elements repeatedly or singly, while a matrix product is best computed
    as a whole.
    """
    has_sums = any(isinstance(e, Reduce) for e in walk(value.body))
    return in_memory(ctx, value, label, span) if has_sums else value


def reduce(
    ctx: Context,
    op: Op,
    value: Array,
    axes: Sequence[int],
    span: Span,
    keepdims: bool = False,
    kind: Kind | None = None,
) -> Value:
    """Return the reduction by `op` over some axes, in the kind given (default: that of the value).

    A scalar where no axis is left.
    """
    result_kind = kind or value.kind
    symbols = ctx.axes(value.rank)
    body = cast(value.at(tuple(var(name) for name in symbols)), result_kind.dtype.compute)
    ranges = tuple(Range(symbols[axis], const(0), value.shape[axis]) for axis in axes)
    expr = Reduce(op, Domain(ranges), body, result_kind.dtype.compute, span=span)
    free_axes = [axis for axis in range(value.rank) if axis not in axes]
    if keepdims:
        unit_axes = {axis: ctx.symbol("i") for axis in axes}
        out = tuple(unit_axes.get(axis, symbols[axis]) for axis in range(value.rank))
        shape = tuple(
            const(1) if axis in unit_axes else value.shape[axis] for axis in range(value.rank)
        )
        order = of_operands(ctx, [value], value.shape)
        return Array(out, shape, expr, strong(result_kind), copied=True, order=order)
    if not free_axes:
        return Scalar(expr, strong(result_kind))
    return Array(
        tuple(symbols[axis] for axis in free_axes),
        tuple(value.shape[axis] for axis in free_axes),
        expr, strong(result_kind), copied=True, order=of_rest(ctx, value, free_axes),
    )  # fmt: skip


def count(shape: Sequence[Affine], axes: Sequence[int]) -> Affine:
    """Return the number of elements along some axes."""
    total = const(1)
    for axis in axes:
        total = multiply(total, shape[axis])
    return total


def stack(
    ctx: Context, arrays: Sequence[Array], axis: int, span: Span, kind: Kind | None = None
) -> Array:
    """Return the arrays stacked along a new axis, as a new array of a kind.

    Without one, of the strong kind that `np.array` gives to a list of them: each is promoted with
    what those before it promote to.
    """
    kind = kind or fold_left(join, (strong(array.kind) for array in arrays))
    shape = arrays[0].shape
    for array in arrays[1:]:
        if array.rank != len(shape) or any(map(ctx.assumptions.differ, array.shape, shape)):
            texts = " and ".join(shape_text(x) for x in dict.fromkeys(a.shape for a in arrays))
            text = f"items of shapes {texts} make no array"
            raise error("CD0313", CdShapeError, text, span)
        for size, expected_size in zip(array.shape, shape, strict=True):
            ctx.equal_extents(size, expected_size, "items of different shapes make no array", span)
    at = axis % (len(shape) + 1)
    full = (*shape[:at], const(len(arrays)), *shape[at:])
    node = ctx.node("stacked", full, kind.dtype)
    for position, array in enumerate(arrays):
        element = broadcast_to(ctx, array, shape, span)
        axes = ctx.axes(len(shape))
        index = tuple(var(a) for a in axes)
        target = Array(
            axes, shape, Read(node, (*index[:at], const(position), *index[at:]), span),
            Kind(kind.dtype),
        )  # fmt: skip
        ctx.store(target, cast(element.at(index), kind.dtype), span)
    return ctx.whole(node, span)


def contract(
    ctx: Context, left: Array, right: Array, pairs: Sequence[tuple[int, int]], span: Span
) -> Value:
    """Return the sum of left * right over paired axes; free axes: those of left, then of right."""
    left, right = (
        cheap_or_stored(ctx, left, "left", span),
        cheap_or_stored(ctx, right, "right", span),
    )
    for a, b in pairs:
        ctx.equal_extents(left.shape[a], right.shape[b], "the contracted axes differ", span)
    names_left, names_right = list(ctx.axes(left.rank)), list(ctx.axes(right.rank))
    for a, b in pairs:
        names_right[b] = names_left[a]
    expr, kind = apply(
        "mul",
        (left.at(tuple(var(n) for n in names_left)), left.kind),
        (right.at(tuple(var(n) for n in names_right)), right.kind),
    )
    ranges = tuple(Range(names_left[a], const(0), left.shape[a]) for a, _ in pairs)
    op = OPS["or"] if kind.dtype.kind == "b" else OPS["add"]
    total = Reduce(op, Domain(ranges), expr, kind.dtype.compute, span=span) if pairs else expr
    free_left = [n for n in range(left.rank) if n not in {a for a, _ in pairs}]
    free_right = [n for n in range(right.rank) if n not in {b for _, b in pairs}]
    axes = (*(names_left[n] for n in free_left), *(names_right[n] for n in free_right))
    shape = (*(left.shape[n] for n in free_left), *(right.shape[n] for n in free_right))
    if not axes:
        return Scalar(total, strong(kind))
    return Array(axes, shape, total, strong(kind), copied=True)


def permuted(value: Array, order: Sequence[int]) -> Array:
    """Return the transposed array, axis `n` of it being axis `order[n]`; of a view, a view."""
    return Array(
        tuple(value.axes[n] for n in order), tuple(value.shape[n] for n in order),
        value.body, value.kind, value.copied,
    )  # fmt: skip


def renamed(ctx: Context, value: Array) -> Array:
    """Return the array over fresh axis symbols (alpha-renamed), so that both can be combined."""
    axes = ctx.axes(value.rank)
    body = replace_symbols(value.body, dict(zip(value.axes, map(var, axes), strict=True)))
    return Array(axes, value.shape, body, value.kind, value.copied)


def _apply_under_mask(
    ctx: Context,
    combine: Callable[..., tuple[Expr, Kind]],
    values: Sequence[Value],
    masked: Masked,
    span: Span,
) -> Value:
    """Return an elementwise operation on selections under one mask, and what broadcasts to them."""
    operands: list[Value] = []
    for value in values:
        if isinstance(value, Scalar | Static):
            operands.append(value)
            continue
        given = value if isinstance(value, Masked) else as_array(ctx, value, span)
        operand = aligned(ctx, given, masked, span)
        if operand is None:
            raise unaligned(
                "a masked selection combines only with numbers, selections under the same mask, "
                "and arrays along its other axes", span,
            )  # fmt: skip
        operands.append(operand)
    result = elementwise(ctx, combine, operands, span)
    assert isinstance(result, Array), "a selection of an array is an array"
    start = result.rank - masked.mask.rank - masked.trailing
    return Masked(result, masked.mask, masked.held, start)
