"""Constant tables: many numbers known when compiling are data given to the code, not statements.

A list of a thousand numbers as an array, or as what a loop goes over, is one hidden input of the
compiled form: the same array in every call, which nobody writes. Few numbers stay constants of the
text, which passes fold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

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
"""From more numbers than these a table is made."""
_WEAK: dict[type, Kind] = {
    bool: WEAK_BOOL, int: WEAK_INT, float: WEAK_FLOAT, complex: WEAK_COMPLEX,
}  # fmt: skip
_DTYPES: dict[np.dtype[Any], DType] = {t.numpy: t for t in dtypes.ALL if t.name != "bfloat16"}
_SAFE = 2**31
"""Integers of a larger size stay numbers of Python: products of two of them may not fit."""

_Plain = bool | int | float | complex | np.generic


def array_table(ctx: Context, value: Value, span: Span) -> Array | None:
    """Return nested sequences of many constants as an array, as NumPy makes one of them.

    None where they are few, not all known, of types that do not mix to one that NumPy would take,
    or not of one length.
    """
    found: list[_Plain] = []
    nested = _plain(value, found)
    if nested is None or len(found) <= LEAST or ctx.constant is None:
        return None
    kinds = set(map(type, found))
    if not (kinds <= {bool, int, float, complex} or len(kinds) == 1):
        return None
    try:
        data = np.array(nested)
    except (ValueError, OverflowError):
        return None
    if data.size != len(found) or data.dtype not in _DTYPES or data.dtype == np.uint64:
        return None
    node = ctx.constant(data, _DTYPES[data.dtype])
    axes = ctx.axes(data.ndim)
    body = Read(node, tuple(map(var, axes)), span)
    return Array(axes, node.shape, body, Kind(node.dtype), copied=True)


def _plain(value: Value, found: list[_Plain]) -> list[Any] | None:
    """Return nested sequences of constants as lists, its numbers added to those found."""
    match value:
        case Group(items) if items:
            rows = [_plain_item(item, found) for item in items]
        case Static(tuple() | list() as inner) if inner:
            rows = [_plain_item(Static(item), found) for item in inner]
        case _:
            return None
    return None if any(row is None for row in rows) else rows


def _plain_item(value: Value, found: list[_Plain]) -> Any:
    match value:
        case Static(inner) if type(inner) in _WEAK or isinstance(inner, np.number | np.bool_):
            found.append(inner)  # type: ignore[arg-type]
            return inner
        case _:
            return _plain(value, found)


def items_table(
    ctx: Context, items: Sequence[Value], span: Span
) -> Callable[[Affine], Value] | None:
    """Return how to read the items of a long sequence at a run-time position, None for no way.

    The items are numbers of one Python type, or tuples and lists of those that are all alike.
    """
    if len(items) <= LEAST or ctx.constant is None:
        return None
    first = items[0]
    if isinstance(first, Group | Static) and (width := _width(first)) is not None:
        rows = [_members(item) for item in items if _width(item) == width]
        if len(rows) < len(items):
            return None
        columns = [items_table(ctx, [row[n] for row in rows], span) for n in range(width)]
        readers = [column for column in columns if column is not None]
        if len(readers) < width:
            return None
        model = first if isinstance(first, Group) else Group((), type(first.value).__name__)
        return lambda at: model.of(read(at) for read in readers)
    return _numbers_table(ctx, items, span)


def _numbers_table(
    ctx: Context, items: Sequence[Value], span: Span
) -> Callable[[Affine], Value] | None:
    numbers = [item.value for item in items if isinstance(item, Static)]
    kinds = set(map(type, numbers))
    kind = _WEAK.get(next(iter(kinds))) if len(kinds) == 1 else None
    if kind is None or kind == WEAK_BOOL or len(numbers) < len(items):
        return None
    if kind == WEAK_INT and max(map(abs, numbers)) > _SAFE:  # type: ignore[arg-type]
        return None
    assert ctx.constant is not None
    node = ctx.constant(np.array(numbers, kind.dtype.numpy), kind.dtype)
    return lambda at: Scalar(Read(node, (at,), span), kind)


def _width(value: Value) -> int | None:
    """Return how many items a tuple or list has, None for what is neither."""
    match value:
        case Group(items, _, fields):
            return len(items) if not fields and items else None
        case Static(inner) if type(inner) in (tuple, list) and inner:
            return len(inner)  # type: ignore[arg-type]
        case _:
            return None


def _members(value: Value) -> Sequence[Value]:
    match value:
        case Group(items):
            return items
        case Static(tuple() | list() as inner):
            return [Static(item) for item in inner]
        case _:
            return ()


def known_item(ctx: Context, node: Node, index: Sequence[object]) -> Static | None:
    """Return the number of a table at a position that is known, None for other reads."""
    data = ctx.tables.get(node)
    at = [one.constant for one in index if isinstance(one, Affine)]
    if data is None or len(at) < len(index) or None in at:
        return None
    return Static(data[tuple(at)].item())


def require_known(ctx: Context, expr: Expr, negative: bool = False) -> None:
    """Ask for the loops to be unrolled whose variables choose numbers of tables in an expression.

    Where `negative` is true, for tables alone that have such numbers: as positions that are known
    they count from the end.
    """
    for read in walk(expr):
        data = ctx.tables.get(read.node) if isinstance(read, Read) else None
        if data is not None and not (negative and (data >= 0).all()):
            assert isinstance(read, Read)
            ctx.require_unrolled(read.index)
