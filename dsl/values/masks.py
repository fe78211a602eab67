"""Boolean masks: whether masked selections have the same elements, and what broadcasts to them."""

from __future__ import annotations

from ...base.diagnostic import CdError, CdTypeError, Span
from ...lowering.ir import dtypes
from ...lowering.ir.assignments import Fault
from ...lowering.ir.expressions import Apply, Domain, Position
from ...lowering.ir.indexing import const, var
from ...lowering.ir.ops import OPS
from .builder import Context, error
from .fix_hints import WAYS_OUT
from .values import Array, Masked


def of_same_elements(ctx: Context, first: Masked, second: Masked, span: Span) -> bool:
    """Whether two selections have the same elements: proven, or checked at run time.

    A selection bound to a name holds a copy of its mask as of that time. That the other mask is
    still equal to it is checked at run time: CdTypeError CD0403.
    """
    left, right = first.mask, second.mask
    if left.rank != right.rank:
        return False
    pairs = list(zip(left.shape, right.shape, strict=True))
    if any(ctx.assumptions.differ(size, wanted) for size, wanted in pairs):
        return False
    right_body = right.at(tuple(var(axis) for axis in left.axes))
    if left.shape == right.shape and left.body == right_body:
        return True
    if not (first.held or second.held):
        return False
    for axis, (size, wanted) in enumerate(pairs):
        what = f"two masks do not have one size along axis {axis}"
        ctx.equal_extents(size, wanted, what, span)
    numbers = ", ".join(f"{{{n}}}" for n in range(left.rank))
    fault = Fault(
        "CD0403", "CdTypeError", "selections meet whose masks differ, first at position "
        f"{numbers if left.rank == 1 else f'({numbers})'}", WAYS_OUT["two masks"],
    )  # fmt: skip
    equal = Apply(OPS["eq"], (left.body, right_body), dtypes.bool_)
    at = tuple(Position(var(axis)) for axis in left.axes)
    ctx.check(equal, fault, at, span, Domain(left.ranges))
    return True


def aligned(ctx: Context, value: Array | Masked, selection: Masked, span: Span) -> Array | None:
    """Return an operand that meets a selection as an array that broadcasts to `selection.array`.

    An array broadcasts along the other axes of the selection, and has the size 1 along the selected
    one; another selection has the same elements. None for others.
    """
    if isinstance(value, Masked):
        is_same = value.trailing == selection.trailing
        is_same = is_same and of_same_elements(ctx, value, selection, span)
        return value.array if is_same else None
    at = value.rank - selection.trailing - 1
    if at < 0:
        return value
    if value.shape[at].constant != 1:
        return None
    units = ctx.axes(selection.mask.rank)
    index = (*map(var, value.axes[:at]), const(0), *map(var, value.axes[at + 1 :]))
    axes = (*value.axes[:at], *units, *value.axes[at + 1 :])
    shape = (*value.shape[:at], *(const(1) for _ in units), *value.shape[at + 1 :])
    return Array(axes, shape, value.at(index), value.kind, copied=True)


def unaligned(text: str, span: Span) -> CdError:
    """Return CdTypeError CD0403: an operand that does not broadcast to a selection.

    `text` says what would do so.
    """
    return error(
        "CD0403", CdTypeError, f"{text}: the length of the selection is known only at run time",
        span, helps=WAYS_OUT["two masks"],
    )  # fmt: skip
