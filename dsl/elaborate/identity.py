"""`is` and `is not`: decided when compiling, refused where the path of the run decides.

Members of enumerations are objects of which it is known which they are: so are comparisons of them.
"""

from __future__ import annotations

import enum
from types import FunctionType

from ...lowering.diagnostic import CdTypeError, Span
from .context import error
from .frame import Frame, sources
from .values import Array, Opaque, Scalar, Static, Value


def identity(frame: Frame, op: str, left: Value, right: Value, span: Span) -> Static:
    """Return whether two values are one object, or are not for `is not`.

    CdTypeError CD0208 for arrays that Python would have as one on some paths only.
    """
    if isinstance(left, Static) and isinstance(right, Static):
        same = left.value is right.value
    elif isinstance(left, Opaque) and isinstance(right, Opaque):
        same = left.value is right.value
        frame.inputs.compare(left, right)
    else:
        same = left == right and not isinstance(left, Scalar)
    if not same and isinstance(left, Array) and isinstance(right, Array):
        _refuse_open(frame, left, right, span)
    return Static(same if op == "is" else not same)


def members(left: Value, right: Value) -> tuple[object, object] | None:
    """Return two known objects of which one is a member of an enumeration, None for other values.

    Not where a class of the user's says what is equal to it.
    """
    if not all(isinstance(value, Static | Opaque) for value in (left, right)):
        return None
    one, other = (value.value for value in (left, right) if isinstance(value, Static | Opaque))
    if not any(isinstance(value, enum.Enum) for value in (one, other)):
        return None
    own = any(isinstance(getattr(type(v), "__eq__", None), FunctionType) for v in (one, other))
    return None if own else (one, other)


def _refuse_open(frame: Frame, left: Array, right: Array, span: Span) -> None:
    """Refuse two arrays of which one may be a copy of the other where Python makes none."""
    nodes = [value.base.node for value in (left, right) if value.base is not None]
    if len(set(nodes)) < 2:
        return
    slots = {x.base.node for x in frame.slots.values() if isinstance(x, Array) and x.base}
    one, other = (sources(frame, node) for node in nodes)
    if not (one.isdisjoint(other) and slots.isdisjoint(nodes)):
        raise error(
            "CD0208", CdTypeError,
            "these are one array on some paths through the function, two on others", span,
            helps=("test what decides it, or compare what they hold: `np.array_equal(a, b)`",),
        )  # fmt: skip
