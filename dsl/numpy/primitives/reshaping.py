"""Reshape: split and merged axes, and whether the result is a view.

Old and new axes are matched in groups of equal size, as in `(n, h, w) -> (n, h // 2, 2, w)`. A
group with one old axis is split: the old index is affine in the new index variables. A group with
several old axes is merged: they are recovered by division and remainder, unless the elements are
copied: the copy loops over the old axes, in which the new index is affine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ....base.dataclass import dataclass
from ....base.diagnostic import CdShapeError
from ....lowering.ir.assignments import Fault
from ....lowering.ir.expressions import Position, Read
from ....lowering.ir.indexing import Affine, Symbol, const, floordiv, mod, multiply, var
from ...values.arrays import count
from ...values.broadcasting import shape_text
from ...values.builder import Context, compare, error
from ...values.call_site import Site, multiplied
from ...values.memory_order import binds, is_dense, is_mergeable
from ...values.types import cast
from ...values.values import COPIED_RESHAPE, Array, as_new


@dataclass(frozen=True, slots=True)
class Match:
    """A group of old axes and of new ones with equal numbers of elements."""

    old: tuple[int, ...]
    new: tuple[int, ...]


def reshaped(site: Site, value: Array, sizes: Sequence[Affine | None]) -> Array:
    """Return the array under a shape, where one size may be None: inferred from the others.

    CdShapeError CD0312 where the number of elements differs. A view where NumPy's is one.
    """
    shape = _infer_size(site, value.shape, sizes)
    if shape == value.shape:
        return as_new(value)
    counts = [count(each, range(len(each))).constant for each in (value.shape, shape)]
    if None not in counts and counts[0] != counts[1]:
        raise _mismatch(site, value.shape, shape)
    if counts[0] == 0:  # no elements: any index is as good
        origin = (const(0),) * value.rank
        return Array(site.ctx.axes(len(shape)), shape, value.at(origin), value.kind, value.copied)
    value = _undo_reshape(site, value)
    if shape == value.shape:
        return as_new(value)
    matches = _match_axes(site, value.shape, shape, None in sizes)
    axes = site.ctx.axes(len(shape))
    splits = all(len(match.old) <= 1 for match in matches)
    is_aliased = value.aliased is not None
    groups = [match.old for match in matches]
    mergeable = splits or (is_mergeable(site.ctx, value, groups) if is_aliased else False)
    if mergeable:
        index = _delinearize(matches, value.shape, shape, axes)
        return Array(axes, shape, value.at(index), value.kind, value.copied)
    copied = _copy(site, value, shape, matches)
    if mergeable is None:  # refused where aliasing is observable
        binds(site.ctx, copied, value, site.span)
        return copied
    return replace(copied, sealed=COPIED_RESHAPE) if is_aliased and value.rank else copied


def is_in_order(site: Site, value: Array, axes: Sequence[int]) -> bool | None:
    """Whether the array is contiguous with the last of `axes` innermost; None if dynamic.

    It sets `asks_layout`: the specialization then holds for arguments of this layout only.
    """
    site.ctx.asks_layout = True
    return value.aliased is None or is_dense(site.ctx, value, axes)


def _undo_reshape(site: Site, value: Array) -> Array:
    """Return the base of a view that covers all of it in order, which undoes earlier reshapes."""
    read = value.view
    if read is None or read.node.strides is not None or read.node.rank == value.rank:
        return value
    sizes = count(value.shape, range(value.rank)), count(read.node.shape, range(read.node.rank))
    if sizes[0] != sizes[1] or not is_dense(site.ctx, value, range(value.rank)):
        return value
    return site.ctx.whole(read.node, site.span, value.kind)


def _mismatch(site: Site, old: Sequence[Affine], new: Sequence[Affine]) -> Exception:
    return error(
        "CD0312", CdShapeError,
        f"an array of shape {shape_text(old)} cannot be reshaped to {shape_text(new)}", site.span,
        notes=(f"{count(old, range(len(old)))} elements against {count(new, range(len(new)))}",),
    )  # fmt: skip


def _infer_size(
    site: Site, old: Sequence[Affine], sizes: Sequence[Affine | None]
) -> tuple[Affine, ...]:
    """Return the sizes with the missing one inferred. CdShapeError CD0312 where none fits."""
    given = [size for size in sizes if size is not None]
    if len(given) == len(sizes):
        return tuple(given)
    if any(size.constant == 0 for size in given):
        raise error("CD0312", CdShapeError, _SIZE_OF_ZERO, site.span)
    if len(sizes) - len(given) > 1:
        raise error("CD0312", CdShapeError, "only one size may be -1", site.span)
    factors, divisors = list(old), []
    for size in given:
        if size in factors:
            factors.remove(size)
        else:
            divisors.append(size)
    dividend, divisor = count(factors, range(len(factors))), _divisor(site, divisors)
    if divisor.constant == 0 or (
        divisor.constant and dividend.constant is not None and dividend.constant % divisor.constant
    ):
        shown = [const(-1) if size is None else size for size in sizes]
        raise _mismatch(site, old, shown)
    if divisor.constant is None or mod(dividend, divisor).constant != 0:
        remainder, sides = mod(dividend, divisor), (Position(dividend), Position(divisor))
        text = "{0} elements cannot be reshaped: the sizes beside -1 have the product {1}"
        fault = Fault("CD0312", "CdShapeError", text, ("give sizes that divide it",))
        site.ctx.check_sizes(compare("eq", remainder, const(0)), fault, sides, site.span)
    missing = floordiv(dividend, divisor)
    return tuple(missing if size is None else size for size in sizes)


def _divisor(site: Site, sizes: Sequence[Affine]) -> Affine:
    """Return the product of the sizes beside an inferred one, which is checked not to be zero."""
    divisor = const(1)
    for size in sizes:
        divisor = multiplied(site, divisor, size)
    if divisor.constant is None and not site.ctx.assumptions.less(const(0), divisor):
        fault = Fault("CD0312", "CdShapeError", _SIZE_OF_ZERO, ("give all sizes",))
        site.ctx.guard(Position(divisor), compare("ne", divisor, const(0)), fault, site.span)
    return divisor


_SIZE_OF_ZERO = "no size can be worked out for -1 beside a size 0"


def _match_axes(
    site: Site, old: Sequence[Affine], new: Sequence[Affine], is_inferred: bool
) -> tuple[Match, ...]:
    """Return the groups of matching axes, those of size 1 left out.

    The numbers of elements are checked to be equal, unless a size was inferred so that they are.
    """
    ctx = site.ctx
    left = [n for n, size in enumerate(old) if size.constant != 1]
    right = [n for n, size in enumerate(new) if size.constant != 1]
    out: list[Match] = []
    while left and right:
        olds, news = [left.pop(0)], [right.pop(0)]
        while True:
            a, b = count(old, olds), count(new, news)
            if ctx.assumptions.equal(a, b):
                break
            if left and _is_less(ctx, a, b):
                olds.append(left.pop(0))
            elif right and _is_less(ctx, b, a):
                news.append(right.pop(0))
            else:
                olds, news, left, right = [*olds, *left], [*news, *right], [], []
                if not is_inferred:
                    ctx.equal_extents(count(old, olds), count(new, news), "reshape", site.span)
                break
        out.append(Match(tuple(olds), tuple(news)))
    for n in left:
        ctx.equal_extents(old[n], const(1), "reshape", site.span)
    for n in right:
        ctx.equal_extents(new[n], const(1), "reshape", site.span)
    return tuple(out)


def _is_less(ctx: Context, left: Affine, right: Affine) -> bool:
    return ctx.assumptions.less(left, right)


def _delinearize(
    matches: Sequence[Match],
    old: Sequence[Affine],
    new: Sequence[Affine],
    axes: Sequence[Symbol],
) -> tuple[Affine, ...]:
    """Return the old index of the element at the new index `axes`, delinearized group by group."""
    index = [const(0)] * len(old)
    for match in matches:
        flat = const(0)
        for n in match.new:
            flat = multiply(flat, new[n]) + var(axes[n])
        for n in reversed(match.old[1:]):
            index[n] = mod(flat, old[n])
            flat = floordiv(flat, old[n])
        index[match.old[0]] = flat
    return tuple(index)


def _copy(site: Site, value: Array, shape: tuple[Affine, ...], matches: Sequence[Match]) -> Array:
    """Return a copy in the new shape; its loop is over the old axes: merging needs no division."""
    node = site.ctx.node("reshaped", shape, value.kind.dtype)
    if matches or value.rank == 0:
        inverted = [Match(match.new, match.old) for match in matches]
        index = _delinearize(inverted, shape, value.shape, value.axes)
        target = Array(value.axes, value.shape, Read(node, index, site.span), value.kind)
        site.ctx.store(target, cast(value.body, node.dtype), site.span)
    return site.ctx.whole(node, site.span)
