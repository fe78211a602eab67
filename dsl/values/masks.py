"""Boolean masks: whether two masked selections have the same elements."""

from __future__ import annotations

from ...base.diagnostic import Span
from ...lowering.ir import dtypes
from ...lowering.ir.assignments import Fault
from ...lowering.ir.expressions import Apply, Domain, Position
from ...lowering.ir.indexing import var
from ...lowering.ir.ops import OPS
from .builder import Context
from .fix_hints import WAYS_OUT
from .values import Masked


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
