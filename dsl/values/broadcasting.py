"""Broadcasting of shapes by NumPy's rule: axes of size 1 and missing axes are stretched.

A dynamic size is stretched over another one where it is proven to be 0 or 1.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...base.diagnostic import CdShapeError, Span
from ...lowering.ir.assignments import Fault
from ...lowering.ir.expressions import Position, Select
from ...lowering.ir.indexing import Affine, const, var
from .builder import Context, compare, error
from .fix_hints import WAYS_OUT
from .types import TRUE
from .values import Array

_MISMATCH = "the shapes do not broadcast together"


def broadcast_shape(
    ctx: Context, shapes: Sequence[tuple[Affine, ...]], span: Span
) -> tuple[Affine, ...]:
    """Return the broadcast shape by NumPy's rule. CdShapeError CD0302 where there is none."""
    rank = max((len(shape) for shape in shapes), default=0)
    out: list[Affine] = []
    for axis in range(-rank, 0):
        sizes = [shape[axis] for shape in shapes if len(shape) >= -axis]
        wide = [size for size in sizes if size.constant != 1]
        chosen = min(wide, key=lambda size: _is_at_most_one(ctx, size), default=const(1))
        for size in wide:
            if _stretch_dynamic(ctx, size, chosen, _MISMATCH, span):
                continue
            if ctx.assumptions.differ(chosen, size):
                texts = " and ".join(shape_text(shape) for shape in shapes if shape)
                raise error(
                    "CD0302", CdShapeError, f"shapes {texts} do not broadcast together", span,
                    label=f"axis {axis}: {chosen} against {size}",
                )  # fmt: skip
            ctx.equal_extents(chosen, size, _MISMATCH, span)
        out.append(chosen)
    return tuple(out)


def _is_at_most_one(ctx: Context, size: Affine) -> bool:
    """Whether a dynamic size is proven to be 0 or 1, as that of `x[k:k + 1]`."""
    return size.constant is None and ctx.assumptions.nonnegative(const(1) - size)


def _stretch_dynamic(ctx: Context, size: Affine, wanted: Affine, what: str, span: Span) -> bool:
    """Whether an axis of dynamic size 0 or 1 is stretched over another size; emits the check."""
    if not _is_at_most_one(ctx, size) or _is_at_most_one(ctx, wanted):
        return False
    if ctx.assumptions.equal(size, wanted):
        return False
    test = Select(compare("eq", size, const(1)), TRUE, compare("eq", size, wanted))
    text, sides = f"{what}: sizes {{0}} and {{1}} differ", (Position(size), Position(wanted))
    fault = Fault("CD0301", "CdShapeError", text, WAYS_OUT["CD0301"])
    ctx.check_sizes(test, fault, sides, span)
    return True


def shape_text(shape: Sequence[Affine]) -> str:
    """Return a shape as Python writes it: `(3,)`, `(3, 4)`."""
    inner = ", ".join(str(extent) for extent in shape)
    return f"({inner},)" if len(shape) == 1 else f"({inner})"


def broadcast_to(ctx: Context, value: Array, shape: tuple[Affine, ...], span: Span) -> Array:
    """Return the array broadcast to `shape` along size-1 and missing axes; it is not writable."""
    if value.shape == shape:
        return value
    if len(value.shape) > len(shape):
        raise error(
            "CD0302",
            CdShapeError,
            f"shape {shape_text(value.shape)} does not broadcast to {shape_text(shape)}",
            span,
        )
    axes = ctx.axes(len(shape))
    index: list[Affine] = []
    for size, wanted, axis in zip(
        value.shape, shape[len(shape) - value.rank :], axes[len(shape) - value.rank :], strict=True
    ):
        what = f"shape {shape_text(value.shape)} does not broadcast to {shape_text(shape)}"
        stretched = size.constant == 1 and wanted.constant != 1
        stretched = stretched or _stretch_dynamic(ctx, size, wanted, what, span)
        if not stretched:
            ctx.equal_extents(size, wanted, what, span)
        index.append(const(0) if stretched else var(axis))
    return Array(axes, shape, value.at(tuple(index)), value.kind, copied=True)
