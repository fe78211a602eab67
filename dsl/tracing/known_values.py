"""The value of a scalar expression at a point, from the elements whose values a trace has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_never

import numpy as np

from ...lowering.ir.dtypes import DType
from ...lowering.ir.expressions import (
    Apply,
    Cast,
    Const,
    Expr,
    Index,
    Position,
    Read,
    Reduce,
    Select,
)
from ...lowering.ir.indexing import Affine, Symbol, evaluate
from ...lowering.ir.ops import Op
from ...lowering.ir.scalars import conversion_function, scalar_function

Elements = Mapping[tuple[int, tuple[int, ...]], Any]
"""The values of elements, by the id of a node and an index; None where one is unknown."""


def known_test(test: Expr, symbols: Mapping[Symbol, int], elements: Elements) -> bool | None:
    """Return whether a condition holds at a point, None where it reads what is unknown."""
    with np.errstate(all="ignore"):
        result = _known_value(test, symbols, elements)
    return None if result is None else bool(result)


def _known_value(expr: Expr, symbols: Mapping[Symbol, int], elements: Elements) -> Any:
    """Return the value of an expression, a NumPy scalar of its type; None where it is unknown."""
    match expr:
        case Const(value, dtype):
            return dtype.numpy.type(value)
        case Position(index):
            return np.int64(evaluate(index, symbols)) if _is_known(index, symbols) else None
        case Read(node, subscripts):
            at = [_subscript(subscript, symbols, elements) for subscript in subscripts]
            indices = tuple(n for n in at if n is not None)
            return elements.get((node.id, indices)) if len(indices) == len(at) else None
        case Apply(Op(name="and" | "or" | "bitand" | "bitor" as name), args, DType(kind="b")):
            return _known_connective(name.endswith("or"), args, symbols, elements)
        case Apply(op, args, _):
            values = [_known_value(arg, symbols, elements) for arg in args]
            if any(value is None for value in values):
                return None
            return scalar_function(op, args[0].dtype)(*values)
        case Cast(value, dtype):
            inner = _known_value(value, symbols, elements)
            return None if inner is None else conversion_function(value.dtype, dtype)(inner)
        case Select(test, yes, no):
            holds = _known_value(test, symbols, elements)
            return None if holds is None else _known_value(yes if holds else no, symbols, elements)
        case Reduce():
            return None
        case _:
            assert_never(expr)


def _known_connective(
    decisive: bool, args: tuple[Expr, ...], symbols: Mapping[Symbol, int], elements: Elements
) -> Any:
    """Return the value of `or`, else of `and`: an operand that is `decisive` decides it."""
    values = [_known_value(arg, symbols, elements) for arg in args]
    if any(value is not None and bool(value) is decisive for value in values):
        return np.bool_(decisive)
    return None if any(value is None for value in values) else np.bool_(not decisive)


def _subscript(index: Index, symbols: Mapping[Symbol, int], elements: Elements) -> int | None:
    if isinstance(index, Affine):
        return evaluate(index, symbols) if _is_known(index, symbols) else None
    value = _known_value(index.value, symbols, elements)
    return None if value is None else int(value)


def _is_known(index: Affine, symbols: Mapping[Symbol, int]) -> bool:
    return index.symbols() <= symbols.keys()
