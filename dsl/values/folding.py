"""Constant folding of Python's operators and functions, with a bound on the size of results.

Elaboration runs in the user's process, so that a constant expression whose result would take
hours or exhaust memory has to be refused before it is evaluated.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

PYTHON: dict[str, Callable[..., object]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
    "//": operator.floordiv, "%": operator.mod, "**": operator.pow, "&": operator.and_,
    "|": operator.or_, "^": operator.xor, "<<": operator.lshift, ">>": operator.rshift,
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge, "is": operator.is_, "is not": operator.is_not,
    "in": lambda a, b: a in b, "not in": lambda a, b: a not in b,
}  # fmt: skip

PYTHON_UNARY: dict[str, Callable[..., object]] = {
    "-": operator.neg, "+": operator.pos,
    "~": lambda a: operator.invert(int(a) if isinstance(a, bool) else a),  # newer Pythons warn
}  # fmt: skip

LONGEST = 1 << 22
"""The most bits of a folded integer, and elements of a folded string or sequence: more than a
million digits."""


def fold(
    function: Callable[..., Any], args: Sequence[Any], keywords: Mapping[str, Any] | None = None
) -> Any:
    """Return the result of a function on constants; its exceptions propagate.

    OverflowError where the result would have more than `LONGEST` bits or elements.
    """
    size = _bound_size(function, args)
    if size > LONGEST:
        unit = "elements" if any(isinstance(arg, _SEQUENCES) for arg in args) else "bits"
        raise OverflowError(f"its result has more than {LONGEST:,} {unit}")
    return function(*args, **(keywords or {}))


_SEQUENCES = (str, bytes, list, tuple)


def _bound_size(function: Callable[..., Any], args: Sequence[Any]) -> int:
    """Return an upper bound of the bits or elements of a result, 0 where it is no larger than the
    arguments."""
    match args:
        case (int(base), int(exponent)) if function in (operator.pow, pow):
            return abs(base).bit_length() * exponent if abs(base) > 1 else 0
        case (int(number), int(by)) if function is operator.lshift:
            return number.bit_length() + by if number else 0
        case (int(times), items) | (items, int(times)) if function is operator.mul and isinstance(
            items, _SEQUENCES
        ):
            return len(items) * times
        case (int(number),) if function is math.factorial:
            return number * number.bit_length()
        case (int(number), *rest) if function in (math.comb, math.perm):
            chosen = rest[0] if rest and isinstance(rest[0], int) else number
            if function is math.comb:
                chosen = min(chosen, number - chosen)
            return chosen * number.bit_length()
        case _:
            return 0
