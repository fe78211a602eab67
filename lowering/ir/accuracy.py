"""Accuracy of the elementary functions: maximum errors in units in the last place (ulp).

The C of the backend `cc` is tested against them; they are the table of docs/numerics.md.
"""

from __future__ import annotations

import numpy as np

from .dtypes import DType
from .expressions import Apply, Expr, children

ULPS: dict[str, tuple[float, float]] = {
    "exp": (1.0, 1.0),
    "exp2": (1.2, 1.2),
    "expm1": (1.2, 1.2),
    "log": (1.0, 1.0),
    "log2": (1.0, 1.0),
    "log10": (1.0, 1.0),
    "log1p": (1.0, 1.0),
    "sin": (0.6, 1.0),
    "cos": (0.6, 1.0),
    "tan": (0.6, 2.5),
    "arcsin": (2.2, 2.2),
    "arccos": (1.5, 1.5),
    "arctan": (2.0, 2.0),
    "arctan2": (2.0, 2.0),
    "sinh": (2.0, 2.0),
    "cosh": (1.5, 1.5),
    "tanh": (2.5, 2.5),
    "arcsinh": (2.5, 2.5),
    "arccosh": (2.5, 2.5),
    "arctanh": (2.5, 2.5),
    "erf": (1.5, 1.5),
    "erfc": (4.0, 5.0),
    "pow": (0.6, 1.2),
    "whole_pow": (0.6, 1.2),
    "half_pow": (0.6, 1.5),
    "cbrt": (0.6, 0.7),
    "hypot": (0.6, 1.0),
}
"""The largest error of each function, in float32 and in float64."""
LIBRARY = 4.0
"""The bound for implementations by others: NumPy, C libraries, those of devices."""
_COMPOSED = ("logaddexp", "angle")
"""Functions composed of others, which no row of the table bounds."""
_COMPLEX = (*ULPS, *_COMPOSED, "sqrt", "sign")
"""Functions that are rounded otherwise from implementation to implementation of a complex
number, though some are exact of real ones."""


def ulps(expr: Apply) -> float:
    """Return how many ulp two backends may differ in one operation: an elementary function has the
    bounds of both, everything else 0.

    >>> from . import dtypes
    >>> from .expressions import Const
    >>> from .ops import OPS
    >>> ulps(Apply(OPS["exp"], (Const(1.0, dtypes.float64),), dtypes.float64))
    5.0
    """
    name, dtype = expr.op.name, expr.dtype
    if dtype.kind == "c" and name in _COMPLEX:
        return 2 * LIBRARY
    if name == "abs" and expr.args[0].dtype.kind == "c":
        name = "hypot"
    if name in ULPS and dtype.kind == "f":
        return max(ULPS[name]) + LIBRARY
    return 2 * LIBRARY if name in _COMPOSED else 0.0


def relative_error(expr: Expr) -> float:
    """Return how much two backends may differ, relatively, in one evaluation of an expression, to
    first order: what its elementary functions may, each in its type.

    >>> from . import dtypes
    >>> from .expressions import Const
    >>> from .ops import OPS
    >>> one = Apply(OPS["exp"], (Const(1.0, dtypes.float64),), dtypes.float64)
    >>> relative_error(one) / epsilon(dtypes.float64)
    5.0
    """
    total = sum(map(relative_error, children(expr)))
    if isinstance(expr, Apply) and (own := ulps(expr)):
        total += own * epsilon(expr.dtype)
    return total


def epsilon(dtype: DType) -> float:
    """Return the distance from 1 to the next number of a type; 0 of integers."""
    return float(np.finfo(np.dtype(dtype.numpy).name).eps) if dtype.kind in "fc" else 0.0
