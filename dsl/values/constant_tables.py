"""Constant tables: long sequences of static numbers are data of the compiled code, not statements.

A list of a thousand numbers, used as an array or iterated by a loop, is one hidden read-only input
of the specialization: the same array in every call. Short sequences stay constants in the code,
which passes fold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeGuard

import numpy as np

from ...base.diagnostic import Span
from ...lowering.ir import dtypes
from ...lowering.ir.dtypes import DType
from ...lowering.ir.expressions import Expr, Read, walk
from ...lowering.ir.indexing import Affine, var
from ...lowering.ir.node import Node
from .builder import Context
from .types import WEAK_BOOL, WEAK_COMPLEX, WEAK_FLOAT, WEAK_INT, Kind
from .values import Array, Group, Scalar, Static, Value

LEAST = 64
"""Sequences of more numbers than this become tables."""
_WEAK: dict[type, Kind] = {
    bool: WEAK_BOOL, int: WEAK_INT, float: WEAK_FLOAT, complex: WEAK_COMPLEX,
}  # fmt: skip
_DTYPES: dict[np.dtype[Any], DType] = {t.numpy: t for t in dtypes.ALL if t.name != "bfloat16"}
_LARGEST_INT = 2**31
"""Sequences with larger integers are not tables: products of two of them may overflow int64."""

_Number = bool | int | float | complex | np.generic


def array_table(ctx: Context, value: Value, span: Span) -> Array | None:
    """Return long nested sequences of constants as an array, with the type and shape of NumPy's.

    None where they are short, not all static, of types without a common NumPy type, or ragged.
    """
    numbers: list[_Number] = []
    nested = _flatten(value, numbers)
    if nested is None or len(numbers) <= LEAST or ctx.constant is None:
        return None
    kinds = set(map(type, numbers))
    if not (kinds <= {bool, int, float, complex} or len(kinds) == 1):
        return None
    try:
        data = np.array(nested)
    except (ValueError, OverflowError):
        return None
    if data.size != len(numbers) or data.dtype not in _DTYPES or data.dtype == np.uint64:
        return None
    node = ctx.constant(data, _DTYPES[data.dtype])
    axes = ctx.axes(data.ndim)
    body = Read(node, tuple(map(var, axes)), span)
    return Array(axes, node.shape, body, Kind(node.dtype), copied=True)


def _flatten(value: Value, numbers: list[_Number]) -> list[Any] | None:
    """Return nested sequences of constants as lists, their numbers appended to `numbers`."""
    match value:
        case Group(items) if items:
            rows = [_flatten_item(item, numbers) for item in items]
        case Static(tuple() | list() as inner) if inner:
            rows = [_flatten_item(Static(item), numbers) for item in inner]
        case _:
            return None
    return None if any(row is None for row in rows) else rows


def _is_number(value: object) -> TypeGuard[_Number]:
    return type(value) in _WEAK or isinstance(value, np.number | np.bool_)


def _flatten_item(value: Value, numbers: list[_Number]) -> Any:
    match value:
        case Static(inner) if _is_number(inner):
            numbers.append(inner)
            return inner
        case _:
            return _flatten(value, numbers)


def items_table(
    ctx: Context, items: Sequence[Value], span: Span, least: int = LEAST
) -> Callable[[Affine], Value] | None:
    """Return a reader of the items of a sequence at a run-time position, None if not a table.

    The items, more than `least`, are numbers of one Python type, or tuples or lists of them of one
    structure.
    """
    if len(items) <= least or ctx.constant is None:
        return None
    first = items[0]
    if isinstance(first, Group | Static) and (width := _count_items(first)) is not None:
        rows = [_list_items(item) for item in items if _count_items(item) == width]
        if len(rows) < len(items):
            return None
        columns = [items_table(ctx, [row[n] for row in rows], span, least) for n in range(width)]
        readers = [column for column in columns if column is not None]
        if len(readers) < width:
            return None
        model = first if isinstance(first, Group) else Group((), type(first.value).__name__)
        return lambda at: model.of(read(at) for read in readers)
    return _number_reader(ctx, items, span)


def _number_reader(
    ctx: Context, items: Sequence[Value], span: Span
) -> Callable[[Affine], Value] | None:
    numbers = [item.value for item in items if isinstance(item, Static)]
    kinds = set(map(type, numbers))
    kind = _WEAK.get(next(iter(kinds))) if len(kinds) == 1 else None
    if kind is None or kind == WEAK_BOOL or len(numbers) < len(items):
        return None
    if any(isinstance(number, int) and abs(number) > _LARGEST_INT for number in numbers):
        return None
    assert ctx.constant is not None
    node = ctx.constant(np.array(numbers, kind.dtype.numpy), kind.dtype)
    return lambda at: Scalar(Read(node, (at,), span), kind)


def _count_items(value: Value) -> int | None:
    """Return the length of a nonempty tuple (not a named one) or list, None for others."""
    match value:
        case Group(items, _, fields):
            return len(items) if not fields and items else None
        case Static(inner) if type(inner) in (tuple, list) and inner:
            return len(inner)  # type: ignore[arg-type]
        case _:
            return None


def _list_items(value: Value) -> Sequence[Value]:
    match value:
        case Group(items):
            return items
        case Static(tuple() | list() as inner):
            return [Static(item) for item in inner]
        case _:
            return ()


def static_item(ctx: Context, node: Node, index: Sequence[object]) -> Static | None:
    """Return the number of a table at a static position, None for other reads."""
    data = ctx.tables.get(node)
    at = [subscript.constant for subscript in index if isinstance(subscript, Affine)]
    if data is None or len(at) < len(index) or None in at:
        return None
    return Static(data[tuple(at)].item())


def require_static_reads(ctx: Context, expr: Expr, negative: bool = False) -> None:
    """Raise NeedUnroll for loops whose variables subscript tables in an expression.

    With `negative`, only for tables that have negative numbers: as static positions these count
    from the end.
    """
    for read in walk(expr):
        data = ctx.tables.get(read.node) if isinstance(read, Read) else None
        if data is not None and not (negative and (data >= 0).all()):
            assert isinstance(read, Read)
            ctx.require_unrolled(read.index)
