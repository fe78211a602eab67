"""`is` and `is not`: decided when compiling, refused where the path of the run decides."""

from __future__ import annotations

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
