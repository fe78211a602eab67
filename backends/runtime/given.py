"""What a call of a routine gives: arrays and numbers by name, as the code was compiled for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...lowering.diagnostic import CdTypeError, CdValueError, Diagnostic, Label, Span
from ...lowering.ir.assignments import Parameter
from ..interface import Array
from .arrays import as_array, overlaps, relaid
from .link import unfit


def by_name(
    routine: str,
    names: Sequence[str],
    bound: Mapping[str, Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    span: Span,
) -> dict[str, Any]:
    """Return a value for each name that a routine takes: given by place, by name, or bound.

    Raises CdTypeError CD0436 where one is missing or nobody takes it.
    """
    values = {**bound, **dict(zip(names, args, strict=False)), **kwargs}
    unknown = [name for name in kwargs if name not in names]
    missing = [name for name in names if name not in values]
    if unknown or missing or len(args) > len(names):
        raise CdTypeError(
            Diagnostic(
                "CD0436", f"the routine `{routine}` is called with the wrong arguments",
                (Label(span),), (f"it takes {', '.join(names) or 'nothing'}",),
                (f"give it what it lacks: {', '.join(missing)}",) if missing else (),
            )
        )  # fmt: skip
    return values


def fitting(name: str, value: Any, parameter: Parameter) -> Array:
    """Return what a call gives for a parameter as the array that the code was compiled for.

    What is only read is copied: the caller may change it before the routine runs. Raises
    CdTypeError CD0702 where the code is for other arrays.
    """
    node = parameter.node
    if not node.shape and not parameter.written:
        return np.array(value, node.dtype.numpy)
    array = as_array(value, name)
    same = array.shape == node.static_shape and np.can_cast(array.dtype, node.dtype.numpy, "equiv")
    if same and not parameter.written:
        array = relaid(array.astype(node.dtype.numpy), node.strides)
    if why := unfit(parameter, array):
        raise CdTypeError(
            Diagnostic(
                "CD0702", f"`{name}` {why}",
                helps=("compile the function for such an array as well: `f.compile(...)`",),
            )
        )  # fmt: skip
    return array


def require_apart(arrays: Sequence[Array], routine: str) -> None:
    """Raise CdValueError CD0708 where arrays that one call gives share memory."""
    if overlaps(arrays):
        raise CdValueError(
            Diagnostic(
                "CD0708",
                f"arrays given to the routine `{routine}` share memory, and one is written",
                helps=("give it copies of what it only reads",),
            )
        )
